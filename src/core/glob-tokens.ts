import { invalid } from './errors.ts'

/** A character class, `[a-z]`: pairs of first and last code point. It never contains `/`. */
interface CharacterClass {
  readonly negated: boolean
  readonly ranges: readonly (readonly [number, number])[]
}

/** A token that matches characters: one code point, `?`, `*` or a class. */
export type Plain = number | 'any' | 'star' | CharacterClass
/** A token of a glob. The braces are balanced, and `,` occurs only within braces. */
export type Token = Plain | '{' | ',' | '}'
/** Returns the error for a malformed glob. */
export type Fault = (what: string) => Error

const maxLength = 4096
const maxAlternatives = 1000
const maxDepth = 20

/** @throws ResourceError `invalid` (reason `glob`) for a malformed glob, or one beyond a limit. */
export function parseGlob(pattern: string): { readonly tokens: readonly Token[]; readonly fault: Fault } {
  const shown = pattern.length > 60 ? `${pattern.slice(0, 60)}…` : pattern
  const fault: Fault = (what) => invalid(`The glob ${JSON.stringify(shown)} is malformed: ${what}.`, 'glob')
  if (pattern.length > maxLength) throw fault(`it is longer than ${maxLength} characters`)
  if (pattern.startsWith('!'))
    throw fault('it begins with "!", and there is no negation; write "\\!" for the character')
  const tokens = tokenize(pattern, fault)
  countAlternatives(tokens, fault)
  return { tokens, fault }
}

/** Counts the alternatives of the braces after expansion, as a shell would expand them. */
function countAlternatives(tokens: readonly Token[], fault: Fault): void {
  let at = 0
  const bounded = (count: number) => {
    if (count > maxAlternatives) throw fault(`it has more than ${maxAlternatives} alternatives`)
    return count
  }
  const countSequence = (): number => {
    let count = 1
    for (let token = tokens[at]; token !== undefined && token !== ',' && token !== '}'; token = tokens[++at])
      if (token === '{') count = bounded(count * countGroup())
    return count
  }
  const countGroup = (): number => {
    at++
    let count = countSequence()
    if (tokens[at] === '}') throw fault('braces hold only one alternative; write "\\{" for the character')
    while (tokens[at] === ',') {
      at++
      count = bounded(count + countSequence())
    }
    return count
  }
  countSequence()
}

function tokenize(pattern: string, fault: Fault): readonly Token[] {
  const characters = Array.from(pattern)
  const tokens: Token[] = []
  let depth = 0
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? ''
    if (character === '\\') {
      const escaped = characters[++at]
      if (escaped === undefined) throw fault('it ends in a lone "\\"')
      tokens.push(codePoint(escaped))
    } else if (character === '[') {
      const { token, end } = readClass(characters, at, fault)
      tokens.push(token)
      at = end
    } else if (character === '{') {
      if (++depth > maxDepth) throw fault(`its braces are nested deeper than ${maxDepth}`)
      tokens.push(character)
    } else if (character === '}') {
      if (--depth < 0) throw fault('a "}" has no "{"')
      tokens.push(character)
    } else if (character === ',' && depth > 0) tokens.push(character)
    else if (character === '*') tokens.push('star')
    else if (character === '?') tokens.push('any')
    else tokens.push(codePoint(character))
  }
  if (depth > 0) throw fault('a "{" has no "}"')
  return tokens
}

/** Reads the class that begins at the `[` at `start`. Returns it and the index of its `]`. A `]` in first position is a member. */
function readClass(characters: readonly string[], start: number, fault: Fault) {
  const negated = characters[start + 1] === '!' || characters[start + 1] === '^'
  const opening = start + (negated ? 2 : 1)
  let at = opening
  const readMember = () => {
    if (characters[at] === '\\') at++
    const character = characters[at++]
    if (character === undefined) throw fault('a "[" has no "]"')
    if (character === '/') throw fault('a class ([…]) holds a "/"')
    return codePoint(character)
  }
  const ranges: [number, number][] = []
  while (at === opening || characters[at] !== ']') {
    if (characters[at] === '[' && characters[at + 1] === ':') throw fault('named classes ([:…:]) are not supported')
    const first = readMember()
    let last = first
    if (characters[at] === '-' && characters[at + 1] !== ']') {
      at++
      last = readMember()
    }
    if (last < first) throw fault('a range in a class ([…]) is the wrong way round')
    ranges.push([first, last])
  }
  return { token: { negated, ranges }, end: at }
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0
}
