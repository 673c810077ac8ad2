// Loaded into a server under measurement: tells its longest pause and its memory on SIGUSR2, and begins anew.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('SIGUSR2', () => {
  const pause = delay.max / 1e6
  const p99 = delay.percentile(99) / 1e6
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  // The collection is a pause too, and not the server's: the next measurement begins behind it.
  setTimeout(() => {
    delay.reset()
    process.stderr.write(`probe ${JSON.stringify({ pause, p99, rss, heapUsed })}\n`)
  }, 50)
})
