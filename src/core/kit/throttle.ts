/** The clock of a throttle. Times are in milliseconds. */
export interface Clock {
  /** Returns a monotonic time. */
  now(): number
  /** Runs a function later. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Limits how often an action happens. */
interface Throttle {
  /** Whether the caller may act now. When false, `act` is called once at the end of the interval. */
  admit(): boolean
  /** Cancels a waiting action. */
  close(): void
}

/**
 * Creates a throttle: at most one action in `intervalMs`. The first is admitted at once. Those within the interval are replaced
 * by one call of `act` at its end, so an action always follows the last event.
 */
export function createThrottle(intervalMs: number, act: () => void, clock: Clock = systemClock): Throttle {
  let last = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined
  return {
    admit: () => {
      if (cancel !== undefined) return false
      const wait = last + intervalMs - clock.now()
      if (wait <= 0) {
        last = clock.now()
        return true
      }
      cancel = clock.after(wait, () => {
        cancel = undefined
        last = clock.now()
        act()
      })
      return false
    },
    close: () => {
      cancel?.()
      cancel = undefined
    },
  }
}
