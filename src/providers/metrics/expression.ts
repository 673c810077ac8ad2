import { invalid } from '../../core/errors.ts'
import { createReader, type Matcher, parseMatchers } from './selector.ts'
import { parseDuration } from './time.ts'

/** A query to the measurements of this process: a selector, or one function of it over a time range. */
export interface Expression {
  readonly metric: string
  readonly matchers: readonly Matcher[]
  readonly over?: { readonly name: OverTime; readonly seconds: number }
}

const functions = ['rate', 'increase', 'delta', 'min_over_time', 'max_over_time', 'avg_over_time'] as const
export type OverTime = (typeof functions)[number]

const advice =
  'The measurements of this server take a metric, with or without matchers, and rate, increase, delta, min_over_time, max_over_time ' +
  'or avg_over_time of one: rate(hikidashi_requests_total[5m]). For more, let Prometheus scrape /metrics.'

/** @throws ResourceError `invalid` (reason `query`) for anything else in PromQL. */
export function parseExpression(text: string): Expression {
  const reader = createReader(text)
  const name = reader.take(/[A-Za-z_:][A-Za-z0-9_:]*/y)
  const over = functions.find((one) => one === name)
  const isCall = over !== undefined && reader.take(/\(/y) !== undefined
  const metric = isCall ? reader.take(/[A-Za-z_:][A-Za-z0-9_:]*/y) : name
  if (metric === undefined) throw invalid(advice, 'query')
  const matchers = parseMatchers(reader.take(/\{(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|[^}"'`])*\}/y) ?? '')
  const range = isCall ? reader.take(/\[\s*\w+\s*\]\s*\)/y) : undefined
  const seconds = parseDuration(/\w+/.exec(range ?? '')?.[0] ?? '')
  if (!reader.atEnd() || (isCall && !seconds)) throw invalid(advice, 'query')
  return { metric, matchers, ...(isCall && seconds ? { over: { name: over, seconds } } : {}) }
}
