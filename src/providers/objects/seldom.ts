import type { Log } from '../../core/log.ts'
import { createRecent } from '../../core/recent.ts'

/** How often the same is told, in milliseconds. */
const everyMs = 60_000

/** A log that does not tell the same twice within a minute: a client may ask for what is refused again and again. */
export function createSeldom(log: Log, now: () => number = () => performance.now()): Log {
  const told = createRecent<number>(1000)
  return (level, message, fields) => {
    const last = told.get(message)
    if (last !== undefined && now() - last < everyMs) return
    told.set(message, now())
    log(level, message, fields)
  }
}
