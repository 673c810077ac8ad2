/**
 * Returns a function that runs `work` at its first call. Later calls share the result; after a failure, the next call
 * runs `work` again.
 */
export function doneOnce<T>(work: () => Promise<T>) {
  let result: Promise<T> | undefined
  const once = (): Promise<T> => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
  return Object.assign(once, {
    /** Undefined before the first call, and after a failure. */
    begun: () => result,
    forget: () => {
      result = undefined
    },
  })
}

/** Returns a function that runs `work`. If it is called during a run, `work` runs once more afterwards, unless the signal has aborted. */
export function coalesceRuns(work: () => Promise<void>, signal?: AbortSignal): () => Promise<void> {
  let running = false
  let again = false
  return async () => {
    again = true
    if (running) return
    running = true
    try {
      while (again && signal?.aborted !== true) {
        again = false
        await work()
      }
    } finally {
      running = false
    }
  }
}
