import { invalid } from './errors.ts'
import { requireArgument } from './kit/object.ts'
import { compileMatcher, type MatchedValue } from './template-match.ts'
import {
  type Expression,
  type LiteralPart,
  type MatchPart,
  type Operator,
  type PairsPart,
  parseTemplate,
  type TemplatePart,
  toUnits,
  unitOf,
  type ValuePart,
  type Variable,
} from './template-parts.ts'
import { decodeIfValid } from './uri.ts'

export type { MatchedValue } from './template-match.ts'

type Scalar = string | number | boolean

/**
 * The value of a variable. `undefined`, `null` and empty lists and maps are undefined in the sense of RFC 6570, section 2.3, and
 * so are such members of a list or map: they leave no trace in the URI.
 */
export type TemplateValue =
  | Scalar
  | null
  | undefined
  | readonly (Scalar | null | undefined)[]
  | { readonly [key: string]: Scalar | null | undefined }
  | ReadonlyMap<string, Scalar | null | undefined>

type TemplateValues = Readonly<Record<string, TemplateValue>> | ReadonlyMap<string, TemplateValue>

/** A compiled URI template (RFC 6570, level 4). */
export interface UriTemplate {
  readonly text: string
  /** Names of the variables as they are written, in order, each once. */
  readonly variables: readonly string[]
  /** The text before the first expression, as it is written. */
  readonly literalPrefix: string
  /**
   * Returns the value of a variable whose expansion is a given text. `{+a}` and `{#a}` leave reserved characters and escapes
   * unchanged, so `%`, `?` and `#` are escaped; in all other expressions the value is the text itself.
   */
  valueFor(name: string, text: string): string
  /** Returns the text that a value of a variable expands to: the inverse of `valueFor`. Invalid escapes stay unchanged. */
  textFrom(name: string, value: string): string
  /**
   * Expands the template. In a record, only own properties count as values.
   *
   * @throws ResourceError `invalid` (reason `argument`) for a prefix (`{name:3}`) of a list or map, and for text with a
   * lone surrogate.
   */
  expand(values: TemplateValues): string
  /**
   * Reads the values of the variables from a URI: the inverse of `expand`, as far as there is one. Undefined when the template
   * does not match the URI. Variables that are absent from the URI are absent from the map, except for `{a}` and `{+a}`: they
   * have no delimiter, so without any text they are the empty text. Never throws.
   *
   * **Spelling.** Percent-encoded and raw characters are equal, except `/ ? # & = ; ,`, which are structure when raw and data
   * when encoded: hosts re-encode the URIs that they receive. Values are decoded exactly once, `+` is itself. Invalid UTF-8, a
   * lone `%`, a lone surrogate, a URI longer than 8192 characters, and any control character, raw or encoded, do not match.
   *
   * **Extent of a value.** `{a}`, `{.a}`, `{/a}`, `{;a}`: no raw `/`, `?` or `#`; after a `?` in the template no `&`; in a
   * template with `{;…}` no `;`. `{+a}`: also `/`, and `?` after a first one. `{#a}`: anything but `#`. `{?a}` and `{&a}`:
   * anything but `&` and `#`.
   *
   * **Parameters** (`{?a,b}`, `{&a}`, `{;a}`) are optional and come in any order; adjacent expressions (`{?a}{&b}`) count as one.
   * A parameter that is unknown or given twice, or has no name, does not match.
   *
   * **Lists and maps.** A variable with `*` is a list, whether it has one member or many. Without `*`, a raw `,` makes a list,
   * except in `{+a}`, `{#a}` and `{a:3}`, where it is a character. `{?a*}` is a list when every parameter is called `a`;
   * otherwise, as the only one with `*` in its expression, it is the map of all parameters that no other variable has claimed.
   * Other maps (`{a}`, `{/a*}`) are returned as the list that they were written as.
   *
   * **Ambiguity.** Earlier variables are as short as the following ones allow, the last takes the rest, and present takes
   * precedence over absent: `{a}.{b}` reads `x.tar.gz` as `x` and `tar.gz`, `{/dir*,file}` gives the list all but the last
   * segment. Only a variable directly followed by `{…}` or `{+…}`, without a delimiter, is as long as possible: `{/repo}{+path}`.
   * A variable that occurs twice must have the same value twice.
   */
  match(uri: string): ReadonlyMap<string, MatchedValue> | undefined
}

