import { gunzipSync, gzipSync } from 'node:zlib'
import { invalid, isResourceError } from '../../core/errors.ts'
import { singleFlight } from '../../core/kit/abort.ts'
import { createMeasurements, type Log, type Measurements } from '../../core/log.ts'
import { rowsIn, type Store } from '../../store/store.ts'
import { overTime, parseExpression, pointsIn } from './evaluate.ts'
import { createHistory, type History, measureProcess, type Sample } from './own.ts'
import type { Answer, Labels, Matcher, Selector, Series, Source } from './source.ts'
import type { Moment, TimeSpan } from './units.ts'

interface SelfOptions {
  readonly measurements?: Measurements
  /** Interval of the measurements and retention time, in seconds. */
  readonly intervalSeconds: number
  readonly keepSeconds: number
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
  const { intervalSeconds, keepSeconds, maxSeries, store, name = 'self', log = () => {} } = options
  const own = options.measurements === undefined ? measureProcess() : undefined
  const measurements = options.measurements ?? createMeasurements()
  if (own !== undefined) measurements.add(own.measure)
  const capacity = Math.min(mostPoints, Math.ceil(keepSeconds / intervalSeconds))
  const history = createHistory(capacity, mostKept)
  const kept = store === undefined ? undefined : await keepHistory({ store, name, keepSeconds, history, log })

