import { invalid } from './errors.ts'

/** A character class, such as `[a-z]`. It does not match `/`. */
interface CharacterClass {
  readonly negated: boolean
  /** Pairs of first and last code point. */
  readonly ranges: readonly (readonly [number, number])[]
}

type Plain = number | 'any' | 'star' | CharacterClass
/** A token of a glob. The braces are balanced, and `,` occurs only within braces. */
type GlobToken = Plain | '{' | ',' | '}'
type GlobError = (what: string) => Error

const maxLength = 4096
const maxAlternatives = 1000
const maxDepth = 20

/** @throws ResourceError `invalid` (reason `argument`) for a malformed glob, or one beyond a limit. */
export function parseGlob(pattern: string): { readonly tokens: readonly GlobToken[]; readonly fault: GlobError } {
  const excerpt = pattern.length > 60 ? `${pattern.slice(0, 60)}…` : pattern
  const fault: GlobError = (what) => invalid(`The glob ${JSON.stringify(excerpt)} is malformed: ${what}.`, 'argument')
  if (pattern.length > maxLength) throw fault(`it is longer than ${maxLength} characters`)
  if (pattern.startsWith('!'))
    throw fault('it begins with "!", and there is no negation; write "\\!" for the character')
  const tokens = tokenize(pattern, fault)
  countAlternatives(tokens, fault)
  return { tokens, fault }
}

/** Throws if braces hold only one alternative, or if all braces, expanded as in a shell, have too many. */
function countAlternatives(tokens: readonly GlobToken[], fault: GlobError): void {
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

function tokenize(pattern: string, fault: GlobError): readonly GlobToken[] {
  const characters = Array.from(pattern)
  const tokens: GlobToken[] = []
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
function readClass(characters: readonly string[], start: number, fault: GlobError) {
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

/**
 * One step of a compiled glob, followed by the next one unless it is a fork. A number matches that code point.
 *
 * `star` matches any characters within a segment. `deep` (always followed by `inside`) skips any number of whole segments. `all`
 * matches any characters. A fork continues at each of its steps without reading a character. `exact` ends a glob for one path;
 * `within` ends a glob for a directory and everything below it.
 */
export type GlobStep = Plain | 'deep' | 'inside' | 'all' | { readonly to: readonly number[] } | 'exact' | 'within'

const slash = 0x2f
const dot = 0x2e

interface Segment {
  /**
   * Number of stars (up to 2) in a segment that has nothing else so far. Their steps are not written yet, since `**` has another
   * meaning when it is the whole segment.
   */
  readonly stars: 0 | 1 | 2
  /** Number of dots if the segment consists of dots so far; 3 for any other segment, and 0 for an empty one. */
  readonly dots: 0 | 1 | 2 | 3
  /** Whether the last step is a star. */
  readonly starred: boolean
}

/**
 * How a glob is anchored to the root of the mount. `start`: nothing was read. `loose`: it has no slash except a final one, so it
 * matches at any depth. `untied`: it has an inner slash, which has not been read yet. `leading`: only the leading slash was read.
 * `tied`: an inner slash was read. `closing`: the final slash was read.
 */
type Tie = 'start' | 'loose' | 'untied' | 'leading' | 'tied' | 'closing'

interface GlobState extends Segment {
  /** Index of the next token; the number of tokens at the end. */
  readonly at: number
  readonly tie: Tie
}

/** A transition of the automaton: steps to another state or to an end. */
export interface Transition {
  readonly steps: readonly GlobStep[]
  readonly to: GlobState | 'exact' | 'within'
}

export const emptySegment: Segment = { stars: 0, dots: 0, starred: false }

/** Returns, for each `{`, the indices at which its alternatives begin, and for each `,` and `}`, the index after the braces. */
export function braceJumps(tokens: readonly GlobToken[]): ReadonlyMap<number, readonly number[]> {
  const jumps = new Map<number, readonly number[]>()
  const open: number[][] = []
  for (const [at, token] of tokens.entries()) {
    if (token === '{') open.push([at])
    else if (token === ',') open.at(-1)?.push(at)
    else if (token === '}') {
      const [start = at, ...commas] = open.pop() ?? []
      jumps.set(
        start,
        [start, ...commas].map((part) => part + 1),
      )
      for (const part of [...commas, at]) jumps.set(part, [at + 1])
    }
  }
  return jumps
}

/** Returns the transitions from a state over a token. An undefined token is the end of the glob. */
export function transitionsFrom(
  state: GlobState,
  token: GlobToken | undefined,
  fault: GlobError,
): readonly Transition[] {
  const { at, tie, stars, dots, starred } = state
  const isEmpty = stars === 0 && dots === 0
  if (tie === 'closing') return token === undefined ? [{ steps: [], to: 'within' }] : []
  if (token === undefined) return waysPastEnd(state, fault)
  if (token === slash) return waysPastSlash(state, fault)
  const next = { at: at + 1, tie: tie === 'start' ? 'untied' : tie === 'leading' ? 'tied' : tie } as const
  if (token === 'star') {
    if (isEmpty || stars > 0) {
      return [{ steps: [], to: { ...next, stars: isEmpty ? 1 : 2, dots: 0, starred: true } }]
    }
    return [{ steps: starred ? [] : ['star'], to: { ...next, stars: 0, dots: 3, starred: true } }]
  }
  const isDot = token === dot && stars === 0 && dots < 2
  const segment = { stars: 0, dots: isDot ? (dots === 0 ? 1 : 2) : 3, starred: false } as const
  return [{ steps: [...heldIn(state), token as Plain], to: { ...next, ...segment } }]
}

function heldIn({ stars }: Segment): readonly GlobStep[] {
  return stars > 0 ? ['star'] : []
}

const dotFault = 'it has a segment "." or "..", which no path has'
const emptyFault = 'it has an empty segment'

function waysPastEnd(state: GlobState, fault: GlobError): readonly Transition[] {
  const { tie, stars, dots } = state
  if (dots === 1 || dots === 2) throw fault(dotFault)
  if (tie === 'start') throw fault('it is empty')
  if (tie === 'leading') throw fault(emptyFault)
  // No transition: an `untied` glob lacks its inner slash, and a glob with a final slash ends in `closing`.
  if (tie === 'untied' || (stars === 0 && dots === 0)) return []
  return [{ steps: stars === 2 ? ['all'] : heldIn(state), to: 'exact' }]
}

function waysPastSlash(state: GlobState, fault: GlobError): readonly Transition[] {
  const { tie, stars, dots } = state
  const at = state.at + 1
  if (dots === 1 || dots === 2) throw fault(dotFault)
  if (stars === 0 && dots === 0) {
    if (tie === 'start') return [{ steps: [], to: { ...emptySegment, at, tie: 'leading' } }]
    if (tie === 'loose') return []
    throw fault(emptyFault)
  }
  const steps = heldIn(state)
  const between: Transition = {
    steps: stars === 2 ? ['deep', 'inside'] : [...steps, slash],
    to: { ...emptySegment, at, tie: 'tied' },
  }
  const last: Transition = {
    steps: [...(stars === 2 ? (['all'] as const) : steps), slash, 'all'],
    to: { ...emptySegment, at, tie: 'closing' },
  }
  if (tie === 'loose') return [last]
  return tie === 'untied' ? [between] : [between, last]
}
