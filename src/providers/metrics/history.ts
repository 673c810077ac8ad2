import { defined } from '../../core/kit/defined.ts'
import type { Measured } from '../../core/measurements.ts'
import type { Labels, Metric, Series } from './source.ts'
import { unitIn } from './units.ts'

/** Measurements of one time: values by the keys of their series. */
export interface Sample {
  /** Seconds since 1970. */
  readonly time: number
  readonly metrics: readonly Measured[]
}

/** Bounded history of measurements, which drops the oldest points. */
export interface History {
  /** Adds a sample that is newer than all before; ignores an older one. */
  add(sample: Sample): void
  /** Time of the newest sample, in seconds since 1970. */
  readonly newest: number | undefined
  readonly metrics: readonly Metric[]
  seriesOf(metric: string): readonly Series[]
}

export interface HistoryOptions {
  /** Maximum number of samples kept. */
  readonly capacity: number
  /** Maximum number of series; further series are left out. */
  readonly maxSeries: number
}

interface Line {
  readonly labels: Labels
  times: Float64Array
  values: Float64Array
  /** The points are at the indices from `start` up to but not including `end`, in order. */
  start: number
  end: number
}

const firstLength = 64

export function createHistory({ capacity, maxSeries }: HistoryOptions): History {
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
    add: ({ time, metrics: measured }) => {
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
    get newest() {
      return newest
    },
    get metrics() {
      return [...metrics.values()]
    },
    seriesOf: (name) =>
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
