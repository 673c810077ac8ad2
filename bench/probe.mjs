// Loaded into a server under measurement: tells its longest pause and its memory on SIGUSR2, and begins anew.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('SIGUSR2', () => {
  const { rss, heapUsed } = process.memoryUsage()
  process.stderr.write(`probe ${JSON.stringify({ pause: delay.max / 1e6, rss, heapUsed })}\n`)
  delay.reset()
})
