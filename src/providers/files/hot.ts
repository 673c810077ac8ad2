import { createRecent } from '../../core/recent.ts'

/**
 * What the kernel still has in memory, as far as can be told: what was reached a moment ago. A call for it on a local file system
 * answers in microseconds, where the way to the thread pool and back is ten times that, and a wait for a processor each time.
 * Whatever may wait for a disk, or for a mount that hangs, goes to the pool.
 */
export interface Hot {
  /** Whether it may be asked for on this thread. */
  has(key: string): boolean
  /** It has just been reached. */
  add(key: string): void
}

/** For how long, in milliseconds: memory may be short, and other mounts come. */
const age = 2000
const most = 20_000
/** Work that never leaves this thread gives way to others here. */
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
