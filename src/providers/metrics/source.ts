import { invalid } from '../../core/errors.ts'
import { parseHttpUrl } from '../../core/http-url.ts'
import { parseUri } from '../../core/uri.ts'
import type { Instant, TimeSpan } from './units.ts'

type Operator = '=' | '!=' | '=~' | '!~'

export interface Matcher {
  readonly label: string
  readonly operator: Operator
  readonly value: string
}

export interface Selector {
  readonly metric: string
  readonly matchers: readonly Matcher[]
}

const classicMetric = /^[A-Za-z_:][A-Za-z0-9_:]*$/
const classicLabel = /^[A-Za-z_][A-Za-z0-9_]*$/
const maxMatchers = 30
/** Maximum length of the parameter `match`, in characters. */
const maxMatch = 2000

const example = 'match={job="node",instance=~"web.*"}'

function wrong(why: string) {
  return invalid(`The parameter "match" ${why}. Write label matchers, such as ${example}.`, 'parameter', {
    parameter: 'match',
  })
}

/**
 * Parses label matchers in PromQL syntax, with or without braces: `{job="node",instance!~"test.*"}`. Values are in double quotes, single
 * quotes, or backticks (without escapes).
 *
 * @throws ResourceError `invalid` (reason `parameter`) for anything else, and for a matcher of the name of the metric.
 */
export function parseMatchers(text: string): readonly Matcher[] {
  if (text.length > maxMatch) throw wrong(`is longer than ${maxMatch} characters`)
  const reader = createMatcherScanner(text)
  const braced = reader.take(/\{/y) !== undefined
  const matchers: Matcher[] = []
  while (!reader.atEnd() && !reader.sees(/\}/y)) {
    if (matchers.length === maxMatchers) throw wrong(`has more than ${maxMatchers} matchers`)
    const label = reader.take(/[A-Za-z_][A-Za-z0-9_]*/y) ?? reader.quoted()
    if (label === undefined || label === '') throw wrong(`has no name of a label at character ${reader.at() + 1}`)
    if (label === '__name__') throw wrong('names a metric, which the path does already')
    const operator = reader.take(/=~|!~|!=|=/y) as Operator | undefined
    if (operator === undefined) throw wrong(`needs one of =, !=, =~ and !~ at character ${reader.at() + 1}`)
    const value = reader.quoted()
    if (value === undefined) throw wrong(`has no value in quotes at character ${reader.at() + 1}`)
    matchers.push({ label, operator, value })
    if (reader.take(/,/y) === undefined) break
  }
  if (braced && reader.take(/\}/y) === undefined) throw wrong(`has a syntax error at character ${reader.at() + 1}`)
  if (!reader.atEnd()) throw wrong(`has a syntax error at character ${reader.at() + 1}`)
  return matchers
}

function createMatcherScanner(text: string) {
  let at = 0
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0]
  }
  const space = () => {
    at += match(/\s*/y)?.length ?? 0
  }
  const take = (pattern: RegExp) => {
    space()
    const token = match(pattern)
    at += token?.length ?? 0
    return token
  }
  return {
    take,
    sees: (pattern: RegExp) => {
      space()
      return match(pattern) !== undefined
    },
    quoted: () => {
      const raw = take(/`[^`]*`/y)
      if (raw !== undefined) return raw.slice(1, -1)
      const literal = take(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/y)
      return literal === undefined ? undefined : unescaped(literal.slice(1, -1))
    },
    at: () => at,
    atEnd: () => {
      space()
      return at === text.length
    },
  }
}

/** The characters that PromQL writes as a backslash and one character. */
export const promqlEscapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
}

/** Resolves the escapes of a PromQL string. Throws for unknown escapes, and for those of single bytes (`\x41`, `\101`). */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/g,
    (_, four?: string, eight?: string, one?: string) => {
      const code = four ?? eight
      const character = one === undefined ? undefined : promqlEscapes[one]
      if (character !== undefined) return character
      const point = code === undefined ? Number.NaN : Number.parseInt(code, 16)
      if (!(point <= 0x10ffff) || (point >= 0xd800 && point <= 0xdfff))
        throw wrong('has an unknown escape: write \\\\ for a backslash')
      return String.fromCodePoint(point)
    },
  )
}

/** Formats a selector in PromQL, with names and values quoted as needed, so that none can inject syntax. */
export function formatSelector({ metric, matchers }: Selector): string {
  const metricName = classicMetric.test(metric) ? metric : ''
  const all = metricName === '' ? [{ label: '__name__', operator: '=', value: metric } as const, ...matchers] : matchers
  const texts = all.map(({ label, operator, value }) => `${formatLabel(label)}${operator}${quoteValue(value)}`)
  return texts.length === 0 ? metricName : `${metricName}{${texts.join(',')}}`
}

export function formatLabel(label: string): string {
  return classicLabel.test(label) ? label : quoteValue(label)
}

/** Quotes a text: the escapes of JSON are a subset of those of PromQL. */
export function quoteValue(text: string): string {
  return JSON.stringify(text)
}

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'info' | 'stateset' | 'unknown'

export interface Metric {
  readonly name: string
  readonly type: MetricType
  readonly help?: string
  /** The unit in the notation of the source, in the singular or plural: `seconds`, `bytes`. */
  readonly unit?: string
}

export type Labels = ReadonlyMap<string, string>

export interface Series {
  readonly labels: Labels
  /** Times of the points, in seconds since 1970, ascending. */
  readonly times: Float64Array
  readonly values: Float64Array
}

export interface MetricAnswer {
  /** The first series, up to the requested limit. */
  readonly series: readonly Series[]
  /** Total number of series, without those that only `notes` mention. */
  readonly total: number
  readonly notes: readonly string[]
}

export const pageNames = ['alerts', 'rules', 'targets'] as const
export type PageName = (typeof pageNames)[number]

/**
 * A source of time series. Apart from the reason of an abort, its methods throw ResourceError: `invalid` for an invalid query, `too-large`
 * for one that asks for too much, `not-found` for a denied metric, `unavailable` when the source does not answer.
 */
export interface MetricSource {
  readonly intervalSeconds: number
  metrics(signal: AbortSignal): Promise<readonly Metric[]>
  select(selector: Selector, span: TimeSpan, signal: AbortSignal): Promise<MetricAnswer>
  /** Evaluates a query: at each step of a span, or at one moment. Without this method, the source takes no queries. */
  query?(text: string, when: TimeSpan | Instant, signal: AbortSignal): Promise<MetricAnswer>
  labels(metric: string, signal: AbortSignal): Promise<readonly string[]>
  values(metric: string, label: string, signal: AbortSignal): Promise<readonly string[]>
  /** Returns a text that changes whenever there are new samples. */
  stamp(signal: AbortSignal): Promise<string>
  /** Returns a page as JSON values. Without this method, the source has no pages. */
  page?(name: PageName, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>
  close?(): Promise<void>
}

export type QuerySource = MetricSource & Required<Pick<MetricSource, 'query'>>

/**
 * Returns the address of an API without a final `/`.
 *
 * @throws ResourceError `invalid` unless the address is an `http` or `https` URL without a password, a query or a fragment.
 */
export function apiAddress(url: string): string {
  const { scheme, authority, query } = parseUri(url)
  if ((scheme !== 'http' && scheme !== 'https') || authority === '')
    throw invalid('The URL of Prometheus must begin with http:// or https:// and a host.', 'configuration')
  if (query !== undefined) throw invalid('The URL of Prometheus must not have a query (?). Remove it.', 'configuration')
  parseHttpUrl(url)
  return url.replace(/\/+$/, '')
}
