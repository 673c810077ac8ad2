import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { defined } from '../../core/kit/object.ts'
import type { MetricFamily } from '../../core/log.ts'
import type { Labels, Metric, Series } from './source.ts'
import { unitIn } from './units.ts'

/** Resolution of the event loop delay, in milliseconds. */
const resolutionMs = 20
/** Length of a measuring window, in milliseconds: a reader gets the delays of the last one or two windows. */
const windowMs = 15_000

/** Measures this process, until its `end` is called: processor time, memory, descriptors, and event loop delay. */
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
    const seconds = (read: (of: Delays) => number) =>
      Math.max(0, Math.max(read(current), read(former)) / 1e9 - resolutionMs / 1000)
    return [
      gauge(
        'nodejs_eventloop_lag_p99_seconds',
        'The 99th percentile of the delay of the event loop.',
        seconds((of) => of.percentile(99)),
      ),
      gauge(
        'nodejs_eventloop_lag_max_seconds',
        'The maximum delay of the event loop in the last interval.',
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
    // Only Linux has /proc.
    return undefined
  }
}

/** All measurements of this process at one time. */
export interface Sample {
  /** Time of the measurements, in seconds since 1970. */
  readonly time: number
  readonly metrics: readonly MetricFamily[]
}

export type History = ReturnType<typeof createHistory>

interface Line {
  readonly labels: Labels
  times: Float64Array
  values: Float64Array
  /** The points are at the indices from `start` up to but not including `end`, in order. */
  start: number
  end: number
}

const firstLength = 64

/**
 * Bounded history of measurements, which drops the oldest points.
 *
 * @param capacity Maximum number of samples kept.
 * @param maxSeries Maximum number of series; further series are left out.
 */
export function createHistory(capacity: number, maxSeries: number) {
  const metrics = new Map<string, Metric>()
  const lines = new Map<string, Map<string, Line>>()
  let count = 0
  let newest: number | undefined

  const lineOf = (name: string, labels: Readonly<Record<string, string>>): Line | undefined => {
    const ofMetric = lines.get(name) ?? new Map<string, Line>()
    lines.set(name, ofMetric)
    const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
    const key = JSON.stringify(sorted)
    const known = ofMetric.get(key)
    if (known !== undefined || count >= maxSeries) return known
    count++
    const all = new Map([['__name__', name], ...sorted] as const)
    const line: Line = {
      labels: all,
      times: new Float64Array(firstLength),
      values: new Float64Array(firstLength),
      start: 0,
      end: 0,
    }
    ofMetric.set(key, line)
    return line
  }

  return {
    /** Adds a sample that is newer than all before; ignores an older one. */
    add: ({ time, metrics: measured }: Sample): void => {
      if (newest !== undefined && time <= newest) return
      newest = time
      for (const { name, type, help, samples } of measured) {
        if (!metrics.has(name)) {
          const unit = unitIn(name)
          metrics.set(name, { name, type, help, ...defined({ unit }) })
        }
        for (const { labels = {}, value } of samples) {
          const line = lineOf(name, labels)
          if (line !== undefined) append(line, time, value, capacity)
        }
      }
    },
    /** Time of the newest sample, in seconds since 1970. */
    get newest() {
      return newest
    },
    get metrics(): readonly Metric[] {
      return [...metrics.values()]
    },
    seriesOf: (name: string): readonly Series[] =>
      [...(lines.get(name)?.values() ?? [])].map(({ labels, times, values, start, end }) => ({
        labels,
        times: times.subarray(start, end),
        values: values.subarray(start, end),
      })),
  }
}

/** Appends a point. The arrays grow up to twice the capacity; then the kept points move to the start. */
function append(line: Line, time: number, value: number, capacity: number): void {
  if (line.end - line.start >= capacity) line.start = line.end - capacity + 1
  if (line.end === line.times.length) {
    const length = Math.min(capacity * 2, Math.max(firstLength, (line.end - line.start) * 2))
    const [times, values] = [new Float64Array(length), new Float64Array(length)]
    times.set(line.times.subarray(line.start, line.end))
    values.set(line.values.subarray(line.start, line.end))
    line.end -= line.start
    line.start = 0
    line.times = times
    line.values = values
  }
  line.times[line.end] = time
  line.values[line.end] = value
  line.end++
}
