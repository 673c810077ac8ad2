import type { ServerResponse } from 'node:http'
import { createRate } from './rate.ts'

/** So many refusals a second are given to one, in the long run, and so many at once after a rest. */
const perSecond = 100
const burst = 200
/** So many of one wait for that. */
const most = 500

/**
 * Makes refusals wait for one another: whoever asks again as soon as it was refused is refused slowly, and costs little. A refusal
 * is made in a moment, so that without this refusing would be all that the server does.
 */
export interface Pace {
  /**
   * Resolves when the next refusal may be given, or nobody waits for it any more.
   *
   * @param key Whose refusal it is.
   * @returns `false`: too many wait. It can be given at once, and should be the last on its connection.
   */
  wait(key: string, response: ServerResponse): Promise<boolean>
}

export function createPace(): Pace {
  const rate = createRate({ perSecond, burst })
  return {
    wait: async (key, response) => {
      const seconds = rate.owe(key, 1, most)
      if (seconds === undefined) return false
      if (seconds > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, seconds * 1000)
          response.once('close', () => {
            clearTimeout(timer)
            resolve()
          })
        })
      return true
    },
  }
}
