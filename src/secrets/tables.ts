import type { Span } from '../core/kit/sorted.ts'
import { isTableFile } from './assignments.ts'
import {
  type CellRow,
  cellTexts,
  endOfLine,
  findSecretCells,
  findSecretColumns,
  type SecretColumns,
  secretNamePattern,
  type TableCertainty,
  trimSpan,
} from './columns.ts'
import { findMarkedTableSecrets, isRowSeparator, maxLineLength } from './marked-tables.ts'

/**
 * Returns the cells below columns with the name of a secret, and those beside one in tables of settings: CSV as in RFC 4180 (with commas,
 * semicolons, tabs or bars), tables of Markdown, Org, reStructuredText, AsciiDoc and HTML, and those that psql and mysql print.
 *
 * @param head The beginning of the file, if the text does not begin with it.
 */
export function findTableSecrets(text: string, path: string, head?: string): readonly Span[] {
  if (isTableFile(path)) return findInTableFile(text, path, head)
  return [...findLineTables(text), ...findMarkedTableSecrets(text)]
}

interface Header {
  readonly delimiter: string
  readonly columns: SecretColumns
}

const spreadsheet = /\.(?:xlsx|xlsm|xltx|xltm|xlsb|xls|xlt|ods|ots|fods)$/i

/** A file that is a table. After an empty line, a title or the name of a sheet, another row may name columns. */
function findInTableFile(text: string, path: string, head: string | undefined): readonly Span[] {
  const spans: Span[] = []
  let header = head === undefined ? undefined : firstHeader(head)
  let mayName = header === undefined
  let isSheet = false
  for (let at = 0; at < text.length; ) {
    const { cells, next } = rowAt(text, at, header?.delimiter ?? delimiterAt(text, at))
    if (isTitle(text.slice(at, next), cells)) {
      isSheet = spreadsheet.test(path) && text.slice(at, next).trim() !== ''
      mayName = true
    } else if (mayName && (header === undefined || (isSheet && isWords(text, cells)))) {
      header = headerAt(text, at)
      mayName = isGrouping(header, cells) || isComment(text.slice(at, next))
    } else {
      spans.push(
        ...findSecretCells(text, cells, header?.columns, 'file'),
        ...cellsWithin(text, { start: at, end: next }, header),
      )
      if (mayName && header !== undefined)
        header = { ...header, columns: mergeColumns(header.columns, headerAt(text, at).columns) }
      mayName = false
    }
    at = next
  }
  return spans
}

/** The secrets in the lines of a cell that are rows themselves: an unclosed quote makes the following rows a part of its cell. */
function cellsWithin(text: string, { start, end }: Span, header: Header | undefined): readonly Span[] {
  const spans: Span[] = []
  if (header === undefined) return spans
  for (let at = start; at < end; at = endOfLine(text, at) + 1) {
    const line = text.slice(at, Math.min(end, endOfLine(text, at)))
    const { cells } = rowAt(line, 0, header.delimiter)
    if (cells.length !== header.columns.count) continue
    for (const span of findSecretCells(line, cells, header.columns, 'file'))
      spans.push({ start: at + span.start, end: at + span.end })
  }
  return spans
}

function firstHeader(head: string): Header | undefined {
  let header: Header | undefined
  for (let at = 0; at < head.length; ) {
    const { cells, next } = rowAt(head, at, delimiterAt(head, at))
    if (!isTitle(head.slice(at, next), cells)) {
      const own = headerAt(head, at)
      header = header === undefined ? own : { ...own, columns: mergeColumns(header.columns, own.columns) }
      if (!isGrouping(own, cells) && !isComment(head.slice(at, next))) break
    }
    at = next
  }
  return header
}

/** A row of names over several columns each, without the name of a secret: the row below names the columns. */
function isGrouping({ columns }: Header, cells: CellRow): boolean {
  return columns.secret.length === 0 && columns.pair === undefined && cells.some(({ start, end }) => end <= start)
}

const isComment = (line: string) => /^\ufeff?[ \t]*#/.test(line)

/**
 * Whether a line of a table is none of its rows: empty, a comment that names no secret, or a title. A single word is the name of the only
 * column.
 */
