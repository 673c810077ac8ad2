import { invalid } from '../../core/errors.ts'
import { type Token, tokenizePromql } from './promql-tokens.ts'

/** Maximum length of a query, in characters. */
export const maxQueryLength = 4000
/** Maximum nesting depth of parentheses, calls and aggregations. */
const maxDepth = 64

/**
 * Parses a query in PromQL to find the metrics that it reads. Each selector must name exactly one metric: by a name before its braces, by
 * `__name__="…"`, or by a quoted name inside the braces. Type checking is left to Prometheus.
 *
 * Returns the metric name of each selector, in the order of the query, and the query rebuilt from its tokens, so that Prometheus reads the
 * tokens that were checked here.
 *
 * @throws ResourceError `invalid` (reason `parameter`) for anything outside the grammar, for an unknown function, for `info` (which reads
 * a metric that it does not name), for a selector that does not name exactly one metric, for a query longer than {@link maxQueryLength}
 * characters and for one that is nested too deeply.
 *
 * Source: https://prometheus.io/docs/prometheus/latest/querying/basics/ and
 * https://github.com/prometheus/prometheus/blob/main/promql/parser/generated_parser.y
 */
export function parsePromql(query: string) {
  if (query.length > maxQueryLength)
    throw invalid(`The query is longer than ${maxQueryLength} characters.`, 'parameter', { parameter: 'query' })
  const tokens = query.isWellFormed() ? tokenizePromql(query) : { wrongAt: 0 }
  if ('wrongAt' in tokens) throw notUnderstood(tokens.wrongAt)
  const cursor = createCursor(tokens)
  const metrics: string[] = []
  parseExpression({ ...cursor, found: (metric) => void metrics.push(metric) }, 0)
  if (cursor.peek().kind !== 'end') throw notUnderstood(cursor.peek().at)
  return { metrics, text: tokens.flatMap(({ kind, text }) => (kind === 'end' ? [] : [text])).join(' ') }
}

function notUnderstood(at: number) {
  return invalid(
    `The query cannot be parsed at character ${at + 1}. This mount serves only some metrics, so it accepts only plain PromQL.`,
    'parameter',
    { parameter: 'query' },
  )
}

interface Parsing extends ReturnType<typeof createCursor> {
  found(metric: string): void
}

function createCursor(tokens: readonly Token[]) {
  let index = 0
  const last = tokens[tokens.length - 1] as Token
  const peek = () => tokens[index] ?? last
  const next = () => {
    const token = peek()
    index++
    return token
  }
  const takeSymbol = (symbol: string): boolean => {
    const { kind, text } = peek()
    if (kind !== 'symbol' || text !== symbol) return false
    index++
    return true
  }
  return {
    ...{ peek, next, takeSymbol },
    takeKeyword: (words: ReadonlySet<string>): string | undefined => {
      const { kind, text } = peek()
      const word = text.toLowerCase()
      if (kind !== 'name' || !words.has(word)) return undefined
      index++
      return word
    },
    expectSymbol: (symbol: string): void => {
      if (!takeSymbol(symbol)) throw notUnderstood(peek().at)
    },
  }
}

const wordSet = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/))

const comparisons = wordSet('== != < > <= >=')
const operators = wordSet('== != < > <= >= + - * / % ^')
const operatorWords = wordSet('and or unless atan2')
/** Keywords that are not valid names of metrics, unlike the others. */
const reserved = wordSet('on ignoring group_left group_right bool atan2')
const numbers = wordSet('inf nan')
const onWords = wordSet('on ignoring')
const groupWords = wordSet('group_left group_right')
const boolWord = wordSet('bool')
const byWords = wordSet('by without')
const offsetWord = wordSet('offset')
const edgeWords = wordSet('start end')
const aggregations = wordSet(
  'avg bottomk count count_values group limit_ratio limitk max min quantile stddev stdvar sum topk',
)
/** Functions of Prometheus 2 and 3, without `info`, which reads metrics that the query does not name. */
const functions = wordSet(
  `abs absent absent_over_time acos acosh asin asinh atan atanh avg_over_time ceil changes clamp clamp_max clamp_min cos cosh
  count_over_time day_of_month day_of_week day_of_year days_in_month deg delta deriv double_exponential_smoothing exp first_over_time
  floor histogram_avg histogram_count histogram_fraction histogram_quantile histogram_quantiles histogram_stddev histogram_stdvar
  histogram_sum holt_winters hour idelta increase irate label_join label_replace last_over_time ln log10 log2 mad_over_time
  max_over_time min_over_time minute month pi predict_linear present_over_time quantile_over_time rad rate resets round scalar sgn sin
  sinh sort sort_by_label sort_by_label_desc sort_desc sqrt stddev_over_time stdvar_over_time sum_over_time tan tanh time timestamp
  ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time vector year`,
)

/** Parses operands with operators between them. Ignores precedence, which does not change the metrics that are read. */
function parseExpression(parsing: Parsing, depth: number): void {
  if (depth > maxDepth)
    throw invalid(
      `The query is nested more than ${maxDepth} levels deep at character ${parsing.peek().at + 1}.`,
      'parameter',
      { parameter: 'query' },
    )
  for (;;) {
    while (parsing.takeSymbol('-') || parsing.takeSymbol('+'));
    parseOperand(parsing, depth)
    parseModifiers(parsing)
    if (!takeOperator(parsing)) return
  }
}

