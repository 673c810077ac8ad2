import type { Log } from '../../core/log.ts'

/** Tells the operator why tokens are not taken, however many are: so many at once, and then one now and then. */
export interface Refusals {
  /** @param digest The beginning of the digest of the token: of the token itself nothing is ever written. */
  add(digest: string, why: string): void
}

const atOnce = 20
/** After so long one more is told, in milliseconds. */
const each = 3000

export function createRefusals(log: Log): Refusals {
  let left = atOnce
  let since = performance.now()
  let untold = 0
  return {
    add: (digest, why) => {
      const now = performance.now()
      const gained = Math.floor((now - since) / each)
      since += gained * each
      left = Math.min(atOnce, left + gained)
      if (left === 0) return void untold++
      left--
      log('info', 'a token was not taken', { token: digest, why, ...(untold > 0 ? { untold } : {}) })
      untold = 0
    },
  }
}
