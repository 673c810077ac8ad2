import { ResourceError } from '../../core/errors.ts'
import { memberOf } from '../../core/kit/object.ts'
import { parseSampleValue } from '../../core/kit/sample-value.ts'
import { createElementReader, prometheusPage } from './pages.ts'
import {
  type ClientOptions,
  createPrometheusClient,
  type FormFields,
  malformedAnswerError,
  type PrometheusErrorAnswer,
  type PrometheusRequest,
  prometheusError,
} from './request.ts'
import {
  formatLabel,
  formatSelector,
  type Labels,
  type Metric,
  type MetricAnswer,
  type MetricType,
  type QuerySource,
  type Selector,
  type Series,
} from './source.ts'
import { familyNames, type Instant, maxSeriesPoints, type TimeSpan, unitIn } from './units.ts'

interface PrometheusOptions extends ClientOptions {
  readonly intervalSeconds: number
  readonly maxSeries: number
}

/** Maximum size, in bytes, of an answer that is parsed as a whole (names, labels, alerts). */
const maxWholeBytes = 32 * 1024 * 1024

export function prometheus(options: PrometheusOptions): QuerySource {
  const { maxSeries, timeoutMs } = options
  const client = createPrometheusClient(options)
  const forWhole = createPrometheusClient({ ...options, maxBytes: Math.min(options.maxBytes, maxWholeBytes) })
  // Prometheus times out before this client does, so it can report that the query takes too long.
  const serverTimeout = `${Math.max(1, Math.floor(timeoutMs * 0.8))}ms`

  const get = async (path: string, fields: FormFields, signal: AbortSignal): Promise<unknown> => {
    const chunks: Uint8Array[] = []
    const { status } = await forWhole({ path, fields, signal }, (chunk) => void chunks.push(chunk))
    return successOf(status, parseJsonAnswer(Buffer.concat(chunks)), undefined).data
  }

  const ask = async (request: Omit<PrometheusRequest, 'post'>, written: 'query' | 'match'): Promise<MetricAnswer> => {
    const series: Series[] = []
    let total = 0
    let histograms = 0
    const reader = createElementReader((json) => {
      if (++total > maxSeries) return
      const seriesList = seriesIn(parseJsonAnswer(json))
      if (seriesList === 'histogram') histograms++
      else series.push(seriesList)
    })
    const { status } = await client({ ...request, post: true }, reader.push)
    const { data, warnings } = successOf(status, parseJsonAnswer(reader.end()), written)
    const single = singleIn(data)
    if (single !== undefined) return { series: [single], total: 1, notes: [] }
    if (memberOf(data, 'resultType') === 'string')
      return {
        series: [],
        total: 0,
        notes: ['The result of the query is a string, not a series. Write a query that returns numbers.'],
      }
    if (!Array.isArray(memberOf(data, 'result'))) throw malformedAnswerError()
    const notes = [
      ...(histograms === 0
        ? []
        : [
            `${histograms} series are native histograms, which are shown only through functions such as histogram_quantile(…).`,
          ]),
      ...(warnings ? ['Prometheus warns that the result may be incomplete.'] : []),
    ]
    return { series, total: total - histograms, notes }
  }

  const at = (text: string, when: TimeSpan | Instant, signal: AbortSignal, written: 'query' | 'match') => {
    const fields: FormFields =
      'at' in when
        ? [['time', String(when.at)]]
        : [
            ['start', String(when.start)],
            ['end', String(when.end)],
            ['step', String(when.step)],
          ]
    const path = 'at' in when ? 'query' : 'query_range'
    const all: FormFields = [['query', text], ...fields, ['timeout', serverTimeout]]
    return ask({ path, fields: all, signal }, written)
  }

  const names = async (path: string, fields: FormFields, signal: AbortSignal): Promise<readonly string[]> =>
    parseStringList(await get(path, fields, signal))

  return {
    intervalSeconds: options.intervalSeconds,
    metrics: async (signal) => {
      const [labelName, facts] = await Promise.all([
        names('label/__name__/values', [], signal),
        // Metadata is optional: some compatible services do not have it.
        get('metadata', [], signal).catch((error: unknown) => {
          if (error instanceof ResourceError) return {}
          throw error
        }),
      ])
      return labelName.map((name) => describeMetric(name, facts))
    },
    select: (selector: Selector, span, signal) => at(formatSelector(selector), span, signal, 'match'),
    query: (text, when, signal) => at(text, when, signal, 'query'),
    labels: async (metric, signal) => {
      const labels = await names('labels', [['match[]', formatSelector({ metric, matchers: [] })]], signal)
      return labels.filter((name) => name !== '__name__')
    },
    values: (metric, label, signal) =>
      // Only classic label names are put into a path: others need escaping, which differs between versions.
      formatLabel(label) === label
        ? names(`label/${label}/values`, [['match[]', formatSelector({ metric, matchers: [] })]], signal)
        : Promise.resolve([]),
    stamp: (signal) => readNewestSampleTime(get, signal),
    page: async (name, signal) => {
      const data = await get(name, name === 'targets' ? [['state', 'active']] : [], signal)
      return prometheusPage(name, data)
    },
  }
}

