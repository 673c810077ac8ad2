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
 * Limits of the cache: `counts`, the number of cached counts; `bytes`, the size of all lists together. A list shorter than `few` bytes is
 * fast to look up: it is not cached, or counts as `few` bytes.
 */
const most = { counts: 50_000, bytes: 16 * 2 ** 20, few: 2000 }

interface CachedTerms {
  readonly revision: number
  readonly counts: Map<string, number>
  /** The most recently used list is at the end (LRU). */
  readonly lists: Map<string, SortedIds>
  bytes: number
}

/** Caches look-ups in texts until the texts change: common terms are queried repeatedly. */
export function createLookupCache() {
  const homes = new Map<number, CachedTerms>()
  const keptOf = ({ id, revision }: Version): CachedTerms => {
    const found = homes.get(id)
    if (found?.revision === revision) return found
    const fresh: CachedTerms = { revision, counts: new Map(), lists: new Map(), bytes: 0 }
    homes.set(id, fresh)
    return fresh
  }
  const sizeOf = (ids: SortedIds) => Math.max(ids.byteLength, most.few)
  const keep = (kept: CachedTerms, match: string, found: SortedIds): SortedIds => {
    const size = sizeOf(found)
    if (size > most.bytes / 4) return found
    for (const [oldest, ids] of kept.lists) {
      if (kept.bytes + size <= most.bytes) break
      kept.lists.delete(oldest)
      kept.bytes -= sizeOf(ids)
    }
    kept.lists.set(match, found)
    kept.bytes += size
    return found
  }
  const recall = ({ lists }: CachedTerms, match: string): SortedIds | undefined => {
    const known = lists.get(match)
    if (known === undefined) return undefined
    lists.delete(match)
    lists.set(match, known)
    return known
  }
  return {
    /** Returns the number of parts with each token. `find` counts the tokens that are not cached, if there are any. */
    counts: (
      home: Version,
      tokens: readonly string[],
      find: (unknown: readonly string[]) => readonly number[],
    ): readonly number[] => {
      const { counts } = keptOf(home)
      const unknown = tokens.filter((token) => !counts.has(token))
      if (unknown.length === 0) return tokens.map((token) => counts.get(token) ?? 0)
      const found = find(unknown)
      const fresh = new Map(unknown.map((token, index) => [token, found[index] ?? 0]))
      const all = tokens.map((token) => fresh.get(token) ?? counts.get(token) ?? 0)
      if (counts.size + fresh.size > most.counts) counts.clear()
      for (const [token, count] of fresh) counts.set(token, count)
      return all
    },
    ids: (home: Version, match: string, find: () => SortedIds): SortedIds => {
      const kept = keptOf(home)
      const known = recall(kept, match)
      if (known !== undefined) return known
      const found = find()
      return found.byteLength < most.few ? found : keep(kept, match, found)
    },
    /** Like `ids`, but also caches short lists: these are slow to find, because a long list has to be filtered for them. */
    chosen: (home: Version, match: string, find: () => SortedIds): SortedIds => {
      const kept = keptOf(home)
      return recall(kept, match) ?? keep(kept, match, find())
    },
  }
}

/** `rows`: number of texts that one query loads. `removed`: number of texts in memory above which removed ones are dropped once they are the majority. */
const limits = { rows: 50_000, removed: 20_000 }

/** A text, the id of its first part, and the number of its parts, whose ids are consecutive. */
export type TextParts = readonly [text: number, first: number, count: number]

/**
 * Finds the text of each part. All texts are loaded once, and then only new ones, because ids are never reused.
 *
 * @param read Returns texts after an id, in the order of their ids.
 * @param count Returns the number of all texts.
 */
export function createTextParts(read: (after: number, limit: number) => readonly TextParts[], count: () => number) {
  const revisions = new Map<number, number>()
  /** Sorted by the ids of the texts, which is also the order of the ids of their parts, because a single writer makes both. */
  let owners: TextParts[] = []

  const catchUp = () => {
    for (;;) {
      const some = read(owners.at(-1)?.[0] ?? 0, limits.rows)
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
      const found = parts.slice()
      let count = 0
      let at = 0
      for (const part of parts) {
        at = lastNotAfter(owners, part, at)
        const owner = owners[at]
        if (owner !== undefined && part >= owner[1] && part < owner[1] + owner[2] && isInSet(set, owner[0]))
          found[count++] = part
      }
      return found.slice(0, count)
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
