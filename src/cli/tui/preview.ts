import { defined } from '../../core/kit/object.ts'
import { cellsOf, marked, type Row, type Style, type StyledSpan, span, wrap } from './cells.ts'

/** A line of the preview. A line without a number continues the line before, or is no part of a text. */
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
  /** Facts that only a read tells: a type and a size that are not listed. */
  readonly facts: readonly string[]
  /** The text ends within a line, which goes on in the next part. */
  readonly isCut?: true
}

export interface Preview {
  readonly uri: string
  readonly state: 'loading' | 'ready' | 'failed'
  readonly shown: PreviewText
  /** The first row that is on the screen: a line, and which of its rows. */
  readonly at: PreviewPosition
  /** Words to mark in it. */
  readonly words: readonly string[]
  readonly failure?: string
  /** It has changed since it was read, and is read again: the number of that change. */
  readonly stale?: number
  readonly toEnd?: true
}

interface PreviewPosition {
  readonly line: number
  readonly row: number
}

const nothing: PreviewText = { lines: [], facts: [] }
/** Maximum number of lines that are kept of one resource. */
const maxLines = 200_000

export function previewOf(uri: string, words: readonly string[] = []): Preview {
  return { uri, state: 'loading', shown: nothing, at: { line: 0, row: 0 }, words }
}

/** Appends a part. */
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

/** A part in bytes does not know which lines it has. */
function renumbered(lines: readonly PreviewLine[], { number }: PreviewLine): readonly PreviewLine[] {
  if (number === undefined) return lines
  return lines.map((line, index) => (line.number === undefined ? line : { ...line, number: number + index + 1 }))
}

const wrapped = new WeakMap<PreviewLine, { readonly columns: number; readonly rows: readonly Row[] }>()

/** The rows of a line at a width, worked out when they are first looked at. */
function rowsOfLine(line: PreviewLine, columns: number): readonly Row[] {
  const known = wrapped.get(line)
  if (known?.columns === columns) return known.rows
  const rows = wrap(cellsOf(highlight(line.text, line.language)), columns)
  wrapped.set(line, { columns, rows })
  return rows
}

/** The same rows with words marked in them, also where one goes over the end of a row. */
export function markedRowsOfLine(line: PreviewLine, columns: number, words: readonly string[]): readonly Row[] {
  if (words.length === 0) return rowsOfLine(line, columns)
  return wrap(marked(cellsOf(highlight(line.text, line.language)), words), columns)
}

/** Moves by a number of rows, at most until the last rows fill the screen. */
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

/** The place from which on the last rows fill the screen. */
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

/** The columns that the numbers of lines take, with the blank behind them. */
export function gutterOf({ lines }: PreviewText): number {
  const last = lines.findLast(({ number }) => number !== undefined)?.number
  return last === undefined ? 0 : Math.max(3, String(last).length) + 1
}

/** How a line is coloured. `fenced`: a line of code in Markdown. */
export type Language = 'plain' | 'markdown' | 'fenced' | 'json' | 'hex' | 'note' | 'names'

/** A line with its colours: light, line by line, in linear time. It changes no character. */
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

/** The language of a resource, by its type or the end of its name. */
export function languageOf(uri: string, mimeType = ''): Language {
  const [path = ''] = uri.split(/[?#]/)
  if (/^text\/markdown/.test(mimeType) || /\.(?:md|mdx|markdown)$/i.test(path)) return 'markdown'
  if (/^application\/(?:[\w.-]+\+)?json/.test(mimeType) || /\.(?:json|jsonl|ndjson|geojson)$/i.test(path)) return 'json'
  return 'plain'
}

/** Which lines of Markdown are code between fences. */
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
