import { invalid } from '../../core/errors.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { createReader, type Matcher, parseMatchers, type Series } from './source.ts'
import { parseDuration, type TimeSpan } from './units.ts'

/**
 * Returns the points of a series in a span: the measured points when the step is no longer than their interval, otherwise the last point
 * before each step.
 */
export function pointsIn(series: Series, { start, end, step }: TimeSpan, intervalSeconds: number): Series {
  const { labels, times, values } = series
  if (step <= intervalSeconds * 1.5) {
    const [from, to] = [firstAtOrAfter(times, start), firstAfter(times, end)]
    return { labels, times: times.slice(from, to), values: values.slice(from, to) }
  }
  return atSteps(labels, { start, end, step }, (time) => {
    const index = firstAfter(times, time) - 1
    const found = times[index]
    // A value older than a step and than a few intervals is stale.
    return found !== undefined && time - found < Math.max(step, intervalSeconds * 3) ? values[index] : undefined
  })
}

/** Evaluates a function over the points within some seconds before each step. */
export function overTime(series: Series, name: OverTime, seconds: number, span: TimeSpan): Series {
  const { times, values } = series
  const labels = new Map([...series.labels].filter(([label]) => label !== '__name__'))
  return atSteps(labels, span, (time) => {
    const [from, to] = [firstAfter(times, time - seconds), firstAfter(times, time)]
    return functions[name](values.subarray(from, to), times.subarray(from, to))
  })
}

type Window = (values: Float64Array, times: Float64Array) => number | undefined

const functions: Readonly<Record<OverTime, Window>> = {
  rate: (values, times) => {
    const seconds = (times.at(-1) ?? 0) - (times[0] ?? 0)
    return seconds > 0 ? grown(values) / seconds : undefined
  },
  increase: (values) => (values.length > 1 ? grown(values) : undefined),
  delta: (values) => (values.length > 1 ? (values.at(-1) ?? 0) - (values[0] ?? 0) : undefined),
  min_over_time: (values) => (values.length > 0 ? values.reduce((a, b) => Math.min(a, b)) : undefined),
  max_over_time: (values) => (values.length > 0 ? values.reduce((a, b) => Math.max(a, b)) : undefined),
  avg_over_time: (values) => (values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : undefined),
}

/** Returns the increase of a counter: a value smaller than the previous one means a restart at zero. */
export function grown(values: Float64Array): number {
  let sum = 0
  let before: number | undefined
  for (const value of values) {
    if (!Number.isFinite(value)) continue
    if (before !== undefined) sum += value < before ? value : value - before
    before = value
  }
  return sum
}

function atSteps(labels: Series['labels'], span: TimeSpan, valueAt: (time: number) => number | undefined): Series {
  const found: (readonly [time: number, value: number])[] = []
  for (let index = 0; ; index++) {
    const time = span.start + index * span.step
    if (time > span.end) break
    const value = valueAt(time)
    if (value !== undefined) found.push([time, value])
  }
  return {
    labels,
    times: Float64Array.from(found, ([time]) => time),
    values: Float64Array.from(found, ([, value]) => value),
  }
}

function firstAtOrAfter(times: Float64Array, time: number): number {
  return firstIndex(0, times.length, (index) => (times[index] ?? 0) >= time)
}

function firstAfter(times: Float64Array, time: number): number {
  const at = firstAtOrAfter(times, time)
  return times[at] === time ? at + 1 : at
}

/** A query to the measurements of this process: a selector, or one function of it over a time range. */
interface Expression {
  readonly metric: string
  readonly matchers: readonly Matcher[]
  readonly over?: { readonly name: OverTime; readonly seconds: number }
}

const overTimeNames = ['rate', 'increase', 'delta', 'min_over_time', 'max_over_time', 'avg_over_time'] as const
type OverTime = (typeof overTimeNames)[number]

const advice =
  'The measurements of this server support a metric, with or without matchers, and rate, increase, delta, min_over_time, max_over_time ' +
  'or avg_over_time of one: rate(hikidashi_requests_total[5m]). For more, let Prometheus scrape /metrics.'

/** Parses a query. @throws ResourceError `invalid` (reason `query`) for any PromQL that an {@link Expression} cannot hold. */
export function parseExpression(text: string): Expression {
  const reader = createReader(text)
  const name = reader.take(/[A-Za-z_:][A-Za-z0-9_:]*/y)
  const over = overTimeNames.find((one) => one === name)
  const isCall = over !== undefined && reader.take(/\(/y) !== undefined
  const metric = isCall ? reader.take(/[A-Za-z_:][A-Za-z0-9_:]*/y) : name
  if (metric === undefined) throw invalid(advice, 'parameter', { parameter: 'query' })
  const matchers = parseMatchers(reader.take(/\{(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[^}"'`])*\}/y) ?? '')
  const range = isCall ? reader.take(/\[\s*\w+\s*\]\s*\)/y) : undefined
  const seconds = parseDuration(/\w+/.exec(range ?? '')?.[0] ?? '')
  if (!reader.atEnd() || (isCall && !seconds)) throw invalid(advice, 'parameter', { parameter: 'query' })
  return { metric, matchers, ...(isCall && seconds ? { over: { name: over, seconds } } : {}) }
}
