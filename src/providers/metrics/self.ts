import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { createMetricsRegistry, type MetricFamily, type MetricsRegistry } from '../../core/log.ts'
import { measureProcess } from './own.ts'
import type { Labels, Matcher, Metric, MetricAnswer, MetricSource } from './source.ts'
import { type TimeSpan, unitIn } from './units.ts'

interface SelfOptions {
  readonly measurements?: MetricsRegistry
  readonly intervalSeconds: number
  readonly maxSeries: number
}

/** Maximum number of measurements kept of a series: 25 hours at the default interval. */
const mostPoints = 6000
/** Maximum number of series kept. */
const mostKept = 1000

export function selfSource({ intervalSeconds, maxSeries, ...options }: SelfOptions): MetricSource {
  const own = options.measurements === undefined ? measureProcess() : undefined
  const measurements = options.measurements ?? createMetricsRegistry()
  if (own !== undefined) measurements.add(own.measure)
  const history = createHistory()
  const measure = () => history.add(Date.now() / 1000, measurements.read())
  measure()
  const timer = setInterval(measure, intervalSeconds * 1000)
  timer.unref()

  return {
    intervalSeconds,
    metrics: async () => [...history.metrics.values()],
    select: async ({ metric, matchers }, span): Promise<MetricAnswer> => {
      const series = history
        .linesOf(metric)
        .filter(({ labels }) => isLabelMatch(labels, matchers))
        .map((line) => pointsIn(line, span, intervalSeconds))
        .filter(({ times }) => times.length > 0)
      return { series: series.slice(0, maxSeries), total: series.length, notes: [] }
    },
    labels: async (metric) => {
      const names = new Set(history.linesOf(metric).flatMap(({ labels }) => [...labels.keys()]))
      return [...names].filter((label) => label !== '__name__')
    },
    values: async (metric, label) => [
      ...new Set(history.linesOf(metric).flatMap(({ labels }) => labels.get(label) ?? [])),
    ],
    stamp: async () => String(history.newest()),
    close: async () => {
      clearInterval(timer)
      own?.end()
    },
  }
}

interface Line {
  readonly labels: Labels
  /** In seconds since 1970, ascending. */
  readonly times: number[]
  readonly values: number[]
}

/** Creates a store of the latest {@link mostPoints} measurements of at most {@link mostKept} series. */
export function createHistory() {
  const metrics = new Map<string, Metric>()
  const lines = new Map<string, Line>()
  let newest = 0

  const lineOf = (name: string, labels: Readonly<Record<string, string>>): Line | undefined => {
    const all = [['__name__', name], ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))] as const
    const key = JSON.stringify(all)
    const previousLine = lines.get(key)
    if (previousLine !== undefined || lines.size >= mostKept) return previousLine
    const line: Line = { labels: new Map(all), times: [], values: [] }
    lines.set(key, line)
    return line
  }

  return {
    metrics: metrics as ReadonlyMap<string, Metric>,
    newest: () => newest,
    /** Ignores measurements that are not later than the newest ones, as after the clock was set back. */
    add: (time: number, families: readonly MetricFamily[]): void => {
      if (time <= newest) return
      newest = time
      for (const { name, type, help, samples } of families) {
        metrics.set(name, { name, type, help, ...defined({ unit: unitIn(name) }) })
        for (const { labels = {}, value } of samples) {
          const line = lineOf(name, labels)
          if (line === undefined) continue
          line.times.push(time)
          line.values.push(value)
          if (line.times.length <= mostPoints) continue
          line.times.shift()
          line.values.shift()
        }
      }
    },
    linesOf: (name: string): readonly Line[] =>
      [...lines.values()].filter(({ labels }) => labels.get('__name__') === name),
  }
}

/**
 * Whether labels match. A missing label counts as empty.
 *
 * @throws ResourceError `invalid` for a regular expression.
 */
function isLabelMatch(labels: Labels, matchers: readonly Matcher[]): boolean {
  return matchers.every(({ label, operator, value }) => {
    if (operator === '=~' || operator === '!~')
      throw invalid(
        'The measurements of this server can be matched only with = and !=. For regular expressions, let Prometheus scrape /metrics.',
        'parameter',
        { parameter: 'match' },
      )
    return ((labels.get(label) ?? '') === value) === (operator === '=')
  })
}

/** Returns the points in a span: each measured one, or the last of each step if the step is longer than 1.5 intervals. */
export function pointsIn({ labels, times, values }: Line, { start, end, step }: TimeSpan, intervalSeconds: number) {
  const indexes = [...times.keys()].filter((index) => (times[index] ?? 0) >= start && (times[index] ?? 0) <= end)
  const stepOf = (index: number | undefined) =>
    index === undefined ? Number.NaN : Math.floor(((times[index] ?? 0) - start) / step)
  const positions =
    step <= intervalSeconds * 1.5 ? indexes : indexes.filter((one, at) => stepOf(one) !== stepOf(indexes[at + 1]))
  const pick = (from: readonly number[]) => Float64Array.from(positions, (index) => from[index] ?? Number.NaN)
  return { labels, times: pick(times), values: pick(values) }
}
