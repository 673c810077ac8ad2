/** Instructions for a server of changes, from the benchmark process. */
export interface Order {
  readonly uris: number
  /** Number of changes per second. */
  readonly rate: number
  readonly seconds: number
}

/** Report of a server of changes. Times are those of the monotonic clock, which all processes share, in milliseconds. */
export interface Report {
  /** Time of each change. The changes go through the URIs in order, repeatedly. */
  readonly written: readonly number[]
  /** CPU time of all changes, in milliseconds. */
  readonly cpu: number
  /** Resident memory before the first change and after the last one, in bytes. */
  readonly before: number
  readonly after: number
  /** The longest pause of the event loop, in milliseconds. */
  readonly pause: number
}

export const uriOf = (index: number) => `bench://changes/${index}`

export const now = () => Number(process.hrtime.bigint()) / 1e6

/** Sends the URL to the parent process, and makes changes when the parent sends an {@link Order}. */
export async function serveWriting(url: string, write: (index: number) => void): Promise<void> {
  const { monitorEventLoopDelay } = await import('node:perf_hooks')
  process.send?.({ url })
  process.on('message', async ({ uris, rate, seconds }: Order) => {
    const written: number[] = []
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const cpu = process.cpuUsage()
    const start = now()
    // If the server is too slow for the rate, the changes are late but not fewer.
    while (written.length < rate * seconds) {
      const due = Math.min(rate * seconds, ((now() - start) / 1000) * rate)
      while (written.length < due) {
        const index = written.length % uris
        written.push(now())
        write(index)
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    // Wait until the last notifications are sent.
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const { user, system } = process.cpuUsage(cpu)
    const after = process.memoryUsage().rss
    const report: Report = { written, cpu: (user + system) / 1000, before, after, pause: delay.max / 1e6 }
    process.send?.(report)
  })
  process.on('disconnect', () => process.exit(0))
}
