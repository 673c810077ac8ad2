import { grown } from './evaluate.ts'

/** A value with its time. */
export interface At {
  readonly value: number
  readonly time: number
}

/** Trend of a series: mainly up, mainly down, almost constant, or up and down. */
export type Trend = 'rising' | 'falling' | 'flat' | 'varying'

/** Summary of a series. Times are in seconds since 1970; non-finite values are ignored, except for `last`. */
export interface Summary {
  readonly points: number
  readonly min: At
  readonly max: At
  readonly mean: number
  readonly first: At
  readonly last: At
  readonly trend: Trend
  /** Only for counters: the increase including restarts at zero, and its rate per second. */
  readonly increase?: number
  readonly perSecond?: number
}

interface Points {
  readonly times: Float64Array
  readonly values: Float64Array
}

/** Returns undefined when no value is finite. */
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
  const at = (index: number): At => ({ value: values[index] ?? 0, time: times[index] ?? 0 })
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

/** Maximum spread of a flat series, relative to its level. */
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
