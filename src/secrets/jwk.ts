import { looksOpaque } from './opaque.ts'
import type { Span } from './spans.ts'

/** Without braces (YAML, TOML), a member this close to a `kty` belongs to the same key, in characters. */
const maxDistance = 8 * 1024

/** The shortest private member that is known without a `kty` beside it, in characters: 15 bytes in base64url. */
const minAlone = 20

/**
 * A brace, or the name of a member. Of `kty`, `oth` and the private members of RFC 7518, section 6: `d`, `p`, `q`, `dp`,
 * `dq`, `qi` and `k`; and `r` and `t`, which are private in an item of `oth`. Quotes may be escaped, at any depth.
 */
const token =
  /[{}]|(?<![\w$.?&-])(?<name>kty|oth|dp|dq|qi|[dpqkrt])\\{0,15}["']?\s{0,16}(?:=>|[:=](?![:=>]))[ \t]{0,16}(?:[|>][+-]?\d?[+-]?[ \t]{0,16}\r?\n)?\s{0,80}\\{0,15}["']?/g

/** A value in base64url or base64, which YAML may fold over indented lines. */
const value = /[\w+/-]+={0,2}(?:\r?\n[ \t]+[\w+/-]+={0,2}(?=[ \t]*\\{0,15}(?:["',}]|\r?\n|$)))*/y

/** The data of an SVG path, which has the name `d` as well. */
const svgPath = /^m[mzlhvcsqtae\d.-]*$/i

/** The deepest pair of braces that is looked at on its own; deeper ones count as a part of it. */
const maxDepth = 1000

interface Member extends Span {
  readonly name: string
}

/** Members found so far in one pair of braces. */
interface Frame {
  readonly members: Member[]
  readonly kinds: number[]
  /** Whether it has a list `oth`, or is an item of one. */
  hasOthers: boolean
  readonly isOther: boolean
}

const newFrame = (isOther: boolean): Frame => ({ members: [], kinds: [], hasOthers: false, isOther })

/**
 * The private members of JSON Web Keys (RFC 7517), as JSON, as JSON in a string, as YAML and as an object of JavaScript. Beside
 * a `kty` every value counts; where the object is cut or has none, one that looks random. Time is linear in the length.
 */
export function findJwkSecrets(text: string): readonly Span[] {
  if (!text.includes('=') && !text.includes(':')) return []
  const found: Span[] = []
  const stack: Frame[] = []
  let base = newFrame(false)
  let deeper = 0
  const close = (frame: Frame, hasBraces: boolean) => {
    for (const member of privateMembers(text, frame, hasBraces)) found.push(member)
  }
  for (const match of text.matchAll(token)) {
    const frame = stack.at(-1) ?? base
    const name = match.groups?.name
    if (match[0] === '{') {
      if (stack.length < maxDepth) stack.push(newFrame(frame.hasOthers))
      else deeper++
    } else if (match[0] === '}' && deeper > 0) deeper--
    else if (match[0] === '}') {
      close(frame, true)
      if (stack.pop() === undefined) base = newFrame(false)
    } else if (name === 'kty') frame.kinds.push(match.index)
    else if (name === 'oth') frame.hasOthers = true
    else if (name !== undefined) {
      value.lastIndex = match.index + match[0].length
      const length = value.exec(text)?.[0].length ?? 0
      const start = match.index + match[0].length
      if (length > 0) frame.members.push({ name, start, end: start + length, key: match.index })
    }
  }
  for (const frame of stack) close(frame, true)
  close(base, false)
  return found
}

function privateMembers(text: string, frame: Frame, hasBraces: boolean): readonly Member[] {
  let next = 0
  return frame.members.filter(({ name, start, end, key = start }) => {
    if (/^[rt]$/.test(name) && !frame.isOther && !(frame.hasOthers && !hasBraces)) return false
    if (/^[rt]$/.test(name) || frame.isOther) return true
    if (hasBraces && frame.kinds.length > 0) return true
    while (next < frame.kinds.length && (frame.kinds[next] ?? 0) < key - maxDistance) next++
    const kind = frame.kinds[next]
    if (!hasBraces && kind !== undefined && kind < key + maxDistance) return true
    if (end - start < minAlone) return false
    const whole = text.slice(start, end)
    return !svgPath.test(whole) && looksOpaque(whole.replace(/\s+/g, ''))
  })
}
