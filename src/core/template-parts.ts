import type { Expression, TemplatePart, Variable } from './template-syntax.ts'
import { decodeComponent, maxUriBytes } from './uri.ts'

/**
 * A URI prepared for comparison, one number per character: its code point, whether it was percent-encoded or not, but negated for
 * a raw delimiter. So structure is negative, and data is not.
 */
export type Units = ArrayLike<number>

export interface LiteralPart {
  readonly kind: 'literal'
  readonly units: Units
  /** For each length, the length of the longest proper prefix that is also a suffix (Knuth, Morris and Pratt). */
  readonly borders: readonly number[]
}

/** One variable of an expression without names. */
export interface ValuePart {
  readonly kind: 'value'
  readonly variable: Variable
  /** The delimiter before the value. */
  readonly lead: number | undefined
  /** The delimiters that the value does not contain. */
  readonly excluded: ReadonlySet<number>
  /** The delimiter between the members of a list. */
  readonly splitAt: number | undefined
  /** Index of the part to continue with when the variable is absent. */
  readonly skipTo: number | undefined
  readonly prefers: 'shortest' | 'longest' | 'absent'
}

/** Parameters: an expression with names, or several adjacent ones. */
export interface PairsPart {
  readonly kind: 'pairs'
  readonly first: number
  readonly separator: number
  readonly excluded: ReadonlySet<number>
  /** Variables by their names, percent-decoded. */
  readonly variables: ReadonlyMap<string, Variable>
  /** The variable that takes the parameters of other names. */
  readonly others: Variable | undefined
  readonly skipTo: number
}

export type MatchPart = LiteralPart | ValuePart | PairsPart

const delimiters = '/?#&=;,'
const percent = 0x25

/** Converts a URI to units. Undefined for a text that never matches: bad encoding, a control character, too long. */
export function toUnits(uri: string): Units | undefined {
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

/** Whether a code point is a control character (C0, C1, DEL) or a Unicode line separator. */
function isControl(code: number): boolean {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029
}

export function textOf(units: Units, start: number, end: number): string {
  let text = ''
  for (let at = start; at < end; at++) text += String.fromCodePoint(Math.abs(units[at] ?? 0))
  return text
}

/** Returns the unit of a structural character of a template. */
export function unitOf(character: string): number {
  const code = character.charCodeAt(0)
  return delimiters.includes(character) ? -code : code
}

/** Flattens a template into the sequence of parts that a match goes through. */
export function flattenTemplate(template: readonly TemplatePart[]): readonly MatchPart[] {
  const parts: MatchPart[] = []
  const matrix = template.some((part) => typeof part !== 'string' && part.operator.symbol === ';')
  let zone: Zone = 'path'
  for (const [index, part] of template.entries()) {
    const opening = typeof part === 'string' ? part : part.operator.symbol
    for (const character of opening) zone = zoneAfter(zone, character)
    if (typeof part === 'string') {
      parts.push(literalPart(part))
    } else if (part.operator.named === false) {
      parts.push(...valueParts(part, parts.length, excludedFrom(part, zone, matrix), template[index + 1]))
    } else {
      const previous = parts.at(-1)
      const adjoins = previous?.kind === 'pairs' && previous.separator === unitOf(part.operator.first)
      if (adjoins) parts.pop()
      parts.push(pairsPart(part, parts.length, excludedFrom(part, zone, matrix), adjoins ? previous : undefined))
    }
  }
  return parts
}

/** The component of the URI that a part of the template lies in. A `?` or `#` is a delimiter only the first time. */
type Zone = 'path' | 'query' | 'fragment'

function zoneAfter(zone: Zone, character: string): Zone {
  if (character === '#') return 'fragment'
  return character === '?' && zone === 'path' ? 'query' : zone
}

function excludedFrom({ operator }: Expression, zone: Zone, matrix: boolean): ReadonlySet<number> {
  let excluded = zone === 'path' ? '#?' : '#'
  if (operator.symbol === '?' || operator.symbol === '&') excluded += '&'
  else if (!operator.reserved) {
    excluded += '/?'
    if (zone === 'query') excluded += '&'
    if (matrix) excluded += ';'
  }
  return new Set(Array.from(excluded, unitOf))
}

function literalPart(text: string): LiteralPart {
  // No URI contains a control character, so a literal with an encoded one becomes a unit that no URI contains.
  const units = toUnits(text) ?? [0]
  const borders = [0]
  for (let at = 1, border = 0; at < units.length; at++) {
    while (border > 0 && units[at] !== units[border]) border = borders[border - 1] ?? 0
    if (units[at] === units[border]) border++
    borders.push(border)
  }
  return { kind: 'literal', units, borders }
}

function valueParts(
  { operator, variables }: Expression,
  start: number,
  excluded: ReadonlySet<number>,
  next: TemplatePart | undefined,
): readonly ValuePart[] {
  const open = typeof next === 'object' && next.operator.first === ''
  return variables.map((variable, index): ValuePart => {
    const lead = index === 0 ? operator.first : operator.separator
    const { explode, limit } = variable
    // A list may have no members. Of other variables, only the last ones may be missing.
    const optional = explode && lead === operator.separator
    const missing = index > 0 || lead !== '' ? start + variables.length : undefined
    const lists = !operator.reserved && limit === Number.POSITIVE_INFINITY
    const spans = explode && operator.separator === '/'
    return {
      kind: 'value',
      variable,
      lead: lead === '' ? undefined : unitOf(lead),
      excluded: spans ? new Set([...excluded].filter((unit) => unit !== unitOf('/'))) : excluded,
      splitAt: explode ? unitOf(operator.separator) : lists ? unitOf(',') : undefined,
      skipTo: optional ? start + index + 1 : missing,
      prefers: open ? 'longest' : optional ? 'absent' : 'shortest',
    }
  })
}

function pairsPart(
  { operator, variables }: Expression,
  index: number,
  excluded: ReadonlySet<number>,
  previous: PairsPart | undefined,
): PairsPart {
  const all = [...(previous?.variables.values() ?? []), ...variables]
  const exploded = all.filter((variable) => variable.explode)
  return {
    kind: 'pairs',
    first: previous?.first ?? unitOf(operator.first),
    separator: unitOf(operator.separator),
    excluded,
    variables: new Map(all.map((variable) => [decodeURIComponent(variable.name), variable])),
    others: exploded.length === 1 ? exploded[0] : undefined,
    skipTo: index + 1,
  }
}
