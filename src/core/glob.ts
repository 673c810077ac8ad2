import { invalid } from './errors.ts'

/** Whether a path of a mount is one that a glob means. A `/` at the end of the path says that it is a directory. */
export type PathTest = (path: string) => boolean

export interface GlobOptions {
  /** Compares in lower case, code point by code point, by the Unicode default mapping (no locale). */
  readonly ignoreCase?: boolean
}

/** A class of characters, `[a-z]`: pairs of first and last code point. It never holds a `/`. */
interface CharacterClass {
  readonly negated: boolean
  readonly ranges: readonly (readonly [number, number])[]
}

/**
 * One step of a program; a number is that code point. `star` stays in its segment. `deep` (always with `inside` behind
 * it) passes over whole segments, any number of them. `all` takes whatever there is.
 */
export type GlobStep = number | 'any' | 'star' | 'deep' | 'inside' | 'all' | CharacterClass

/** One alternative of a glob. `directory`: it ended in `/`, and means directories and everything below them. */
export interface GlobProgram {
  readonly steps: readonly GlobStep[]
  readonly directory: boolean
}

const maxLength = 4096
const maxAlternatives = 1000
const maxDepth = 20
const slash = 0x2f
const dot = 0x2e

/**
 * Compiles a glob over the paths of a mount.
 *
 * `*` and `?` stay within a segment; `**` as a whole segment is any number of segments (elsewhere it is `*`), so `x/**`
 * is everything below `x` and not `x` itself. `[abc]`, `[a-z]`, `[!a-z]` or `[^a-z]` is one character of a class, `{a,b}`
 * either alternative, nested as you like, and `\` takes the meaning from the character behind it. Names that begin with
 * a dot are names like any other. One character is one code point; nothing is normalised.
 *
 * As in .gitignore, a glob without a `/` is compared with the base name at any depth, where a `/` at the end does not
 * count; one that begins with `/` is tied to the root of the mount. A glob that ends in `/` means a directory and
 * everything below it. Any other means exactly the paths that it matches, files and directories alike. Unlike in
 * .gitignore there is no negation.
 *
 * Matching takes time in proportion to the length of the glob times that of the path, at worst.
 *
 * @throws ResourceError `invalid` (reason `glob`) for a malformed glob, one longer than 4096 characters, or one with more
 * than 1000 alternatives.
 */
export function compileGlob(pattern: string, options: GlobOptions = {}): PathTest {
  return compileGlobs([pattern], options)
}

/** Compiles several globs into one test, which any of them passes. Without globs, nothing does. See {@link compileGlob}. */
export function compileGlobs(patterns: readonly string[], options: GlobOptions = {}): PathTest {
  const form = options.ignoreCase === true ? foldCase : (text: string) => text
  const programs = patterns.flatMap((pattern) => compileGlobPrograms(form(pattern)))
  return (path) => {
    const whole = codePoints(form(path))
    const bare = path.endsWith('/') ? whole.slice(0, -1) : whole
    return programs.some((program) => runGlob(program, program.directory ? whole : bare))
  }
}

/** Code point by code point, so that no character's neighbours matter (`Σ` is `σ` at the end of a word too). */
function foldCase(text: string): string {
  return Array.from(text, (character) => character.toLowerCase()).join('')
}

function codePoints(text: string): readonly number[] {
  const found: number[] = []
  for (const character of text) found.push(codePoint(character))
  return found
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0
}

/** Runs all the ways through a program at once: each code point is looked at once per step that is alive. */
export function runGlob({ steps }: GlobProgram, path: readonly number[]): boolean {
  return stepsAfter(steps, path).includes(steps.length)
}

/** The steps that are alive once a path is read; the number of steps itself stands for the end. */
function stepsAfter(steps: readonly GlobStep[], path: readonly number[]): Int32Array {
  const entered = new Int32Array(steps.length + 1).fill(-1)
  let alive = new Int32Array(steps.length + 1)
  let next = new Int32Array(steps.length + 1)
  let count = 0
  const enter = (target: number, time: number) => {
    for (let at = target; entered[at] !== time; ) {
      entered[at] = time
      next[count++] = at
      const step = steps[at]
      if (step === 'star' || step === 'all') at += 1
      else if (step === 'deep') at += 2
    }
  }
  enter(0, 0)
  for (let time = 1; time <= path.length && count > 0; time++) {
    ;[alive, next] = [next, alive]
    const living = count
    count = 0
    for (let i = 0; i < living; i++) {
      const target = advance(steps, alive[i] ?? 0, path[time - 1] ?? 0)
      if (target !== -1) enter(target, time)
    }
  }
  return next.subarray(0, count)
}

/** Which paths below a directory something is true of: all of them, none, or it depends on the path. */
export type Reach = 'all' | 'some' | 'none'

/**
 * Compiles globs into what they mean of everything below a directory (empty, or ends in `/`), told by the globs alone.
 * `some` may also be said where it is all, or none.
 */
