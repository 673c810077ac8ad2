import { createRecent } from '../../core/recent.ts'

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
/**
 * How long calls run on this thread within one turn of the event loop, in milliseconds. After that they go to the pool until the next turn,
 * since a task that reads one file after the other would never give way to others. The answers to 32 clients take less.
 */
const maxTurnMs = 20

/**
 * @param now The time, in milliseconds.
 * @param nextTurn Calls back in the next turn of the event loop.
 */
export function createHot(
  now: () => number = () => performance.now(),
  nextTurn: (then: () => void) => void = setImmediate,
): Hot {
  const until = createRecent<number>(most)
  /** When the first call of this turn was. */
  let begun: number | undefined
  const end = () => {
    begun = undefined
  }
  return {
    has: (key) => {
      const known = until.get(key)
      const time = now()
      if (known === undefined || known < time) return false
      if (begun !== undefined) return time - begun < maxTurnMs
      begun = time
      nextTurn(end)
      return true
    },
    add: (key) => until.set(key, now() + age),
  }
}
