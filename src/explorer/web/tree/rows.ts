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

/** Returns the index of the first row after a row and its descendants. */
export function subtreeEnd(rows: readonly TreeRow[], index: number): number {
  const level = rows[index]?.level ?? 0
  let end = index + 1
  while (end < rows.length && (rows[end]?.level ?? 0) > level) end++
  return end
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
