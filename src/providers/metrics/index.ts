import { createHash } from 'node:crypto'
import type { ServiceNetwork } from '../../core/address-guard.ts'
import { invalid, notFound } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { defined, requireInteger, requireKeys } from '../../core/kit/object.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import type { MetricsRegistry } from '../../core/log.ts'
import { comparePaths } from '../../core/path.ts'
import type { Change, Content, Context, Params, Provider } from '../../core/provider.ts'
import { createPoller, type Poller } from '../../wrap/polled.ts'
import { formatChart } from './chart.ts'
import { completeMetrics, metricTemplates, parseSeriesRequest, queryTemplate, type SeriesRequest } from './complete.ts'
import { formatCsv, formatJson } from './data.ts'
import {
  createDirectoryCache,
  type DirectoryCache,
  jsonType,
  metricNameAt,
  metricSegment,
  seriesFolder,
} from './directory.ts'
import { prometheus } from './prometheus.ts'
import { maxQueryLength, parsePromql } from './promql.ts'
import type { Credentials } from './request.ts'
import { selfSource } from './self.ts'
import { downsampleAnswer, type ShownAnswer } from './shown.ts'
import {
  formatSelector,
  type Metric,
  type MetricAnswer,
  type MetricSource,
  pageNames,
  parseMatchers,
  type QuerySource,
} from './source.ts'

export { measureProcess } from './own.ts'
export type { Credentials } from './request.ts'

type TextContent = Content & { readonly text: string }

/** Maximum number of points of a picture, and of JSON with a requested step or of one moment: per series, and in total. */
const many = { perSeries: 2000, inAll: 40_000 }
/** Maximum number of points of CSV. */
const table = { perSeries: 11_000, inAll: 50_000 }
/** Maximum total number of points of all series as JSON, when the caller does not request a step. */
const inAll = 12_000

/**
 * Provider of monitoring data as time series: of Prometheus, or any service with its HTTP API; or of this process itself.
 *
 * It lists `series/NAME` for each metric, and `alerts`, `rules` and `targets` if the source has them. Series are JSON with a summary, CSV
 * or a picture. The points are downsampled to a readable number ({@link downsampleAnswer}).
 *
 * Reads throw ResourceError `invalid` (reason `parameter`), `not-found`, `unavailable`, and `too-large` for a query that asks for more
 * than the source returns.
 *
 * @throws ResourceError `invalid` for options out of bounds, for an invalid URL and for a malformed glob.
 */
