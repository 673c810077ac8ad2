import { comparePaths } from '../../core/path.ts'
import type { ObjectFacts } from './store.ts'

/** Fetched but unused part of a listing: a page of a store rarely ends with a page of a client. */
export interface Remainder {
  readonly prefix: string
  /** The key that it directly follows. */
  readonly after: string
  readonly objects: readonly ObjectFacts[]
  /** Whether more keys follow. */
  readonly more: boolean
  /** Fetch time, in milliseconds of a monotonic clock. */
  readonly at: number
}

export interface Remainders {
  /** Removes and returns a fresh remainder that covers the keys after a key, possibly with some keys before it. */
  take(prefix: string, after: string): Remainder | undefined
  keep(remainder: Remainder): void
  /** Drops remainders that a newer answer covers: the keys after `after`, up to `last` (or to the end). */
  renew(after: string, last: string | undefined): void
}

/** Maximum age of a remainder, in milliseconds. */
const maxAge = 1000
/** Maximum number of remainders: one for each concurrent paging client. */
const most = 32

export function createRemainders(now: () => number = () => performance.now()): Remainders {
  const kept = new Map<string, Remainder>()
  const keyOf = (prefix: string, after: string) => JSON.stringify([prefix, after])

  return {
    take: (prefix, after) => {
      for (const [key, found] of kept) {
        const end = found.objects.at(-1)?.key ?? found.after
        if (found.prefix !== prefix || comparePaths(found.after, after) > 0 || comparePaths(end, after) <= 0) continue
        kept.delete(key)
        if (now() - found.at <= maxAge) return found
      }
      return undefined
    },
    keep: (remainder) => {
      const [oldest] = kept.keys()
      if (kept.size >= most && oldest !== undefined) kept.delete(oldest)
      kept.set(keyOf(remainder.prefix, remainder.after), remainder)
    },
    renew: (after, last) => {
      for (const [key, { after: begin, objects }] of kept) {
        const end = objects.at(-1)?.key ?? begin
        const overlaps = comparePaths(end, after) > 0 && (last === undefined || comparePaths(begin, last) < 0)
        if (overlaps) kept.delete(key)
      }
    },
  }
}