function isTitle(line: string, cells: CellRow): boolean {
  const bare = line.replace(/^\ufeff/, '').trim()
  if (isComment(bare) && cells.length > 1) return findSecretColumns(cellTexts(line, cells), 'file') === undefined
  return bare === '' || /^sep=.$|^#/.test(bare) || (cells.length === 1 && /[\s:]/.test(bare))
}

const isWords = (text: string, cells: CellRow) =>
  cells.every(({ start, end }) => !/[\d!@#$%^&*]/.test(text.slice(start, end)) && end - start <= 64)

const mergeColumns = (one: SecretColumns, other: SecretColumns): SecretColumns => ({
  ...one,
  secret: [...one.secret, ...other.secret],
  pair: one.pair ?? other.pair,
})

const delimiters = ['\t', '|', ';', ','] as const

function headerAt(text: string, at: number): Header {
  const delimiter = delimiterAt(text, at)
  const { cells } = rowAt(text, at, delimiter)
  const names = cellTexts(text, cells)
  return {
    delimiter,
    columns: findSecretColumns(names, 'file') ?? { secret: [], pair: undefined, count: names.length },
  }
}

/** The delimiter that cuts a line into the most cells. */
function delimiterAt(text: string, at: number): string {
  const counts = delimiters.map((one) => rowAt(text, at, one).cells.length)
  return delimiters[counts.indexOf(Math.max(...counts))] ?? ','
}

function rowAt(text: string, at: number, delimiter: string): { readonly cells: CellRow; readonly next: number } {
  if (delimiter !== '|') return recordAt(text, at, delimiter)
  const end = endOfLine(text, at)
  return { cells: pipeCells(text, at, end), next: end + 1 }
}

/** Maximum length of a quoted cell, in characters. */
const maxCell = 64 * 1024

/** Returns the cells of a record without their quotes and outer white space, and the start of the next record. */
function recordAt(text: string, from: number, delimiter: string): { readonly cells: CellRow; readonly next: number } {
  const cells: Span[] = []
  for (let at = from; ; ) {
    while (text[at] === ' ') at++
    let start = at
    let end: number
    const close = text[at] === '"' ? closingQuote(text, at + 1) : -1
    if (close === -1) {
      while (at < text.length && text[at] !== delimiter && !isBreak(text, at)) at++
      end = at
      while (end > start && /\s/.test(text[end - 1] ?? '')) end--
    } else {
      start++
      end = close
      at = close + 1
      while (at < text.length && text[at] !== delimiter && !isBreak(text, at)) at++
    }
    cells.push({ start, end })
    if (text[at] !== delimiter) return { cells, next: at + 1 }
    at++
  }
}

/** Whether a line ends at an index: old tables end their lines with a carriage return alone. */
const isBreak = (text: string, at: number) => text[at] === '\n' || (text[at] === '\r' && text[at + 1] !== '\n')

/** Returns the index of the quote that closes a cell; -1 if there is none. Two adjacent quotes are one escaped quote. */
function closingQuote(text: string, from: number): number {
  const stop = Math.min(text.length, from + maxCell)
  for (let at = from; at < stop; at++) {
    if (text[at] !== '"') continue
    if (text[at + 1] !== '"') return at
    at++
  }
  return -1
}

/** The cells of a line with bars between them; those at its ends may be missing. A heading of Confluence has two bars. */
function pipeCells(text: string, start: number, end: number): CellRow {
  const line = text.slice(start, end).trimEnd()
  let at = /^(?:[\s>#*]|(?:[-+]|\d{1,9}[.)])[ \t]+(?=\|))*/.exec(line)?.[0].length ?? 0
  const bar = line.startsWith('||', at) ? '||' : '|'
  if (line.startsWith(bar, at)) at += bar.length
  const cells: Span[] = []
  while (at < line.length) {
    let next = line.indexOf(bar, at)
    while (next !== -1 && line[next - 1] === '\\') next = line.indexOf(bar, next + 1)
    const to = next === -1 ? line.length : next
    cells.push(trimSpan(text, start + at, start + to))
    at = to + bar.length
  }
  return cells
}

/** Tables within a text, line by line. Only lines that may hold the name of a secret are examined. */
function findLineTables(text: string): readonly Span[] {
  const spans: Span[] = []
  const hasBars = text.includes('|')
  for (let at = 0; at < text.length; ) {
    secretNamePattern.lastIndex = at
    const index = secretNamePattern.exec(text)?.index
    if (index === undefined) break
    const start = text.lastIndexOf('\n', index) + 1
    const end = endOfLine(text, start)
    const line = text.slice(start, end)
    at = end + 1
    if (line.length > maxLineLength || !/[\t|;,]/.test(line)) continue
    const table = hasBars && line.includes('|') ? pipeTable(text, start, spans) : delimitedTable(text, start, spans)
    at = Math.max(at, table)
  }
  return spans
}

/** Adds the secrets of the table with bars that a line is in, and returns where the table ends. */
function pipeTable(text: string, at: number, spans: Span[]): number {
  let start = at
  const lineBefore = (from: number) => text.lastIndexOf('\n', from - 2) + 1
  const isLine = (line: string) => line.length <= maxLineLength && (line.includes('|') || isRowSeparator(line))
  while (start > 0 && isLine(text.slice(lineBefore(start), start - 1))) start = lineBefore(start)
  const lines: Span[] = []
  for (let from = start; from < text.length; ) {
    const end = endOfLine(text, from)
    if (!isLine(text.slice(from, end))) break
    lines.push({ start: from, end })
    from = end + 1
  }
  const ruled = lines.map(({ start, end }) => isRowSeparator(text.slice(start, end)))
  const first = Math.max(0, ruled.indexOf(false))
  const rule = ruled.indexOf(true, first)
  const isHeading = text.slice(lines[first]?.start, lines[first]?.end).trimStart().startsWith('||')
  const isMarked = isHeading || (rule !== -1 && rule - first <= maxHeadLines)
  const certainty: TableCertainty = isMarked ? 'marked' : 'guessed'
  const names = lines.slice(first, isMarked && rule !== -1 ? rule : first + 1)
  const cells = ({ start, end }: Span) => pipeCells(text, start, end)
  let columns: SecretColumns | undefined
  for (const line of names) {
    const own = findSecretColumns(cellTexts(text, cells(line)), certainty)
    columns = columns === undefined || own === undefined ? (own ?? columns) : mergeColumns(columns, own)
  }
  for (const [index, line] of lines.entries()) {
    if (index < first + names.length || ruled[index]) continue
    const row = cells(line)
    if (!isMarked && row.length !== columns?.count) break
    spans.push(...findSecretCells(text, row, columns, certainty))
  }
  return (lines.at(-1)?.end ?? at) + 1
}

/** The most lines that name the columns of one table. */
const maxHeadLines = 4

/** Adds the secrets below a line of names with tabs, semicolons or commas between them, and returns where the table ends. */
function delimitedTable(text: string, at: number, spans: Span[]): number {
  const end = endOfLine(text, at)
  const start = at + (/^\s*:header:\s*/.exec(text.slice(at, end))?.[0].length ?? 0)
  const isMarked =
    start > at || /(?:^|\n)[ \t>]*(?:`{3,}|~{3,}) ?[ct]sv[^\n]*\n$/.test(text.slice(Math.max(0, at - 80), at))
  const certainty: TableCertainty = isMarked ? 'marked' : 'guessed'
  for (const delimiter of ['\t', ';', ',']) {
    const { cells, next } = recordAt(text, start, delimiter)
    const columns = cells.length < 2 ? undefined : findSecretColumns(cellTexts(text, cells), certainty)
    if (columns === undefined || columns.secret.length === 0) continue
    let from = next
    if (start > at)
      while (/^\s*(?::[\w-]+:.*)?\r?\n/.test(text.slice(from, from + 200))) from = endOfLine(text, from) + 1
    while (from < text.length) {
      const row = recordAt(text, from, delimiter)
      if (row.cells.length !== columns.count) break
      spans.push(...findSecretCells(text, row.cells, columns, certainty))
      from = row.next
    }
    return from
  }
  return end + 1
}
