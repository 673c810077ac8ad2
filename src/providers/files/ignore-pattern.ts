import type { GlobStep } from '../../core/glob-syntax.ts'

/**
 * Compiler from the wildcards of git (`wildmatch.c` and `match_pathname` in `dir.c` of git 2.39) to steps of the automaton of `core/glob.ts`.
 * Characters are bytes, as in git: `?` matches half of an `é`.
 */

interface Dialect {
  /** Whether the text is a path, where `*` stays within a segment and `**` may span several; otherwise it is one name. */
  readonly path: boolean
  /** Whether the text is in lower case (ASCII letters only) and letters are compared in lower case. */
  readonly ignoreCase: boolean
}

const slash = 0x2f
const special = /[*?[\\]/

/** Returns the length of the literal prefix of a pattern, in bytes. */
export function plainLength(pattern: string): number {
  const at = pattern.search(special)
  return at === -1 ? pattern.length : at
}

/** Converts ASCII letters to lower case; every other byte stays as it is. */
export function lowerCase(bytes: string): string {
  return bytes.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/**
 * Compiles a pattern (one character per byte). The steps end in `exact`: they match one path, and not the paths below it.
 *
 * git compares the literal prefix separately, and passes the rest to its matcher as a pattern of its own. So `**` right after that prefix
 * counts as a whole segment: `a**` + `/b` also matches `ab` and `ax/y/b`.
 */
export function compileIgnorePattern(pattern: string, dialect: Dialect): readonly GlobStep[] {
  const { path, ignoreCase } = dialect
  const codeAt = (at: number) => pattern.charCodeAt(at)
  const plain = plainLength(pattern)
  const fold = (text: string) => (ignoreCase ? lowerCase(text) : text)
  const steps: GlobStep[] = Array.from(fold(pattern.slice(0, plain)), (byte) => byte.charCodeAt(0))
  for (let at = plain; at < pattern.length; at++) {
    const byte = pattern[at]
    if (byte === '*') {
      let end = at
      while (pattern[end] === '*') end++
      const isSegment =
        path &&
        end - at > 1 &&
        (at === plain || codeAt(at - 1) === slash) &&
        (end === pattern.length || codeAt(end) === slash || pattern.startsWith('\\/', end))
      if (!isSegment) steps.push('star')
      else if (codeAt(end) === slash) {
        // Any number of segments, or none; without segments there is no slash either.
        steps.push({ to: [steps.length + 1, steps.length + 3] }, 'all', slash)
        end++
      } else steps.push('all')
      at = end - 1
    } else if (byte === '?') steps.push('any')
    else if (byte === '[') {
      const found = readClass(pattern, at + 1, ignoreCase)
      if (found === undefined) return [never]
      steps.push({ negated: found.negated, ranges: found.ranges })
      at = found.end
    } else if (byte === '\\') {
      // As in git, an escaped letter is compared in its own case.
      at++
      if (at === pattern.length) return [never]
      steps.push(codeAt(at))
    } else steps.push(fold(byte ?? '').charCodeAt(0))
  }
  return [...steps, 'exact']
}

/** Step that matches nothing, for malformed patterns. */
const never: GlobStep = { negated: false, ranges: [] }

type CharacterRange = readonly [number, number]

const digit: CharacterRange = [0x30, 0x39]
const upper: CharacterRange = [0x41, 0x5a]
const lower: CharacterRange = [0x61, 0x7a]
/** The named classes, ASCII only. `space` follows `sane_ctype` of git. */
const named: Readonly<Record<string, readonly CharacterRange[]>> = {
  alnum: [digit, upper, lower],
  alpha: [upper, lower],
  blank: [[0x20, 0x20], [0x09, 0x09]],
  cntrl: [[0x00, 0x1f], [0x7f, 0x7f]],
  digit: [digit],
  graph: [[0x21, 0x7e]],
  lower: [lower],
  print: [[0x20, 0x7e]],
  punct: [[0x21, 0x2f], [0x3a, 0x40], [0x5b, 0x60], [0x7b, 0x7e]],
  space: [[0x20, 0x20], [0x09, 0x0a], [0x0d, 0x0d]],
  upper: [upper],
  xdigit: [digit, [0x41, 0x46], [0x61, 0x66]],
} // biome-ignore format: a table

/** Parses the class after a `[` and finds its `]`; undefined when malformed, so that the pattern matches nothing. */
function readClass(pattern: string, start: number, ignoreCase: boolean) {
  const negated = pattern[start] === '!' || pattern[start] === '^'
  const opening = start + (negated ? 1 : 0)
  const ranges: CharacterRange[] = []
  /** The previous byte, which may start a range. */
  let previous: number | undefined
  let at = opening
  for (; at === opening || pattern[at] !== ']'; at++) {
    if (at >= pattern.length) return undefined
    if (pattern[at] === '\\') {
      at++
      if (at === pattern.length) return undefined
      previous = pattern.charCodeAt(at)
      ranges.push([previous, previous])
    } else if (isRange(pattern, at) && previous !== undefined) {
      at += pattern[at + 1] === '\\' ? 2 : 1
      if (at >= pattern.length) return undefined
      ranges.push(...rangesOf(previous, pattern.charCodeAt(at), ignoreCase))
      previous = undefined
    } else if (pattern.startsWith('[:', at)) {
      const end = pattern.indexOf(']', at + 2)
      if (end === -1) return undefined
      if (end === at + 2 || pattern[end - 1] !== ':') {
        previous = 0x5b
        ranges.push([previous, previous])
        continue
      }
      const name = pattern.slice(at + 2, end - 1)
      const found = Object.hasOwn(named, name) ? named[name] : undefined
      if (found === undefined) return undefined
      ranges.push(...found, ...(ignoreCase && name === 'upper' ? [lower] : []))
      previous = undefined
      at = end
    } else {
      previous = pattern.charCodeAt(at)
      ranges.push([previous, previous])
    }
  }
  return { negated, ranges, end: at }
}

/** Whether this position has a `-` that another character of the class follows. */
function isRange(pattern: string, at: number): boolean {
  return pattern[at] === '-' && at + 1 < pattern.length && pattern[at + 1] !== ']'
}

/** Returns a range and, when case is ignored, the range of its upper-case letters in lower case. */
function rangesOf(first: number, last: number, ignoreCase: boolean): readonly CharacterRange[] {
  const [from, to] = [Math.max(first, upper[0]), Math.min(last, upper[1])]
  return ignoreCase && from <= to
    ? [
        [first, last],
        [from + 32, to + 32],
      ]
    : [[first, last]]
}
