import { isBelow, isFolder } from '../../../browse/folders.ts'
import type { Resource } from '../../../core/view.ts'

/**
 * One row of the tree as it is drawn: a resource or directory (`node`), or a note in the place of what a directory holds: `loading`,
 * `more` (there are more pages), `failed`, `empty`.
 */
export interface TreeRow {
  readonly kind: 'node' | 'loading' | 'more' | 'failed' | 'empty'
  /** Unique among the rows, and stable as long as the row shows the same. */
  readonly key: string
  /** Its resource; for a note, the directory of the note. */
  readonly resource: Resource
  /** Depth from 1, which are the mounts. */
  readonly level: number
  /** Position among its siblings, from 1. */
  readonly position: number
  /** Number of siblings, including itself; -1 while it is unknown. */
  readonly siblings: { readonly count: number }
  readonly isDirectory: boolean
  readonly isOpen: boolean
  readonly error?: unknown
}

/** The row of the parent directory. -1: the row is a mount. */
export function parentIndex(rows: readonly TreeRow[], index: number): number {
  const level = rows[index]?.level ?? 1
  for (let at = index - 1; at >= 0; at--) if ((rows[at]?.level ?? 0) < level) return at
  return -1
}

const numbers = new Map<string, number>()

/** The `id` of the element of a row: short, and stable while the page is open. */
export function idOf(of: string, key: string): string {
  let number = numbers.get(key)
  if (number === undefined) {
    number = numbers.size
    numbers.set(key, number)
  }
  return `${of}-${number}`
}

/** Returns the action of the pressed part of a row: a row in a tree or grid may not contain buttons. */
export function partOf({ target }: Event): string | undefined {
  return target instanceof Element ? (target.closest('[data-do]')?.getAttribute('data-do') ?? undefined) : undefined
}

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

/** Loads the next page of a directory. */
export type Load = (node: Growing) => Promise<void>

/** Opens the directories on the way from a mount to a resource. Returns the node of the resource; undefined if it is not in the tree. */
export async function openWay(
  root: Growing | undefined,
  uri: string,
  load: Load,
  signal: AbortSignal,
): Promise<TreeNode | undefined> {
  let node = root
  while (node !== undefined && !isSame(node.key, uri)) {
    const next = await childTowards(node, uri, load, signal)
    if (next !== undefined) node.isOpen = true
    node = next
  }
  return node
}

/** The child of a directory that a resource is, or lies in. */
async function childTowards(node: Growing, uri: string, load: Load, signal: AbortSignal): Promise<Growing | undefined> {
  for (;;) {
    if (node.loaded === 'nothing' || node.loading !== undefined) await load(node)
    signal.throwIfAborted()
    const next = node.children.find((child) => isOnTheWay(child, uri))
    if (next !== undefined || node.error !== undefined || node.loaded === 'all') return next
    await load(node)
  }
}

/** Whether the listed metadata of a resource has changed. */
export function isOther(before: Resource | undefined, now: Resource): boolean {
  if (before === undefined) return true
  return before.version !== now.version || before.modified !== now.modified || before.size !== now.size
}

/** The nodes of a forest. A node stays the same as long as its resource stays in its place. */
export interface Nodes {
  readonly known: ReadonlyMap<string, Growing>
  /** Shared number of mounts; -1 as long as nobody knows. */
  readonly top: { count: number }
  nodeFor(resource: Resource, parent: Growing | undefined, position: number): Growing
  /** Forgets nodes, and everything in them. */
  forget(nodes: readonly Growing[]): void
  isThere(node: Growing): boolean
}

/** @param isOpenable Whether a mount has something in it to open. */
export function createNodes(isOpenable: (mount: Resource) => boolean): Nodes {
  const known = new Map<string, Growing>()
  const top = { count: -1 }

  const nodeFor = (resource: Resource, parent: Growing | undefined, position: number): Growing => {
    const before = known.get(resource.uri)
    if (before !== undefined && before.parent === parent) {
      before.resource = resource
      before.position = position
      return before
    }
    const node: Growing = {
      kind: 'node',
      key: resource.uri,
      resource,
      parent,
      level: parent === undefined ? 1 : parent.level + 1,
      position,
      siblings: parent?.brood ?? top,
      brood: { count: -1 },
      isDirectory: parent === undefined ? isOpenable(resource) : isFolder(resource),
      isOpen: false,
      children: [],
      loaded: 'nothing',
      error: undefined,
      isStale: false,
    }
    known.set(resource.uri, node)
    return node
  }

  const forget = (nodes: readonly Growing[]) => {
    for (const node of nodes) {
      if (known.get(node.key) === node) known.delete(node.key)
      forget(node.children)
    }
  }

  return {
    known,
    top,
    nodeFor,
    forget,
    isThere: (node) => known.get(node.key) === node,
  }
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
