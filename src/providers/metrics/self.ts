import type { Log } from '../../core/log.ts'
import { createMeasurements, type Measurements } from '../../core/measurements.ts'
import type { Store } from '../../store/store.ts'
import { overTime, pointsIn } from './evaluate.ts'
import { parseExpression } from './expression.ts'
import { createHistory } from './history.ts'
import { keepHistory } from './kept.ts'
import { compileMatchers } from './matching.ts'
import { measureProcess } from './process.ts'
import type { Selector } from './selector.ts'
import type { Answer, Series, Source } from './source.ts'
import type { Moment, Span } from './time.ts'

export interface SelfOptions {
  readonly measurements?: Measurements
  /** Interval of the measurements and retention time, in seconds. */
  readonly interval: number
  readonly keep: number
  readonly maxSeries: number
  readonly store?: Store
  readonly name?: string
  readonly log?: Log
}

/** Maximum number of series kept. */
const mostKept = 1000
/** Maximum number of points kept per series. */
const mostPoints = 100_000

/** Source for the measurements of this process, taken at an interval and kept for a time. */
export async function self(options: SelfOptions): Promise<Source> {
  const { interval, keep, maxSeries, store, name = 'self', log = () => {} } = options
  const own = options.measurements === undefined ? measureProcess() : undefined
  const measurements = options.measurements ?? createMeasurements()
  if (own !== undefined) measurements.add(own.measure)
  const capacity = Math.min(mostPoints, Math.ceil(keep / interval))
  const history = createHistory({ capacity, maxSeries: mostKept })
  const kept = store === undefined ? undefined : await keepHistory({ store, name, keep, history, log })

  const measure = () => {
    const sample = { time: Math.round(Date.now()) / 1000, metrics: measurements.read() }
    history.add(sample)
    kept?.write(sample)
  }
  measure()
  const timer = setInterval(measure, interval * 1000)
  timer.unref()

  const chosen = ({ metric, matchers }: Selector): readonly Series[] => {
    const test = compileMatchers(matchers)
    return history.seriesOf(metric).filter(({ labels }) => test(labels))
  }
  const answer = (series: readonly Series[]): Answer => {
    const found = series.filter(({ times }) => times.length > 0)
    return { series: found.slice(0, maxSeries), total: found.length, notes: [] }
  }

  return {
    interval,
    metrics: async () => history.metrics,
    select: async (selector, span) => answer(chosen(selector).map((one) => pointsIn(one, span, interval))),
    query: async (text, when) => {
      const { over, ...selector } = parseExpression(text)
      const span = spanOf(when, interval)
      const series = chosen(selector).map((one) =>
        over === undefined ? pointsIn(one, span, interval) : overTime(one, over.name, over.seconds, span),
      )
      return answer('at' in when ? series.map((one) => lastOf(one, when.at)) : series)
    },
    labels: async (metric) =>
      [...new Set(history.seriesOf(metric).flatMap(({ labels }) => [...labels.keys()]))].filter(
        (label) => label !== '__name__',
      ),
    values: async (metric, label) => [
      ...new Set(history.seriesOf(metric).flatMap(({ labels }) => labels.get(label) ?? [])),
    ],
    stamp: async () => String(history.newest),
    close: async () => {
      clearInterval(timer)
      own?.end()
      await kept?.end()
    },
  }
}

/** Converts a moment to a span that contains its sample. */
function spanOf(when: Span | Moment, interval: number): Span {
  // Times are whole seconds, so the sample lies a little before.
  const back = Math.max(5, interval * 3)
  return 'at' in when ? { start: when.at - back, end: when.at, step: back } : when
}

function lastOf({ labels, values }: Series, at: number): Series {
  const value = values.at(-1)
  return { labels, times: Float64Array.from(value === undefined ? [] : [at]), values: values.slice(-1) }
}
