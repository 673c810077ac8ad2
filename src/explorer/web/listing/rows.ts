import { type CanEnter, type Folder, folderIfShown, type Tree } from '../../../browse/tree.ts'
import type { Resource } from '../../../core/view.ts'

/**
 * One row of the tree as it is drawn: a resource or directory (`node`), or a note after the loaded entries of a directory: `loading`,
 * `more` (there are more pages), `failed`, `empty`.
 */
export interface TreeRow {
  readonly kind: 'node' | 'loading' | 'more' | 'failed' | 'empty'
  /** Unique among the rows. A row keeps its key when the tree changes. */
  readonly key: string
  /** The resource of the row; for a note, the directory of the note. */
  readonly resource: Resource
  /** Depth in the tree. Mounts have 1. */
  readonly level: number
  /** Position of the row among its siblings, from 1. */
  readonly position: number
  readonly siblings: { readonly count: number }
  readonly isDirectory: boolean
  readonly isOpen: boolean
  readonly error?: unknown
}

export function rowsOf(
  tree: Tree<unknown>,
  isDirectory: CanEnter,
  isLoading: (uri: string) => boolean,
): readonly TreeRow[] {
  const rows: TreeRow[] = []
  const add = (items: readonly Resource[], siblings: TreeRow['siblings'], above: readonly string[]) => {
    for (const [index, resource] of items.entries()) {
      const key = resource.uri
      const isExpandable = isDirectory(resource, above.length)
      const folder = isExpandable ? folderIfShown(tree, key, above) : undefined
      const level = above.length + 1
      const isOpen = folder !== undefined
      rows.push({
        kind: 'node',
        key,
        resource,
        level,
        position: index + 1,
        siblings,
        isDirectory: isExpandable,
        isOpen,
      })
      if (folder === undefined) continue
      const inside = { count: folder.next === undefined ? folder.items.length : -1 }
      add(folder.items, inside, [...above, key])
      const kind = kindOfNote(folder, isLoading(key))
      if (kind === undefined) continue
      const position = folder.items.length + 1
      const note = { level: level + 1, position, siblings: inside, isDirectory: false, isOpen: false }
      // A page that arrives must not move the focus from the note, so the key of the note stays the same.
      rows.push({ kind, key: `note:${key}`, resource, ...note, error: folder.failure })
    }
  }
  add(tree.roots ?? [], { count: tree.roots?.length ?? -1 }, [])
  return rows
}

function kindOfNote({ failure, next, items }: Folder<unknown>, isLoading: boolean): TreeRow['kind'] | undefined {
  if (failure !== undefined) return 'failed'
  if (next === undefined) return items.length === 0 ? 'empty' : undefined
  return next === '' || isLoading ? 'loading' : 'more'
}
