import type { Span } from './spans.ts'

/** The longest key that is taken for one, in characters: where its end is missing, no more than this is taken out. */
const maxKey = 64 * 1024

const begin = /-{4,5} ?BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|SECRET KEY|Static key)[A-Z0-9 ]{0,40}-{4,5}/gi
const end = /-{4,5} ?END [A-Z0-9 ]{0,40}(?:PRIVATE KEY|SECRET KEY|Static key)[A-Z0-9 ]{0,40}-{4,5}/gi

/**
 * Private keys in armour (PEM, OpenSSH, PGP, SSH2, OpenVPN), from their first to their last line, however the lines between
 * are indented, quoted or escaped. One without an end reaches as far as its lines look like base64, one without a beginning
 * from there.
 */
export function findKeyBlocks(text: string): readonly Span[] {
  if (!/-BEGIN |- BEGIN |-END |- END /i.test(text)) return []
  const found: Span[] = []
  const ends = Array.from(text.matchAll(end), (match) => ({ start: match.index, end: match.index + match[0].length }))
  let next = 0
  let from = 0
  for (const { 0: head, index } of text.matchAll(begin)) {
    if (index < from) continue
    const body = index + head.length
    while ((ends[next]?.start ?? Number.POSITIVE_INFINITY) < body) found.push(openBefore(text, ends[next++], from))
    const last = ends[next]
    if (last !== undefined && last.start - body <= maxKey) {
      found.push({ start: index, end: last.end })
      next++
      from = last.end
    } else {
      from = openBehind(text, body)
      found.push({ start: index, end: from })
    }
  }
  for (; next < ends.length; next++) found.push(openBefore(text, ends[next], from))
  return found.concat(findPutty(text))
}

/** Returns the end of the base64 lines after a first line. */
function openBehind(text: string, body: number): number {
  const rest = text.slice(body, body + maxKey)
  const stop = rest.search(/[^A-Za-z0-9+/=\s\\"'#>|*,:.-]/)
  return body + (stop === -1 ? rest.length : stop)
}

/** A last line with the lines of base64 before it. */
function openBefore(text: string, last: Span | undefined, from: number): Span {
  if (last === undefined) return { start: 0, end: 0 }
  let start = last.start
  const floor = Math.max(from, last.start - maxKey)
  while (start > floor && /[A-Za-z0-9+/=\s\\"'#>|*,]/.test(text[start - 1] ?? '')) start--
  return { start, end: last.end }
}

/** The private part of a key of PuTTY: the lines of base64 that its header counts. */
function findPutty(text: string): readonly Span[] {
  const found: Span[] = []
  for (const { 0: head, index } of text.matchAll(/Private-(?:Lines: ?\d{1,4}|MAC: ?[0-9a-f]{20,})/g)) {
    const body = index + head.length
    if (head.startsWith('Private-MAC')) found.push({ start: index, end: body })
    else found.push({ start: index, end: openBehind(text, body) })
  }
  return found
}
