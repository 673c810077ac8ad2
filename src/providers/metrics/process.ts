import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Measured } from '../../core/measurements.ts'

/** Measurements of this process, with the function that ends them. */
export interface ProcessMeasures {
  readonly measure: () => readonly Measured[]
  end(): void
}

/** Resolution of the event loop delay, in milliseconds. */
const resolution = 20
/** Length of a measuring window, in milliseconds: a reader gets the delays of the last one or two windows. */
const window = 15_000

/** Measures this process: processor time, memory, descriptors, and event loop delay. */
export function measureProcess(): ProcessMeasures {
  let current = startWindow()
  let former = current
  const timer = setInterval(() => {
    if (former !== current) former.disable()
    former = current
    current = startWindow()
  }, window)
  timer.unref()

  const delays = (): readonly Measured[] => {
    // The previous window is complete, while the current one may have just begun. The histogram holds the time between two timer ticks, which
    // equals the resolution when there is no delay.
    const seconds = (read: (of: Delays) => number) =>
      Math.max(0, Math.max(read(current), read(former)) / 1e9 - resolution / 1000)
    return [
      gauge(
        'nodejs_eventloop_lag_p99_seconds',
        'How late the event loop is, but for the worst hundredth.',
        seconds((of) => of.percentile(99)),
      ),
      gauge(
        'nodejs_eventloop_lag_max_seconds',
        'How late the event loop was at worst just now.',
        seconds((of) => of.max),
      ),
    ]
  }

  return {
    measure: () => {
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
      const { user, system } = process.cpuUsage()
      const descriptors = countDescriptors()
      return [
        counter('process_cpu_seconds_total', 'Processor time that was used, in seconds.', (user + system) / 1e6),
        gauge('process_start_time_seconds', 'When the process began, in seconds since 1970.', startTime),
        gauge('process_resident_memory_bytes', 'Memory that the process has, in bytes.', rss),
        gauge('nodejs_heap_size_total_bytes', 'Memory of the heap, in bytes.', heapTotal),
        gauge('nodejs_heap_size_used_bytes', 'Memory of the heap that is in use, in bytes.', heapUsed),
        gauge(
          'nodejs_external_memory_bytes',
          'Memory outside of the heap that objects in it hold, in bytes.',
          external,
        ),
        ...(descriptors === undefined
          ? []
          : [gauge('process_open_fds', 'Files and connections that are open.', descriptors)]),
        ...delays(),
      ]
    },
    end: () => {
      clearInterval(timer)
      current.disable()
      former.disable()
    },
  }
}

type Delays = ReturnType<typeof monitorEventLoopDelay>

function startWindow(): Delays {
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  return delays
}

const startTime = Math.round(performance.timeOrigin) / 1000

function counter(name: string, help: string, value: number): Measured {
  return { name, type: 'counter', help, samples: [{ value }] }
}

function gauge(name: string, help: string, value: number): Measured {
  return { name, type: 'gauge', help, samples: [{ value }] }
}

function countDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    // Only Linux has /proc.
    return undefined
  }
}
