import { lazyPattern } from '../core/kit/matching.ts'
import type { Span } from '../core/kit/sorted.ts'
import { redactedMark } from '../core/scrub.ts'
import { looksLikeRandomToken, type NameStrength, secretNameStrength } from './keys.ts'
import { isHarmless } from './references.ts'

/** The kind of a file, which decides what may follow a name: a plain value, an expression, or a sentence. */
export type FileStyle = 'config' | 'code' | 'prose'

interface Assignment {
  readonly from: number
  readonly kind: Exclude<NameStrength, undefined>
  readonly style: FileStyle
  /** Whether the name is the first thing in its line. */
  readonly first: boolean
  /** Indentation of the line of the name. */
  readonly indent: number
  /** Whether only a quoted text counts as a value: after a comparison, or in a call. */
  readonly quotedOnly: boolean
  /** Whether the name may be that of a count: `tokens: 8000`. */
  readonly counts?: boolean
  /** Whether it is a value of YAML that begins on a line below its name. */
  readonly isBelow?: boolean
}

/** Maximum length of a value, in characters. */
const maxValue = 64 * 1024
/** Maximum length of a list in brackets, in characters. */
const maxList = 2 * 1024
/** Number of characters that are examined to recognise the notation of a value. */
const maxProbe = 1024
/** Maximum length of an unterminated list in prose, in characters. */
const maxOpen = 256

