import type { Selector } from './selector.ts'
import type { Moment, Span } from './time.ts'

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'info' | 'stateset' | 'unknown'

/** A metric, with what is known of it. */
export interface Metric {
  readonly name: string
  readonly type: MetricType
  readonly help?: string
  /** In the singular or plural, as the source has it: `seconds`, `bytes`. */
  readonly unit?: string
}

export type Labels = ReadonlyMap<string, string>

/** A time series: labels, and points in the order of their times. */
export interface Series {
  readonly labels: Labels
  /** Seconds since 1970. */
  readonly times: Float64Array
  readonly values: Float64Array
}

/** What a source answers a query with. */
export interface Answer {
  /** The first of them, as many as were asked for. */
  readonly series: readonly Series[]
  /** How many there are in all. */
  readonly total: number
  /** What a reader should know of it: that it may not be whole, say. */
  readonly notes: readonly string[]
}

/** The pages beside the series that a source may have. */
export const pageNames = ['alerts', 'rules', 'targets'] as const
export type PageName = (typeof pageNames)[number]

/**
 * Where time series come from. Every method throws only ResourceError: `invalid` for a query that is wrong, `too-large` for one
 * that asks for too much, `unavailable` where the source does not answer.
 */
export interface Source {
  /** How far apart its samples are, in seconds. */
  readonly interval: number
  /** Every metric, in any order, each name once. */
  metrics(signal: AbortSignal): Promise<readonly Metric[]>
  /** The series of one metric. */
  select(selector: Selector, span: Span, signal: AbortSignal): Promise<Answer>
  /** What a query comes to: at each step of a span, or at one moment. */
  query(text: string, when: Span | Moment, signal: AbortSignal): Promise<Answer>
  /** The names of the labels of a metric. */
  labels(metric: string, signal: AbortSignal): Promise<readonly string[]>
  /** The values of a label of a metric. */
  values(metric: string, label: string, signal: AbortSignal): Promise<readonly string[]>
  /** Another text whenever there are new samples. */
  stamp(signal: AbortSignal): Promise<string>
  /** One of its pages, as JSON values that change only when what they tell of does. Left out: it has none. */
  page?(name: PageName, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>
  close?(): Promise<void>
}
