import type { Labels, MetricAnswer, Series } from './source.ts'

export interface ShownSeries extends Series {
  /** Summary of all points. Undefined: the series has no finite value. */
  readonly summary: Summary | undefined
  readonly gaps: readonly Gap[]
  /** Number of all points. */
  readonly points: number
}

export interface ShownAnswer {
  /** The query: the name of a metric with its matchers, or PromQL. */
  readonly query: string
  readonly type?: string
  readonly help?: string
  readonly unit?: string
  /** In seconds since 1970. */
  readonly start: number
  /** In seconds since 1970. */
  readonly end: number
  /** In seconds; 0 for one moment. */
  readonly step: number
  readonly series: readonly ShownSeries[]
  /** Number of series, with those that are left out. */
  readonly total: number
  readonly notes: readonly string[]
  readonly withoutQueries?: boolean
}

/** A series may show at least this number of points, however many series there are. */
const fewest = 16

/**
 * Downsamples the points of an answer.
 *
 * @param perSeries Maximum number of points of one series.
 * @param inAll Maximum number of points of all series together, except that each may have {@link fewest}.
 */
export function downsampleAnswer(
  { series }: MetricAnswer,
  { step, isCounter, perSeries, inAll }: { step: number; isCounter: boolean; perSeries: number; inAll: number },
): readonly ShownSeries[] {
  const most = Math.max(fewest, Math.min(perSeries, Math.floor(inAll / Math.max(1, series.length))))
  return series.map(({ labels, times, values }) => {
    const gaps = step === 0 ? [] : gapsOf(times, step)
    const indices = downsample({ times, values }, most, gapEdgesOf(gaps))
    const pick = (from: Float64Array) => Float64Array.from(indices, (index) => from[index] ?? Number.NaN)
    const all = indices.length === times.length
    return {
      labels,
      times: all ? times : pick(times),
      values: all ? values : pick(values),
      summary: summarize({ times, values }, isCounter),
      gaps,
      points: times.length,
    }
  })
}

/** Splits the labels of the series into those common to all, and each series' own. */
export function distinctLabels(series: readonly { readonly labels: Labels }[]): {
  readonly common: readonly (readonly [name: string, value: string])[]
  readonly own: readonly (readonly (readonly [name: string, value: string])[])[]
} {
  const [first] = series
  const isCommon = (name: string, value: string) => series.every(({ labels }) => labels.get(name) === value)
  const common = [...(first?.labels ?? [])].filter(([name, value]) => isCommon(name, value))
  const names = new Set(common.map(([name]) => name))
  return { common, own: series.map(({ labels }) => [...labels].filter(([name]) => !names.has(name))) }
}

/** Formats labels as `name="value"`, with commas between them. */
export function formatLabels(labels: readonly (readonly [name: string, value: string])[]): string {
  return labels.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ')
}

/**
 * Selects the points of a series to show within a maximum: the smallest and the largest of each bucket (equal spans of time, as many as
 * fit); the first and the last; and some given points. (LTTB, which keeps the look of a line, loses single peaks.)
 *
 * NaN values have no order: a bucket of only NaN keeps its first.
 *
 * @param most At least 8.
 * @param keep Further indices to keep, such as the edges of gaps; only the first `most / 4` are kept.
 * @returns Ascending indices, at most `most`; all of them when there are no more points than that.
 */
export function downsample(
  { times, values }: { readonly times: Float64Array; readonly values: Float64Array },
  most: number,
  keep: readonly number[] = [],
): readonly number[] {
  const count = times.length
  if (count <= most) return Array.from(times, (_, index) => index)
  const indexes = new Set([0, count - 1, ...keep.slice(0, Math.floor(most / 4))])
  const buckets = Math.floor((most - indexes.size) / 2)
  const start = times[0] ?? 0
  const length = ((times[count - 1] ?? 0) - start) / buckets || 1
  const lows = new Int32Array(buckets).fill(-1)
  const highs = new Int32Array(buckets).fill(-1)
  for (let index = 0; index < count; index++) {
    const bucket = Math.min(buckets - 1, Math.floor(((times[index] ?? 0) - start) / length))
    const low = lows[bucket] ?? -1
    const high = highs[bucket] ?? -1
    const value = values[index] ?? Number.NaN
    if (low === -1 || value < (values[low] ?? 0) || isFirstNumber(value, values[low])) lows[bucket] = index
    if (high === -1 || value > (values[high] ?? 0) || isFirstNumber(value, values[high])) highs[bucket] = index
  }
  for (const index of [...lows, ...highs]) if (index !== -1) indexes.add(index)
  return [...indexes].sort((a, b) => a - b)
}