/** Returns the secret parts of the value that follows a name. */
export function secretValues(text: string, assignment: Assignment): readonly Span[] {
  const { style } = assignment
  const at = skip(text, assignment)
  const from = at + (style === 'code' ? (wrapper.exec(text.slice(at, at + 80))?.[0].length ?? 0) : 0)
  const fallback = fallbackOf(text, from)
  if (fallback !== undefined) return fallback
  const opening = /^[a-z$@]{0,2}(\\?(?:"""|'''|["'`]))/i.exec(text.slice(from, from + 8))
  if (opening?.[1] !== undefined) return quotedValues(text, from + opening[0].length, opening[1], assignment)
  if (assignment.quotedOnly) return []
  const rest = text.slice(from, from + maxProbe)
  const [head, , tag] = hereDocument.exec(rest) ?? []
  if (head !== undefined) return untilTag(text, from + head.length, tag ?? '')
  if (/^[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?\r?(?:\n|$)/.test(rest)) return block(text, from, assignment)
  if (/^\r?\n/.test(rest)) return below(text, from, assignment)
  if (rest.startsWith(redactedMark)) return []
  const long = style === 'code' ? longText.exec(rest)?.groups : undefined
  if (long?.value !== undefined && (long.signs !== '' || looksLikePassword(long.value))) {
    const start = from + 2 + (long.signs?.length ?? 0)
    return [{ start, end: start + long.value.length }]
  }
  if (rest.startsWith('[')) return listed(text, from, assignment)
  return /^[{(]/.test(rest) ? [] : bareValue(text, from, assignment)
}

const withFallback =
  /^["'`]?(?:\$\{(?!(?:[a-z][a-z\d]*|ENV):[^-=+])[\w.-]{1,100}(?::[-=+]?|[-=+])){1,5}(?<value>[^{}"'`\r\n$?][^{}"'`\r\n]{0,400})\}/

/** The value that counts where a variable is not set: `${DB_PASS:hunter2}` of Spring, `${DB_PASS:-hunter2}` of shells. */
function fallbackOf(text: string, from: number): readonly Span[] | undefined {
  const match = withFallback.exec(text.slice(from, from + maxProbe))
  const value = match?.groups?.value
  if (match === null || value === undefined) return undefined
  const start = from + match[0].lastIndexOf(value)
  return isHarmless(value) ? [] : [{ start, end: start + value.length }]
}

/** Text of code around a text in quotes that is the value: `String::from("hunter2")`, `[]byte("hunter2")`. */
const wrapper =
  /^(?:new[ \t]+)?(?:(?:std::)?string|String|(?:String|SecretString|SecretBox|Secret|Cow|CString|Zeroizing|OsString)::(?:from|new)|SecretStr|Some|Buffer\.from|bytes|bytearray|str|\[\]byte)\(\s{0,20}(?=[a-z]?["'`])/

/** A text of Lua in brackets: `[[hunter2]]`, `[=[hunter2]=]`. */
const longText = /^\[(?<signs>={0,8})\[(?<value>[^\]\r\n"'`,\s]{4,200})\]\k<signs>\]/

/** Passes over spaces, tags and anchors of YAML, and the type that code may have between a name and its value. */
function skip(text: string, { from, style }: Assignment): number {
  const rest = text.slice(from, from + 160)
  const space = style === 'code' ? /^[ \t]*/ : /^[ \t]*(?:[!&][\w!:/.-]+(?:[ \t]+|(?=\r?\n))){0,2}/
  const spaces = space.exec(rest)?.[0].length ?? 0
  const type = style === 'code' ? /^[\w.<>[\]|&?,' ]{1,60}=\s*(?=[a-z]?["'`])/.exec(rest.slice(spaces))?.[0].length : 0
  const breaks = style === 'config' || type ? 0 : (/^\s+(?=["'`])/.exec(rest.slice(spaces))?.[0].length ?? 0)
  return from + spaces + (type ?? 0) + breaks
}

/** A text in quotes, and the texts that are joined to it. */
function quotedValues(text: string, start: number, quote: string, assignment: Assignment): readonly Span[] {
  const spans: Span[] = []
  let at = start
  for (let count = 0; count < 100; count++) {
    const end = endOfScalar(text, at, quote, assignment) ?? endOfQuoted(text, at, quote)
    spans.push({ start: at, end })
    const joint = /^\s*(?:[+.&\\]\s*)?(?=["'`])/.exec(text.slice(end + quote.length, end + quote.length + 80))?.[0]
    const next = end + quote.length + (joint?.length ?? 0)
    // Two adjacent quotes are one escaped quote: in YAML, SQL and CSV.
    const isDoubled = joint === '' && quote.length === 1
    if (joint === undefined || (joint.trim() === '' && !isDoubled) || !text.startsWith(quote, next)) break
    at = next + quote.length
  }
  const value = spans.map((span) => text.slice(span.start, span.end)).join('')
  const [line = ''] = value.split('\n', 1)
  return isSecretText(value, assignment) || (line.length < value.length && isSecretText(line, assignment)) ? spans : []
}

/**
 * Returns the index of the closing quote of a multi-line YAML scalar: its lines are empty, or indented further than its name. `undefined`
 * for any other value.
 */
function endOfScalar(text: string, start: number, quote: string, assignment: Assignment): number | undefined {
  const { style, first, indent } = assignment
  if (style === 'code' || quote === '`' || quote.length > 1 || (style === 'prose' && !first)) return undefined
  let isFirst = true
  for (const { 0: line, index } of linesFrom(text, start)) {
    if (!isFirst && line.trim() !== '' && indentOf(line) <= indent && (first || !/^[ \t]/.test(line))) return undefined
    for (let at = index; at < index + line.length; at++) {
      if (quote === '"' && text[at] === '\\') at++
      else if (text[at] === quote) {
        if (isFirst) return undefined
        if (text[at + 1] !== quote)
          return /^[ \t]*(?:[,}\]].*|#.*)?\r?$/.test(line.slice(at + 1 - index)) ? at : undefined
        at++
      }
    }
    isFirst = false
  }
  return undefined
}

function endOfQuoted(text: string, start: number, quote: string): number {
  const single = quote.length === 1
  const stop = Math.min(text.length, start + maxValue)
  for (let at = start; at < stop; at++) {
    if (text.startsWith(quote, at)) return at
    if (single && text[at] === '\\') at++
    else if (quote !== '`' && quote.length < 3 && text[at] === '\n') return at
  }
  return stop
}

function isSecretText(value: string, { kind, style, quotedOnly }: Assignment): boolean {
  const text = value.trim()
  if (isHarmless(text)) return false
  if (kind === 'weak' || quotedOnly) return looksLikePassword(text)
  if (style === 'config') return true
  // In code and prose, a value is not a secret if it is a sentence, shorter than four characters, or itself the name of a secret.
  if ((/\s/.test(text) && !looksLikeRandomToken(text)) || text.length < 4) return false
  return !/^[A-Za-z_ .:-]+$/.test(text) || secretNameStrength(text) === undefined
}

/** Whether a text itself looks like a password: it has digits, signs, or capitals inside a word. */
export function looksLikePassword(text: string): boolean {
  const head = text.slice(0, 1024)
  if (head.length < 4) return false
  return (
    /[\d!@#$%^&*+=]/.test(head) || (/[a-z]/.test(head) && /[A-Z]/.test(head.slice(1))) || looksLikeRandomToken(head)
  )
}

/** A block scalar of YAML: all lines that are indented further than the name. */
function block(text: string, from: number, { indent }: Assignment): readonly Span[] {
  const body = text.indexOf('\n', from) + 1
  if (body === 0) return []
  let end = body
  for (const { 0: line, index } of linesFrom(text, body)) {
    if (line.trim() !== '' && indentOf(line) <= indent) break
    end = index + line.length
  }
  const start = body + (/^\s*/.exec(text.slice(body, end))?.[0].length ?? 0)
  const value = text.slice(start, end).trimEnd()
  return value === '' || value === redactedMark ? [] : [{ start, end: start + value.length }]
}

const hereDocument = /^(?:\$\(\s*cat\s+)?<<<?[-~]?[ \t]?(?<quote>["']?)(?<tag>[A-Za-z_]\w{0,40})\k<quote>[^\n]{0,80}\n/

/** The lines of a here-document, up to the one with its tag. */
function untilTag(text: string, start: number, tag: string): readonly Span[] {
  const spans: Span[] = []
  for (const { 0: line, index } of linesFrom(text, start)) {
    const bare = line.trim()
    if (bare.replace(/;$/, '') === tag) break
    const at = index + indentOf(line)
    if (!isHarmless(bare)) spans.push({ start: at, end: at + bare.length })
  }
  return spans
}

/** A value on the lines below: items of a list, or a scalar that is indented further than the name. */
function below(text: string, from: number, assignment: Assignment): readonly Span[] {
  const { style } = assignment
  if (style === 'code' || (style === 'prose' && !assignment.first)) return []
  const hits: Span[] = []
  let isList = false
  let until = 0
  const body = text.indexOf('\n', from) + 1
  for (const { 0: line, index } of linesFrom(text, body)) {
    if (index < until || line.trim() === '' || line.trim().startsWith('#')) continue
    const indent = indentOf(line)
    const item = /^\s*-[ \t]+/.exec(line)?.[0]
    const at = index + (item?.length ?? indent)
    const rest = text.slice(at, index + line.length)
    if (indent < assignment.indent || (item === undefined && indent === assignment.indent)) break
    // A line with a name of its own ends the value.
    if (/^["']?[\w.$/-]+["']?\s*:(?:\s|$)/.test(rest) || /^[{[]/.test(rest)) break
    // Lists and sentences below a name are common in prose.
    if (style === 'prose' && (item !== undefined || /\S\s+\S/.test(rest))) break
    const own = item === undefined ? assignment.indent : indent
    const spans = secretValues(text, { ...assignment, from: at, first: true, indent: own, isBelow: true })
    hits.push(...spans)
    until = spans.at(-1)?.end ?? index
    isList ||= item !== undefined
    if (!isList) break
  }
  return hits
}

/** The items of a list in brackets, without lists in it. */
function listed(text: string, from: number, assignment: Assignment): readonly Span[] {
  const closing = closingAfter(text, from)
  const isClosed = closing - from < maxList
  if (!isClosed && assignment.style === 'code') return []
  const most = text.slice(from, isClosed ? closing : from + (assignment.style === 'prose' ? maxOpen : maxList))
  // The next name ends an unterminated value.
  const stop = most.search(/[\r\n][ \t]*[\w"']+[ \t]*[:=]/)
  const end = from + (stop === -1 ? most.length : stop)
  const spans: Span[] = []
  for (const match of text.slice(from + 1, end).matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|[^\s,:"'[\]{}]+/g)) {
    const inner = match[1] ?? match[2]
    const start = from + 1 + match.index + (inner === undefined ? 0 : 1)
    const value = inner ?? match[0]
    if (inner === undefined && assignment.style === 'code') continue
    if (isSecretText(value, assignment)) spans.push({ start, end: start + value.length })
  }
  return spans
}

let closings = { text: '', from: 0, at: -1 }

/** Returns the index of the next closing bracket. It is cached, so that a text with many opening brackets is searched once. */
function closingAfter(text: string, from: number): number {
  if (closings.text !== text || from < closings.from || from > closings.at) {
    const at = text.indexOf(']', from)
    closings = { text, from, at: at === -1 ? Number.POSITIVE_INFINITY : at }
  }
  return closings.at
}

const inTheirScripts = lazyPattern(String.raw`[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}\u30fc\u3001\u3002]`, 'gu')

/** Whether a value is words of Japanese or Chinese. */
function isSentence(value: string): boolean {
  const head = value.slice(0, 200)
  const inScript = head.match(inTheirScripts())?.length ?? 0
  return inScript >= 6 && inScript * 2 >= head.length && !/[!-~]{6}/.test(head)
}

function bareValue(text: string, from: number, assignment: Assignment): readonly Span[] {
  const { style, first, kind, counts } = assignment
  const near = style === 'config' && first ? endOfLine(text, from) : from + wordAt(text, from, style).length
  const end = endOfPlain(text, near, assignment)
  if (end > near && style === 'prose' && !looksLikePassword(text.slice(from, near))) return []
  const value = text
    .slice(from, end)
    .trimEnd()
    .replace(/\s*[,;.]$/, '')
  if (isHarmless(value)) return []
  if (isSentence(value) && !/=\s*$/.test(text.slice(Math.max(0, from - 8), from))) return []
  if (style === 'prose' && counts && /^\d{1,3}(?:[,_]?\d{3}){0,2}[kKM]?$/.test(value)) return []
  if (style === 'config' ? kind === 'weak' && !looksLikePassword(value) : !looksLikePassword(value)) return []
  if (style === 'code' && (!isToken(value) || /[.([]/.test(text[end] ?? ''))) return []
  return [{ start: from, end: from + value.length }]
}

/**
 * Returns the end of a multi-line plain YAML scalar: its lines are empty, or indented further than its name, up to a comment, a name or a
 * bracket.
 */
function endOfPlain(text: string, near: number, { style, first, indent, from, isBelow = false }: Assignment): number {
  const isOpen = style !== 'code' && first && (isBelow || text[from - 1] === ':')
  if (!isOpen || !/^[ \t]*\r?\n/.test(text.slice(near, near + 80))) return near
  let end = near
  for (const { 0: line, index } of linesFrom(text, text.indexOf('\n', near) + 1)) {
    if (line.trim() === '') continue
    if (indentOf(line) <= indent || /^\s*(?:[#<[\]{}()]|["']?[\w.$/-]+["']?\s*(?::(?:\s|$)|\s=\s))/.test(line)) break
    const comment = /[ \t]#/.exec(line)
    end = index + (comment === null ? line.trimEnd().length : line.slice(0, comment.index).trimEnd().length)
    if (comment !== null) break
  }
  return end
}

function wordAt(text: string, from: number, style: FileStyle): string {
  const word = style === 'code' ? /^[^\s"'`,;&|<>(){}[\]=:]{0,512}={0,2}/ : /^[^\s"'`,;&|<>(){}[\]]{0,512}/
  return word.exec(text.slice(from, from + 514))?.[0] ?? ''
}

/** Whether a word in code is more likely a token than a name: `a81f2b9c04`, not `base64` or `token1`. */
const isToken = (word: string) =>
  looksLikeRandomToken(word) || (/^[\w-]{8,}$/.test(word) && (word.match(/\d+/g)?.length ?? 0) >= 3)

/** The end of the line, or of the lines that a backslash joins; a comment behind white space is left out. */
function endOfLine(text: string, from: number): number {
  for (const { 0: line, index } of linesFrom(text, from)) {
    const bare = line.trimEnd()
    if (bare.endsWith('\\') && index + line.length < text.length) continue
    const comment = /[ \t](?:#|;[ \t]|\/\/[ \t])/.exec(line)
    return index + (comment === null ? bare.length : comment.index)
  }
  return text.length
}

/** Yields the lines from an index on that begin before another one, each with its index. */
export function* linesFrom(text: string, from: number, to = from + maxValue) {
  for (let at = from; at < Math.min(text.length, to); ) {
    const next = text.indexOf('\n', at)
    const end = next === -1 ? text.length : next
    yield { 0: text.slice(at, end), index: at }
    at = end + 1
  }
}

export function indentOf(line: string): number {
  return /^[ \t]*/.exec(line)?.[0].length ?? 0
}
