import { createRecent } from '../../core/kit/lru.ts'
import type { Log } from '../../core/log.ts'

/** Minimum time between two equal messages, in milliseconds. */
const everyMs = 60_000

/** Log that drops repeated messages within a minute: a client may request a refused object again and again. */
export function createSeldom(log: Log, now: () => number = () => performance.now()): Log {
  const told = createRecent<number>(1000)
  return (level, message, fields) => {
    const last = told.get(message)
    if (last !== undefined && now() - last < everyMs) return
    told.set(message, now())
    log(level, message, fields)
  }
}
