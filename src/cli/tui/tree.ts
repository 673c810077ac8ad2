import { type Folder, shownFolder, type Tree } from '../../browse/tree.ts'
import { directoryMimeType, type Resource } from '../../core/view.ts'
import { matches, type Needle } from './match.ts'

/** A line of the tree: a resource, or a message about the directory above it. */
export interface TreeRow {
  readonly resource: Resource
  readonly depth: number
  /** The directory that contains the line; a mount has none. */
  readonly parent: string | undefined
  /** Instead of the resource: it is being listed, is empty, or cannot be listed. */
  readonly says?: string
}

export function isFolder({ mimeType }: Resource): boolean {
  return mimeType === directoryMimeType
}

const known = new WeakMap<Tree<string>, Map<string, readonly TreeRow[]>>()

/** The lines of open directories; with a filter, the matching entries and their directories. Computed once for each tree. */
export function rowsOf(tree: Tree<string>, needle: Needle | undefined): readonly TreeRow[] {
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
      const folder = isFolder(resource) ? shownFolder(tree, resource.uri, above) : undefined
      if (folder !== undefined) {
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

function sayingOf({ items, next, failure }: Folder<string>): string | undefined {
  if (failure !== undefined) return failure
  if (next === undefined) return items.length === 0 ? 'empty' : undefined
  return items.length === 0 ? 'listing …' : `more than ${items.length.toLocaleString('en')} …`
}
