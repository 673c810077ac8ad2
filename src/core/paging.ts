import type { CursorSeal } from './cursor.ts'
import { invalid } from './errors.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'

/** State that the parts of a catalog share. `mounts` is sorted by address. */
export interface CatalogState {
  readonly mounts: readonly Mounted[]
  readonly seal: CursorSeal
  readonly paging: Paging
  readonly log: Log
}

/** Page sizes. The server chooses them: clients cannot. */
export interface Paging {
  /** Entries on the first page. Each next page has 32 times as many, up to `most`. */
  readonly first: number
  readonly most: number
  /** Approximate maximum of a page, in bytes of JSON. A page always has at least one entry. */
  readonly bytes: number
  /** Maximum number of entries read for one page. A page that shows none of them ends early, even empty. */
  readonly scan: number
}

/**
 * A quick first page, and then pages that grow at once: the 64 pages that the official client follows hold 250 + 8,000 + 62 ×
 * 16,000 = 1,000,250 entries. Pages that only double would hold 943,750.
 */
const defaults: Paging = { first: 250, most: 16_000, bytes: 4 * 1024 * 1024, scan: 100_000 }
const growth = 32

/** @throws ResourceError `invalid` for a value that is not a positive whole number. */
export function createPaging(options: Partial<Paging> = {}): Paging {
  const paging = { ...defaults, ...options }
  for (const [name, value] of Object.entries(paging))
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`pages.${name} must be a whole number, at least 1.`, 'pages')
  return { ...paging, most: Math.max(paging.first, paging.most) }
}

/** Returns the number of entries of a page, by its number from 0 up. */
export function pageLength(paging: Paging, page: number): number {
  return Math.min(paging.most, paging.first * growth ** Math.min(page, 8))
}

/** Collects one page, and reports when it is full. */
export interface PageBuilder<T> {
  readonly items: readonly T[]
  /** Adds an item. Returns false when the item did not fit: then the page is full. */
  add(item: T, size: number): boolean
  /** Counts an entry that was read. Returns false when enough were read for one page. */
  look(): boolean
}

export function createPageBuilder<T>(paging: Paging, page: number): PageBuilder<T> {
  const items: T[] = []
  const length = pageLength(paging, page)
  let bytes = 0
  let looked = 0
  return {
    items,
    add: (item, size) => {
      if (items.length > 0 && (items.length >= length || bytes + size > paging.bytes)) return false
      items.push(item)
      bytes += size
      return true
    },
    look: () => ++looked <= paging.scan,
  }
}