function takeOperator(parsing: Parsing): boolean {
  const { kind, text } = parsing.peek()
  const isSymbol = kind === 'symbol' && operators.has(text)
  if (isSymbol) parsing.next()
  else if (parsing.takeKeyword(operatorWords) === undefined) return false
  if (isSymbol && comparisons.has(text)) parsing.takeKeyword(boolWord)
  if (parsing.takeKeyword(onWords) === undefined) return true
  parseLabelList(parsing)
  if (parsing.takeKeyword(groupWords) !== undefined && parsing.peek().text === '(') parseLabelList(parsing)
  return true
}

function parseOperand(parsing: Parsing, depth: number): void {
  const token = parsing.next()
  if (token.kind === 'number' || token.kind === 'string') return
  if (token.kind === 'name') parseNamed(parsing, token, depth)
  else if (token.kind === 'symbol' && token.text === '{') parsing.found(selectedMetric(parsing, token, undefined))
  else if (token.kind === 'symbol' && token.text === '(') {
    parseExpression(parsing, depth + 1)
    parsing.expectSymbol(')')
  } else throw notUnderstood(token.at)
}

function parseNamed(parsing: Parsing, token: Token, depth: number): void {
  const word = token.text.toLowerCase()
  if (numbers.has(word)) return
  const behind = parsing.peek()
  const isCall = behind.kind === 'symbol' && behind.text === '('
  const isGrouped = behind.kind === 'name' && byWords.has(behind.text.toLowerCase())
  if (aggregations.has(word) && (isCall || isGrouped)) parseAggregation(parsing, depth)
  else if (isCall) {
    if (!functions.has(token.text)) throw notUnderstood(token.at)
    parseArguments(parsing, depth)
  } else if (reserved.has(word)) throw notUnderstood(token.at)
  else parsing.found(parsing.takeSymbol('{') ? selectedMetric(parsing, token, token.text) : token.text)
}

function parseAggregation(parsing: Parsing, depth: number): void {
  const isGrouped = parsing.takeKeyword(byWords) !== undefined
  if (isGrouped) parseLabelList(parsing)
  parseArguments(parsing, depth)
  if (!isGrouped && parsing.takeKeyword(byWords) !== undefined) parseLabelList(parsing)
}

function parseArguments(parsing: Parsing, depth: number): void {
  parsing.expectSymbol('(')
  if (parsing.takeSymbol(')')) return
  do parseExpression(parsing, depth + 1)
  while (parsing.takeSymbol(','))
  parsing.expectSymbol(')')
}

function parseLabelList(parsing: Parsing): void {
  parsing.expectSymbol('(')
  while (!parsing.takeSymbol(')')) {
    const { kind, value, at } = parsing.next()
    const isLabel = kind === 'string' || (kind === 'name' && !value.includes(':'))
    if (!isLabel) throw notUnderstood(at)
    if (parsing.takeSymbol(',')) continue
    parsing.expectSymbol(')')
    return
  }
}

function parseModifiers(parsing: Parsing): void {
  for (;;) {
    if (parsing.takeSymbol('[')) {
      expectNumber(parsing)
      if (parsing.takeSymbol(':') && parsing.peek().kind === 'number') parsing.next()
      parsing.expectSymbol(']')
    } else if (parsing.takeKeyword(offsetWord) !== undefined) {
      expectSignedNumber(parsing)
    } else if (parsing.takeSymbol('@')) {
      if (parsing.takeKeyword(edgeWords) === undefined) expectSignedNumber(parsing)
      else {
        parsing.expectSymbol('(')
        parsing.expectSymbol(')')
      }
    } else return
  }
}

function expectNumber(parsing: Parsing): void {
  const { kind, at } = parsing.next()
  if (kind !== 'number') throw notUnderstood(at)
}

function expectSignedNumber(parsing: Parsing): void {
  if (!parsing.takeSymbol('-')) parsing.takeSymbol('+')
  expectNumber(parsing)
}

const matcherSymbols = wordSet('= != =~ !~')

/** Returns the metric of a selector whose `{` was already taken. */
function selectedMetric(parsing: Parsing, start: Token, name: string | undefined): string {
  const names = name === undefined ? [] : [name]
  while (!parsing.takeSymbol('}')) {
    const { kind, value: label, at } = parsing.next()
    if (kind !== 'name' && kind !== 'string') throw notUnderstood(at)
    const behind = parsing.peek()
    if (behind.kind === 'symbol' && matcherSymbols.has(behind.text)) {
      parsing.next()
      const { kind: valueKind, value, at: valueAt } = parsing.next()
      if (valueKind !== 'string') throw notUnderstood(valueAt)
      if (label === '__name__' && behind.text !== '=') throw notOneMetric(start)
      if (label === '__name__') names.push(value)
    } else if (kind === 'string') names.push(label)
    else throw notUnderstood(behind.at)
    if (parsing.takeSymbol(',')) continue
    parsing.expectSymbol('}')
    break
  }
  const [metric] = names
  if (names.length !== 1 || metric === undefined || metric === '') throw notOneMetric(start)
  return metric
}

function notOneMetric({ at }: Token) {
  return invalid(
    `The selector at character ${at + 1} does not name exactly one metric. This mount serves only some metrics, so write each by its name, such as up{job="node"} or {__name__="up"}.`,
    'parameter',
    { parameter: 'query' },
  )
}