export function compileReach(patterns: readonly string[]): (directory: string) => Reach {
  const programs = patterns.flatMap(compileGlobPrograms)
  return (directory) => {
    const path = codePoints(directory)
    let reach: Reach = 'none'
    // All of them, even where one has decided it: the time does not tell which directory that was.
    for (const { steps } of programs)
      for (const at of stepsAfter(steps, path)) {
        if (takesAnything(steps, at)) reach = 'all'
        else if (at < steps.length && reach === 'none') reach = 'some'
      }
    return reach
  }
}

/** Whether every path goes on from a step to the end: `**` at the end, and `*` as a name at any depth. */
function takesAnything(steps: readonly GlobStep[], at: number): boolean {
  const left = steps.length - at
  return (left === 1 && steps[at] === 'all') || (left === 3 && steps[at] === 'deep' && steps[at + 2] === 'star')
}

/** The step to be at after `code` was read at the step `at`, or -1 where it does not fit. */
function advance(steps: readonly GlobStep[], at: number, code: number): number {
  const step = steps[at]
  if (typeof step === 'number') return step === code ? at + 1 : -1
  if (step === undefined) return -1
  if (step === 'all') return at
  if (code === slash) return step === 'inside' ? at - 1 : -1
  if (step === 'star' || step === 'inside') return at
  if (step === 'any' || step === 'deep') return at + 1
  return step.ranges.some(([first, last]) => code >= first && code <= last) === step.negated ? -1 : at + 1
}

type Fault = (what: string) => Error
type Plain = number | 'any' | 'star' | CharacterClass
type Token = Plain | '{' | ',' | '}'

/** The alternatives of a glob, as programs for {@link runGlob}. */
export function compileGlobPrograms(pattern: string): readonly GlobProgram[] {
  const shown = pattern.length > 60 ? `${pattern.slice(0, 60)}…` : pattern
  const fault: Fault = (what) => invalid(`The glob ${JSON.stringify(shown)} is malformed: ${what}.`, 'glob')
  if (pattern.length > maxLength) throw fault(`it is longer than ${maxLength} characters`)
  if (pattern.startsWith('!'))
    throw fault('it begins with "!", and there is no negation; write "\\!" for the character')
  return expandBraces(tokenize(pattern, fault), fault).map((alternative) => assemble(alternative, fault))
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

/** The class that begins at the `[` at `start`, and where its `]` is. A `]` that comes first is a member. */
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

/** Multiplies the braces out, as a shell does. The braces are balanced, and not nested too deep. */
function expandBraces(tokens: readonly Token[], fault: Fault): readonly (readonly Plain[])[] {
  let at = 0
  const bounded = (count: number) => {
    if (count > maxAlternatives) throw fault(`it has more than ${maxAlternatives} alternatives`)
  }
  const readSequence = (): readonly (readonly Plain[])[] => {
    let found: Plain[][] = [[]]
    for (let token = tokens[at]; token !== undefined && token !== ',' && token !== '}'; token = tokens[++at]) {
      if (token === '{') {
        const inner = readGroup()
        bounded(found.length * inner.length)
        found = found.flatMap((head) => inner.map((tail) => [...head, ...tail]))
      } else for (const sequence of found) sequence.push(token)
    }
    return found
  }
  const readGroup = (): readonly (readonly Plain[])[] => {
    at++
    const found = [...readSequence()]
    if (tokens[at] === '}') throw fault('braces hold only one alternative; write "\\{" for the character')
    while (tokens[at] === ',') {
      at++
      found.push(...readSequence())
      bounded(found.length)
    }
    return found
  }
  return readSequence()
}

function assemble(tokens: readonly Plain[], fault: Fault): GlobProgram {
  const segments = splitSegments(tokens)
  const anchored = segments.length > 1 && segments[0]?.length === 0
  if (anchored) segments.shift()
  const directory = segments.length > 1 && segments.at(-1)?.length === 0
  if (directory) segments.pop()
  if (segments.some((segment) => segment.length === 0))
    throw fault(tokens.length === 0 ? 'it is empty' : 'it has an empty segment')
  if (segments.some((segment) => segment.length <= 2 && segment.every((token) => token === dot)))
    throw fault('it has a segment "." or "..", which no path has')

  const steps: GlobStep[] = anchored || segments.length > 1 ? [] : ['deep', 'inside']
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1
    if (isDeep(segment) && last) steps.push('all')
    else if (isDeep(segment)) steps.push('deep', 'inside')
    else steps.push(...segment.filter((token, at) => token !== 'star' || segment[at - 1] !== 'star'))
    if (last ? directory : !isDeep(segment)) steps.push(slash)
  }
  if (directory) steps.push('all')
  return { steps, directory }
}

function splitSegments(tokens: readonly Plain[]): Plain[][] {
  const segments: Plain[][] = [[]]
  for (const token of tokens) {
    if (token === slash) segments.push([])
    else segments.at(-1)?.push(token)
  }
  return segments
}

/** Whether a segment is `**` and nothing else. */
function isDeep(segment: readonly Plain[]): boolean {
  return segment.length > 1 && segment.every((token) => token === 'star')
}
