import type { BigIntStats } from 'node:fs'
import { WithLateSignal } from '../../core/call.ts'
import type { Soon } from '../../core/kit/chain.ts'
import type { Arrival, Context, ReadRequest } from '../../core/provider.ts'
import { type Place, untilAbort } from './access.ts'
import { hasStamp, isSettled, lookNow } from './stats.ts'

export type PathAndRange = Pick<ReadRequest, 'path' | 'range'>

/** The places that a walk opens to make an answer. */
export interface OpenPath {
  /** The root, the directories and the file. They stay open until the answer is made. */
  readonly places: Place[]
  /** Whether the answer may be cached. */
  isKept: boolean
}

/** Adds a place to a route, and holds it open. */
export function addTo(route: OpenPath, { place, links }: { readonly place: Place; readonly links: number }): void {
  // The directories of a link's target are not on the route, so their changes would go unnoticed.
  if (links > 0) route.isKept = false
  place.keep()
  route.places.push(place)
}

/**
 * How long an answer is cached, in milliseconds. Some changes do not show in the times of files: a write through a memory map, a change of
 * `.git/info/exclude`, and a file system that is mounted over a directory of the path.
 */
const maxAgeMs = 500
/** Maximum number of cached answers. Each holds a descriptor for each directory of its path. */
const maxAnswers = 128
/** Maximum number of paths for which the time of the last request is recorded. */
const maxAsked = 1000
/** How long a file and its directories must be unchanged, in milliseconds: file systems such as FAT count time in steps of 2 s. */
const settledMs = 3000

interface KeptAnswer<T> {
  readonly answer: T
  readonly steps: readonly CheckedDirectory[]
  readonly until: number
  /** The arrival of the last request for which the answer was found unchanged. */
  seenFor: Arrival | undefined
}

interface CheckedDirectory {
  readonly place: Place
  /** The stats of the files of ignore rules in a directory; undefined for each that it has not. */
  readonly ignoreRules: readonly (BigIntStats | undefined)[]
}

/**
 * Cache of the answers for paths that are requested many times a second. Each answer holds its file and the directories of its path open, and is
 * used again only while none of them has changed: the times of a directory change with any name in it, those of a file with its bytes. So a
 * small read costs two or three calls of fstat(2) instead of a walk and a read.
 *
 * @param make Makes an answer. It adds the places that the answer is made from to the route, if there is one.
 * @param ignoreFiles Names of the files of ignore rules.
 * @param clock Returns the time in milliseconds since 1970.
 */
export function createKept<T>(
  make: (request: PathAndRange, context: Context, route?: OpenPath) => Promise<T>,
  ignoreFiles: readonly string[] = [],
  clock: Pick<DateConstructor, 'now'> = Date,
) {
  const answers = new Map<string, KeptAnswer<T>>()
  const asked = new Map<string, number>()
  /** The answers that are being made. Only requests of one arrival share one: an answer begun earlier may be stale for a later request. */
  const making = new Map<string, { readonly arrival: Arrival; readonly made: Promise<T> }>()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const remove = (path: string): void => {
    for (const { place } of answers.get(path)?.steps ?? []) place.close()
    answers.delete(path)
  }

  /** Closes answers that nobody has requested lately. */
  const sweep = (): void => {
    for (const [path, { until }] of answers) if (until <= clock.now()) remove(path)
    timer = answers.size === 0 ? undefined : setTimeout(sweep, maxAgeMs).unref()
  }

  const find = (path: string, arrival: Arrival | undefined): T | undefined => {
    const known = answers.get(path)
    if (known === undefined) return undefined
    if (arrival !== undefined && known.seenFor === arrival) return known.answer
    try {
      if (known.until > clock.now() && areUnchanged(known.steps, ignoreFiles)) {
        known.seenFor = arrival
        return known.answer
      }
    } catch {
      // The walk that follows reports the error.
    }
    remove(path)
    return undefined
  }

  /** Makes an answer, and caches it unless a later change of one of its places might go unnoticed. */
  const makeOnRoute = async (request: PathAndRange, context: Context): Promise<T> => {
    const { path } = request
    const { arrival } = context
    const route: OpenPath = { places: [], isKept: true }
    const { places } = route
    try {
      const answer = await make(request, context, route)
      if (closed || !route.isKept) return answer
      const time = clock.now()
      // Nothing is checked on this thread if a call might block, as on a network file system.
      for (const { stats, statNow } of places)
        if (statNow === undefined || !isSettled(stats, time, settledMs)) return answer
      const steps: CheckedDirectory[] = []
      for (const place of places) {
        const ignoreRules = (place.stats.isDirectory() ? ignoreFiles : []).map((name) => lookNow(place, name))
        if (ignoreRules.some((rules) => rules !== undefined && !isSettled(rules, time, settledMs))) return answer
        steps.push({ place, ignoreRules })
      }
      if (answers.has(path)) remove(path)
      for (const oldest of answers.keys()) {
        if (answers.size < maxAnswers) break
        remove(oldest)
      }
      for (const place of places) place.keep()
      answers.set(path, { answer, steps, until: time + maxAgeMs, seenFor: arrival })
      timer ??= setTimeout(sweep, maxAgeMs).unref()
      return answer
    } finally {
      for (const place of places) place.close()
      if (arrival !== undefined && making.get(path)?.arrival === arrival) making.delete(path)
    }
  }

  /** Waits for the answer that another request of the same arrival makes. Makes another one if that one failed, or is not cached. */
  const afterOther = async (request: PathAndRange, made: Promise<unknown>, context: Context): Promise<T> => {
    await untilAbort(made, context.signal).catch(() => {})
    return find(request.path, context.arrival) ?? makeOnRoute(request, context)
  }

  return {
    /**
     * Returns the cached answer for a path if its file and directories are unchanged, else makes a new one. Answers for ranges are not cached.
     *
     * @param context Context of the request. Requests of one arrival share one check for changes, and one new answer.
     */
    answer: (request: PathAndRange, context: Context): Soon<T> => {
      const { path, range } = request
      if (range !== undefined) return make(request, context)
      const abort = WithLateSignal.abortOf(context) ?? context.signal
      if (abort.aborted) throw abort.reason
      const { arrival } = context
      const known = find(path, arrival)
      if (known !== undefined) return known
      const time = clock.now()
      const last = asked.get(path)
      if (asked.size >= maxAsked) asked.clear()
      asked.set(path, time)
      // The answer is cached only for a path that was also requested within the last second.
      if (last === undefined || Math.abs(time - last) >= 2 * maxAgeMs) return make(request, context)
      if (arrival === undefined) return makeOnRoute(request, context)
      const other = making.get(path)
      if (other?.arrival === arrival) return afterOther(request, other.made, context)
      const made = makeOnRoute(request, context)
      making.set(path, { arrival, made })
      return made
    },
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const path of answers.keys()) remove(path)
    },
  }
}

/** Whether all places of an answer, and the files of ignore rules in them, are unchanged. */
function areUnchanged(steps: readonly CheckedDirectory[], ignoreFiles: readonly string[]): boolean {
  for (const { place, ignoreRules } of steps) {
    const stats = place.statNow?.()
    if (stats === undefined || !hasStamp(stats, place.stats)) return false
    for (const [index, known] of ignoreRules.entries()) {
      if (known === undefined) continue
      const rules = lookNow(place, ignoreFiles[index] ?? '')
      if (rules === undefined || rules.dev !== known.dev || !hasStamp(rules, known)) return false
    }
  }
  return true
}
