import type { Log } from '../../core/log.ts'

/** Logs why tokens are refused, with a rate limit: a burst at first, then one entry per interval. */
export interface Refusals {
  /** @param digest The beginning of the token's digest. The token itself is never written. */
  add(digest: string, why: string): void
}

const burstSize = 20
/** Interval after which one more entry is allowed, in milliseconds. */
const intervalMs = 3000

export function createRefusals(log: Log): Refusals {
  let left = burstSize
  let since = performance.now()
  let untold = 0
  return {
    add: (digest, why) => {
      const now = performance.now()
      const gained = Math.floor((now - since) / intervalMs)
      since += gained * intervalMs
      left = Math.min(burstSize, left + gained)
      if (left === 0) return void untold++
      left--
      log('info', 'a token was not taken', { token: digest, why, ...(untold > 0 ? { untold } : {}) })
      untold = 0
    },
  }
}
