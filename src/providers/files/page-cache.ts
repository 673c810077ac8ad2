/** A clock that is never set back. Its time is in milliseconds. */
export type Clock = Pick<typeof performance, 'now'>

/** How long a call tells about the next, in milliseconds: memory may be short. */
const maxAgeMs = 2000

/** Number of calls in a row that did not need the disk, after which the next is expected not to need it either. */
const enoughCalls = 32
/**
 * Time above which a call on this thread has waited for the disk, in milliseconds: if disks were read meanwhile, and in any case. Other processes
 * can hold it up for some milliseconds, too.
 */
const waitedMs = { withReads: 2, always: 20 }

/**
 * Tells whether the kernel probably has in memory (its page cache) whatever short calls on a local file system ask for next: the last calls did
 * not need the disk. A call that runs on this thread for that reason, and then waits, is the last one for a while.
 *
 * @param readsOfDisks Number of reads from disks by this process so far: getrusage(2), `ru_inblock`. It takes several microseconds.
 */
export function createPageCache(
  clock: Clock = performance,
  readsOfDisks: () => number = () => process.resourceUsage().fsRead,
) {
  let callsInRow = 0
  /** When the last call is too old to tell about the next. */
  let until = 0
  let readsBefore = readsOfDisks()
  /** Whether disks were read since it was last asked. Reads by other threads count too: then the calls use the pool, where they do no harm. */
  const wereDisksRead = (): boolean => {
    const reads = readsOfDisks()
    const isMore = reads !== readsBefore
    readsBefore = reads
    return isMore
  }
  const note = (waited: boolean) => {
    callsInRow = waited ? 0 : callsInRow + 1
    until = clock.now() + maxAgeMs
  }
  return {
    /** Whether a call that reads little may run on this thread. */
    isWarm: (): boolean => callsInRow >= enoughCalls && clock.now() < until,
    /** Runs a call on this thread, because it is warm. */
    here: <T>(call: () => T): T => {
      const begun = clock.now()
      try {
        return call()
      } finally {
        const took = clock.now() - begun
        note(took > waitedMs.withReads && (wereDisksRead() || took > waitedMs.always))
      }
    },
    /** Runs a call that uses the thread pool. */
    inPool: async <T>(call: () => Promise<T>): Promise<T> => {
      try {
        return await call()
      } finally {
        note(wereDisksRead())
      }
    },
  }
}

export type PageCache = ReturnType<typeof createPageCache>
