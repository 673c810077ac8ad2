import { isFolder, type Listed, listAgain } from '../../../browse/folders.ts'
import { defined } from '../../../core/kit/defined.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../../../core/view.ts'
import { maxOrdered, natural } from './columns.ts'
import {
  bestRoot,
  createNodes,
  type Growing,
  isOther,
  type Load,
  type Nodes,
  openWay,
  rowsOf,
  type TreeNode,
  type TreeRow,
} from './rows.ts'

/** The tree of a view: its mounts, and the loaded nodes below them. Directories are loaded page by page. */
export interface Forest {
  /** Shown rows, in order: mounts, and the children of open directories. A new array after each change. */
  readonly rows: readonly TreeRow[]
  readonly state: 'loading' | 'loaded' | 'failed'
  readonly error: unknown
  readonly mounts: readonly Resource[]
  /** Evaluates again which mounts can be opened. */
  reconsider(): void
  /** Loads the mounts. Known mounts stay unchanged. */
  start(): Promise<void>
  nodeOf(uri: string): TreeNode | undefined
  open(uri: string): void
  close(uri: string): void
  /** Loads the next page of a directory, or retries a failed one. */
  more(uri: string): void
  /** Retries everything that could not be loaded. */
  retry(): void
  /** Loads all open nodes again, in place. Resolves to the new and changed resources. */
  refresh(): Promise<readonly string[]>
  /** Opens all directories above a resource. `false`: it is not in the tree. */
  reveal(uri: string, signal: AbortSignal): Promise<boolean>
}

export interface ForestOptions {
  onChange(): void
  /** Called with every page of resources. */
  onPage?(resources: readonly Resource[]): void
  /** Whether a mount can be opened. By default every mount that is not a single resource can. */
  isDrawer?(mount: Resource): boolean
  /** The mounts in display order. By default the order of the server. */
  arrange?(mounts: readonly Resource[]): readonly Resource[]
  /** Whether a mount may be a single resource: then its listing decides. */
  mayBeSingle?(mount: Resource): boolean
  /** Whether a mount is open from the beginning. By default an only mount is. */
  isOpenAtFirst?(mount: Resource): boolean
}

/** Maximum number of mounts that are listed to find out whether they are a single resource. */
const maxLookedInto = 20

export function createForest(
  view: View,
  { onChange, onPage = () => {}, isDrawer = () => true, ...options }: ForestOptions,
): Forest {
  let roots: readonly Growing[] = []
  let state: Forest['state'] = 'loading'
  let error: unknown
  let rows: readonly TreeRow[] | undefined

  const tell = () => {
    rows = undefined
    onChange()
  }

  const isOpenable = (mount: Resource) => (isFolder(mount) || mount.mimeType === undefined) && isDrawer(mount)
  const nodes = createNodes(isOpenable)
  const { known, top, isThere } = nodes
  const { load, reload, reloadOpen } = createLoads({ view, nodes, onPage, tell })

  const open = (uri: string) => {
    const node = known.get(uri)
    if (node === undefined || !node.isDirectory || node.isOpen) return
    node.isOpen = true
    if (node.loaded === 'nothing') void load(node)
    else if (node.isStale) void reload(node).then(tell)
    tell()
  }

  const start = async () => {
    state = roots.length === 0 ? 'loading' : state
    tell()
    try {
      const given = await view.mounts()
      const mounts = options.arrange?.(given) ?? given
      const isFirst = state === 'loading'
      onPage(mounts)
      const left = new Set(mounts.map(({ uri }) => uri))
      nodes.forget(roots.filter(({ key }) => !left.has(key)))
      roots = mounts.map((mount, index) => nodes.nodeFor(mount, undefined, index + 1))
      top.count = roots.length
      state = 'loaded'
      error = undefined
      const opened =
        roots.length === 1 ? roots : isFirst ? roots.filter((root) => options.isOpenAtFirst?.(root.resource)) : []
      for (const root of opened) if (root.isDirectory && root.loaded === 'nothing') open(root.key)
    } catch (thrown) {
      error = thrown
      if (roots.length === 0) state = 'failed'
    }
    tell()
    const maySettle = roots.filter((root) => options.mayBeSingle?.(root.resource))
    await Promise.all(maySettle.slice(0, maxLookedInto).map(settle))
  }

  /** A mount of a single resource is shown as that resource. */
  const settle = async (root: Growing) => {
    const single = await singleOf(view, root.resource).catch(() => undefined)
    if (single === undefined || !isThere(root)) return
    Object.assign(root, { resource: single, isDirectory: false, isOpen: false })
    onPage([single])
    tell()
  }

  const refresh = async (): Promise<readonly string[]> => {
    await start()
    for (const node of known.values()) node.isStale = node.loaded !== 'nothing'
    const changed = await reloadOpen(roots)
    tell()
    return changed
  }

  const reveal: Forest['reveal'] = async (uri, signal) => {
    const node = await openWay(bestRoot(roots, uri), uri, load, signal)
    if (node !== undefined) tell()
    return node !== undefined
  }

  return {
    get rows() {
      rows ??= rowsOf(roots)
      return rows
    },
    get state() {
      return state
    },
    get error() {
      return error
    },
    get mounts() {
      return roots.map(({ resource }) => resource)
    },
    reconsider: () => {
      for (const root of roots) root.isDirectory = isOpenable(root.resource)
      tell()
    },
    start,
    nodeOf: (uri) => known.get(uri),
    open,
    close: (uri) => {
      const node = known.get(uri)
      if (node === undefined || !node.isOpen) return
      node.isOpen = false
      tell()
    },
    more: (uri) => {
      const node = known.get(uri)
      if (node !== undefined && node.loaded !== 'all') void load(node)
      else if (node?.error !== undefined) void reload(node).then(tell)
    },
    retry: () => {
      if (state === 'failed') void start()
      for (const node of [...known.values()]) if (node.error !== undefined) void load(node)
    },
    refresh,
    reveal,
  }
}

