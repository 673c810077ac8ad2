import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import { matches, type Needle } from './match.ts'

/** A directory: the entries that are loaded so far, and the state of the rest. */
export interface Folder {
  readonly isOpen: boolean
  readonly items: readonly Resource[]
  /** Cursor of the next page: `''` before the first one, undefined after the last. */
  readonly next: string | undefined
  readonly failure?: string
  /** It has changed since it was listed: the number of that change. */
  readonly stale?: number
}

/** The directories that the user has opened, by URI. The directories of the mounts are in `roots`. */
export interface Tree {
  readonly roots: readonly Resource[] | undefined
  readonly folders: ReadonlyMap<string, Folder>
}

/** A line of the tree: a resource, or a message about the directory above it. */
export interface TreeRow {
  readonly resource: Resource
  readonly depth: number
  /** The directory that contains the line; a mount has none. */
  readonly parent: string | undefined
  /** Instead of the resource: it is being listed, is empty, or cannot be listed. */
  readonly says?: string
}

const unread: Folder = { isOpen: false, items: [], next: '' }
/** No tree is that deep: a server that lists a directory in itself is not followed for ever. */
const maxDepth = 64

export const emptyTree: Tree = { roots: undefined, folders: new Map() }

export function isFolder({ mimeType }: Resource): boolean {
  return mimeType === directoryMimeType
}

export function folderAt({ folders }: Tree, uri: string): Folder {
  return folders.get(uri) ?? unread
}

export function withFolder(tree: Tree, uri: string, change: Partial<Folder>): Tree {
  return { ...tree, folders: new Map(tree.folders).set(uri, { ...folderAt(tree, uri), ...change }) }
}

/** A tree in which a directory is open. Why it could not be listed is forgotten. */
export function withOpen(tree: Tree, uri: string): Tree {
  const { failure: _, ...folder } = folderAt(tree, uri)
  return { ...tree, folders: new Map(tree.folders).set(uri, { ...folder, isOpen: true }) }
}

/** Returns the tree with one more page of a directory. A page whose cursor leads back to itself is the last page. */
export function withPage(tree: Tree, uri: string, cursor: string, { items, nextCursor }: Page<Resource>): Tree {
  const folder = folderAt(tree, uri)
  if (folder.next !== cursor) return tree
  const { failure: _, ...rest } = folder
  const next = nextCursor === cursor ? undefined : nextCursor
  const folders = new Map(tree.folders)
  return { ...tree, folders: folders.set(uri, { ...rest, items: [...folder.items, ...items], next }) }
}

const known = new WeakMap<Tree, Map<string, readonly TreeRow[]>>()

/** The lines of open directories; with a filter, the matching entries and their directories. Computed once for each tree. */
export function rowsOf(tree: Tree, needle: Needle | undefined): readonly TreeRow[] {
  const made = known.get(tree) ?? new Map<string, readonly TreeRow[]>()
  known.set(tree, made)
  const key = needle?.key ?? ''
  const found = made.get(key)
  if (found !== undefined) return found
  const rows: TreeRow[] = []
  const walk = (items: readonly Resource[], parent: string | undefined, above: readonly string[]): void => {
    for (const resource of items) {
      const at = rows.length
      rows.push({ resource, depth: above.length, parent })
      const folder = isFolder(resource) ? tree.folders.get(resource.uri) : undefined
      if (folder?.isOpen && above.length < maxDepth && !above.includes(resource.uri)) {
        walk(folder.items, resource.uri, [...above, resource.uri])
        const says = sayingOf(folder)
        if (says !== undefined && (needle === undefined || folder.next !== undefined))
          rows.push({ resource, depth: above.length + 1, parent: resource.uri, says })
      }
      // No entry in the directory matched, so it is shown only if its own name matches.
      if (needle !== undefined && rows.length === at + 1 && !matches(resource, needle)) rows.pop()
    }
  }
  walk(tree.roots ?? [], undefined, [])
  made.clear()
  made.set(key, rows)
  return rows
}

function sayingOf({ items, next, failure }: Folder): string | undefined {
  if (failure !== undefined) return failure
  if (next === undefined) return items.length === 0 ? 'empty' : undefined
  return items.length === 0 ? 'listing …' : `more than ${items.length.toLocaleString('en')} …`
}
