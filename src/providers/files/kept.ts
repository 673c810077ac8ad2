import type { BigIntStats } from 'node:fs'
import type { Arrival } from '../../core/provider.ts'
import type { Place } from './place.ts'
import { hasStamp, isSettled } from './stats.ts'

/**
 * Answers about paths that are asked for many times a second, each with the directories on its way and its file, held open. An answer is used
 * again only while none of them has changed: the times of a directory change with any name in it, those of a file with its bytes. So a small
 * read costs two or three calls of fstat(2) in the place of a walk and a read, and looks nothing up by its name.
 */
export interface Kept<T> {
  /**
   * Returns the answer that is kept for a path if nothing on its way has changed since. Otherwise makes it.
   *
   * @param arrival The arrival of the request. Whether anything has changed is looked up once for each.
   * @param make Adds the places that the answer is made from to the route, if there is one.
   */
  answer(path: string, arrival: Arrival | undefined, make: (route?: Route) => Promise<T>): Promise<T>
  close(): void
}

/** The root, the directories and the file on the way to an answer. */
export interface Route {
  /** Adds a position, whose place stays open until `close`. */
  add(position: { readonly place: Place; readonly links: number }): void
  /** The places in order. Undefined after `leave`, and when a symbolic link is on the way: what it leads to has a way of its own. */
  readonly places: readonly Place[] | undefined
  /** Says that the answer is not to be kept. */
  leave(): void
  close(): void
}

function createRoute(): Route {
  const places: Place[] = []
  let isKept = true
  return {
    get places() {
      return isKept ? places : undefined
    },
    add: ({ place, links }) => {
      if (links > 0) isKept = false
      place.keep()
      places.push(place)
    },
    leave: () => {
      isKept = false
    },
    close: () => {
      for (const place of places.splice(0)) place.close()
    },
  }
}

/**
 * How long an answer is kept, in milliseconds. After that it is made anew, since some things do not show in the times: bytes that a program
 * writes through a mapping of memory, the rules of `.git/info/exclude`, and another file system that is mounted on the way.
 */
const maxAgeMs = 500
/** Maximum number of answers: each holds a descriptor for each directory on its way. */
const maxAnswers = 128
/** Maximum number of paths whose last question is remembered. */
const maxAsked = 1000
/** How long everything on the way has to be unchanged, in milliseconds: file systems such as FAT count time in steps of 2 s. */
const settledMs = 3000

interface Answer<T> {
  readonly answer: T
  readonly steps: readonly Step[]
  readonly until: number
  /** The arrival of the last request for which it was unchanged. */
  seenFor: Arrival | undefined
}

interface Step {
  readonly place: Place
  /** The stats of the ignore rules in a directory; undefined if it has none. */
  readonly ignoreRules: BigIntStats | undefined
}

/**
 * @param ignoreRulesIn Returns the stats of the file of ignore rules in a directory, if it has one. Undefined: such files have no effect.
 * @param now The time, in milliseconds since 1970.
 */
export function createKept<T>(
  ignoreRulesIn: (directory: Place) => BigIntStats | undefined = () => undefined,
  now: () => number = () => Date.now(),
): Kept<T> {
  const answers = new Map<string, Answer<T>>()
  const asked = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const remove = (path: string): void => {
    for (const { place } of answers.get(path)?.steps ?? []) place.close()
    answers.delete(path)
  }

  /** Closes answers that nobody has requested lately. */
  const sweep = (): void => {
    for (const [path, { until }] of answers) if (until <= now()) remove(path)
    timer = answers.size === 0 ? undefined : setTimeout(sweep, maxAgeMs).unref()
  }

  const rulesIn = (place: Place) => (place.stats.isDirectory() ? ignoreRulesIn(place) : undefined)

  const isSame = ({ place, ignoreRules }: Step): boolean => {
    const stats = place.statNow?.()
    if (stats === undefined || !hasStamp(stats, place.stats)) return false
    if (ignoreRules === undefined) return true
    const rules = rulesIn(place)
    return rules !== undefined && rules.dev === ignoreRules.dev && hasStamp(rules, ignoreRules)
  }

  const stepOf = (place: Place): Step => ({ place, ignoreRules: rulesIn(place) })

  /** Whether every later change gives other times. */
  const isTellable = ({ place, ignoreRules }: Step): boolean =>
    isSettled(place.stats, now(), settledMs) && (ignoreRules === undefined || isSettled(ignoreRules, now(), settledMs))

  const find = (path: string, arrival: Arrival | undefined): T | undefined => {
    const known = answers.get(path)
    if (known === undefined) return undefined
    if (arrival !== undefined && known.seenFor === arrival) return known.answer
    try {
      if (known.until > now() && known.steps.every(isSame)) {
        known.seenFor = arrival
        return known.answer
      }
    } catch {
      // The walk that follows reports the error.
    }
    remove(path)
    return undefined
  }

  /** Whether a path was asked for within the last second too. */
  const isAskedAgain = (path: string): boolean => {
    const last = asked.get(path)
    if (asked.size >= maxAsked) asked.clear()
    asked.set(path, now())
    return last !== undefined && Math.abs(now() - last) < 2 * maxAgeMs
  }

  /** Keeps an answer, unless a later change of a place might go unseen. */
  const keep = (path: string, places: readonly Place[], answer: T): void => {
    // Nothing is checked on this thread if a call might block, as on a network file system.
    if (closed || places.some(({ statNow }) => statNow === undefined)) return
    const steps = places.map(stepOf)
    if (!steps.every(isTellable)) return
    remove(path)
    for (const oldest of answers.keys()) {
      if (answers.size < maxAnswers) break
      remove(oldest)
    }
    for (const place of places) place.keep()
    answers.set(path, { answer, steps, until: now() + maxAgeMs, seenFor: undefined })
    timer ??= setTimeout(sweep, maxAgeMs).unref()
  }

  const makeOnRoute = async (path: string, make: (route: Route) => Promise<T>): Promise<T> => {
    const route = createRoute()
    try {
      const answer = await make(route)
      if (route.places !== undefined) keep(path, route.places, answer)
      return answer
    } finally {
      route.close()
    }
  }

  return {
    answer: (path, arrival, make) => {
      const known = find(path, arrival)
      if (known !== undefined) return Promise.resolve(known)
      return isAskedAgain(path) ? makeOnRoute(path, make) : make()
    },
    close: () => {
      closed = true
      clearTimeout(timer)
      for (const path of answers.keys()) remove(path)
    },
  }
}
