/** What a server of changes is told to do, by the process that listens. */
export interface Order {
  readonly uris: number
  /** Changes a second. */
  readonly rate: number
  readonly seconds: number
}

/** What it tells afterwards. Times are those of the system's monotonic clock, which all processes share, in milliseconds. */
export interface Report {
  /** When each was written, in the order of the URIs, again and again. */
  readonly written: readonly number[]
  /** The processor time of the writing, in milliseconds. */
  readonly cpu: number
  /** Resident memory, in bytes: when the streams were open, and when all was written. */
  readonly before: number
  readonly after: number
  /** The longest pause of the event loop, in milliseconds. */
  readonly pause: number
}

export const uriOf = (index: number) => `bench://changes/${index}`

export const now = () => Number(process.hrtime.bigint()) / 1e6

/** Serves the process that started this one: says where it listens, and writes when it is told to. */
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
    // A server that is too slow for it writes late, but it writes as much.
    while (written.length < rate * seconds) {
      const due = Math.min(rate * seconds, ((now() - start) / 1000) * rate)
      while (written.length < due) {
        const index = written.length % uris
        written.push(now())
        write(index)
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    // The last ones are told meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const { user, system } = process.cpuUsage(cpu)
    const after = process.memoryUsage().rss
    const report: Report = { written, cpu: (user + system) / 1000, before, after, pause: delay.max / 1e6 }
    process.send?.(report)
  })
  process.on('disconnect', () => process.exit(0))
}
