import { invalid } from './errors.ts'
import { decodeComponent, maxUriBytes } from './uri.ts'

/** One variable of an expression (RFC 6570, section 2.3). */
export interface Variable {
  readonly name: string
  /** The modifier `*`: the members of a list or map become items of their own. */
  readonly explode: boolean
  /** The modifier `:n`: the number of code points from the start. Infinity without one. */
  readonly limit: number
}

/** The rules of an operator for expansion: the table of RFC 6570, appendix A. */
export interface Operator {
  readonly symbol: '' | '+' | '#' | '.' | '/' | ';' | '?' | '&'
  /** Text before the first value, if there is a value. */
  readonly first: string
  readonly separator: string
  /** Whether values are written as `name=value`, and if so, the text after the name of an empty one. */
  readonly named: false | '' | '='
  /** Whether reserved characters and percent-encoded triplets stay unescaped. */
  readonly reserved: boolean
}

export interface Expression {
  readonly operator: Operator
  readonly variables: readonly Variable[]
}

/** A part of a parsed template: a literal as it was written, or an expression. Two literals never follow each other. */
export type TemplatePart = string | Expression

const maxLength = 8192
const maxVariables = 100

const simple: Operator = { symbol: '', first: '', separator: ',', named: false, reserved: false }
const operators: ReadonlyMap<string, Operator> = new Map(
  (
    [
      { symbol: '+', first: '', separator: ',', named: false, reserved: true },
      { symbol: '#', first: '#', separator: ',', named: false, reserved: true },
      { symbol: '.', first: '.', separator: '.', named: false, reserved: false },
      { symbol: '/', first: '/', separator: '/', named: false, reserved: false },
      { symbol: ';', first: ';', separator: ';', named: '', reserved: false },
      { symbol: '?', first: '?', separator: '&', named: '=', reserved: false },
      { symbol: '&', first: '&', separator: '&', named: '=', reserved: false },
    ] satisfies readonly Operator[]
  ).map((operator) => [operator.symbol, operator]),
)

/** varspec: names of letters, digits, `_` and percent-encoded triplets, with single dots between them. */
const varspec = /^((?:\w|%[0-9A-Fa-f]{2})+(?:\.(?:\w|%[0-9A-Fa-f]{2})+)*)(?::([1-9][0-9]{0,3})|(\*))?$/
/** Characters that section 2.1 forbids in literals. `'` is allowed: the test suite requires it, and the ABNF omits it by mistake. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed.
const notLiteral = /[\u0000-\u0020"<>\\^`{|}\u007f-\u009f\u2028\u2029]|%(?![0-9A-Fa-f]{2})/

/**
 * Parses a URI template (RFC 6570, level 4).
 *
 * @throws ResourceError `invalid` (reason `configuration`) for a malformed template, for percent-encoded triplets that are not UTF-8
 * (no URI here matches them), for one longer than 8192 characters or with more than 100 variables.
 */
export function parseTemplate(text: string): readonly TemplatePart[] {
  if (text.length > maxLength) throw templateError(`it is longer than ${maxLength} characters`)
  if (!text.isWellFormed()) throw templateError('it holds a lone surrogate')
  const parts: TemplatePart[] = []
  let variables = 0
  for (let at = 0; at < text.length; ) {
    if (text[at] === '{') {
      const end = text.indexOf('}', at)
      if (end === -1) throw templateError(`the "{" at character ${at + 1} has no "}"`)
      const expression = parseExpression(text.slice(at + 1, end))
      variables += expression.variables.length
      if (variables > maxVariables) throw templateError(`it has more than ${maxVariables} variables`)
      parts.push(expression)
      at = end + 1
    } else {
      const brace = text.indexOf('{', at)
      const end = brace === -1 ? text.length : brace
      parts.push(checkLiteral(text.slice(at, end), at))
      at = end
    }
  }
  return parts
}