  const measure = () => {
    const sample = { time: Math.round(Date.now()) / 1000, metrics: measurements.read() }
    history.add(sample)
    kept?.write(sample)
  }
  measure()
  const timer = setInterval(measure, intervalSeconds * 1000)
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
    intervalSeconds,
    metrics: async () => history.metrics,
    select: async (selector, span) => answer(chosen(selector).map((one) => pointsIn(one, span, intervalSeconds))),
    query: async (text, when) => {
      const { over, ...selector } = parseExpression(text)
      const span = spanOf(when, intervalSeconds)
      const series = chosen(selector).map((one) =>
        over === undefined ? pointsIn(one, span, intervalSeconds) : overTime(one, over.name, over.seconds, span),
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
function spanOf(when: TimeSpan | Moment, intervalSeconds: number): TimeSpan {
  // Queries are for whole seconds, so the sample is a little older.
  const back = Math.max(5, intervalSeconds * 3)
  return 'at' in when ? { start: when.at - back, end: when.at, step: back } : when
}

function lastOf({ labels, values }: Series, at: number): Series {
  const value = values.at(-1)
  return { labels, times: Float64Array.from(value === undefined ? [] : [at]), values: values.slice(-1) }
}

/** One step of a simple pattern: a character, any character, or any number of characters. */
type PatternStep = { readonly character: string } | { readonly any: 'one' | 'many' }

/**
 * Compiles matchers into a test of labels, which takes O(pattern × text) time. A missing label is treated as empty.
 *
 * Of regular expressions, only alternatives of texts with `.`, `.*` and `.+` are supported: others can take exponential time.
 *
 * @throws ResourceError `invalid` (reason `match`) for any other regular expression.
 */
export function compileMatchers(matchers: readonly Matcher[]): (labels: Labels) => boolean {
  const tests = matchers.map(({ label, operator, value }) => {
    const test = operator === '=' || operator === '!=' ? (text: string) => text === value : compilePattern(value)
    const wanted = operator === '=' || operator === '=~'
    return (labels: Labels) => test(labels.get(label) ?? '') === wanted
  })
  return (labels) => tests.every((test) => test(labels))
}

function compilePattern(pattern: string): (text: string) => boolean {
  const alternatives = splitAlternatives(pattern).map(parseSteps)
  return (text) => alternatives.some((steps) => matches(steps, Array.from(text)))
}

function splitAlternatives(pattern: string): readonly string[] {
  const parts = ['']
  for (const [piece] of pattern.matchAll(/\\?[\s\S]/gu)) {
    if (piece === '|') parts.push('')
    else parts[parts.length - 1] += piece
  }
  return parts
}

function parseSteps(pattern: string): readonly PatternStep[] {
  const steps: PatternStep[] = []
  for (const [piece] of pattern.matchAll(/\.[*+]?|\\[\s\S]|[\s\S]/gu)) {
    if (piece === '.*') steps.push({ any: 'many' })
    else if (piece === '.+') steps.push({ any: 'one' }, { any: 'many' })
    else if (piece === '.') steps.push({ any: 'one' })
    else if (/^\\[^A-Za-z0-9]$/u.test(piece)) steps.push({ character: piece.slice(1) })
    else if (/^[^\\[\](){}*+?^$]$/u.test(piece)) steps.push({ character: piece })
    else
      throw invalid(
        'In regular expressions, the measurements of this server support only alternatives (a|b) of texts with ., .* and .+ in them.',
        'parameter',
        { parameter: 'match' },
      )
  }
  return steps
}

/** Whether the steps match a whole text: glob matching, with backtracking only to the last `.*`. */
function matches(steps: readonly PatternStep[], text: readonly string[]): boolean {
  let at = 0
  let step = 0
  let again: { readonly step: number; at: number } | undefined
  while (at < text.length) {
    const current = steps[step]
    if (current !== undefined && 'any' in current && current.any === 'many') {
      again = { step, at }
      step++
    } else if (current !== undefined && ('any' in current || current.character === text[at])) {
      step++
      at++
    } else if (again !== undefined) {
      again.at++
      at = again.at
      step = again.step + 1
    } else return false
  }
  return steps.slice(step).every((left) => 'any' in left && left.any === 'many')
}

interface KeepOptions {
  readonly store: Store
  /** Name of the history in the store. Processes with the same name share one history. */
  readonly name: string
  /** Retention time, in seconds. */
  readonly keepSeconds: number
  readonly history: History
  readonly log?: Log
}

/** Number of samples per read. */
const page = 500
/** Maximum number of samples that wait for a slow store; above it the oldest are dropped. */
const mostWaiting = 100

/** Persists a history in a store, and loads the samples already there. Old samples expire by themselves. */
async function keepHistory({ store, name, keepSeconds, history, log = () => {} }: KeepOptions) {
  const rows = store.collection(`metrics/${name}`)
  const missing = (error: unknown) => {
    if (!isResourceError(error)) throw error
    log('warn', 'measurements cannot be kept now', { error })
  }
  try {
    for await (const { value } of rowsIn(rows, { limit: page, values: true })) {
      const sample = sampleIn(value)
      if (sample !== undefined) history.add(sample)
    }
  } catch (error) {
    missing(error)
  }

  const waiting: Sample[] = []
  const writing = singleFlight(async () => {
    for (let sample = waiting.shift(); sample !== undefined; sample = waiting.shift()) {
      const { time } = sample
      const value = gzipSync(JSON.stringify(sample))
      await rows.put({ key: keyOf(time), value, expires: Math.round((time + keepSeconds) * 1000) }).catch(missing)
    }
  })
  return {
    /** Writes a sample in the background; a failed write loses the sample only for later processes. */
    write: (sample: Sample): void => {
      waiting.push(sample)
      if (waiting.length > mostWaiting) waiting.shift()
      void writing.run()
    },
    end: async (): Promise<void> => {
      await writing.running
    },
  }
}

/** Formats a time so that text order is time order. */
const keyOf = (time: number) =>
  Math.round(time * 1000)
    .toString()
    .padStart(16, '0')

/** Parses a stored sample of any version of this program; undefined when it is invalid. */
function sampleIn(value: Uint8Array): Sample | undefined {
  try {
    const sample = JSON.parse(gunzipSync(value, { maxOutputLength: 16 * 1024 * 1024 }).toString()) as Partial<Sample>
    return typeof sample.time === 'number' && Array.isArray(sample.metrics) ? (sample as Sample) : undefined
  } catch {
    return undefined
  }
}
