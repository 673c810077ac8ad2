import { defined } from '../../core/kit/object.ts'
import { cellsOf, marked, type Row, type Style, type StyledSpan, span, wrap } from './cells.ts'

/** A line of the preview. A line without a number continues the line before it, or is not part of a text. */
export interface PreviewLine {
  readonly text: string
  readonly number?: number
  readonly language: Language
}

/** Result of a read, prepared for display. */
export interface PreviewText {
  readonly lines: readonly PreviewLine[]
  /** URI of the next part, if any. */
  readonly next?: string
  /** Type and size according to the read, which the listing may lack. */
  readonly facts: readonly string[]
  /** Whether the text ends within a line, which continues in the next part. */
  readonly isCut?: true
}

export interface Preview {
  readonly uri: string
  readonly state: 'loading' | 'ready' | 'failed'
  readonly shown: PreviewText
  /** The first visible row: the index of a line, and the index of the row in that line. */
  readonly at: PreviewPosition
  /** Words to mark in the text. */
  readonly words: readonly string[]
  readonly failure?: string
  /** Number of changes of the resource since it was read. It is then read again. */
  readonly stale?: number
  readonly toEnd?: true
}

interface PreviewPosition {
  readonly line: number
  readonly row: number
}

const nothing: PreviewText = { lines: [], facts: [] }
/** Maximum number of lines of one resource that are loaded, up to the end of a part. */
const maxLines = 200_000

export function previewOf(uri: string, words: readonly string[] = []): Preview {
  return { uri, state: 'loading', shown: nothing, at: { line: 0, row: 0 }, words }
}

/** Appends the next part of a text. */
export function appended(shown: PreviewText, more: PreviewText): PreviewText {
  const [first, ...rest] = more.lines
  const last = shown.lines.at(-1)
  const joined =
    shown.isCut && first !== undefined && last !== undefined
      ? [...shown.lines, { text: first.text, language: first.language }, ...renumbered(rest, last)]
      : [...shown.lines, ...more.lines]
  const { next, isCut } = more
  const isFull = joined.length > maxLines
  return {
    lines: joined,
    facts: shown.facts,
    ...(next === undefined || isFull ? {} : { next }),
    ...defined({ isCut }),
  }
}

/** Numbers the lines of a part after the line before them. Lines without a number stay without one. */
function renumbered(lines: readonly PreviewLine[], { number }: PreviewLine): readonly PreviewLine[] {
  if (number === undefined) return lines
  return lines.map((line, index) => (line.number === undefined ? line : { ...line, number: number + index + 1 }))
}

const wrapped = new WeakMap<PreviewLine, { readonly columns: number; readonly rows: readonly Row[] }>()

/** Returns the rows of a line at a width in columns. They are cached. */
function rowsOfLine(line: PreviewLine, columns: number): readonly Row[] {
  const known = wrapped.get(line)
  if (known?.columns === columns) return known.rows
  const rows = wrap(cellsOf(highlight(line.text, line.language)), columns)
  wrapped.set(line, { columns, rows })
  return rows
}

/** Returns the rows of a line with words marked, also words that continue in the next row. */
export function markedRowsOfLine(line: PreviewLine, columns: number, words: readonly string[]): readonly Row[] {
  if (words.length === 0) return rowsOfLine(line, columns)
  return wrap(marked(cellsOf(highlight(line.text, line.language)), words), columns)
}

/** Scrolls by a number of rows, at most until the last rows fill the screen. */
export function scrolled({ shown, at }: Preview, by: number, columns: number, height: number): PreviewPosition {
  let { line, row } = at
  for (let left = by; left > 0; left--) {
    const rows = rowsAt(shown, line, columns)
    if (row + 1 < rows) row++
    else if (line + 1 < shown.lines.length) [line, row] = [line + 1, 0]
    else break
  }
  for (let left = -by; left > 0; left--) {
    if (row > 0) row--
    else if (line > 0) [line, row] = [line - 1, rowsAt(shown, line - 1, columns) - 1]
    else break
  }
  const end = endOf(shown, columns, height)
  return line > end.line || (line === end.line && row > end.row) ? end : { line, row }
}

