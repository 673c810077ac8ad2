import type { Resource } from '../../../core/view.ts'

/**
 * One row of the tree as it is drawn: a resource or directory (`node`), or a note in the place of what a directory holds: `loading`,
 * `more` (there are more pages), `failed`, `empty`.
 */
export interface TreeRow {
  readonly kind: 'node' | 'loading' | 'more' | 'failed' | 'empty'
  /** Unique among the rows, and the same as long as it is the same thing. */
  readonly key: string
  /** Its resource; of a note, the directory of the note. */
  readonly resource: Resource
  /** From 1, the mounts, down. */
  readonly level: number
  /** From 1, among its siblings. */
  readonly position: number
  /** How many siblings there are, itself included; -1 as long as nobody knows. */
  readonly siblings: { readonly count: number }
  readonly isDirectory: boolean
  readonly isOpen: boolean
  readonly error?: unknown
}

/** The row of the directory that a row is in. -1: it is a mount. */
export function parentIndex(rows: readonly TreeRow[], index: number): number {
  const level = rows[index]?.level ?? 1
  for (let at = index - 1; at >= 0; at--) if ((rows[at]?.level ?? 0) < level) return at
  return -1
}

/** Returns the index of the first row after a row that does not lie in it. */
export function subtreeEnd(rows: readonly TreeRow[], index: number): number {
  const level = rows[index]?.level ?? 0
  let end = index + 1
  while (end < rows.length && (rows[end]?.level ?? 0) > level) end++
  return end
}

const numbers = new Map<string, number>()

/** The `id` of the element of a row: short, and the same as long as the page is open. */
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
