import {
  type LiteralPart,
  type MatchPart,
  type PairsPart,
  toUnits,
  type UriUnits,
  unitOf,
  unitsToText,
  type ValuePart,
  type Variable,
} from './template-parts.ts'

/** A value of a variable in a URI, percent-decoded once: text; the members of a list; or the map of `{?map*}`. */
export type MatchedValue = string | readonly string[] | ReadonlyMap<string, string>

type TemplateMatch = ReadonlyMap<string, MatchedValue>

interface Capture {
  readonly variable: Variable
  readonly value: MatchedValue
}

/** For each position of a URI, 1 when a part can begin there such that it and all following parts match to the end. */
type Marks = Uint8Array

const equals = unitOf('=')
const comma = unitOf(',')

export function compileMatcher(parts: readonly MatchPart[]): (uri: string) => TemplateMatch | undefined {
  return (uri) => {
    const units = toUnits(uri)
    return units === undefined ? undefined : matchUnits(parts, units)
  }
}

/**
 * Matches without backtracking. A backward pass over the parts marks the positions from which a part and all following
 * ones can match; a forward pass then takes, for each part, the end that it prefers among the marked ones.
 */
export function matchUnits(parts: readonly MatchPart[], units: UriUnits): TemplateMatch | undefined {
  const [head] = parts
  if (head?.kind === 'literal' && !startsWith(units, head.units)) return undefined
  const marks = markStarts(parts, units)
  if (marks[0]?.[0] !== 1) return undefined
  const captures: Capture[] = []
  let at = 0
  for (let index = 0; index < parts.length; ) {
    const part = parts[index]
    const ends = marks[index + 1]
    if (part === undefined || ends === undefined) break
    if (part.kind === 'literal') {
      at += part.units.length
      index++
      continue
    }
    const end = part.kind === 'value' ? endOfValue(part, units, at, ends) : endOfPairs(part, units, at, ends)
    const absent = part.kind === 'value' && part.prefers === 'absent' && marks[part.skipTo ?? 0]?.[at] === 1
    if (end === undefined || absent) {
      index = part.skipTo ?? index + 1
      continue
    }
    const values = part.kind === 'value' ? [readValue(part, units, at, end)] : readPairs(part, units, at, end)
    if (values === undefined) return undefined
    captures.push(...values)
    at = end
    index++
  }
  return reconcile(captures)
}

function startsWith(units: UriUnits, head: UriUnits): boolean {
  for (let at = 0; at < head.length; at++) if (units[at] !== head[at]) return false
  return true
}

function markStarts(parts: readonly MatchPart[], units: UriUnits): readonly Marks[] {
  const marks = Array.from({ length: parts.length + 1 }, () => new Uint8Array(units.length + 1))
  marks[parts.length]?.fill(1, units.length)
  for (let index = parts.length - 1; index >= 0; index--) {
    const part = parts[index]
    const starts = marks[index]
    const ends = marks[index + 1]
    if (part === undefined || starts === undefined || ends === undefined) break
    if (part.kind === 'literal') markLiteral(part, units, ends, starts)
    else {
      if (part.kind === 'value') markValue(part, units, ends, starts)
      else markPairs(part, units, ends, starts)
      const skips = part.skipTo === undefined ? undefined : marks[part.skipTo]
      if (skips !== undefined) for (let at = 0; at < starts.length; at++) if (skips[at] === 1) starts[at] = 1
    }
  }
  return marks
}

function markLiteral(part: LiteralPart, units: UriUnits, ends: Marks, starts: Marks): void {
  let length = 0
  for (let at = 0; at < units.length; at++) {
    while (length > 0 && units[at] !== part.units[length]) length = part.borders[length - 1] ?? 0
    if (units[at] === part.units[length]) length++
    if (length < part.units.length) continue
    if (ends[at + 1] === 1) starts[at + 1 - length] = 1
    length = part.borders[length - 1] ?? 0
  }
}

function markValue(part: ValuePart, units: UriUnits, ends: Marks, starts: Marks): void {
  let nearest = Number.POSITIVE_INFINITY
  for (let at = units.length; at >= 0; at--) {
    if (ends[at] === 1) nearest = at
    else if (isBlocked(part, units[at])) nearest = Number.POSITIVE_INFINITY
    if (nearest === Number.POSITIVE_INFINITY || nearest - at > part.variable.limit) continue
    if (part.lead === undefined) starts[at] = 1
    else if (at > 0 && units[at - 1] === part.lead) starts[at - 1] = 1
  }
}

function markPairs(part: PairsPart, units: UriUnits, ends: Marks, starts: Marks): void {
  /** At each position: 1 when a value can continue there such that everything after it matches. */
  const inside = new Uint8Array(units.length + 2)
  let nameEnd = units.length
  for (let at = units.length; at >= 0; at--) {
    const unit = units[at]
    const isDelimiter = unit === part.first || unit === part.separator
    const value = isDelimiter ? valueAfter(part, units, at, nameEnd) : undefined
    const begins =
      (value !== undefined && inside[value] === 1) || (isDelimiter && bareEnd(part, units, at, ends) !== undefined)
    if (begins && unit === part.first) starts[at] = 1
    const goesOn = unit === part.separator ? begins : !isBlocked(part, unit) && inside[at + 1] === 1
    if (goesOn || ends[at] === 1) inside[at] = 1
    if (endsName(part, unit)) nameEnd = at
  }
}

function isBlocked(part: ValuePart | PairsPart, unit: number | undefined): boolean {
  return unit === undefined || (unit < 0 && part.excluded.has(unit))
}

function endsName(part: PairsPart, unit: number | undefined): boolean {
  return unit === equals || unit === part.first || unit === part.separator || isBlocked(part, unit)
}

