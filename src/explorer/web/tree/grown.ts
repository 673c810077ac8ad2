import { directoryMimeType, type Resource } from '../../../core/view.ts'
import type { TreeRow } from './rows.ts'

/** A resource or directory in the tree, with its loaded children. */
export interface TreeNode extends TreeRow {
  readonly kind: 'node'
  readonly parent: TreeNode | undefined
  readonly children: readonly TreeNode[]
  /** The loaded part of a directory. */
  readonly loaded: 'nothing' | 'some' | 'all'
}

/** The same, mutable: the forest changes it in place, and draws from it. */
export interface Growing extends TreeNode {
  resource: Resource
  position: number
  isDirectory: boolean
  isOpen: boolean
  children: readonly Growing[]
  loaded: 'nothing' | 'some' | 'all'
  error: unknown
  readonly parent: Growing | undefined
  readonly siblings: { readonly count: number }
  /** Shared number of siblings of its children. */
  readonly brood: { count: number }
  cursor?: string | undefined
  loading?: Promise<void> | undefined
  /** Whether something in it may have come or gone since it was loaded. */
  isStale: boolean
}

export const isFolder = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType || uri.endsWith('/')

/** Whether a URI is below a directory. */
export function isBelow(uri: string, directory: string): boolean {
  return uri.startsWith(directory.endsWith('/') || directory.endsWith(':') ? directory : `${directory}/`)
}

/** Whether two URIs name the same resource: for a directory, with and without `/` at the end. */
export function isSame(key: string, uri: string): boolean {
  return key === uri || key === `${uri}/`
}

/** Whether a node is the resource of a URI, or a directory above it. */
export function isOnTheWay({ key, isDirectory }: TreeRow, uri: string): boolean {
  return isSame(key, uri) || (isDirectory && isBelow(uri, key))
}

/** The mount of a URI. */
export function bestRoot(roots: readonly Growing[], uri: string): Growing | undefined {
  const fitting = roots.filter((root) => isOnTheWay(root, uri))
  return fitting.reduce<Growing | undefined>(
    (best, root) => (best === undefined || root.key.length > best.key.length ? root : best),
    undefined,
  )
}

/** Whether the listed metadata of a resource has changed. */
export function isOther(before: Resource | undefined, now: Resource): boolean {
  if (before === undefined) return true
  return before.version !== now.version || before.modified !== now.modified || before.size !== now.size
}

/** Returns the shown rows of the loaded nodes. */
export function rowsOf(roots: readonly Growing[]): readonly TreeRow[] {
  const rows: TreeRow[] = []
  const add = (nodes: readonly Growing[]) => {
    for (const node of nodes) {
      rows.push(node)
      if (!node.isOpen) continue
      add(node.children)
      const note = noteOf(node)
      if (note !== undefined) rows.push(note)
    }
  }
  add(roots)
  return rows
}

function noteOf(node: Growing): TreeRow | undefined {
  const kind = kindOfNote(node)
  if (kind === undefined) return undefined
  const { key, resource, level, error } = node
  return {
    kind,
    // A page that arrives must not move the focus from the note.
    key: `note:${key}`,
    resource,
    level: level + 1,
    position: node.children.length + 1,
    siblings: node.brood,
    isDirectory: false,
    isOpen: false,
    ...(kind === 'failed' ? { error } : {}),
  }
}

function kindOfNote({ error, loading, loaded, children }: Growing): TreeRow['kind'] | undefined {
  if (error !== undefined) return 'failed'
  if (loaded === 'some') return loading === undefined ? 'more' : 'loading'
  if (loaded === 'nothing') return 'loading'
  return children.length === 0 ? 'empty' : undefined
}
