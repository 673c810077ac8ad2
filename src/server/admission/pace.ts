import type { ServerResponse } from 'node:http'
import { createRate } from './rate.ts'

/** Token bucket of refusals per key: sustained rate per second, and burst. */
const perSecond = 100
const burst = 200
/** Maximum number of waiting refusals per key. */
const maxWaiting = 500

/**
 * Throttles refusals (tarpit): a client that retries at once after a refusal gets slow refusals, and costs little. A refusal
 * takes so little time that without this the server would do nothing else.
 */
export interface Pace {
  /**
   * Resolves when the next refusal may be sent, or when its client is gone.
   *
   * @param key The client that is refused.
   * @returns false when too many wait: then the refusal can be sent at once, and should close its connection.
   */
  wait(key: string, response: ServerResponse): Promise<boolean>
}

export function createPace(): Pace {
  const rate = createRate({ perSecond, burst })
  return {
    wait: async (key, response) => {
      const seconds = rate.owe(key, 1, maxWaiting)
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
