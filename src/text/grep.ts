import { RE2JS } from 're2js'
import { openBody, type ReadAsCaller, type ResourceBody, severalContentsFault } from '../core/body.ts'
import { documentFormatOf } from '../core/documents.ts'
import { fallbackTo, invalid, isResourceError } from '../core/errors.ts'
import { eventLoopYield } from '../core/kit/event-loop-yield.ts'
import { defined } from '../core/kit/object.ts'

export interface LinePattern {
  /** A regular expression in the syntax of RE2; with `isLiteral`, a text that is found as it is. */
  readonly pattern: string
  readonly isLiteral?: boolean
  readonly ignoresCase?: boolean
}

export interface GrepOptions extends LinePattern {
  /** Maximum number of matching lines. */
  readonly limit: number
  /** Number of the first line to look at, from 1. */
  readonly from?: number
  readonly position?: GrepPosition
  /** Number of lines before and after each matching line. */
  readonly context?: number
  /** Time after the first line at which the search ends with what it has found, in milliseconds. */
  readonly maxMs?: number
  /** Called about once a second with the number of the last line that was looked at. */
  readonly report?: ((lastLine: number) => void) | undefined
  readonly signal?: AbortSignal
}

export interface GrepPosition {
  readonly uri: string
  /** Version of the text. Undefined if its source has no versions. */
  readonly version?: string
  /** The first line to read: its number from 1, and the byte offset of its beginning. */
  readonly line: number
  readonly at: number
  /** Number of the first line that may match. The lines from `line` on are the context before it. */
  readonly from: number
}

/** A matching line. `line` counts from 1; `start` and `end` are the first match, in UTF-16 units of `text`. */
export interface MatchingLine {
  readonly line: number
  readonly text: string
  readonly start: number
  readonly end: number
  readonly before?: readonly string[]
  readonly after?: readonly string[]
}

export interface GrepAnswer {
  /** URI of the text whose lines are numbered. For a document, this is the URI of its reading as text. */
  readonly uri: string
  readonly matches: readonly MatchingLine[]
  /** Number of the last line that was looked at. */
  readonly lastLine: number
  /** The position at which the search goes on. Absent at the end of the text. */
  readonly next?: GrepPosition
  /** Number of long lines of which only the beginning was searched. */
  readonly cutLines: number
}

const maxPatternLength = 1000
/** Maximum number of instructions of a compiled pattern: each character of a line may take a step of each of them. */
const maxProgram = 1500
/** Maximum number of steps for one line: a larger pattern looks at fewer characters of it. */
const maxSteps = 20_000_000
/** Maximum number of characters of a line in an answer. */
const maxShownLength = 400

/**
 * Compiles a pattern. Matching takes time in proportion to the length of the text (docs/decisions/0029-patterns.md).
 *
 * @throws ResourceError `invalid` for a pattern that is empty, too long, too complex, or not in the syntax of RE2.
 */
export function compilePattern({ pattern, isLiteral = false, ignoresCase = false }: LinePattern): RE2JS {
  if (pattern === '') throw invalid('"pattern" is empty.', 'argument')
  if (pattern.length > maxPatternLength)
    throw invalid(`"pattern" must have at most ${maxPatternLength} characters.`, 'argument')
  const compiled = compile(isLiteral ? RE2JS.quote(pattern) : pattern, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0)
  if (compiled.programSize() > maxProgram)
    throw invalid('"pattern" is too long or repeats too much. Shorten it, or use smaller numbers in {…}.', 'argument')
  return compiled
}

function compile(pattern: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(pattern, flags)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace('error parsing regexp: ', '') : ''
    throw invalid(
      `"pattern" is not valid: ${reason}. The syntax is that of RE2, without look-around and back-references. To find the text as it is, ask for it literally.`,
      'argument',
    )
  }
}

/** Time from one report to the next, in milliseconds. */
const reportMs = 1000

/**
 * Finds the lines of one resource that match a pattern. The resource is read in parts, with the access of `read`. The lines of a document
 * (PDF, Office, notebook) are those of its reading as text.
 *
 * @throws ResourceError as a read does, and `invalid` for a pattern that cannot be used, a directory, content that is not text, and a
 *   position in another version.
 */
