import { defined } from '../core/kit/object.ts'
import { decodeIfValid } from '../core/uri.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../core/view.ts'

/** A directory: the entries that are loaded, and the state of the rest. `F`: the type of its failure. */
export interface Folder<F> {
  readonly isOpen: boolean
  readonly items: readonly Resource[]
  /** Cursor of the next page: `''` before the first one, undefined after the last. */
  readonly next: string | undefined
  readonly failure: F | undefined
  /** Number of changes since the directory was listed. Undefined: no change is known. */
  readonly stale: number | undefined
}

/** The mounts, and the directories that were opened or loaded, by URI. */
export interface Tree<F> {
  readonly roots: readonly Resource[] | undefined
  readonly folders: ReadonlyMap<string, Folder<F>>
}

/** Whether a resource can be opened like a directory. The depth of mounts is 0. */
export type CanEnter = (resource: Resource, depth: number) => boolean

const unread: Folder<never> = { isOpen: false, items: [], next: '', failure: undefined, stale: undefined }
/** Maximum depth of a tree: a server may list a directory in itself. */
const maxDepth = 64

export const emptyTree: Tree<never> = { roots: undefined, folders: new Map() }

export function folderAt<F>({ folders }: Tree<F>, uri: string): Folder<F> {
  return folders.get(uri) ?? unread
}

export function withFolder<F>(tree: Tree<F>, uri: string, change: Partial<Folder<F>>): Tree<F> {
  return { ...tree, folders: new Map(tree.folders).set(uri, { ...folderAt(tree, uri), ...change }) }
}

export function withOpenFolder<F>(tree: Tree<F>, uri: string): Tree<F> {
  return withFolder(tree, uri, { isOpen: true, failure: undefined })
}

/** Marks directories as stale: counts one more change for each of them. */
export function withStaleFolders<F>(tree: Tree<F>, uris: readonly string[]): Tree<F> {
  if (uris.length === 0) return tree
  const folders = new Map(tree.folders)
  for (const uri of uris) {
    const folder = folderAt(tree, uri)
    folders.set(uri, { ...folder, stale: (folder.stale ?? 0) + 1 })
  }
  return { ...tree, folders }
}

/**
 * Returns the tree with one more page of a directory; the same tree if another page is expected. A page whose next cursor is its own
 * cursor is the last page.
 */
export function withPage<F>(tree: Tree<F>, uri: string, cursor: string, page: Page<Resource>): Tree<F> {
  const { items, next } = folderAt(tree, uri)
  if (next !== cursor) return tree
  const { nextCursor } = page
  return withFolder(tree, uri, {
    items: [...items, ...freshOf(page.items, [uri, ...items.map((item) => item.uri)])],
    next: nextCursor === cursor ? undefined : nextCursor,
    failure: undefined,
  })
}

/** Replaces the entries of a directory that was listed again. `changed`: the URIs of the new and the changed entries. */
export function withReloadedFolder<F>(tree: Tree<F>, uri: string, { items, next }: LoadedEntries) {
  const before = new Map(folderAt(tree, uri).items.map((item) => [item.uri, item]))
  const now = freshOf(items, [uri])
  return {
    tree: withFolder(tree, uri, { items: now, next, failure: undefined, stale: undefined }),
    changed: now.filter((item) => isOther(before.get(item.uri), item)).map((item) => item.uri),
  }
}

/** Returns the entries whose URIs are new: some servers repeat entries, or list a directory in itself. */
function freshOf(items: readonly Resource[], there: readonly string[]): readonly Resource[] {
  const seen = new Set(there)
  return items.filter(({ uri }) => !seen.has(uri) && seen.add(uri))
}

function isOther(before: Resource | undefined, now: Resource): boolean {
  if (before === undefined) return true
  return before.version !== now.version || before.modified !== now.modified || before.size !== now.size
}

/** Returns a directory if its entries are shown: it is open, not too deep, and not in itself. `above`: the directories above it. */
export function folderIfShown<F>({ folders }: Tree<F>, uri: string, above: readonly string[]): Folder<F> | undefined {
  const folder = folders.get(uri)
  return folder?.isOpen && above.length < maxDepth && !above.includes(uri) ? folder : undefined
}

/**
 * Returns the path from a mount to a resource, as far as it is loaded. `folders`: the directories above the resource, from the mount
 * on. `lacks`: the directory whose next page is needed to continue.
 */
export function pathTo<F>(tree: Tree<F>, uri: string, enters: CanEnter) {
  const target = bareUri(uri)
  const folders: string[] = []
  let here = towards(tree.roots ?? [], uri, enters, 0)
  while (here !== undefined && folders.length < maxDepth) {
    if (bareUri(here.uri) === target) return { folders, found: here }
    folders.push(here.uri)
    const { items, next } = folderAt(tree, here.uri)
    const below = towards(items, uri, enters, folders.length)
    if (below === undefined && next !== undefined) return { folders, lacks: here.uri }
    here = below
  }
  return { folders }
}

