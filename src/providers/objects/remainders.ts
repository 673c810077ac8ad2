import { comparePaths } from '../../core/path.ts'
import type { ObjectFacts } from './store.ts'

/** What was fetched of a listing and not taken: a page of a store rarely ends where a page of a client does. */
export interface Remainder {
  readonly prefix: string
  /** The key that it lies directly behind. */
  readonly after: string
  readonly objects: readonly ObjectFacts[]
  /** Whether there is more behind it. */
  readonly more: boolean
  /** When it was fetched, in milliseconds of a clock that only goes forward. */
  readonly at: number
}

export interface Remainders {
  /** What lies behind a key, and maybe some of what does not, if that is known, and fresh. It is not kept any longer. */
  take(prefix: string, after: string): Remainder | undefined
  keep(remainder: Remainder): void
  /** A newer answer tells all that lies behind `after`, up to `last` (or to the end): what was kept of that is old. */
  renew(after: string, last: string | undefined): void
}

/** No answer is older than this, in milliseconds. */
const maxAge = 1000
/** So many are kept: one for each client that pages at a time. */
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
