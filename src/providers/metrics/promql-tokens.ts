/** The kinds of the tokens of PromQL. A duration is a number too: `5m` is 300. */
export type TokenKind = 'name' | 'number' | 'string' | 'symbol' | 'end'

export interface Token {
  readonly kind: TokenKind
  /** The text as it is sent: a string is in double quotes, everything else is as it was written. */
  readonly text: string
  /** What a string says; of other tokens, the text. */
  readonly value: string
  /** Where it begins, in UTF-16 code units from 0. */
  readonly at: number
}

const patterns = {
  /** White space and comments. Prometheus knows no other white space. */
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
 * Takes a query in PromQL apart, as the lexer of Prometheus does. Names, symbols and colons mean different things inside of
 * braces and brackets, so it keeps track of both.
 *
 * Takes time in proportion to the length of the query.
 *
 * @returns The tokens with one of the kind `end` behind them, or the place of the first character that begins no token.
 * Source: https://github.com/prometheus/prometheus/blob/main/promql/parser/lex.go
 */
export function tokenize(query: string): readonly Token[] | { readonly wrongAt: number } {
  const tokens: Token[] = []
  let at = 0
  let inside: Inside = 'expression'
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

type Inside = 'expression' | 'braces' | 'brackets'
type Found = Omit<Token, 'at'> & { readonly length: number }

function nextToken(match: (pattern: RegExp) => string | undefined, inside: Inside): Found | undefined {
  const found = (kind: TokenKind, text: string): Found => ({ kind, text, value: text, length: text.length })
  if (inside !== 'brackets') {
    const name = match(inside === 'braces' ? patterns.label : patterns.metric)
    if (name !== undefined) return found('name', name)
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
    if (number !== undefined) return found('number', number)
  }
  const symbols = { expression: patterns.symbol, braces: patterns.matcherSymbol, brackets: patterns.rangeSymbol }
  const symbol = match(symbols[inside])
  return symbol === undefined ? undefined : found('symbol', symbol)
}

/** The longer one of a duration and a number, since `1e5` and `1m` begin alike. */
function numberAt(match: (pattern: RegExp) => string | undefined): string | undefined {
  const [duration = '', number = ''] = [match(patterns.duration), match(patterns.number)]
  const longer = duration.length >= number.length ? duration : number
  return longer === '' ? undefined : longer
}

const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
}

/** What a string in quotes says. `undefined`: it has an escape that is none, or stands for a byte of no text. */
function stringIn(quoted: string): string | undefined {
  const text = quoted.slice(1, -1)
  if (quoted.startsWith('`')) return text
  let isWrong = false
  const value = text.replace(
    /\\(?:x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))/g,
    (_, hex?: string, octal?: string, four?: string, eight?: string, one?: string) => {
      if (one !== undefined) {
        const known = Object.hasOwn(escapes, one) ? escapes[one] : undefined
        isWrong ||= known === undefined
        return known ?? ''
      }
      const byte = hex === undefined ? octal && Number.parseInt(octal, 8) : Number.parseInt(hex, 16)
      const point = typeof byte === 'number' ? byte : Number.parseInt(four ?? eight ?? '', 16)
      // A byte from 0x80 on is a part of a character in UTF-8, and no character.
      const isCharacter = point <= (typeof byte === 'number' ? 0x7f : 0x10ffff)
      if (isCharacter) return String.fromCodePoint(point)
      isWrong = true
      return ''
    },
  )
  return isWrong || !value.isWellFormed() ? undefined : value
}
