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
/** One in this many calls goes to the pool, so that other work gets its turn. */
const inRow = 8

export function createHot(now: () => number = () => performance.now()): Hot {
  const until = createRecent<number>(most)
  let row = 0
  return {
    has: (key) => {
      const end = until.get(key)
      if (end === undefined || end < now()) return false
      row = (row + 1) % inRow
      return row > 0
    },
    add: (key) => until.set(key, now() + age),
  }
}