/** Returns the item with a URI, or the deepest directory among the items that contains the URI. */
function towards(items: readonly Resource[], uri: string, enters: CanEnter, depth: number): Resource | undefined {
  const target = bareUri(uri)
  let best: Resource | undefined
  let length = -1
  for (const item of items) {
    if (item.uri === uri) return item
    const path = bareUri(item.uri)
    if (path.length <= length || (path !== target && !(isBelow(target, path) && enters(item, depth)))) continue
    best = item
    length = path.length
  }
  return best
}

/** Returns a URI percent-decoded, without query, fragment and trailing slashes, to compare spellings of the same URI. */
export function bareUri(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  const trimmed = path.replace(/\/+$/, '')
  return decodeIfValid(trimmed)
}

export const isFolder = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType || uri.endsWith('/')

export function isBelow(uri: string, directory: string): boolean {
  return uri.startsWith(directory.endsWith('/') || directory.endsWith(':') ? directory : `${directory}/`)
}

/** Returns the folders above a URI, each with `/` at its end. */
export function foldersAbove(uri: string): readonly string[] {
  const end = uri.search(/[?#]/)
  const bare = end === -1 ? uri : uri.slice(0, end)
  const start = /^[A-Za-z][A-Za-z0-9+.-]*:(?:\/\/)?/.exec(bare)?.[0].length ?? 0
  const folders: string[] = []
  for (let at = bare.indexOf('/', start); at !== -1 && at < bare.length - 1; at = bare.indexOf('/', at + 1))
    folders.push(bare.slice(0, at + 1))
  return folders
}

export interface FilesBelow {
  readonly files: readonly Resource[]
  /** Number of `files` below each folder, by the URI of the folder. Empty if a folder was not listed completely. */
  readonly counts: ReadonlyMap<string, number>
  /** Whether files may be missing: a limit was reached, or a folder could not be listed. */
  readonly isPart: boolean
}

interface BelowOptions {
  readonly files: number
  /** Maximum number of pages of folders to request. Default: no limit. */
  readonly pages?: number
  readonly isFolder?: (resource: Resource) => boolean
  readonly signal?: AbortSignal
}

const atOnce = 4

/** Lists a folder and all folders in it, until everything is listed or a limit is reached. */
export async function walkBelow(view: View, folder: string, options: BelowOptions): Promise<FilesBelow> {
  const { files: maxFiles, pages: maxPages = Number.POSITIVE_INFINITY, isFolder: enters = isFolder, signal } = options
  const files = new Map<string, Resource>()
  const pending = [folder]
  const uris = new Set(pending)
  let count = 0
  let pages = 0
  let isPart = false
  const look = async (uri: string, items: Resource[]): Promise<void> => {
    let cursor: string | undefined
    do {
      if (count >= maxFiles || pages >= maxPages) {
        isPart = true
        return
      }
      pages++
      const page: Page<Resource> = await view.directory({ uri, ...defined({ cursor }) }, defined({ signal }))
      items.push(...page.items)
      count += page.items.filter((item) => !enters(item)).length
      cursor = page.nextCursor === cursor ? undefined : page.nextCursor
    } while (cursor !== undefined)
  }
  while (pending.length > 0) {
    const some = pending.splice(0, atOnce).map((uri) => ({ uri, items: [] as Resource[] }))
    const outcomes = await Promise.allSettled(some.map(({ uri, items }) => look(uri, items)))
    signal?.throwIfAborted()
    const rejections = outcomes.filter((one) => one.status === 'rejected')
    // If the folder itself cannot be listed, that is an error; a folder in it is a gap.
    if (rejections[0] !== undefined && uris.size === 1) throw rejections[0].reason
    if (rejections.length > 0) isPart = true
    for (const item of some.flatMap(({ items }) => items)) {
      if (!enters(item)) files.set(item.uri, item)
      else if (!uris.has(item.uri)) {
        uris.add(item.uri)
        pending.push(item.uri)
      }
    }
  }
  const first = [...files.values()].slice(0, maxFiles)
  return {
    files: first,
    counts: isPart ? new Map() : countsOf(uris, first),
    isPart: isPart || files.size > first.length,
  }
}

function countsOf(folders: ReadonlySet<string>, files: readonly Resource[]): ReadonlyMap<string, number> {
  const counts = new Map([...folders].map((uri) => [uri, 0]))
  for (const { uri } of files)
    for (const folder of foldersAbove(uri)) {
      const key = counts.has(folder) ? folder : folder.slice(0, -1)
      const count = counts.get(key)
      if (count !== undefined) counts.set(key, count + 1)
    }
  return counts
}

interface LoadedEntries {
  readonly items: readonly Resource[]
  readonly next?: string
}

/** Lists a directory again from its beginning, in whole pages, until there are at least `least` entries. */
export async function listAgain(
  pageAt: (cursor: string | undefined) => Promise<Page<Resource>>,
  least: number,
): Promise<LoadedEntries> {
  const items: Resource[] = []
  let next: string | undefined
  do {
    const page = await pageAt(next)
    items.push(...page.items)
    next = page.nextCursor === next ? undefined : page.nextCursor
  } while (next !== undefined && items.length < least)
  return next === undefined ? { items } : { items, next }
}