function parseExpression(text: string): Expression {
  const operator = operators.get(text.charAt(0)) ?? simple
  const variables = text
    .slice(operator.symbol.length)
    .split(',')
    .map((part) => {
      const [whole, name, limit, explode] = varspec.exec(part) ?? []
      if (whole === undefined || name === undefined || !isDecodable(name))
        throw templateError(
          `{${shortenExpression(text)}} is not an expression: ${JSON.stringify(shortenExpression(part))} is not a variable`,
        )
      return {
        name,
        explode: explode !== undefined,
        limit: limit === undefined ? Number.POSITIVE_INFINITY : Number(limit),
      }
    })
  return { operator, variables }
}

function checkLiteral(literal: string, start: number): string {
  const wrong = notLiteral.exec(literal)
  if (wrong !== null)
    throw templateError(`${JSON.stringify(wrong[0])} at character ${start + wrong.index + 1} must be percent-encoded`)
  if (!isDecodable(literal)) throw templateError('it holds percent-encoded triplets that are not UTF-8')
  return literal
}

function isDecodable(text: string): boolean {
  try {
    // The bundler would remove a call of `decodeURIComponent` whose result is not used.
    return decodeURIComponent(text).isWellFormed()
  } catch {
    return false
  }
}

function shortenExpression(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

function templateError(what: string) {
  return invalid(`The URI template is malformed (RFC 6570): ${what}.`, 'configuration')
}

/**
 * A URI prepared for comparison, one number per character: its code point, whether it was percent-encoded or not, but negated for
 * a raw delimiter. So structure is negative, and data is not.
 */
export type UriUnits = ArrayLike<number>

export interface LiteralPart {
  readonly kind: 'literal'
  readonly units: UriUnits
  /** For each length, the length of the longest proper prefix that is also a suffix (Knuth, Morris and Pratt). */
  readonly borders: readonly number[]
}

/** One variable of an expression that does not write names, such as `{a}` or `{/a}`. */
export interface ValuePart {
  readonly kind: 'value'
  readonly variable: Variable
  /** The delimiter before the value; undefined when there is none. */
  readonly lead: number | undefined
  /** The delimiters that the value does not contain. */
  readonly excluded: ReadonlySet<number>
  /** The delimiter between the members of a list. */
  readonly splitAt: number | undefined
  /** Index of the part to continue with when the variable is absent. */
  readonly skipTo: number | undefined
  readonly prefers: 'shortest' | 'longest' | 'absent'
}

/** Parameters: an expression that writes names, such as `{?a,b}`, or several adjacent ones. */
export interface PairsPart {
  readonly kind: 'pairs'
  readonly first: number
  readonly separator: number
  readonly excluded: ReadonlySet<number>
  /** Variables by their names, percent-decoded. */
  readonly variables: ReadonlyMap<string, Variable>
  /** The variable that receives all parameters whose names the expression does not list. */
  readonly others: Variable | undefined
  readonly skipTo: number
}

export type MatchPart = LiteralPart | ValuePart | PairsPart

const delimiters = '/?#&=;,'
const percent = 0x25

/** Converts a URI to units. Undefined for a text that never matches: bad encoding, a control character, too long. */
export function toUnits(uri: string): UriUnits | undefined {
  if (uri.length > maxUriBytes || !uri.isWellFormed()) return undefined
  const units = new Int32Array(uri.length)
  let count = 0
  for (let at = 0; at < uri.length; ) {
    const code = uri.codePointAt(at) ?? 0
    if (code !== percent) {
      if (isControl(code)) return undefined
      units[count++] = code < 0x80 && delimiters.includes(String.fromCharCode(code)) ? -code : code
      at += code > 0xffff ? 2 : 1
      continue
    }
    let end = at
    while (uri[end] === '%') end += 3
    const text = decodeComponent(uri.slice(at, end))
    if (text === undefined) return undefined
    for (const character of text) {
      const decoded = character.codePointAt(0) ?? 0
      if (isControl(decoded)) return undefined
      units[count++] = decoded
    }
    at = end
  }
  return units.subarray(0, count)
}

function isControl(code: number): boolean {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029
}

/** Returns a range of units as text, percent-decoded. */
export function unitsToText(units: UriUnits, start: number, end: number): string {
  let text = ''
  for (let at = start; at < end; at++) text += String.fromCodePoint(Math.abs(units[at] ?? 0))
  return text
}

export function unitOf(character: string): number {
  const code = character.charCodeAt(0)
  return delimiters.includes(character) ? -code : code
}
