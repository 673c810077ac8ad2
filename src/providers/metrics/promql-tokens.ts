import { promqlEscapes } from './source.ts'

/** Kind of a PromQL token. A duration such as `5m` is a `number`. */
type Kind = 'name' | 'number' | 'string' | 'symbol' | 'end'

export interface Token {
  readonly kind: Kind
  /** The text to send: a string is in double quotes, other tokens are unchanged. */
  readonly text: string
  /** The unescaped value of a string; for other tokens, the text. */
  readonly value: string
  /** Offset in the query, in UTF-16 code units from 0. */
  readonly at: number
}

const patterns = {
  /** The white space that Prometheus knows, and comments. */
  skipped: /(?:[ \t\n\r]+|#[^\n\r]*)*/y,
  metric: /[A-Za-z_:][A-Za-z0-9_:]*/y,
  label: /[A-Za-z_][A-Za-z0-9_]*/y,
  duration: /(?:[0-9]+(?:ms|[smhdwy]))+/y,
  number: /0[xX][0-9a-fA-F]+|(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y,
  string: /"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'|`[^`]*`/y,
  symbol: /==|!=|<=|>=|[-+*/%^<>(){}[\],@]/y,
  matcherSymbol: /=~|!~|!=|=|[{},]/y,
  rangeSymbol: /[:\]]/y,
} as const

/**
 * Tokenizes a query in PromQL. Names, symbols and colons have different meanings inside of braces and brackets, so it keeps track of both.
 *
 * @returns The tokens, followed by one of the kind `end`, or the offset of the first character that begins no token.
 * Source: https://github.com/prometheus/prometheus/blob/main/promql/parser/lex.go
 */
export function tokenizePromql(query: string): readonly Token[] | { readonly wrongAt: number } {
  const tokens: Token[] = []
  let at = 0
  let inside: TokenContext = 'expression'
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    return pattern.exec(query)?.[0]
  }
  for (;;) {
    at += match(patterns.skipped)?.length ?? 0
    if (at === query.length) break
    const token = nextToken(match, inside)
    if (token === undefined) return { wrongAt: at }
    const { kind, text, length } = token
    if (kind === 'symbol') {
      if (text === '{') inside = 'braces'
      else if (text === '[') inside = 'brackets'
      else if (text === '}' || text === ']') inside = 'expression'
    }
    tokens.push({ kind, text, value: token.value, at })
    at += length
  }
  tokens.push({ kind: 'end', text: '', value: '', at })
  return tokens
}

type TokenContext = 'expression' | 'braces' | 'brackets'
type ScannedToken = Omit<Token, 'at'> & { readonly length: number }

function nextToken(match: (pattern: RegExp) => string | undefined, inside: TokenContext): ScannedToken | undefined {
  const token = (kind: Kind, text: string): ScannedToken => ({ kind, text, value: text, length: text.length })
  if (inside !== 'brackets') {
    const name = match(inside === 'braces' ? patterns.label : patterns.metric)
    if (name !== undefined) return token('name', name)
    const quoted = match(patterns.string)
    if (quoted !== undefined) {
      const value = stringIn(quoted)
      return value === undefined
        ? undefined
        : { kind: 'string', text: JSON.stringify(value), value, length: quoted.length }
    }
  }
  if (inside !== 'braces') {
    const number = numberAt(match)
    if (number !== undefined) return token('number', number)
  }
  const symbols = { expression: patterns.symbol, braces: patterns.matcherSymbol, brackets: patterns.rangeSymbol }
  const symbol = match(symbols[inside])
  return symbol === undefined ? undefined : token('symbol', symbol)
}

/** Returns the longer match of a duration and a number, because `5m` begins with the number `5`. */
function numberAt(match: (pattern: RegExp) => string | undefined): string | undefined {
  const [duration = '', number = ''] = [match(patterns.duration), match(patterns.number)]
  const longer = duration.length >= number.length ? duration : number
  return longer === '' ? undefined : longer
}

/** Unescapes a quoted string. Undefined: it has an invalid escape, or is not valid text. */
function stringIn(quoted: string): string | undefined {
  const text = quoted.slice(1, -1)
  if (quoted.startsWith('`')) return text
  let isWrong = false
  const value = text.replace(
    /\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))/g,
    (_, hex?: string, octal?: string, four?: string, eight?: string, one?: string) => {
      if (one !== undefined) {
        const character = Object.hasOwn(promqlEscapes, one) ? promqlEscapes[one] : undefined
        isWrong ||= character === undefined
        return character ?? ''
      }
      const byte = hex === undefined ? octal && Number.parseInt(octal, 8) : Number.parseInt(hex, 16)
      const point = typeof byte === 'number' ? byte : Number.parseInt(four ?? eight ?? '', 16)
      // A byte from 0x80 on is only a part of a UTF-8 character.
      const isCharacter = point <= (typeof byte === 'number' ? 0x7f : 0x10ffff)
      if (isCharacter) return String.fromCodePoint(point)
      isWrong = true
      return ''
    },
  )
  return isWrong || !value.isWellFormed() ? undefined : value
}
