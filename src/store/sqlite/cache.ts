import type { TextSet } from '../texts.ts'
import { isInSet } from '../texts.ts'

/** Ids in ascending order. */
export type SortedIds = Uint32Array | Float64Array

/** A collection of texts, and its revision at the time of the look-up. */
interface Version {
  readonly id: number
  readonly revision: number
}

/**
 * Limits of the cache: `counts`, the number of cached counts; `bytes`, the size of all lists together; `few`, the size of a list, in bytes,
 * below which it is not cached or counts as `few` bytes.
 */
const most = { counts: 50_000, bytes: 16 * 2 ** 20, few: 2000 }

interface CachedTerms {
  readonly revision: number
  readonly counts: Map<string, number>
  /** The most recently used list is at the end (LRU). */
  readonly lists: Map<string, SortedIds>
  bytes: number
}

/** Caches look-ups in texts until the texts change. */
export function createLookupCache() {
  const homes = new Map<number, CachedTerms>()
  const keptOf = ({ id, revision }: Version): CachedTerms => {
    const terms = homes.get(id)
    if (terms?.revision === revision) return terms
    const fresh: CachedTerms = { revision, counts: new Map(), lists: new Map(), bytes: 0 }
    homes.set(id, fresh)
    return fresh
  }
  const sizeOf = (ids: SortedIds) => Math.max(ids.byteLength, most.few)
  const keep = (terms: CachedTerms, match: string, sortedIds: SortedIds): SortedIds => {
    const size = sizeOf(sortedIds)
    if (size > most.bytes / 4) return sortedIds
    for (const [oldest, ids] of terms.lists) {
      if (terms.bytes + size <= most.bytes) break
      terms.lists.delete(oldest)
      terms.bytes -= sizeOf(ids)
    }
    terms.lists.set(match, sortedIds)
    terms.bytes += size
    return sortedIds
  }
  const recall = ({ lists }: CachedTerms, match: string): SortedIds | undefined => {
    const cachedIds = lists.get(match)
    if (cachedIds === undefined) return undefined
    lists.delete(match)
    lists.set(match, cachedIds)
    return cachedIds
  }
  return {
    /** Returns the number of parts with each token. `find` counts the tokens that are not cached. */
    counts: (
      home: Version,
      tokens: readonly string[],
      find: (unknown: readonly string[]) => readonly number[],
    ): readonly number[] => {
      const { counts } = keptOf(home)
      const unknown = tokens.filter((token) => !counts.has(token))
      if (unknown.length === 0) return tokens.map((token) => counts.get(token) ?? 0)
      const ids = find(unknown)
      const fresh = new Map(unknown.map((token, index) => [token, ids[index] ?? 0]))
      const all = tokens.map((token) => fresh.get(token) ?? counts.get(token) ?? 0)
      if (counts.size + fresh.size > most.counts) counts.clear()
      for (const [token, count] of fresh) counts.set(token, count)
      return all
    },
    ids: (home: Version, match: string, find: () => SortedIds): SortedIds => {
      const terms = keptOf(home)
      const cachedIds = recall(terms, match)
      if (cachedIds !== undefined) return cachedIds
      const ids = find()
      return ids.byteLength < most.few ? ids : keep(terms, match, ids)
    },
    /** Like `ids`, but also caches short lists. */
    chosen: (home: Version, match: string, find: () => SortedIds): SortedIds => {
      const terms = keptOf(home)
      return recall(terms, match) ?? keep(terms, match, find())
    },
  }
}

/** `rows`: number of texts that one query loads. `removed`: number of texts in memory above which removed ones are dropped once they are the majority. */
const limits = { rows: 50_000, removed: 20_000 }

/** A text, the id of its first part, and the number of its parts, whose ids are consecutive. */
export type TextParts = readonly [text: number, first: number, count: number]

export function createTextParts(readPart: (after: number, limit: number) => readonly TextParts[], count: () => number) {
  const revisions = new Map<number, number>()
  /** Sorted by the ids of the texts, which is also the order of the ids of their parts. */
  let owners: TextParts[] = []

  const catchUp = () => {
    for (;;) {
      const some = readPart(owners.at(-1)?.[0] ?? 0, limits.rows)
      for (const owner of some) owners.push(owner)
      if (some.length < limits.rows) return
    }
  }

  return {
    /** Loads new texts. Call it before `within` whenever the texts may have changed. */
    refresh: ({ id, revision }: Version): void => {
      if (revisions.get(id) === revision) return
      catchUp()
      if (owners.length > limits.removed && owners.length > 2 * count()) {
        owners = []
        catchUp()
      }
      revisions.set(id, revision)
    },
    /** Returns the parts whose text is in a set. The ids are in ascending order in both lists. */
    within: (parts: SortedIds, set: TextSet): SortedIds => {
      const ids = parts.slice()
      let count = 0
      let at = 0
      for (const part of parts) {
        at = lastNotAfter(owners, part, at)
        const owner = owners[at]
        if (owner !== undefined && part >= owner[1] && part < owner[1] + owner[2] && isInSet(set, owner[0]))
          ids[count++] = part
      }
      return ids.slice(0, count)
    },
  }
}

/** Galloping search: the position, at or after `from`, of the last text whose first part is not after a part. */
function lastNotAfter(owners: readonly TextParts[], part: number, from: number): number {
  let low = from
  let step = 1
  while ((owners[low + step]?.[1] ?? Number.POSITIVE_INFINITY) <= part) {
    low += step
    step *= 2
  }
  let high = Math.min(low + step, owners.length)
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((owners[middle]?.[1] ?? Number.POSITIVE_INFINITY) <= part) low = middle
    else high = middle
  }
  return low
}
