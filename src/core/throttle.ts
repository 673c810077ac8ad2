/** Where a throttle gets the time from, and how it is woken. Times are in milliseconds. */
export interface Clock {
  /** A time that never goes backwards. */
  now(): number
  /** Runs something later. Answers how to end that. */
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

/** Bounds how often something happens. */
export interface Throttle {
  /** Whether the caller may act now. `false`: `act` is called once when the interval is over. */
  admit(): boolean
  /** Ends it: what waits is not done. */
  close(): void
}

/**
 * A throttle: at most one act in `intervalMs`. The first is admitted at once. One within the interval is done at its end, by
 * `act`, so that what happened last is always followed by an act.
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