export async function metrics(options: MetricsOptions): Promise<Provider> {
  requireKeys('metrics(options)', { options }, { options: 'an object' })
  const intervalMs = requireInteger('intervalMs', options.intervalMs ?? defaults.intervalMs, 100, 24 * 3_600_000)
  const maxPoints = requireInteger('maxPoints', options.maxPoints ?? defaults.maxPoints, 16, 11_000)
  const maxSeries = requireInteger('maxSeries', options.maxSeries ?? defaults.maxSeries, 1, 10_000)
  const source = open(options, intervalMs, maxSeries)
  const directories = createDirectoryCache(source)
  const watch = createMetricsPoller(source, directories, intervalMs)

  const showSeries = async (metric: Metric, params: Params, { signal }: Context): Promise<TextContent> => {
    const matchers = parseMatchers(params.get('match') ?? '')
    const request = parseSeriesRequest(params, { intervalSeconds: source.intervalSeconds, now: now(), spans: true })
    if ('at' in request.when)
      throw invalid('Series need a range of time. Write "start", or leave out "end".', 'parameter', {
        parameter: 'start',
      })
    const selector = { metric: metric.name, matchers }
    const answer = await source.select(selector, request.when, signal)
    return contentOf(answer, request, { query: formatSelector(selector), ...metric })
  }

  const showQuery = async (params: Params, { signal }: Context): Promise<TextContent> => {
    if (source.query === undefined) throw notFound('no queries')
    const query = params.get('query') ?? ''
    if (query.trim() === '')
      throw invalid('Write the query: ?query=up, or ?query=sum(rate(http_requests_total[5m])).', 'parameter', {
        parameter: 'query',
      })
    if (query.length > maxQueryLength)
      throw invalid(`The query is longer than ${maxQueryLength} characters.`, 'parameter', { parameter: 'query' })
    const request = parseSeriesRequest(params, { intervalSeconds: source.intervalSeconds, now: now(), spans: false })
    const answer = await source.query(query, request.when, signal)
    return contentOf(answer, request, { query })
  }

  const contentOf = (
    answer: MetricAnswer,
    { form, when, exact }: SeriesRequest,
    about: Pick<ShownAnswer, 'query' | 'type' | 'help' | 'unit'>,
  ): TextContent => {
    const { start, end, step } = 'at' in when ? { start: when.at, end: when.at, step: 0 } : when
    const limits = form === 'csv' ? table : form === 'chart' || exact ? many : { perSeries: maxPoints, inAll }
    const series = downsampleAnswer(answer, { step, isCounter: about.type === 'counter', ...limits })
    const { query, type, help, unit } = about
    const facts = defined({ type, help })
    const shownAnswer: ShownAnswer = {
      ...{ query, ...facts, ...defined({ unit }) },
      ...{ start, end, step, series, total: answer.total, notes: answer.notes },
      withoutQueries: source.query === undefined,
    }
    if (form === 'csv') return { mimeType: 'text/csv', text: formatCsv(shownAnswer) }
    if (form === 'chart') return { mimeType: 'image/svg+xml', text: formatChart(shownAnswer) }
    return { mimeType: jsonType, text: formatJson(shownAnswer) }
  }

  const readPath = async (path: string, params: Params, context: Context): Promise<TextContent> => {
    context.signal.throwIfAborted()
    if (path === 'query') return showQuery(params, context)
    const page = pageNames.find((name) => name === path)
    if (page !== undefined && source.page !== undefined)
      return { mimeType: jsonType, text: `${JSON.stringify(await source.page(page, context.signal), undefined, 2)}\n` }
    const name = metricNameAt(path)
    const metric = name === undefined ? undefined : await directories.find(name, context.signal)
    if (metric === undefined) throw notFound('no such metric')
    return showSeries(metric, params, context)
  }

  return {
    list: async function* ({ prefix = '', after }, { signal }) {
      const { entries } = await directories.now(signal)
      for (let index = firstBehind(entries, after); index < entries.length; index++) {
        const entry = entries[index]
        if (entry === undefined || !entry.path.startsWith(prefix)) continue
        signal.throwIfAborted()
        yield entry
      }
    },
    stat: async (path, { signal }) => {
      const { entries } = await directories.now(signal)
      const previous = entries[firstBehind(entries, path) - 1]
      if (previous?.path === path) return previous
      const name = metricNameAt(path)
      // A new metric exists even if the cached list does not contain it yet.
      const metric = name === undefined ? undefined : await directories.find(name, signal)
      const entry = metric && (await directories.now(signal)).entries.find((one) => one.path === path)
      if (entry === undefined) throw notFound('no such metric')
      return entry
    },
    read: async ({ path, params }, context) => [versioned(await readPath(path, params, context))],
    templates: async () =>
      source.query === undefined
        ? metricTemplates.filter(({ template }) => template !== queryTemplate)
        : metricTemplates,
    complete: (request, context) => completeMetrics(request, { source, directories }, context),
    watch: watch.watch,
    degraded: () => (watch.away ? 'unavailable' : undefined),
    ...defined({ close: source.close }),
  }
}

function versioned(content: TextContent): Content {
  return { ...content, version: createHash('sha256').update(content.text).digest('base64url').slice(0, 22) }
}

/** Returns the current time in whole seconds since 1970, rounded up, so that the latest sample is not later. */
const now = () => Math.ceil(Date.now() / 1000)

function open(options: MetricsOptions, intervalMs: number, maxSeries: number): MetricSource {
  const intervalSeconds = intervalMs / 1000
  if (options.source === 'self')
    return selfSource({ intervalSeconds, maxSeries, ...defined({ measurements: options.measurements }) })
  const { url, credentials, allow, allowAddresses = [], resolve } = options
  const source = prometheus({
    ...{ url, credentials, intervalSeconds, maxSeries, allowAddresses },
    ...defined({ resolve }),
    timeoutMs: requireInteger('timeoutMs', options.timeoutMs ?? defaults.timeoutMs, 1, 600_000),
    maxBytes: requireInteger('maxBytes', options.maxBytes ?? defaults.maxBytes, 1024, 1024 * 1024 * 1024),
  })
  return allow === undefined ? source : allowed(source, allow)
}

/** Returns the index of the first entry after a path. */
function firstBehind(entries: readonly { readonly path: string }[], after: string | undefined): number {
  if (after === undefined) return 0
  return firstIndex(0, entries.length, (index) => comparePaths(entries[index]?.path ?? '', after) > 0)
}

interface PollState {
  readonly stamp: string
  readonly paths: ReadonlySet<string>
  readonly pages: ReadonlyMap<string, string>
}

