import {
  emptyTree,
  folderAt,
  folderIfShown,
  isFolder,
  listAgain,
  pathTo,
  type Tree,
  withFolder,
  withOpenFolder,
  withPage,
  withReloadedFolder,
  withStaleFolders,
} from '../../../browse/tree.ts'
import { defined } from '../../../core/kit/object.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../../core/view.ts'
import { sortNaturally } from './columns.ts'
import { rowsOf, type TreeRow } from './rows.ts'

export type Forest = ReturnType<typeof createForest>

interface ForestOptions {
  onChange(): void
  /** Called with every page of resources. */
  onPage?(resources: readonly Resource[]): void
  /** Whether a mount can be opened that is a directory or has no type. By default it can. */
  isExpandable?(mount: Resource): boolean
  /** Returns the mounts in display order. By default the order of the server. */
  arrange?(mounts: readonly Resource[]): readonly Resource[]
  /** Whether a mount may be a single resource. The first {@link maxLookedInto} of these are listed to find out. By default none may. */
  mayBeSingle?(mount: Resource): boolean
  /** Whether a mount is open at first. By default it is closed. A sole mount is opened in any case. */
  isOpenAtFirst?(mount: Resource): boolean
}

const maxLookedInto = 20

export function createForest(
  view: View,
  { onChange, onPage = () => {}, isExpandable = () => true, ...options }: ForestOptions,
) {
  let state: 'loading' | 'loaded' | 'failed' = 'loading'
  let error: unknown
  let rows: readonly TreeRow[] | undefined
  /** Resources of mounts that consist of a single resource, by the URI of the mount. */
  const singles = new Map<string, Resource>()

  const tell = () => {
    rows = undefined
    onChange()
  }
  const isDirectory = (resource: Resource, depth: number) =>
    depth > 0
      ? isFolder(resource)
      : !singles.has(resource.uri) && (isFolder(resource) || resource.mimeType === undefined) && isExpandable(resource)
  const loads = createLoads(view, onPage, tell)

  const open = (uri: string) => {
    const { isOpen, next, stale } = folderAt(loads.tree, uri)
    if (isOpen) return
    loads.tree = withOpenFolder(loads.tree, uri)
    if (next === '') void loads.load(uri)
    else if (stale !== undefined) void loads.reload(uri).then(tell)
    tell()
  }

  const start = async () => {
    const isFirst = (loads.tree.roots ?? []).length === 0
    if (isFirst) state = 'loading'
    tell()
    let mounts: readonly Resource[] = []
    try {
      const mountResources = await view.mounts()
      mounts = options.arrange?.(mountResources) ?? mountResources
      onPage(mounts)
      loads.tree = { ...loads.tree, roots: mounts.map((mount) => singles.get(mount.uri) ?? mount) }
      state = 'loaded'
      error = undefined
      const openMounts =
        mounts.length === 1 ? mounts : isFirst ? mounts.filter((one) => options.isOpenAtFirst?.(one)) : []
      for (const mount of openMounts)
        if (isDirectory(mount, 0) && folderAt(loads.tree, mount.uri).next === '') open(mount.uri)
    } catch (thrown) {
      error = thrown
      if (isFirst) state = 'failed'
    }
    tell()
    const maySettle = mounts.filter((mount) => options.mayBeSingle?.(mount))
    await Promise.all(maySettle.slice(0, maxLookedInto).map(settle))
  }

  /** Shows a mount that consists of a single resource as that resource. */
  const settle = async (mount: Resource) => {
    const single = await singleOf(view, mount).catch(() => undefined)
    const { roots = [] } = loads.tree
    if (single === undefined || !roots.some(({ uri }) => uri === mount.uri)) return
    singles.set(mount.uri, single)
    loads.tree = { ...loads.tree, roots: roots.map((root) => (root.uri === mount.uri ? single : root)) }
    onPage([single])
    tell()
  }

  const more = (uri: string) => {
    const { next, failure } = folderAt(loads.tree, uri)
    if (next !== undefined) void loads.load(uri)
    else if (failure !== undefined) void loads.reload(uri).then(tell)
  }

  return {
    get rows(): readonly TreeRow[] {
      rows ??= rowsOf(loads.tree, isDirectory, loads.isLoading)
      return rows
    },
    get state() {
      return state
    },
    get error() {
      return error
    },
    get mounts() {
      return loads.tree.roots ?? []
    },
    reconsider: tell,
    /** Loads the mounts, and opens those that are open at first. Never rejects: see `error`. */
    start,
    open,
    close: (uri: string) => {
      if (!folderAt(loads.tree, uri).isOpen) return
      loads.tree = withFolder(loads.tree, uri, { isOpen: false })
      tell()
    },
    /** Loads the next page of a directory, or retries a failed load. */
    more,
    /** Retries everything that could not be loaded. */
    retry: () => {
      if (state === 'failed') void start()
      for (const [uri, { failure }] of loads.tree.folders) if (failure !== undefined) more(uri)
    },
    refresh: async () => {
      await start()
      const changedUris = await loads.reloadAll()
      tell()
      return changedUris
    },
    /** Opens all directories above a resource. Resolves to the URI of its row; `undefined` if it is not found. Rejects when aborted. */
    reveal: async (uri: string, signal: AbortSignal) => {
      const way = await loadWay(loads, uri, isDirectory, signal)
      if (way?.found === undefined) return undefined
      loads.tree = way.folders.reduce(withOpenFolder, loads.tree)
      tell()
      return way.found.uri
    },
  }
}

