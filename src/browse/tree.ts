import { decodeComponent } from '../core/uri.ts'
import type { Page, Resource } from '../core/view.ts'
import { isBelow, type Listed } from './folders.ts'

/** A directory: the entries that are loaded so far, and the state of the rest. `F`: the type of its failure. */
export interface Folder<F> {
  readonly isOpen: boolean
  readonly items: readonly Resource[]
  /** Cursor of the next page: `''` before the first one, undefined after the last. */
  readonly next: string | undefined
  /** Why it could not be listed. */
  readonly failure: F | undefined
  /** Number of changes since it was listed. Undefined: none is known. */
  readonly stale: number | undefined
}

/** The mounts, and the directories that were opened or loaded, by URI. It is immutable: each change returns a new tree. */
export interface Tree<F> {
  readonly roots: readonly Resource[] | undefined
  readonly folders: ReadonlyMap<string, Folder<F>>
}

/** Whether a resource can be opened. The depth of mounts is 0. */
export type Enters = (resource: Resource, depth: number) => boolean

const unread: Folder<never> = { isOpen: false, items: [], next: '', failure: undefined, stale: undefined }
/** No tree is that deep: a server that lists a directory in itself is not followed for ever. */
const maxDepth = 64

export const emptyTree: Tree<never> = { roots: undefined, folders: new Map() }

export function folderAt<F>({ folders }: Tree<F>, uri: string): Folder<F> {
  return folders.get(uri) ?? unread
}

export function withFolder<F>(tree: Tree<F>, uri: string, change: Partial<Folder<F>>): Tree<F> {
  return { ...tree, folders: new Map(tree.folders).set(uri, { ...folderAt(tree, uri), ...change }) }
}

/** A tree in which a directory is open. Why it could not be listed is forgotten. */
export function withOpen<F>(tree: Tree<F>, uri: string): Tree<F> {
  return withFolder(tree, uri, { isOpen: true, failure: undefined })
}

/** A tree in which directories are known to have changed. */
export function withStale<F>(tree: Tree<F>, uris: readonly string[]): Tree<F> {
  if (uris.length === 0) return tree
  const folders = new Map(tree.folders)
  for (const uri of uris) {
    const folder = folderAt(tree, uri)
    folders.set(uri, { ...folder, stale: (folder.stale ?? 0) + 1 })
  }
  return { ...tree, folders }
}

/** Returns the tree with one more page of a directory. A page whose cursor leads back to itself is the last page. */
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

/** Replaces the entries of a directory that was listed again. `changed`: the new and the changed entries. */
export function withListed<F>(tree: Tree<F>, uri: string, { items, next }: Listed) {
  const before = new Map(folderAt(tree, uri).items.map((item) => [item.uri, item]))
  const now = freshOf(items, [uri])
  return {
    tree: withFolder(tree, uri, { items: now, next, failure: undefined, stale: undefined }),
    changed: now.filter((item) => isOther(before.get(item.uri), item)).map((item) => item.uri),
  }
}

/** Entries that are not there yet: servers repeat entries, and list a directory in itself. */
function freshOf(items: readonly Resource[], there: readonly string[]): readonly Resource[] {
  const seen = new Set(there)
  return items.filter(({ uri }) => !seen.has(uri) && seen.add(uri))
}

/** Whether the listed metadata of a resource has changed. */
function isOther(before: Resource | undefined, now: Resource): boolean {
  if (before === undefined) return true
  return before.version !== now.version || before.modified !== now.modified || before.size !== now.size
}

/** The directory whose entries are shown. Undefined: it is closed, or the tree leads back to it. `above`: the directories above it. */
export function shownFolder<F>({ folders }: Tree<F>, uri: string, above: readonly string[]): Folder<F> | undefined {
  const folder = folders.get(uri)
  return folder?.isOpen && above.length < maxDepth && !above.includes(uri) ? folder : undefined
}

/** The way from a mount to a resource, as far as it is loaded. */
interface Way {
  /** The directories above the resource, from the mount on. */
  readonly folders: readonly string[]
  readonly found?: Resource
  /** The directory whose next page is needed to go on. */
  readonly lacks?: string
}

export function wayTo<F>(tree: Tree<F>, uri: string, enters: Enters): Way {
  const wanted = bare(uri)
  const folders: string[] = []
  let here = towards(tree.roots ?? [], uri, enters, 0)
  while (here !== undefined && folders.length < maxDepth) {
    if (bare(here.uri) === wanted) return { folders, found: here }
    folders.push(here.uri)
    const { items, next } = folderAt(tree, here.uri)
    const below = towards(items, uri, enters, folders.length)
    if (below === undefined && next !== undefined) return { folders, lacks: here.uri }
    here = below
  }
  return { folders }
}

/** The resource of a URI itself, or the deepest directory that contains it. */
function towards(items: readonly Resource[], uri: string, enters: Enters, depth: number): Resource | undefined {
  const wanted = bare(uri)
  let best: Resource | undefined
  let length = -1
  for (const item of items) {
    if (item.uri === uri) return item
    const path = bare(item.uri)
    if (path.length <= length || (path !== wanted && !(isBelow(wanted, path) && enters(item, depth)))) continue
    best = item
    length = path.length
  }
  return best
}

/** The path of a URI, without query, fragment and a slash at its end. Spellings with the same meaning give the same path. */
export function bare(uri: string): string {
  const [path = ''] = uri.split(/[?#]/)
  const trimmed = path.replace(/\/+$/, '')
  return decodeComponent(trimmed) ?? trimmed
}