export async function grep(readAsCaller: ReadAsCaller, uri: string, options: GrepOptions): Promise<GrepAnswer> {
  const matcher = compilePattern(options)
  const { uri: opened, body } = await openText(readAsCaller, uri, options)
  const { limit, position, context = 0, maxMs = Number.POSITIVE_INFINITY, report, signal } = options
  if (position !== undefined) requireSame(position, opened, body)
  const { line: first, at, from } = position ?? { line: 1, at: 0, from: options.from ?? 1 }
  const matches: (MatchingLine & { after: string[] })[] = []
  let before: TextLine[] = []
  let [line, lastLine, cutLines] = [first, first - 1, 0]
  let next: GrepPosition | undefined
  // The clock starts at the first line, because a source may take long to reach it.
  let endAt = Number.POSITIVE_INFINITY
  let reportAt = performance.now() + reportMs
  for await (const textLine of readTextLines(body, at, Math.floor(maxSteps / matcher.programSize()))) {
    const nearMatches = matches.filter((match) => match.line + context >= line)
    if (next === undefined && (matches.length >= limit || (line > first + context && performance.now() > endAt)))
      next = {
        ...defined({ version: body.version }),
        ...{ uri: opened, line: line - before.length, at: (before[0] ?? textLine).at, from: Math.max(line, from) },
      }
    if (next !== undefined && nearMatches.length === 0) break
    const { text } = textLine
    for (const match of nearMatches) match.after.push(truncateLine(text))
    if (next === undefined) {
      if (line === first) endAt = performance.now() + maxMs
      if (line >= from) {
        if (textLine.isCut) cutLines++
        if (matcher.test(text)) {
          const above = before.map((one) => truncateLine(one.text))
          matches.push({ line, ...shownMatch(matcher, text), before: above, after: [] })
        }
      }
      if (context > 0) before = [...before, textLine].slice(-context)
      lastLine = line
    }
    line++
    if (eventLoopYield.due()) {
      await eventLoopYield.take()
      signal?.throwIfAborted()
      if (performance.now() > reportAt) {
        report?.(lastLine)
        reportAt = performance.now() + reportMs
      }
    }
  }
  return {
    uri: opened,
    matches: matches.map(({ before: above = [], after, ...match }) => ({
      ...match,
      ...(above.length === 0 ? {} : { before: above }),
      ...(after.length === 0 ? {} : { after }),
    })),
    lastLine,
    cutLines,
    ...defined({ next }),
  }
}

function requireSame(position: GrepPosition, uri: string, body: ResourceBody): void {
  if (position.uri === uri && position.version === body.version) return
  body.release()
  throw invalid(
    'The cursor is for another resource, or the resource has changed since. Search again without the cursor.',
    'cursor',
  )
}

/** Opens a document (but not HTML) by its reading as text, if it has one, and any other resource as it is. */
async function openText(
  readAsCaller: ReadAsCaller,
  uri: string,
  { signal }: GrepOptions,
): Promise<{ uri: string; body: ResourceBody }> {
  const options = defined({ signal })
  const body = await openBody(readAsCaller, uri, options).catch((error: unknown) => {
    if (isResourceError(error, 'invalid') && error.detail.fault === severalContentsFault)
      throw invalid('The resource has several contents, as a directory has. Search in one of them.', 'argument')
    throw error
  })
  const format = uri.includes('?') ? undefined : documentFormatOf(uri, body.mimeType)
  if (format === undefined || format === 'html') return { uri, body }
  const reading = `${uri}?as=text`
  const text = await openBody(readAsCaller, reading, options).catch(fallbackTo(undefined, 'invalid'))
  if (text === undefined) return { uri, body }
  body.release()
  return { uri: reading, body: text }
}

interface TextLine {
  readonly text: string
  /** Byte offset of the beginning of the line. */
  readonly at: number
  /** Whether the line is longer than its text. */
  readonly isCut: boolean
}

/**
 * @param start Byte offset of the first line.
 * @param most The maximum number of characters of a line; the rest is left out.
 */
async function* readTextLines(body: ResourceBody, start: number, most: number): AsyncGenerator<TextLine> {
  let [at, end, rest, isCut] = [start, start, '', false]
  const lineOf = (): TextLine => {
    const text = rest.slice(at === 0 && rest.startsWith('\ufeff') ? 1 : 0, rest.endsWith('\r') ? -1 : undefined)
    return { text: text.slice(0, most), at, isCut: isCut || text.length > most }
  }
  for await (const piece of decodeBody(body, start)) {
    for (const [index, part] of piece.split('\n').entries()) {
      if (index > 0) {
        yield lineOf()
        ;[at, rest, isCut] = [++end, '', false]
      }
      end += Buffer.byteLength(part)
      isCut ||= rest.length + part.length > most + 1
      rest = (rest + part).slice(0, most + 1)
    }
  }
  if (rest !== '') yield lineOf()
}

async function* decodeBody(body: ResourceBody, start: number): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const decoded = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
    } catch {
      throw invalid('The content of the resource is not text, so it has no lines to search.', 'argument')
    }
  }
  for await (const bytes of body.bytes(start)) yield decoded(bytes)
  yield decoded()
}

/** The text around the first match of a line. */
function shownMatch(matcher: RE2JS, line: string): Pick<MatchingLine, 'text' | 'start' | 'end'> {
  const match = matcher.matcher(line)
  match.find()
  const [start, end] = [match.start(), match.end()]
  const first = line.length <= maxShownLength ? 0 : Math.max(0, start - maxShownLength / 4)
  const text = line.slice(first, first + maxShownLength).toWellFormed()
  return { text, start: start - first, end: Math.min(end - first, text.length) }
}

function truncateLine(line: string): string {
  return line.slice(0, maxShownLength).toWellFormed()
}
