/** How often the clock looks, and the longest that one look counts for by itself, in milliseconds. */
const interval = 10
const most = 50

/**
 * Measures time, in milliseconds, as long as this process gets the processor: while a busy machine leaves it waiting, the watch
 * stands still, so that this is not taken for slowness of what is tested. What the process works itself always counts.
 *
 * @returns The time since it was started. Reading it does not stop it; it keeps no process alive.
 */
export function startStopwatch(): () => number {
  let total = 0
  let time = performance.now()
  let work = workOf()
  const look = () => {
    const [now, worked] = [performance.now(), workOf()]
    total += Math.min(now - time, Math.max(most, worked - work))
    time = now
    work = worked
    return total
  }
  setInterval(look, interval).unref()
  return look
}

/** What all threads of this process have worked so far. */
function workOf(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
