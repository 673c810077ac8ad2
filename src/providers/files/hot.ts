import type { BigIntStats } from 'node:fs'
import { hasStamp } from './permit.ts'

/**
 * Recently used files, which the kernel probably still has in memory. A call for one on a local file system answers in microseconds, while a
 * round trip to the thread pool takes ten times that, plus a wait for a processor. Every call that may wait for a disk, or for a mount that
 * hangs, goes to the pool.
 */
export interface Hot {
  /** Whether a call for the key may run on this thread. */
  has(key: string): boolean
  /** Records that the key has just been accessed. */
  add(key: string): void
}

/** Maximum age of a record, in milliseconds: memory may be short, and other file systems may be mounted. */
const age = 2000
const most = 20_000

/** @param now The time, in milliseconds. */
export function createHot(now: () => number = () => performance.now()): Hot {
  /** The oldest record comes first. */
  const until = new Map<string, number>()
  return {
    has: (key) => (until.get(key) ?? 0) > now(),
    add: (key) => {
      until.delete(key)
      until.set(key, now() + age)
      if (until.size > most) removeOldest(until)
    },
  }
}

/** Recently opened and read versions of files, by their stats. */
export interface HotFiles {
  has(stats: BigIntStats, call: 'open' | 'read'): boolean
  add(stats: BigIntStats, call: 'open' | 'read'): void
}

/** A key of text would take longer than the look-up saves: numbers of 64 bits are slow to print. */
export function createHotFiles(now: () => number = () => performance.now()): HotFiles {
  const files = new Map<bigint, { readonly stats: BigIntStats; open: number; read: number }>()
  const knownOf = (stats: BigIntStats) => {
    const known = files.get(stats.ino)
    return known !== undefined && known.stats.dev === stats.dev && hasStamp(known.stats, stats) ? known : undefined
  }
  return {
    has: (stats, call) => (knownOf(stats)?.[call] ?? 0) > now(),
    add: (stats, call) => {
      const known = knownOf(stats) ?? { stats, open: 0, read: 0 }
      known[call] = now() + age
      files.delete(stats.ino)
      files.set(stats.ino, known)
      if (files.size > most) removeOldest(files)
    },
  }
}

function removeOldest<K>(map: Map<K, unknown>): void {
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}

/** Lets other work go first once calls on this thread have taken long enough. */
export interface Turns {
  /** Undefined: go on. Otherwise resolves in a later turn of the event loop. */
  over(): Promise<void> | undefined
}

/**
 * How long calls run on this thread within one turn of the event loop, in milliseconds. After that they wait for the next turn,
 * because a task that reads one file after the other would never yield.
 */
const maxTurnMs = 20

/**
 * @param now The time, in milliseconds.
 * @param nextTurn Calls back in the next turn of the event loop.
 */
export function createTurns(
  now: () => number = () => performance.now(),
  nextTurn: (then: () => void) => void = setImmediate,
): Turns {
  /** When the first call of this turn was. */
  let begun: number | undefined
  /** The callers that wait for the next turn, in the order in which they came. */
  let waiting: (() => void)[] = []

  const end = () => {
    begun = undefined
    const next = waiting
    waiting = []
    for (const go of next) go()
  }

  return {
    over: () => {
      if (begun === undefined) {
        begun = now()
        nextTurn(end)
        return undefined
      }
      return now() - begun < maxTurnMs ? undefined : new Promise((resolve) => waiting.push(resolve))
    },
  }
}
