import type { Span } from '../core/kit/sorted.ts'
import { looksLikeRandomToken } from './keys.ts'
import { authSchemePattern, isHarmless, isPlaceholder } from './references.ts'

/** Maximum distance, in characters, between the `kty` of a JSON Web Key and its other members where no braces enclose the key (YAML, TOML). */
const maxDistance = 8 * 1024

/** The shortest private member that is known without a `kty` beside it, in characters: 15 bytes in base64url. */
const minAlone = 20

/**
 * A brace, or the name of a member that tells or holds a private key: `kty`, `oth`, the private members of RFC 7518, section 6
 * (`d`, `p`, `q`, `dp`, `dq`, `qi`, `k`), and `r` and `t`, which are private in an item of `oth`. .NET writes `Modulus`, `D`, `InverseQ`. Quotes may be escaped, at any depth.
 */
const token =
  /[{}]|(?<![\w$.?&-])(?<name>kty|Modulus|oth|dp|dq|qi|InverseQ|D[PQ]?|[dpqkrtPQ])\\{0,15}["']?\s{0,16}(?:=>|[:=](?![:=>]))[ \t]{0,16}(?:[|>][+-]?\d?[+-]?[ \t]{0,16}\r?\n)?\s{0,80}\\{0,15}["']?/g

/** A value in base64url or base64, which YAML may fold over indented lines. */
const value = /[\w+/-]+={0,2}(?:\r?\n[ \t]+[\w+/-]+={0,2}(?=[ \t]*\\{0,15}(?:["',}]|\r?\n|$)))*/y

/** 32 bytes in base64url, a common length of a key. Some random ones look like words to {@link looksLikeRandomToken}. */
const keyOf32Bytes = /^(?=.*[A-Z])(?=.*[a-z])[\w-]{43}$/

/** The data of an SVG path, which has the name `d` as well. */
const svgPath = /^m[mzlhvcsqtae\d.-]*$/i

/** The deepest pair of braces that is examined on its own; deeper ones count as a part of it. */
const maxDepth = 1000

interface FormatFrame {
  readonly members: (Span & { readonly name: string })[]
  readonly kinds: number[]
  /** Whether it has a list `oth` (other primes, RFC 7518, section 6.3.2.7). */
  hasOthers: boolean
  /** Whether it may be an item of such a list. */
  readonly isOther: boolean
}

const newFrame = (isOther: boolean): FormatFrame => ({ members: [], kinds: [], hasOthers: false, isOther })

/**
 * Finds the private members of JSON Web Keys (RFC 7517), as JSON, as JSON in a string, as YAML and as an object of JavaScript. Without a
 * `kty` beside it, a value must look random.
 */
export function findJwkSecrets(text: string): readonly Span[] {
  if (!text.includes('=') && !text.includes(':')) return []
  const spans: Span[] = []
  const stack: FormatFrame[] = []
  let base = newFrame(false)
  let deeper = 0
  const close = (frame: FormatFrame, hasBraces: boolean) => {
    for (const member of privateMembers(text, frame, hasBraces)) spans.push(member)
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
    } else if (name === 'kty' || name === 'Modulus') frame.kinds.push(match.index)
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
  return spans
}

function privateMembers(text: string, frame: FormatFrame, hasBraces: boolean): readonly Span[] {
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
    const bare = whole.replace(/\s+/g, '')
    return !svgPath.test(whole) && (keyOf32Bytes.test(bare) || looksLikeRandomToken(bare))
  })
}

/** The element of a key in XML, and its members that can be private. */
const xmlKey =
  /<(?:[\w-]+:)?(?<kind>RSA|DSA)(?:KeyValue|KeyPair|Parameters)\b|<(?:[\w-]+:)?(?<name>P|Q|DP|DQ|InverseQ|D|X)>\s*(?<value>[A-Za-z0-9+/\s]{16,}={0,2})\s*<\//g

/**
 * Finds the private members of keys in XML (`RSAKeyValue` and `DSAKeyValue` of .NET, XKMS). Of a DSA key `X` is private, of an RSA key
 * the other members. If the element around them is out of sight, those that look random are.
 */
export function findXmlKeySecrets(text: string): readonly Span[] {
  if (!/<\/(?:[\w-]+:)?(?:InverseQ|D[PQ]?|[PQX])>/.test(text)) return []
  const spans: Span[] = []
  let kind: string | undefined
  for (const { 0: whole, index, groups = {} } of text.matchAll(xmlKey)) {
    const { name, value } = groups
    kind = groups.kind ?? kind
    if (name === undefined || value === undefined) continue
    const isPrivate =
      kind === 'DSA' ? name === 'X' : name !== 'X' && (kind === 'RSA' || looksLikeRandomToken(value.replace(/\s/g, '')))
    const start = index + whole.indexOf('>') + 1
    const bare = text.slice(start, index + whole.length - 2)
    const lead = bare.length - bare.trimStart().length
    if (isPrivate) spans.push({ start: start + lead, end: start + bare.trimEnd().length, key: index })
  }
  return spans
}

/** Headers of HTTP whose value is secret, except those with the name of a secret, such as `X-Api-Key`. */
const header = /(?<![\w-])(?:(?:proxy-)?authorization|(?:set-)?cookie2?)(?![\w-])/gi

const maxProbe = 256

/** Text allowed between a header's name and its value: quotes, brackets, a colon or another sign. */
const separator = /^\\?["'`]?\]?\s{0,4}(?:=>|:=|[:=,])\s{0,4}(?:[a-z]{0,2}\\?["'`]{1,3})?/i

/**
 * Finds the values of the headers `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie` (in HTTP, curl, JSON, code), and credentials
 * that follow the name of a scheme: `Bearer …`, `Basic …`.
 */
export function findHeaderSecrets(text: string): readonly Span[] {
  // One of these characters follows the name of a header or of a scheme.
  if (!/[:=,\s%+]/.test(text)) return []
  const spans: Span[] = []
  let until = 0
  for (const { 0: name, index } of text.matchAll(header)) {
    if (index < until) continue
    const start = index + name.length
    const between = separator.exec(text.slice(start, start + 24))?.[0]
    if (between === undefined) continue
    const from = start + between.length
    const quoted = /["'`]$/.exec(between)?.[0]
    const head = text.slice(from, from + 40)
    // The scheme stays.
    const skipped = /cookie/i.test(name) ? 0 : (authSchemePattern.exec(head)?.[0].length ?? 0)
    // The beginning of a value suffices, so that the time stays linear.
    const probe = text.slice(from + skipped, endOfValue(text, from, quoted, maxProbe)).trim()
    if ((skipped > 0 && isPlaceholder(probe)) || !isCredential(probe, skipped > 0 || quoted !== undefined)) continue
    until = endOfValue(text, from, quoted, text.length)
    spans.push({ start: from + skipped, end: until })
  }
  for (const { 0: match, 1: head = '', index } of text.matchAll(
    /(?<![\w-])((?:bearer|basic|token)(?:[ \t]{1,4}|%20|\+))[\w.~+/%-]{12,}=*/gi,
  )) {
    const value = match.slice(head.length)
    if (/\d/.test(value) || (/[A-Z]/.test(value.slice(1)) && /[a-z]/.test(value)))
      spans.push({ start: index + head.length, end: index + match.length })
  }
  return spans
}

/** Returns the end of a value: its closing quote, else the end of the line or a quote around the whole header. */
function endOfValue(text: string, from: number, quote: string | undefined, most: number): number {
  const stop = Math.min(text.length, from + most)
  for (let at = from; at < stop; at++) {
    const character = text[at]
    if (character === '\n' || character === '\r') return at
    if (quote === undefined ? character === '"' || character === "'" || character === '`' : character === quote)
      return at
    // In a text that is quoted once more, `\"` closes `\"`, and `\n` is a line end.
    if (character === '\\' && (text[at + 1] === 'n' || text[at + 1] === 'r' || text[at + 1] === quote)) return at
  }
  return stop
}

/** Whether a text can be the value of a header with credentials. Prose, code and references cannot. */
function isCredential(value: string, isMarked: boolean): boolean {
  if (value.length < 4 || isHarmless(value)) return false
  if (isMarked) return !/^(?:required|optional|string|headers?)$/i.test(value)
  if (/^[A-Za-z_$][\w$]*(?:[.?!]+[\w$]+)*(?:\(.*)?[,;)]*$/.test(value))
    return value.length >= 16 && /\d/.test(value) && !/[.(]/.test(value)
  return /=/.test(value) || !/\s/.test(value)
}