interface LoadOptions {
  readonly view: View
  readonly nodes: Nodes
  readonly onPage: (resources: readonly Resource[]) => void
  /** Called when a directory has changed. */
  readonly tell: () => void
}

/** Loads the contents of directories, page by page. */
function createLoads({ view, nodes, onPage, tell }: LoadOptions) {
  const { nodeFor, forget, isThere } = nodes
  const childrenOf = (entries: readonly Resource[], node: Growing) =>
    natural(entries).map((resource, index) => nodeFor(resource, node, index + 1))
  const pageOf = async (uri: string, cursor: string | undefined): Promise<Page<Resource>> => {
    const page = await view.directory({ uri, ...defined({ cursor }) })
    onPage(page.items)
    return page
  }

  /** One load of a directory at a time: whoever wants another waits for it. */
  const load: Load = (node) => {
    if (node.loading !== undefined) return node.loading
    const run = async () => {
      try {
        const page = await pageOf(node.key, node.cursor)
        const twins = new Set(node.children.map(({ key }) => key))
        const fresh = page.items.filter(({ uri }) => uri !== node.key && !twins.has(uri) && twins.add(uri))
        const at = node.children.length
        node.children =
          at + fresh.length > maxOrdered
            ? [...node.children, ...fresh.map((resource, index) => nodeFor(resource, node, at + index + 1))]
            : childrenOf([...node.children.map(({ resource }) => resource), ...fresh], node)
        node.cursor = page.nextCursor
        node.loaded = page.nextCursor === undefined ? 'all' : 'some'
        node.brood.count = node.loaded === 'all' ? node.children.length : -1
        node.error = undefined
      } catch (thrown) {
        node.error = thrown
      } finally {
        node.loading = undefined
        if (isThere(node)) tell()
      }
    }
    node.error = undefined
    node.loading = run()
    tell()
    return node.loading
  }

  /** Loads as much of a directory as was loaded before, and puts it in its place. Answers what is new or has changed. */
  const reload = async (node: Growing): Promise<readonly string[]> => {
    await node.loading
    const least = node.children.length
    const running = listAgain(async (cursor) => {
      const page = await pageOf(node.key, cursor)
      return { ...page, items: page.items.filter(({ uri }) => uri !== node.key) }
    }, least)
    node.loading = running.then(
      () => {},
      () => {},
    )
    let listed: Listed
    try {
      listed = await running
    } catch (thrown) {
      node.error = thrown
      return []
    } finally {
      node.loading = undefined
    }
    const { items, next } = listed
    const before = new Map(node.children.map((child) => [child.key, child.resource]))
    const changed = items.filter((item) => isOther(before.get(item.uri), item)).map(({ uri }) => uri)
    const left = new Set(items.map(({ uri }) => uri))
    forget(node.children.filter(({ key }) => !left.has(key)))
    node.children = childrenOf(items, node)
    node.cursor = next
    node.loaded = next === undefined ? 'all' : 'some'
    node.brood.count = next === undefined ? items.length : -1
    node.error = undefined
    node.isStale = false
    return changed
  }

  /** Reloads the open directories among some nodes and below them. */
  const reloadOpen = async (those: readonly Growing[]): Promise<readonly string[]> => {
    const changed: string[] = []
    for (const node of those) {
      if (!node.isOpen || !isThere(node)) continue
      if (node.loaded !== 'nothing') changed.push(...(await reload(node)))
      changed.push(...(await reloadOpen(node.children)))
    }
    return changed
  }

  return { load, reload, reloadOpen }
}

/**
 * The single resource of a mount, if its listing contains nothing else. `undefined`: the mount has other resources, or is a
 * directory.
 */
async function singleOf(view: View, mount: Resource): Promise<Resource | undefined> {
  const { items, nextCursor } = await view.directory({ uri: mount.uri })
  if (items.length > 1 || nextCursor !== undefined || (items[0]?.uri ?? mount.uri) !== mount.uri) return undefined
  // If the listing is empty, a read tells whether the mount itself is a resource.
  const [item = mount] = items
  const [content] = items.length === 0 ? (await view.read(mount.uri)).contents : []
  const mimeType = content?.mimeType ?? item.mimeType
  if (mimeType === directoryMimeType) return undefined
  const { title = item.title } = mount
  return {
    ...item,
    ...defined({ mimeType, title }),
  }
}
