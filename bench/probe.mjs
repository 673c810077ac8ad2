// Loaded into a measured server: on SIGUSR2 it prints the pauses of the event loop and the memory, and resets the pauses.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('SIGUSR2', () => {
  const pause = delay.max / 1e6
  const p99 = delay.percentile(99) / 1e6
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  // Reset after the garbage collection, so that it does not count as a pause of the server.
  setTimeout(() => {
    delay.reset()
    process.stderr.write(`probe ${JSON.stringify({ pause, p99, rss, heapUsed })}\n`)
  }, 50)
})
