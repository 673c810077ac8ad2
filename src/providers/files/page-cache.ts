/** A clock that is never set back. Its time is in milliseconds. */
export type Clock = Pick<typeof performance, 'now'>

/** How long a call tells about the next, in milliseconds: memory may be short. */
const age = 2000

/**
 * Tells whether the kernel probably has in memory (its page cache) whatever short calls on a local file system ask for next: the last calls did
 * not need the disk. A call that runs on this thread for that reason, and then waits, is the last one for a while.
 */
export interface PageCache {
  /** Whether a call that reads little may run on this thread. */
  isWarm(): boolean
  /** Runs a call on this thread, because it is warm. */
  here<T>(call: () => T): T
  /** Runs a call that uses the thread pool. */
  inPool<T>(call: () => Promise<T>): Promise<T>
}

/** Number of calls in a row that did not need the disk, after which the next is expected not to need it either. */
const enoughCalls = 32
/** Time above which a call on this thread has waited for the disk, in milliseconds. */
const waitedMs = 2

/** @param readsOfDisks Number of reads from disks by this process so far: getrusage(2), `ru_inblock`. */
export function createPageCache(
  clock: Clock = performance,
  readsOfDisks: () => number = () => process.resourceUsage().fsRead,
): PageCache {
  let callsInRow = 0
  /** When the last call is too old to tell about the next. */
  let until = 0
  const note = (waited: boolean) => {
    callsInRow = waited ? 0 : callsInRow + 1
    until = clock.now() + age
  }
  return {
    isWarm: () => callsInRow >= enoughCalls && clock.now() < until,
    here: (call) => {
      const begun = clock.now()
      try {
        return call()
      } finally {
        note(clock.now() - begun > waitedMs)
      }
    },
    inPool: async (call) => {
      // Reads by other threads count too. Then the calls stay in the pool, where they do no harm.
      const before = readsOfDisks()
      try {
        return await call()
      } finally {
        note(readsOfDisks() !== before)
      }
    },
  }
}
