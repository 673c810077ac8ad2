import { isFolder } from '../../../browse/folders.ts'
import { fold } from '../../../browse/matching.ts'
import type { Resource } from '../../../core/view.ts'
import type { Columns } from './columns.ts'

export const sorts = ['name', 'type', 'size', 'modified', 'priority'] as const
export type Sort = (typeof sorts)[number]

/** Parses `sort` of a place; undefined for the order of the server, by path. */
export function sortOf(text: string | undefined): { readonly by: Sort; readonly down: boolean } | undefined {
  const by = sorts.find((sort) => sort === text?.replace(/^-/, ''))
  return by === undefined ? undefined : { by, down: text?.startsWith('-') === true }
}

/** Returns the indexes of all rows in an order. Rows without a value come last in both directions. */
export function orderOf(columns: Columns, sort: string | undefined): Uint32Array {
  const order = Uint32Array.from(columns.resources, (_, row) => row)
  const wanted = sortOf(sort)
  if (wanted === undefined) return order
  const { by, down } = wanted
  const sign = down ? -1 : 1
  if (by === 'name' || by === 'type') {
    const keys = columns.resources.map((resource) => (by === 'name' ? nameKey(resource.name) : resource.mimeType))
    return order.sort((a, b) => compareTexts(keys[a], keys[b], sign) || a - b)
  }
  const keys = Float64Array.from(columns.resources, (resource) => resource[by] ?? Number.NaN)
  return order.sort((a, b) => compareNumbers(keys[a], keys[b], sign) || a - b)
}

/** Numbers in names are ordered as numbers: `part 9` stands before `part 10`. */
export function nameKey(name: string): string {
  return fold(name).replace(/\d+/g, (digits) => {
    const number = digits.replace(/^0+(?=\d)/, '')
    // How many digits it has stands before them.
    return `${String.fromCharCode(48 + Math.min(number.length, 70))}${number}`
  })
}

function compareTexts(a: string | undefined, b: string | undefined, sign: number): number {
  if (a === b) return 0
  if (a === undefined) return 1
  if (b === undefined) return -1
  return a < b ? -sign : sign
}

function compareNumbers(a = Number.NaN, b = Number.NaN, sign: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1
  if (Number.isNaN(b)) return -1
  return (a - b) * sign
}

/** Beyond so many entries a folder keeps the order of the server: with each page that comes, all of them would be ordered anew. */
export const maxOrdered = 2000

/** The entries of a folder as people look for them: folders first, then by name, with numbers as numbers and without regard to case. */
export function natural(entries: readonly Resource[]): readonly Resource[] {
  if (entries.length > maxOrdered) return entries
  return entries
    .map((entry) => ({ entry, rank: isFolder(entry) ? 0 : 1, key: nameKey(entry.name) }))
    .sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ entry }) => entry)
}
