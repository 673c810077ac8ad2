import { invalid } from '../../core/errors.ts'
import { parseHttpUrl } from '../../core/http-url.ts'
import { parseUri } from '../../core/uri.ts'
import type { Selector } from './selector.ts'
import type { Moment, Span } from './units.ts'

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'info' | 'stateset' | 'unknown'

/** A metric with its metadata. */
export interface Metric {
  readonly name: string
  readonly type: MetricType
  readonly help?: string
  /** The unit in the notation of the source, in the singular or plural: `seconds`, `bytes`. */
  readonly unit?: string
}

export type Labels = ReadonlyMap<string, string>

/** A time series: labels, and points sorted by time. */
export interface Series {
  readonly labels: Labels
  /** Seconds since 1970. */
  readonly times: Float64Array
  readonly values: Float64Array
}

/** Answer of a source to a query. */
export interface Answer {
  /** The first series, up to the requested limit. */
  readonly series: readonly Series[]
  /** Total number of series. */
  readonly total: number
  /** Notes for the reader, for example that the answer may be incomplete. */
  readonly notes: readonly string[]
}

/** Names of the optional pages of a source besides the series. */
export const pageNames = ['alerts', 'rules', 'targets'] as const
export type PageName = (typeof pageNames)[number]

/**
 * A source of time series. Every method throws only ResourceError: `invalid` for an invalid query, `too-large` for one that asks for too much,
 * `unavailable` when the source does not answer.
 */
export interface Source {
  /** Interval of its samples, in seconds. */
  readonly interval: number
  /** Returns every metric once, in any order. */
  metrics(signal: AbortSignal): Promise<readonly Metric[]>
  /** Returns the series of one metric. */
  select(selector: Selector, span: Span, signal: AbortSignal): Promise<Answer>
  /** Evaluates a query: at each step of a span, or at one moment. */
  query(text: string, when: Span | Moment, signal: AbortSignal): Promise<Answer>
  /** Returns the label names of a metric. */
  labels(metric: string, signal: AbortSignal): Promise<readonly string[]>
  /** Returns the values of a label of a metric. */
  values(metric: string, label: string, signal: AbortSignal): Promise<readonly string[]>
  /** Returns a text that changes whenever there are new samples. */
  stamp(signal: AbortSignal): Promise<string>
  /** Returns one of its pages as JSON values that change only with the facts they show. Undefined: the source has no pages. */
  page?(name: PageName, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>
  close?(): Promise<void>
}

/**
 * Returns the address of an API without a final `/`.
 *
 * @throws ResourceError `invalid` unless the address is an `http` or `https` URL without a password, a query and a fragment.
 */
export function apiAddress(url: string): string {
  const { scheme, authority, query } = parseUri(url)
  if ((scheme !== 'http' && scheme !== 'https') || authority === '')
    throw invalid('It does not begin with http:// or https:// and a host.', 'url')
  if (query !== undefined) throw invalid('It has a query (?).', 'url')
  parseHttpUrl(url)
  return url.replace(/\/+$/, '')
}