/** Returns the start of the value of the parameter whose delimiter is at `at`; undefined when the template does not know its name. */
function valueAfter(part: PairsPart, units: UriUnits, at: number, nameEnd: number): number | undefined {
  const end = units[nameEnd]
  // A name is not empty, and contains no second `?`.
  if (nameEnd === at + 1 || (end === part.first && end !== part.separator)) return undefined
  if (part.others === undefined && !part.variables.has(unitsToText(units, at + 1, nameEnd))) return undefined
  return end === equals ? nameEnd + 1 : nameEnd
}

/** Returns the end of a parameter without a value (`;a`) whose name the rest of the template follows directly, as in `{;a}.{b}`. */
function bareEnd(part: PairsPart, units: UriUnits, at: number, ends: Marks): number | undefined {
  for (const name of part.variables.keys()) {
    const end = at + 1 + Array.from(name).length
    if (ends[end] === 1 && unitsToText(units, at + 1, end) === name) return end
  }
  return undefined
}

/** Returns the end that a value prefers, among those from which the rest matches. */
function endOfValue(part: ValuePart, units: UriUnits, start: number, ends: Marks): number | undefined {
  if (part.lead !== undefined && units[start] !== part.lead) return undefined
  const from = part.lead === undefined ? start : start + 1
  let position: number | undefined
  for (let at = from; at - from <= part.variable.limit; at++) {
    if (ends[at] === 1) {
      position = at
      if (part.prefers !== 'longest') break
    }
    if (isBlocked(part, units[at])) break
  }
  return position
}

function endOfPairs(part: PairsPart, units: UriUnits, start: number, ends: Marks): number | undefined {
  if (units[start] !== part.first) return undefined
  let bare: number | undefined
  for (let at = start; ; ) {
    bare = bareEnd(part, units, at, ends) ?? bare
    const value = valueAfter(part, units, at, nameEndFrom(part, units, at + 1))
    if (value === undefined) return bare
    at = value
    while (ends[at] !== 1 && !isBlocked(part, units[at])) at++
    if (ends[at] === 1) return at
    if (units[at] !== part.separator) return bare
  }
}

function nameEndFrom(part: PairsPart, units: UriUnits, start: number): number {
  let at = start
  while (!endsName(part, units[at])) at++
  return at
}

function readValue(part: ValuePart, units: UriUnits, start: number, end: number): Capture {
  const from = part.lead === undefined ? start : start + 1
  const members = split(units, from, end, part.splitAt)
  const value = part.variable.explode || members.length > 1 ? members : unitsToText(units, from, end)
  return { variable: part.variable, value }
}

/** Reads the parameters of a URI. Undefined when one is given twice, or is longer than the limit of its variable. */
function readPairs(part: PairsPart, units: UriUnits, start: number, end: number): readonly Capture[] | undefined {
  const captures: Capture[] = []
  const unclaimed: { readonly name: string; readonly variable: Variable | undefined; readonly text: string }[] = []
  const names = new Set<string>()
  for (let at = start; at < end; ) {
    const nameEnd = Math.min(nameEndFrom(part, units, at + 1), end)
    const from = nameEnd < end && units[nameEnd] === equals ? nameEnd + 1 : nameEnd
    const name = unitsToText(units, at + 1, nameEnd)
    const variable = part.variables.get(name)
    at = from
    while (at < end && units[at] !== part.separator) at++
    if (variable === undefined || variable.explode) {
      unclaimed.push({ name, variable, text: unitsToText(units, from, at) })
      continue
    }
    if (names.has(name) || at - from > variable.limit) return undefined
    names.add(name)
    const members = split(units, from, at, variable.limit === Number.POSITIVE_INFINITY ? comma : undefined)
    captures.push({ variable, value: members.length > 1 ? members : unitsToText(units, from, at) })
  }
  if (unclaimed.every(({ variable }) => variable !== undefined)) {
    const exploded = Array.from(part.variables.values()).filter((variable) => variable.explode)
    for (const variable of exploded) {
      const members = unclaimed.filter((pair) => pair.variable === variable).map(({ text }) => text)
      if (members.length > 0) captures.push({ variable, value: members })
    }
    return captures
  }
  const map = new Map(unclaimed.map(({ name, text }) => [name, text]))
  if (part.others === undefined || map.size < unclaimed.length) return undefined
  return [...captures, { variable: part.others, value: map }]
}

function split(units: UriUnits, start: number, end: number, delimiter: number | undefined): readonly string[] {
  const members: string[] = []
  let from = start
  for (let at = start; at <= end; at++) {
    if (at < end && units[at] !== delimiter) continue
    members.push(unitsToText(units, from, at))
    from = at + 1
  }
  return members
}

/** Returns one value for each variable. Undefined when two occurrences of a variable disagree. */
function reconcile(captures: readonly Capture[]): TemplateMatch | undefined {
  const best = new Map<string, Capture>()
  for (const capture of captures) {
    const previous = best.get(capture.variable.name)
    if (previous === undefined || previous.variable.limit < capture.variable.limit)
      best.set(capture.variable.name, capture)
  }
  for (const { variable, value } of captures) {
    const matchedValue = best.get(variable.name)?.value
    if (matchedValue === undefined || matchedValue === value) continue
    const part =
      typeof matchedValue === 'string' ? Array.from(matchedValue).slice(0, variable.limit).join('') : matchedValue
    if (JSON.stringify(membersOf(part)) !== JSON.stringify(membersOf(value))) return undefined
  }
  return new Map(Array.from(best, ([name, { value }]) => [name, value]))
}

function membersOf(value: MatchedValue): readonly unknown[] {
  return typeof value === 'string' ? [value] : Array.from<unknown>(value)
}
