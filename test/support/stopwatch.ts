/** How often the clock looks, and the longest that one look counts for by itself, in milliseconds. */
const interval = 10
const most = 50

let total = 0
let time = 0
let work = 0
let timer: NodeJS.Timeout | undefined

function look(): number {
  const [now, worked] = [performance.now(), workOf()]
  total += Math.min(now - time, Math.max(most, worked - work))
  time = now
  work = worked
  return total
}

/**
 * Measures time, in milliseconds, as long as this process gets the processor: while a busy machine leaves it waiting, the watch
 * stands still, so that this is not taken for slowness of what is tested. What the process works itself always counts.
 *
 * @returns The time since it was started. Reading it does not stop it; it keeps no process alive.
 */
export function startStopwatch(): () => number {
  // One timer serves all watches of a process.
  if (timer === undefined) {
    time = performance.now()
    work = workOf()
    timer = setInterval(look, interval).unref()
  }
  const start = look()
  return () => look() - start
}

/** What all threads of this process have worked so far. */
function workOf(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
