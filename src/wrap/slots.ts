import type { ResourceError } from '../core/errors.ts'

interface BreakerOptions {
  /** Number of consecutive failures that opens the circuit breaker. */
  readonly failures: number
  /** Duration of the pause, in milliseconds; the actual pause is up to a quarter longer or shorter. It doubles while the source does not answer. */
  readonly pauseMs: number
  readonly maxPauseMs: number
  readonly now?: () => number
  readonly random?: () => number
}

/**
 * A circuit breaker, which keeps requests away from a source that does not answer. It is closed while the source answers; open for a pause
 * after a number of failures in a row; then half open: one caller tries the source.
 */
export function createBreaker(options: BreakerOptions) {
  const { failures, maxPauseMs, now = () => performance.now(), random = Math.random } = options
  let inRow = 0
  let pauseMs = options.pauseMs
  let until: number | undefined
  let trying = false

  return {
    /** Returns the remaining pause, in milliseconds. 0: a request may start, and its caller must report the outcome. */
    admit: (): number => {
      if (until === undefined) return 0
      const remainingMs = until - now()
      if (remainingMs > 0) return remainingMs
      // Callers that arrive during a trial are told to retry about when the next trial is allowed.
      if (trying) return pauseMs
      trying = true
      return 0
    },
    /** Reports an answer, also "not found". */
    succeeded: (): void => {
      inRow = 0
      pauseMs = options.pauseMs
      until = undefined
      trying = false
    },
    failed: (): void => {
      inRow++
      if (until === undefined && inRow < failures) return
      // Failures of requests that started before it opened must not extend the pause.
      if (until !== undefined && !trying) return
      if (until !== undefined) pauseMs = Math.min(pauseMs * 2, maxPauseMs)
      trying = false
      until = now() + pauseMs * (0.75 + random() * 0.5)
    },
    /** Reports a request without an outcome: its caller aborted, or the source asked for a pause. */
    abandoned: (): void => {
      trying = false
    },
    get open(): boolean {
      return until !== undefined
    },
  }
}

/**
 * A semaphore with a bounded queue. Each way to get a slot returns the function that releases it.
 *
 * @param concurrent Number of slots.
 * @param waiting Maximum length of the queue.
 */
export function createSemaphore(concurrent: number, waiting: number) {
  let inside = 0
  const queue = new Set<() => void>()
  const leave = () => {
    const [next] = queue
    if (next === undefined) inside--
    // Hand the slot directly to the next waiter, so that a new caller cannot take it.
    else next()
  }
  return {
    take: (): (() => void) | undefined => {
      if (inside >= concurrent) return undefined
      inside++
      return leave
    },
    wait: (signal: AbortSignal, waitTimeoutMs: number, full: () => ResourceError): Promise<() => void> =>
      new Promise((resolve, reject) => {
        if (queue.size >= waiting) return reject(full())
        const settle = (then: () => void) => {
          clearTimeout(timer)
          queue.delete(enter)
          signal.removeEventListener('abort', onAbort)
          then()
        }
        const enter = () => settle(() => resolve(leave))
        const onAbort = () => settle(() => reject(signal.reason))
        const timer = setTimeout(() => settle(() => reject(full())), waitTimeoutMs)
        queue.add(enter)
        signal.addEventListener('abort', onAbort)
      }),
  }
}