function createMetricsPoller(source: MetricSource, directories: DirectoryCache, intervalMs: number): Poller {
  const look = async (signal: AbortSignal): Promise<PollState> => {
    const [stamp, { entries }, pages] = await Promise.all([
      source.stamp(signal),
      directories.renew(signal),
      Promise.all(pageNames.map(async (name) => [name, digest(await source.page?.(name, signal))] as const)),
    ])
    return { stamp, paths: new Set(entries.map(({ path }) => path)), pages: new Map(pages) }
  }
  const sampled = source.query === undefined ? [seriesFolder] : [seriesFolder, 'query']
  return createPoller({ intervalMs, look, changesOf: (before, now) => diffPollStates(before, now, sampled) })
}

function digest(page: unknown): string {
  return page === undefined ? '' : createHash('sha256').update(JSON.stringify(page)).digest('base64')
}

/** @param sampled Paths that change with every new sample. */
function* diffPollStates(before: PollState, now: PollState, sampled: readonly string[]): Generator<Change> {
  for (const path of now.paths) if (!before.paths.has(path)) yield { path, listed: true }
  for (const path of before.paths) if (!now.paths.has(path)) yield { path, listed: true }
  for (const [path, content] of now.pages) if (before.pages.get(path) !== content) yield { path }
  if (now.stamp !== before.stamp) for (const path of sampled) yield { path }
}

/**
 * Restricts a source to allowed metrics: others are not listed, and have no series, labels and values. A query is sent only if each
 * selector in it names one allowed metric, and is sent as it was parsed ({@link parsePromql}).
 *
 * The pages (alerts, rules, targets) are left out, because they show expressions and values of any metric.
 *
 * @param allow Globs over the path segments of metrics ({@link metricSegment}).
 */
function allowed(source: QuerySource, allow: readonly string[]): QuerySource {
  if (allow.some((glob) => glob.includes('/')))
    throw invalid(
      '"allow" has a glob with a slash, but no name of a metric has one. Write a glob such as "http_*".',
      'configuration',
    )
  const matches = compileGlobs(allow)
  const isAllowed = (metric: string): boolean => {
    const segment = metricSegment(metric)
    return segment !== undefined && matches(segment)
  }
  const { intervalSeconds, stamp, close } = source
  return {
    intervalSeconds,
    stamp,
    metrics: async (signal) => (await source.metrics(signal)).filter(({ name }) => isAllowed(name)),
    select: async (selector, span, signal) => {
      if (!isAllowed(selector.metric)) throw notFound('no such metric')
      return source.select(selector, span, signal)
    },
    query: async (text, when, signal) => {
      const { metrics, text: checked } = parsePromql(text)
      if (!metrics.every(isAllowed))
        throw invalid('The query names a metric that this mount does not serve.', 'parameter', { parameter: 'query' })
      return source.query(checked, when, signal)
    },
    labels: async (metric, signal) => (isAllowed(metric) ? source.labels(metric, signal) : []),
    values: async (metric, label, signal) => {
      if (!isAllowed(metric)) return []
      const values = await source.values(metric, label, signal)
      // Versions of Prometheus before 2.24 return the values of all metrics.
      return label === '__name__' ? values.filter(isAllowed) : values
    },
    ...defined({ close }),
  }
}

interface CommonOptions {
  /**
   * Interval of the samples, in milliseconds: the finest automatic step, and the interval of polls for new samples. For the process itself:
   * the interval of measurements. Default 15,000.
   */
  readonly intervalMs?: number
  /** Maximum number of series shown of an answer. Default 100. */
  readonly maxSeries?: number
  /** Maximum number of points shown of a series as JSON, unless a request names a step. Default 240. */
  readonly maxPoints?: number
}

export interface PrometheusMount extends CommonOptions, ServiceNetwork {
  readonly source?: 'prometheus'
  /** Address of the HTTP API, without `/api/v1`: `http://127.0.0.1:9090`, `https://example.org/prometheus`. */
  readonly url: string
  readonly credentials?: Credentials | undefined
  /** Globs over the names of metrics, as paths have them. Other metrics are absent, for queries too. Default: all metrics. */
  readonly allow?: readonly string[]
  /** Time-out of an answer, in milliseconds. Default 20,000. */
  readonly timeoutMs?: number
  /** Maximum size of an answer, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
}

export interface SelfMount extends CommonOptions {
  readonly source: 'self'
  /** The measurements to serve. Default: those of this process. */
  readonly measurements?: MetricsRegistry
}

export type MetricsOptions = PrometheusMount | SelfMount

const defaults = {
  intervalMs: 15_000,
  maxSeries: 100,
  maxPoints: 240,
  timeoutMs: 20_000,
  maxBytes: 64 * 1024 * 1024,
} as const