async function loadWay(loads: Loads, uri: string, isDirectory: Parameters<typeof pathTo>[2], signal: AbortSignal) {
  for (;;) {
    const way = pathTo(loads.tree, uri, isDirectory)
    if (way.lacks === undefined) return way
    await loads.load(way.lacks)
    signal.throwIfAborted()
    if (folderAt(loads.tree, way.lacks).failure !== undefined) return undefined
  }
}

/** Loads the contents of directories into a tree, page by page. */
interface Loads {
  tree: Tree<unknown>
  isLoading(uri: string): boolean
  /** Loads the next page of a directory, or waits for a running load. */
  load(uri: string): Promise<void>
  reload(uri: string): Promise<readonly string[]>
  reloadAll(): Promise<readonly string[]>
}

/** Creates the loads of an empty tree. */
function createLoads(view: View, onPage: (resources: readonly Resource[]) => void, tell: () => void): Loads {
  const loading = new Map<string, Promise<unknown>>()
  const pageOf = async (uri: string, cursor: string | undefined): Promise<Page<Resource>> => {
    const page = await view.directory({ uri, ...(cursor ? { cursor } : {}) })
    onPage(page.items)
    return page
  }
  const ordered = (tree: Tree<unknown>, uri: string) =>
    withFolder(tree, uri, { items: sortNaturally(folderAt(tree, uri).items) })

  const tracked = (uri: string, work: () => Promise<readonly string[]>): Promise<readonly string[]> => {
    const result = work()
      .catch((failure: unknown): readonly string[] => {
        loads.tree = withFolder(loads.tree, uri, { failure })
        return []
      })
      .finally(() => loading.delete(uri))
    loading.set(uri, result)
    return result
  }

  const loads: Loads = {
    tree: emptyTree,
    isLoading: (uri) => loading.has(uri),
    load: async (uri) => {
      const { next: cursor } = folderAt(loads.tree, uri)
      if (loading.has(uri) || cursor === undefined) return void (await loading.get(uri))
      loads.tree = withFolder(loads.tree, uri, { failure: undefined })
      const loaded = tracked(uri, async () => {
        const page = await pageOf(uri, cursor)
        loads.tree = ordered(withPage(loads.tree, uri, cursor, page), uri)
        return []
      })
      tell()
      await loaded
      tell()
    },
    reload: async (uri) => {
      await loading.get(uri)
      return tracked(uri, async () => {
        const least = folderAt(loads.tree, uri).items.length
        const listed = await listAgain((cursor) => pageOf(uri, cursor), least)
        const { tree, changed } = withReloadedFolder(loads.tree, uri, listed)
        loads.tree = ordered(tree, uri)
        return changed
      })
    },
    reloadAll: async () => {
      const folders = [...loads.tree.folders].flatMap(([uri, { next }]) => (next === '' ? [] : [uri]))
      loads.tree = withStaleFolders(loads.tree, folders)
      const reloadIn = async (items: readonly Resource[], above: readonly string[]): Promise<readonly string[]> => {
        const changedUris: string[] = []
        for (const { uri } of items) {
          const folder = folderIfShown(loads.tree, uri, above)
          if (folder === undefined) continue
          if (folder.next !== '') changedUris.push(...(await loads.reload(uri)))
          changedUris.push(...(await reloadIn(folderAt(loads.tree, uri).items, [...above, uri])))
        }
        return changedUris
      }
      return reloadIn(loads.tree.roots ?? [], [])
    },
  }
  return loads
}

/** Returns the resource of a mount that consists of one resource with the URI of the mount; otherwise `undefined`. */
export async function singleOf(view: View, mount: Resource): Promise<Resource | undefined> {
  const { items, nextCursor } = await view.directory({ uri: mount.uri })
  if (items.length > 1 || nextCursor !== undefined || (items[0]?.uri ?? mount.uri) !== mount.uri) return undefined
  // If the listing is empty, a read tells whether the mount itself is a resource.
  const [item = mount] = items
  const [content] = items.length === 0 ? (await view.read(mount.uri)).contents : []
  const mimeType = content?.mimeType ?? item.mimeType
  if (mimeType === directoryMimeType) return undefined
  const { title = item.title } = mount
  return { ...item, ...defined({ mimeType, title }) }
}