/** Returns the position at which the last rows fill the screen. */
export function endOf(shown: PreviewText, columns: number, height: number): PreviewPosition {
  let left = height
  for (let line = shown.lines.length - 1; line >= 0; line--) {
    const rows = rowsAt(shown, line, columns)
    if (rows >= left) return { line, row: rows - left }
    left -= rows
  }
  return { line: 0, row: 0 }
}

function rowsAt({ lines }: PreviewText, index: number, columns: number): number {
  const line = lines[index]
  return line === undefined ? 1 : rowsOfLine(line, columns).length
}

/** Returns the number of columns of the line numbers, with the blank after them. */
export function gutterOf({ lines }: PreviewText): number {
  const last = lines.findLast(({ number }) => number !== undefined)?.number
  return last === undefined ? 0 : Math.max(3, String(last).length) + 1
}

/** Determines the colours of a line. `fenced`: a line of code in Markdown. */
export type Language = 'plain' | 'markdown' | 'fenced' | 'json' | 'hex' | 'note' | 'names'

/** Colours a line, without regard to the lines around it, in linear time. It changes no character. */
function highlight(text: string, language: Language): readonly StyledSpan[] {
  switch (language) {
    case 'plain':
      return [span(text)]
    case 'markdown':
      return markdown(text)
    case 'fenced':
      return [span(text, 'code')]
    case 'json':
      return split(text, jsonParts, jsonStyle)
    case 'hex':
      return [span(text.slice(0, 10), 'dim'), span(text.slice(10))]
    case 'note':
      return [span(text, 'dim')]
    case 'names':
      return [span(text, text.endsWith('/') ? 'folder' : 'plain')]
  }
}

const jsonParts = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g

function jsonStyle(part: string): Style {
  if (part.endsWith(':')) return 'key'
  return part.startsWith('"') ? 'string' : 'number'
}

const inline = /`[^`]+`|\*\*[^*]+\*\*|\[[^\][]*\]\([^()\s]*\)/g

function markdown(text: string): readonly StyledSpan[] {
  if (/^ {0,3}#{1,6}(?:\s|$)/.test(text)) return [span(text, 'heading')]
  const lead = /^\s*(?:[-*+]|\d{1,9}[.)])\s|^\s*>[\s>]*|^\s*\|/.exec(text)?.[0] ?? ''
  return [
    ...(lead === '' ? [] : [span(lead, 'key')]),
    ...split(text.slice(lead.length), inline, (part) =>
      part.startsWith('`') ? 'code' : part.startsWith('*') ? 'bold' : 'string',
    ),
  ]
}

function split(text: string, parts: RegExp, styleOf: (part: string) => Style): readonly StyledSpan[] {
  const spans: StyledSpan[] = []
  let at = 0
  for (const match of text.matchAll(parts)) {
    if (match.index > at) spans.push(span(text.slice(at, match.index)))
    spans.push(span(match[0], styleOf(match[0])))
    at = match.index + match[0].length
  }
  if (at < text.length) spans.push(span(text.slice(at)))
  return spans
}

/** Returns the language of a resource, by its MIME type or the suffix of its name. */
export function languageOf(uri: string, mimeType = ''): Language {
  const [path = ''] = uri.split(/[?#]/)
  if (/^text\/markdown/.test(mimeType) || /\.(?:md|mdx|markdown)$/i.test(path)) return 'markdown'
  if (/^application\/(?:[\w.-]+\+)?json/.test(mimeType) || /\.(?:json|jsonl|ndjson|geojson)$/i.test(path)) return 'json'
  return 'plain'
}

/** Creates a function that gets the lines of Markdown in order, and returns whether a line is fenced code, or a fence. */
export function createFences(): (line: string) => boolean {
  let fence: string | undefined
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence === undefined) {
      fence = mark
      return mark !== undefined
    }
    if (mark?.startsWith(fence)) fence = undefined
    return true
  }
}