/** Returns the time of the newest sample. If the source does not report it, returns a text that differs at every poll. */
async function readNewestSampleTime(
  get: (path: string, fields: FormFields, signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): Promise<string> {
  const unknown = () => `at ${performance.now()}`
  try {
    const stats = memberOf(await get('status/tsdb', [], signal), 'headStats')
    const newest = memberOf(stats, 'maxTime')
    return typeof newest === 'number' ? String(newest) : unknown()
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ResourceError)) throw error
    // When the source does not answer at all, this call throws too.
    await get(
      'label/__name__/values',
      [
        ['limit', '1'],
        ['match[]', 'up'],
      ],
      signal,
    )
    return unknown()
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parseJsonAnswer(bytes: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof bytes === 'string' ? bytes : utf8.decode(bytes)) as unknown
  } catch {
    return undefined
  }
}

function successOf(status: number, body: unknown, written: 'query' | 'match' | undefined) {
  if (status === 200 && memberOf(body, 'status') === 'success') {
    const warnings = memberOf(body, 'warnings')
    return { data: memberOf(body, 'data'), warnings: Array.isArray(warnings) && warnings.length > 0 }
  }
  if (memberOf(body, 'status') === 'error') throw prometheusError(status, body as PrometheusErrorAnswer, written)
  throw status === 200 ? malformedAnswerError() : prometheusError(status, undefined, written)
}

function parseStringList(data: unknown): readonly string[] {
  // Some services return null instead of an empty list.
  if (data === null || data === undefined) return []
  if (!Array.isArray(data)) throw malformedAnswerError()
  return [
    ...new Set((data as readonly unknown[]).filter((text) => typeof text === 'string' && text.isWellFormed())),
  ] as string[]
}

const types: ReadonlySet<unknown> = new Set<MetricType>([
  'counter',
  'gauge',
  'histogram',
  'summary',
  'info',
  'stateset',
])
const maxHelp = 500

function describeMetric(name: string, facts: unknown): Metric {
  const families = familyNames(name)
  const [fact] = families.flatMap((family) => {
    const member = memberOf(facts, family)
    return Array.isArray(member) && member.length > 0 ? [(member as readonly unknown[])[0]] : []
  })
  const [type, help, metadata] = ['type', 'help', 'unit'].map((key) => memberOf(fact, key))
  const unit = typeof metadata === 'string' && metadata !== '' ? metadata : unitIn(name)
  const text =
    typeof help === 'string'
      ? help
          .toWellFormed()
          .replace(/[\p{Cc}\s]+/gu, ' ')
          .trim()
      : ''
  return {
    name,
    type: typeIn(name, type),
    ...(text === '' ? {} : { help: text.slice(0, maxHelp).toWellFormed() }),
    ...(unit === undefined ? {} : { unit: unit.slice(0, 64).toWellFormed() }),
  }
}

function typeIn(name: string, typeText: unknown): MetricType {
  const type = types.has(typeText) ? (typeText as MetricType) : 'unknown'
  const isPart = (type === 'histogram' || type === 'summary') && /_(?:bucket|count|sum)$/.test(name)
  return isPart || (type === 'unknown' && name.endsWith('_total')) ? 'counter' : type
}

/** Returns a scalar as a series without labels. Undefined: the result is no scalar. */
function singleIn(data: unknown): Series | undefined {
  if (memberOf(data, 'resultType') !== 'scalar') return undefined
  return seriesOf(new Map(), [memberOf(data, 'result')])
}

function seriesIn(element: unknown): Series | 'histogram' {
  const [values, value] = [memberOf(element, 'values'), memberOf(element, 'value')]
  const labels = labelsIn(memberOf(element, 'metric'))
  if (Array.isArray(values)) return seriesOf(labels, values)
  if (value !== undefined) return seriesOf(labels, [value])
  if (memberOf(element, 'histograms') !== undefined || memberOf(element, 'histogram') !== undefined) return 'histogram'
  throw malformedAnswerError()
}

const maxLabels = 100
/** Maximum length of the value of a label, in characters. */
const maxValue = 1000

function labelsIn(metric: unknown): Labels {
  if (typeof metric !== 'object' || metric === null) throw malformedAnswerError()
  const labels = Object.entries(metric).slice(0, maxLabels)
  return new Map(labels.map(([name, value]) => [name.toWellFormed(), String(value).slice(0, maxValue).toWellFormed()]))
}

function seriesOf(labels: Labels, samples: readonly unknown[]): Series {
  const count = Math.min(samples.length, maxSeriesPoints + 1)
  const times = new Float64Array(count)
  const values = new Float64Array(count)
  for (let index = 0; index < count; index++) {
    const sample = samples[index]
    if (!Array.isArray(sample)) throw malformedAnswerError()
    const [time, value] = sample as readonly unknown[]
    if (typeof time !== 'number' || typeof value !== 'string' || time <= (times[index - 1] ?? -1))
      throw malformedAnswerError()
    times[index] = time
    values[index] = parseSampleValue(value)
  }
  return { labels, times, values }
}
