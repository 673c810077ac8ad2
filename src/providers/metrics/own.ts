import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { MetricFamily } from '../../core/log.ts'

const resolutionMs = 20
const windowMs = 15_000

/** Measures processor time, memory, descriptors, and event loop delay of this process, until the returned `end` is called. */
export function measureProcess() {
  let current = startWindow()
  let former = current
  const timer = setInterval(() => {
    if (former !== current) former.disable()
    former = current
    current = startWindow()
  }, windowMs)
  timer.unref()

  const delays = (): readonly MetricFamily[] => {
    // The previous window is complete, while the current one may have just begun. The histogram holds the time between two timer ticks, which
    // equals the resolution when there is no delay.
    const seconds = (delayOf: (of: Delays) => number) =>
      Math.max(0, Math.max(delayOf(current), delayOf(former)) / 1e9 - resolutionMs / 1000)
    return [
      gauge(
        'nodejs_eventloop_lag_p99_seconds',
        'The 99th percentile of the delay of the event loop.',
        seconds((of) => of.percentile(99)),
      ),
      gauge(
        'nodejs_eventloop_lag_max_seconds',
        'The maximum delay of the event loop in the last 15 to 30 seconds.',
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
        gauge('process_start_time_seconds', 'Start time of the process, in seconds since 1970.', startTime),
        gauge('process_resident_memory_bytes', 'Resident memory of the process, in bytes.', rss),
        gauge('nodejs_heap_size_total_bytes', 'Memory of the heap, in bytes.', heapTotal),
        gauge('nodejs_heap_size_used_bytes', 'Memory of the heap that is in use, in bytes.', heapUsed),
        gauge(
          'nodejs_external_memory_bytes',
          'Memory outside of the heap that objects of the heap hold, in bytes.',
          external,
        ),
        ...(descriptors === undefined
          ? []
          : [gauge('process_open_fds', 'Number of open files and connections.', descriptors)]),
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
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  return delays
}

const startTime = Math.round(performance.timeOrigin) / 1000

function counter(name: string, help: string, value: number): MetricFamily {
  return { name, type: 'counter', help, samples: [{ value }] }
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, type: 'gauge', help, samples: [{ value }] }
}

function countDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    // Without /proc, as on macOS and Windows, the number is unknown.
    return undefined
  }
}
