import { completeFromValues } from '../../core/completion.ts'
import { invalid, valueOr } from '../../core/errors.ts'
import type { Completion, CompletionRequest, Context, Params, Template } from '../../core/provider.ts'
import { type DirectoryCache, jsonType, metricNameAt, metricSegment, seriesFolder } from './directory.ts'
import { formatLabel, type MetricSource, parseMatchers, quoteValue } from './source.ts'
import { chooseStep, type Instant, parseStep, parseTime, requireSpan, type TimeSpan } from './units.ts'

interface Sources {
  readonly source: MetricSource
  readonly directories: DirectoryCache
}

const starts = ['-15m', '-1h', '-6h', '-12h', '-1d', '-7d', '-30d']
const steps = ['15s', '1m', '5m', '15m', '1h', '1d']

export async function completeMetrics(
  { template, argument, arguments: filled }: CompletionRequest,
  sources: Sources,
  { signal }: Context,
): Promise<Completion> {
  const { name, value } = argument
  switch (name) {
    case 'metric':
      return completeMetric(value, sources, signal)
    case 'query':
      return completeQuery(value, sources, signal)
    case 'match': {
      const metric = template === seriesTemplate ? metricNameAt(seriesFolder + (filled.get('metric') ?? '')) : undefined
      if (metric === undefined) return completeFromValues([])
      return completeMatch(metric, value, sources, signal)
    }
    case 'start':
      return completeFromValues(starts, value)
    case 'end':
      return completeFromValues(['now', ...starts], value)
    case 'step':
      return completeFromValues(steps, value)
    case 'as':
      return completeFromValues(forms, value)
    default:
      return completeFromValues([])
  }
}

function ranked(names: readonly string[], typed: string): readonly string[] {
  const begins = names.filter((name) => name.startsWith(typed))
  return typed === '' ? begins : [...begins, ...names.filter((name) => !name.startsWith(typed) && name.includes(typed))]
}

async function completeMetric(typed: string, { directories }: Sources, signal: AbortSignal): Promise<Completion> {
  const { entries } = await directories.now(signal)
  const segments = entries.flatMap(({ path }) =>
    path.startsWith(seriesFolder) ? [path.slice(seriesFolder.length)] : [],
  )
  return completeFromValues(ranked(segments, typed))
}

async function completeQuery(typed: string, { directories }: Sources, signal: AbortSignal): Promise<Completion> {
  const beginning = /[A-Za-z_:][A-Za-z0-9_:]*$/.exec(typed)?.[0] ?? ''
  const head = typed.slice(0, typed.length - beginning.length)
  // Nothing is completed inside matchers, inside a string in double quotes, or after a character that is not part of a name.
  if (/\{[^}]*$/.test(head) || (head.split('"').length - 1) % 2 === 1 || (beginning === '' && head !== ''))
    return completeFromValues([])
  const { metrics } = await directories.now(signal)
  const names = [...metrics.keys()].filter((name) => /^[A-Za-z_:][A-Za-z0-9_:]*$/.test(name)).sort()
  return completeFromValues(ranked(names, beginning).map((name) => head + name))
}

/** Matches the incomplete matcher at the end: `{job="a",inst` or `job="a",instance="web`. The caller checks the text before it. */
const begunMatcher = /^([\s\S]*?[{,]\s*|\s*)(?:([A-Za-z_]\w*)(=~|!~|!=|=)"([^"\\]*)|([A-Za-z_]\w*)?)$/

async function completeMatch(
  metric: string,
  typed: string,
  { source }: Sources,
  signal: AbortSignal,
): Promise<Completion> {
  const match = begunMatcher.exec(typed)
  if (match === null || typed.length > 2000) return completeFromValues([])
  const [, head = '', label, operator = '=', begun = '', name = ''] = match
  const before = head.trim()
  const selectorText = before.startsWith('{') ? `${before}}` : before
  if (valueOr(() => parseMatchers(selectorText), undefined, 'invalid') === undefined) return completeFromValues([])
  if (metricSegment(metric) === undefined) return completeFromValues([])
  if (label !== undefined) {
    const values = await source.values(metric, label, signal)
    return completeFromValues(
      ranked([...values].sort(), begun).map((value) => `${head}${label}${operator}${quoteValue(value)}`),
    )
  }
  const labels = await source.labels(metric, signal)
  return completeFromValues(ranked([...labels].sort(), name).map((label) => `${head}${formatLabel(label)}="`))
}

const seriesTemplate = 'series/{metric}{?match,start,end,step,as}'
export const queryTemplate = 'query{?query,start,end,step,as}'

const times =
  'start and end: -1h, -7d, now, 2026-11-21T10:00:00Z or Unix seconds. step: 30s, 5m or 1h; by default it fits the time range. ' +
  'as=csv gives a table, as=chart a picture (SVG).'

export const metricTemplates: readonly Template[] = [
  {
    template: seriesTemplate,
    name: 'Series of a metric',
    title: 'A metric over time',
    description:
      `The series of a metric with a summary of each: smallest, largest and last value, trend, gaps. By default the last hour. ${times} ` +
      'match={job="node",instance!="web-1"} selects the series whose labels match.',
    mimeType: jsonType,
  },
  {
    template: queryTemplate,
    name: 'Query',
    title: 'The result of a query in PromQL',
    description: `With start, step or as=chart, the query is evaluated at each step, by default of the last hour; otherwise once, now or at end. ${times}`,
    mimeType: jsonType,
  },
]

const forms = ['csv', 'chart'] as const
type SeriesForm = (typeof forms)[number] | 'json'

export interface SeriesRequest {
  readonly form: SeriesForm
  readonly when: TimeSpan | Instant
  readonly exact: boolean
}

/** Maximum number of points fetched of each series with an automatic step; the shown points are selected from them. */
const maxFetchedPoints = 10_000
const hourSeconds = 3600

/**
 * Parses the parameters of a request for series.
 *
 * @param intervalSeconds Interval of the samples, in seconds.
 * @param now The current time, in seconds since 1970.
 * @param spans Whether a request without `start` is for a span instead of one moment.
 * @throws ResourceError `invalid` (reason `parameter`).
 */
export function parseSeriesRequest(
  params: Params,
  { intervalSeconds, now, spans }: { readonly intervalSeconds: number; readonly now: number; readonly spans: boolean },
): SeriesRequest {
  const form = formIn(params.get('as'))
  const [from, to, by] = [params.get('start'), params.get('end'), params.get('step')]
  const end = to === undefined ? now : parseTime('end', to, now)
  // A chart of one moment would show no line, so it gets a time span.
  if (from === undefined && by === undefined && !spans && form !== 'chart')
    return { form, when: { at: end }, exact: true }
  const start = from === undefined ? Math.max(0, end - hourSeconds) : parseTime('start', from, now)
  const step = by === undefined ? chooseStep(end - start, intervalSeconds, maxFetchedPoints) : parseStep(by)
  return { form, when: requireSpan({ start, end, step }), exact: by !== undefined }
}

function formIn(as: string | undefined): SeriesForm {
  if (as === undefined || as === 'json') return 'json'
  const form = forms.find((name) => name === as)
  if (form !== undefined) return form
  throw invalid(
    'Series can be read as JSON, as a table or as a picture: leave "as" out, or write as=csv or as=chart.',
    'parameter',
    { parameter: 'as' },
  )
}
