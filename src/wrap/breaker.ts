/** Keeps requests away from a source that does not answer (circuit breaker). Times are in milliseconds. */
export interface Breaker {
  /** Returns the remaining pause. 0: a request may start, and its caller reports the outcome by one of the other methods. */
  admit(): number
  /** Reports an answer, also "not found". */
  succeeded(): void
  /** Reports a failure. */
  failed(): void
  /** Reports a request without an outcome: its caller aborted. */
  abandoned(): void
  readonly open: boolean
}

export interface BreakerOptions {
  /** Number of consecutive failures that opens the circuit breaker. */
  readonly failures: number
  /** Length of the pause, in milliseconds, a quarter more or less. It doubles while the source does not answer. */
  readonly pause: number
  readonly longest: number
  readonly now?: () => number
  /** Random number from 0 to 1. */
  readonly random?: () => number
}

/**
 * A circuit breaker: closed while the source answers; open for a pause after a number of failures in a row; then half open, when
 * one caller tries the source and the others wait for the result.
 */
export function createBreaker(options: BreakerOptions): Breaker {
  const { failures, longest, now = () => performance.now(), random = Math.random } = options
  let inRow = 0
  let pause = options.pause
  let until: number | undefined
  let trying = false

  return {
    admit: () => {
      if (until === undefined) return 0
      const left = until - now()
      if (left > 0) return left
      // Callers that arrive during a trial are told to retry about when the next trial is allowed.
      if (trying) return pause
      trying = true
      return 0
    },
    succeeded: () => {
      inRow = 0
      pause = options.pause
      until = undefined
      trying = false
    },
    failed: () => {
      inRow++
      if (until === undefined && inRow < failures) return
      // Answers that arrive after it opened must not extend the pause again and again.
      if (until !== undefined && !trying) return
      if (until !== undefined) pause = Math.min(pause * 2, longest)
      trying = false
      until = now() + pause * (0.75 + random() * 0.5)
    },
    abandoned: () => {
      trying = false
    },
    get open() {
      return until !== undefined
    },
  }
}