/**
 * Compiles a URI template.
 *
 * @throws ResourceError `invalid` (reason `configuration`) for a malformed template, for percent-encoded triplets in it that are not
 * UTF-8, for one longer than 8192 characters or with more than 100 variables.
 */
export function compileTemplate(text: string): UriTemplate {
  requireArgument('compileTemplate(text)', 'text', text, 'a string')
  const parts = parseTemplate(text)
  const expressions = parts.filter((part) => typeof part !== 'string')
  const reserved = new Set(
    expressions.flatMap(({ operator, variables }) => (operator.reserved ? variables.map(({ name }) => name) : [])),
  )
  return {
    text,
    valueFor: (name, plain) => (reserved.has(name) ? plain.replace(/[%?#]/g, encodeURIComponent) : plain),
    textFrom: (name, value) => (reserved.has(name) ? decodeEscapes(value) : value),
    variables: [...new Set(expressions.flatMap(({ variables }) => variables.map(({ name }) => name)))],
    literalPrefix: typeof parts[0] === 'string' ? parts[0] : '',
    expand: (values) =>
      parts.map((part) => (typeof part === 'string' ? encodeReserved(part) : expandExpression(part, values))).join(''),
    match: compileMatcher(flattenTemplate(parts)),
  }
}

type Defined = string | readonly string[] | ReadonlyMap<string, string>

/** Expands an expression (RFC 6570, section 3.2.1). */
function expandExpression({ operator, variables }: Expression, values: TemplateValues): string {
  const items = variables.flatMap((variable) => {
    const value = definedValue(lookUp(values, variable.name))
    return value === undefined ? [] : expandVariable(operator, variable, value)
  })
  return items.length === 0 ? '' : operator.first + items.join(operator.separator)
}

function expandVariable(operator: Operator, variable: Variable, value: Defined): readonly string[] {
  const encode = operator.reserved ? encodeReserved : encodeUnreserved
  const { name, explode, limit } = variable
  const withName = (key: string, encoded: string) => {
    if (operator.named === false) return encoded
    return encoded === '' ? key + operator.named : `${key}=${encoded}`
  }
  if (typeof value === 'string') {
    // A prefix is counted in code points, before anything is encoded (section 2.4.1).
    const text = value.length > limit ? Array.from(value).slice(0, limit).join('') : value
    return [withName(name, encode(text))]
  }
  if (limit !== Number.POSITIVE_INFINITY)
    throw invalid(
      `The template takes a prefix of the variable ${name}, so its value must not be a list or a map.`,
      'argument',
    )
  if (value instanceof Map) {
    const pairs = Array.from(
      value as ReadonlyMap<string, string>,
      ([key, member]) => [encode(key), encode(member)] as const,
    )
    if (!explode) return [withName(name, pairs.flat().join(','))]
    return pairs.map(([key, member]) => (operator.named === false ? `${key}=${member}` : withName(key, member)))
  }
  const members = (value as readonly string[]).map(encode)
  return explode ? members.map((member) => withName(name, member)) : [withName(name, members.join(','))]
}

function lookUp(values: TemplateValues, name: string): TemplateValue {
  if (values instanceof Map) return (values as ReadonlyMap<string, TemplateValue>).get(name)
  return Object.hasOwn(values, name) ? (values as Readonly<Record<string, TemplateValue>>)[name] : undefined
}

function definedValue(value: TemplateValue): Defined | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'object') return String(value)
  const isDefined = (member: Scalar | null | undefined) => member !== undefined && member !== null
  if (Array.isArray(value)) {
    const members = value.filter(isDefined).map(String)
    return members.length === 0 ? undefined : members
  }
  const pairs = Array.from(value instanceof Map ? value : Object.entries(value))
  const members = new Map(pairs.filter(([, member]) => isDefined(member)).map(([key, member]) => [key, String(member)]))
  return members.size === 0 ? undefined : members
}

function encodeUnreserved(text: string): string {
  return encode(text, encodeURIComponent).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Escapes all characters except `unreserved`, `reserved` and percent-encoded triplets. */
function encodeReserved(text: string): string {
  return text
    .split(/(%[0-9A-Fa-f]{2})/)
    .map((part, index) => (index % 2 === 1 ? part : encode(part, encodeURI).replace(/%5[BD]/g, decodeURIComponent)))
    .join('')
}

function encode(text: string, encoder: (text: string) => string): string {
  if (!text.isWellFormed()) throw invalid('A value for a URI template holds a lone surrogate.', 'argument')
  return encoder(text)
}

function decodeEscapes(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, decodeIfValid)
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
