/** A monotonic clock, in milliseconds. */
export type Clock = Pick<typeof performance, 'now'>

/** How long the last call predicts the next one, in milliseconds: later, the kernel may have freed the memory. */
const maxAgeMs = 2000

/** Number of calls in a row that did not need the disk, after which the next is expected not to need it either. */
const enoughCalls = 32
/**
 * Time above which a call on this thread has waited for the disk, in milliseconds: `withReads` if disks were read meanwhile, `always` in any
 * case. The second is longer, because other processes can delay a call by some milliseconds, too.
 */
const waitedMs = { withReads: 2, always: 20 }

/**
 * Predicts whether the page cache of the kernel can answer the next short calls on a local file system: it expects so if the last calls did not
 * need the disk. After a call on this thread that waited for the disk, it expects the contrary for a while.
 *
 * @param readsOfDisks Number of reads from disks by this process so far: getrusage(2), `ru_inblock`. It takes several microseconds.
 */
export function createPageCache(
  clock: Clock = performance,
  readsOfDisks: () => number = () => process.resourceUsage().fsRead,
) {
  let callsInRow = 0
  /** Time from which the last call is too old to predict the next one. */
  let until = 0
  let readsBefore = readsOfDisks()
  /** Whether this process has read from disks since the last check. Reads by other threads count, too: they only move calls to the pool. */
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
    /** Runs a call on this thread. Only for when the cache is warm. */
    here: <T>(call: () => T): T => {
      const begun = clock.now()
      try {
        return call()
      } finally {
        const tookMs = clock.now() - begun
        note(tookMs > waitedMs.withReads && (wereDisksRead() || tookMs > waitedMs.always))
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