function isFirstNumber(value: number, before = 0): boolean {
  return Number.isNaN(before) && !Number.isNaN(value)
}

/** A gap in a series: two consecutive points more than 1.75 steps apart. */
export interface Gap {
  /** Index of the last point before the gap; the next point is the first after it. */
  readonly after: number
  /** Time of the point before the gap, in seconds since 1970. */
  readonly from: number
  /** Time of the point after the gap, in seconds since 1970. */
  readonly to: number
}

/** Returns the gaps in a series. The limit is above one step, because samples have jitter. */
export function gapsOf(times: Float64Array, step: number): readonly Gap[] {
  const gaps: Gap[] = []
  for (let index = 1; index < times.length; index++) {
    const from = times[index - 1] ?? 0
    const to = times[index] ?? 0
    if (to - from > step * 1.75) gaps.push({ after: index - 1, from, to })
  }
  return gaps
}

export function gapEdgesOf(gaps: readonly Gap[]): readonly number[] {
  return [...gaps].sort((a, b) => b.to - b.from - (a.to - a.from)).flatMap(({ after }) => [after, after + 1])
}

export interface TimedValue {
  readonly value: number
  /** In seconds since 1970. */
  readonly time: number
}

type Trend = 'rising' | 'falling' | 'flat' | 'varying'

/** Summary of the finite values of a series. */
export interface Summary {
  /** Number of points, also of those whose value is not finite. */
  readonly points: number
  readonly min: TimedValue
  readonly max: TimedValue
  readonly mean: number
  readonly first: TimedValue
  /** The last point, also if its value is not finite. */
  readonly last: TimedValue
  readonly trend: Trend
  /** Only for counters. */
  readonly increase?: number
  /** Only for counters: the increase per second. */
  readonly perSecond?: number
}

interface Points {
  readonly times: Float64Array
  readonly values: Float64Array
}

/** Summarizes a series. Undefined: no value is finite. */
export function summarize(points: Points, isCounter: boolean): Summary | undefined {
  const { times, values } = points
  let min = -1
  let max = -1
  let first = -1
  let sum = 0
  let count = 0
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? Number.NaN
    if (!Number.isFinite(value)) continue
    if (first === -1) first = index
    if (min === -1 || value < (values[min] ?? 0)) min = index
    if (max === -1 || value > (values[max] ?? 0)) max = index
    sum += value
    count++
  }
  if (count === 0) return undefined
  const at = (index: number): TimedValue => ({ value: values[index] ?? 0, time: times[index] ?? 0 })
  const seconds = (times.at(-1) ?? 0) - (times[first] ?? 0)
  const increase = isCounter ? grown(values) : 0
  return {
    points: values.length,
    min: at(min),
    max: at(max),
    mean: sum / count,
    first: at(first),
    last: at(values.length - 1),
    trend: trendOf(points, at(min).value, at(max).value, sum / count),
    ...(isCounter && seconds > 0 ? { increase, perSecond: increase / seconds } : {}),
  }
}

/** Returns the increase of a counter: a value smaller than the previous one means a restart at zero. */
function grown(values: Float64Array): number {
  let sum = 0
  let before: number | undefined
  for (const value of values) {
    if (!Number.isFinite(value)) continue
    if (before !== undefined) sum += value < before ? value : value - before
    before = value
  }
  return sum
}

/** Maximum spread of a flat series, relative to its mean. */
const negligible = 0.01
/** Minimum correlation of value and time for a rising or falling trend. */
const oneWay = 0.5

function trendOf({ times, values }: Points, min: number, max: number, mean: number): Trend {
  if (max - min <= Math.abs(mean) * negligible) return 'flat'
  let count = 0
  let time = 0
  for (let index = 0; index < values.length; index++) {
    if (!Number.isFinite(values[index])) continue
    time += times[index] ?? 0
    count++
  }
  time /= count
  let together = 0
  let ofTime = 0
  let ofValue = 0
  for (let index = 0; index < values.length; index++) {
    const value = (values[index] ?? 0) - mean
    if (!Number.isFinite(value)) continue
    const away = (times[index] ?? 0) - time
    together += away * value
    ofTime += away * away
    ofValue += value * value
  }
  const correlation = together / Math.sqrt(ofTime * ofValue)
  if (correlation >= oneWay) return 'rising'
  return correlation <= -oneWay ? 'falling' : 'varying'
}
