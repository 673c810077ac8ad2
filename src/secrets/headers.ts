import type { Span } from './spans.ts'
import { isNothing } from './values.ts'

/** Headers of HTTP whose value is secret. Others (`X-Api-Key`) are found as keys are. */
const header = /(?<![\w-])(?:(?:proxy-)?authorization|(?:set-)?cookie2?)(?![\w-])/gi

/** Number of characters of a value that are examined to classify it. */
const maxProbe = 256

/** Text allowed between a header's name and its value: quotes, brackets, a colon or another sign. */
const separator = /^\\?["'`]?\]?\s{0,4}(?:=>|:=|[:=,])\s{0,4}(?:[a-z]{0,2}\\?["'`]{1,3})?/i

/** An authentication scheme in front of the credentials stays. */
const scheme =
  /^(?:bearer|basic|digest|token|apikey|api-key|negotiate|ntlm|hawk|aws4-hmac-sha256|hoba|mutual|vapid|dpop|splunk|key)\s+/i

/**
 * The values of the headers `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie`, however they are written
 * (HTTP, curl, JSON, code), and credentials that follow the name of a scheme: `Bearer …`, `Basic …`.
 */
export function findHeaderSecrets(text: string): readonly Span[] {
  // One of these characters follows the name of a header or of a scheme.
  if (!/[:=,\s%+]/.test(text)) return []
  const found: Span[] = []
  let until = 0
  for (const { 0: name, index } of text.matchAll(header)) {
    if (index < until) continue
    const start = index + name.length
    const between = separator.exec(text.slice(start, start + 24))?.[0]
    if (between === undefined) continue
    const from = start + between.length
    const quoted = /["'`]$/.exec(between)?.[0]
    const head = text.slice(from, from + 40)
    const skipped = /cookie/i.test(name) ? 0 : (scheme.exec(head)?.[0].length ?? 0)
    // The beginning of a value suffices, so that no text makes every header in a line scan the rest of it.
    const probe = text.slice(from + skipped, endOfValue(text, from, quoted, maxProbe))
    if (!isCredential(probe.trim(), skipped > 0 || quoted !== undefined)) continue
    until = endOfValue(text, from, quoted, text.length)
    found.push({ start: from + skipped, end: until })
  }
  for (const { 0: match, 1: head = '', index } of text.matchAll(
    /(?<![\w-])((?:bearer|basic|token)(?:[ \t]{1,4}|%20|\+))[\w.~+/%-]{12,}=*/gi,
  )) {
    const value = match.slice(head.length)
    if (/\d/.test(value) || (/[A-Z]/.test(value.slice(1)) && /[a-z]/.test(value)))
      found.push({ start: index + head.length, end: index + match.length })
  }
  return found
}

/** To the quote that closes it, else to the end of the line or to a quote around the whole header. */
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

/** Whether it can be the value of such a header: prose, code and references cannot. */
function isCredential(value: string, marked: boolean): boolean {
  if (value.length < 4 || isNothing(value)) return false
  if (marked) return !/^(?:required|optional|string|headers?)$/i.test(value)
  if (/^[A-Za-z_$][\w$]*(?:[.?!]+[\w$]+)*(?:\(.*)?[,;)]*$/.test(value))
    return value.length >= 16 && /\d/.test(value) && !/[.(]/.test(value)
  return /=/.test(value) || !/\s/.test(value)
}
