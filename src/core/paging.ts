import { invalid } from './errors.ts'

/** How long pages are. The server chooses: clients cannot ask for a size. */
export interface Paging {
  /** Entries on the first page. Each next page has 32 times as many, up to `most`. */
  readonly first: number
  readonly most: number
  /** About how many bytes of JSON a page has at most. It always has one entry. */
  readonly bytes: number
  /** How many entries are looked at for one page; one that shows none of them then ends early, even empty. */
  readonly scan: number
}

/**
 * A quick first page, and then pages that grow at once: the 64 pages that the official client follows hold 250 + 8,000 +
 * 62 × 16,000 = 1,000,250 entries. With pages that only double it would be 943,750.
 */
const defaults: Paging = { first: 250, most: 16_000, bytes: 4 * 1024 * 1024, scan: 100_000 }
const growth = 32

/** @throws ResourceError `invalid` for a bound that is not a whole number from 1 up. */
export function createPaging(options: Partial<Paging> = {}): Paging {
  const paging = { ...defaults, ...options }
  for (const [name, value] of Object.entries(paging))
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`pages.${name} must be a whole number, at least 1.`, 'pages')
  return { ...paging, most: Math.max(paging.first, paging.most) }
}

/** How many entries the page with this number has, from 0 up. */
export function pageLength(paging: Paging, page: number): number {
  return Math.min(paging.most, paging.first * growth ** Math.min(page, 8))
}

/** Gathers one page: says when it is full, and where the next one begins. */
export interface PageBuilder<T> {
  readonly items: readonly T[]
  /** Takes an item. `false`: it did not fit, and the page is full. */
  add(item: T, size: number): boolean
  /** Counts an entry that was looked at. `false`: enough for one page. */
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
