import type { Span } from '../core/kit/sorted.ts'
import {
  type CellRow,
  cellTexts,
  endOfLine,
  findSecretCells,
  findSecretColumns,
  findSecretInCell,
  isNameOfSecret,
  type SecretColumns,
  trimSpan,
} from './columns.ts'

/** Maximum length of a line of a table within a text, in characters. */
export const maxLineLength = 4096

/** Finds secrets in the tables of reStructuredText, AsciiDoc and HTML, and in those that terminals print. */
export function findMarkedTableSecrets(text: string): readonly Span[] {
  return [...findRuledTables(text), ...findAsciiDocTables(text), ...findListTables(text), ...findHtmlTables(text)]
}

/** A line between the rows of a table: `|---|:-:|`, `+====+====+`, `----+----`. */
export const isRowSeparator = (line: string) => /^[\s>#*]*[|+:]?[\s|+:=-]*$/.test(line) && /--|==|[|+]:?[-=]/.test(line)

/** Finds secrets in tables whose columns are under runs of equals signs or dashes: reStructuredText, PowerShell, sqlite3. */
function findRuledTables(text: string): readonly Span[] {
  const spans: Span[] = []
  let until = 0
  for (const { 0: rule, index } of text.matchAll(/^[ \t]*(?:={2,}|-{2,})(?:[ \t]+(?:={2,}|-{2,}))+[ \t]*\r?$/gm)) {
    if (index < until || index === 0) continue
    const runs = Array.from(rule.matchAll(/[=-]+/g), (run) => run.index)
    const cellsOf = (start: number): CellRow => {
      const end = endOfLine(text, start)
      return runs.map((run, at) =>
        trimSpan(text, Math.min(end, start + run), Math.min(end, start + (runs[at + 1] ?? end))),
      )
    }
    const names = cellsOf(text.lastIndexOf('\n', index - 2) + 1)
    const columns = findSecretColumns(cellTexts(text, names), 'marked')
    for (let from = endOfLine(text, index) + 1; from < text.length; from = endOfLine(text, from) + 1) {
      const line = text.slice(from, endOfLine(text, from))
      if (line.trim() === '' || line.length > maxLineLength) break
      if (!isRowSeparator(line)) spans.push(...findSecretCells(text, cellsOf(from), columns, 'marked'))
      until = from
    }
  }
  return spans
}

/** Tables of AsciiDoc. A cell may be on a line of its own, so the number of cells in a row is that of `cols`, else that of the first line. */
function findAsciiDocTables(text: string): readonly Span[] {
  if (!text.includes('|===')) return []
  const spans: Span[] = []
  const fences = Array.from(
    text.matchAll(/^\|={3,}[ \t]*\r?$/gm),
    ({ 0: fence, index }) => [index, index + fence.length] as const,
  )
  for (let at = 0; at < fences.length; at += 2) {
    const [[fence, start], end = text.length] = [fences[at] ?? [0, 0], fences[at + 1]?.[0]]
    const body = text.slice(start, end)
    const bars = Array.from(body.matchAll(/(?<!\\)\|/g), (bar) => bar.index)
    const cells = bars.map((bar, at) => trimSpan(text, start + bar + 1, start + (bars[at + 1] ?? body.length)))
    const firstLine = /^\s*(.*)/.exec(body)?.[1] ?? ''
    const count = columnsIn(text.slice(Math.max(0, fence - 400), fence)) ?? firstLine.split(/(?<!\\)\|/).length - 1
    if (count < 1) continue
    const columns = findSecretColumns(cellTexts(text, cells.slice(0, count)), 'marked')
    for (let at = count; at < cells.length; at += count)
      spans.push(...findSecretCells(text, cells.slice(at, at + count), columns, 'marked'))
  }
  return spans
}

/** The number of columns in the line of attributes above a table: `[cols="1,2"]`, `[cols="3*"]`. */
function columnsIn(above: string): number | undefined {
  const cols = /\[[^\]\n]*\bcols="?([^"\]\n]+)[^\]\n]*\][ \t]*\r?\n(?:\.[^\n]*\n)?$/.exec(above)?.[1]
  return cols?.split(/[,;]/).reduce((sum, column) => sum + Number(/^\s*(\d+)\*/.exec(column)?.[1] ?? 1), 0)
}

/** The tables of reStructuredText that are lists: `* - a`, then `  - b`. */
function findListTables(text: string): readonly Span[] {
  if (!text.includes('list-table::')) return []
  const spans: Span[] = []
  for (const { 0: block, index } of text.matchAll(/\.\. list-table::[^\n]*(?:\n(?:[ \t]+[^\n]*|(?=\r?\n)\r?))*/g)) {
    const rows: Span[][] = []
    for (const { 0: item, 1: star, 2: cell = '', index: at } of block.matchAll(/^[ \t]*(\*[ \t]+)?-[ \t]+([^\n]*)/gm)) {
      const end = index + at + item.length
      if (star !== undefined) rows.push([])
      rows.at(-1)?.push(trimSpan(text, end - cell.length, end))
    }
    const [names = [], ...others] = rows
    const columns = findSecretColumns(cellTexts(text, names), 'marked')
    for (const row of others) spans.push(...findSecretCells(text, row, columns, 'marked'))
  }
  return spans
}

interface HtmlRow {
  readonly cells: { readonly start: number; end: number; readonly isHead: boolean }[]
}

interface HtmlTable {
  columns?: SecretColumns | undefined
  isBegun: boolean
  row: HtmlRow
}

/** Cells of tables of HTML below or beside the name of a secret, and definitions of such a name in a list. */
function findHtmlTables(text: string): readonly Span[] {
  if (!/<(?:t[hd]|dt)\b/i.test(text)) return []
  const spans: Span[] = []
  const tables: HtmlTable[] = [{ isBegun: false, row: { cells: [] } }]
  let term = ''
  let open: { tag: string; start: number } | undefined
  for (const { 0: whole, 1: slash, 2: name = '', 3: attributes = '', index } of text.matchAll(
    /<(\/?)(table|tr|th|td|dt|dd)\b([^<>]{0,1024})>/gi,
  )) {
    const tag = name.toLowerCase()
    const table = tables.at(-1)
    if (table === undefined) break
    if (open?.tag === 'dt') term = text.slice(open.start, index)
    else if (open?.tag === 'dd' && isNameOfSecret(withoutTags(term)))
      spans.push(...findSecretInCell(text, innerText(text, open.start, index), false))
    else if (open !== undefined) {
      const last = table.row.cells.at(-1)
      if (last !== undefined) last.end = index
    }
    open = undefined
    if (tag === 'tr' || tag === 'table') spans.push(...finishedRow(text, table))
    if (tag === 'table' && slash === '') tables.push({ isBegun: false, row: { cells: [] } })
    else if (tag === 'table' && tables.length > 1) tables.pop()
    else if (slash === '' && tag !== 'tr') {
      const start = index + whole.length
      open = { tag, start }
      const width = Math.min(100, Number(/colspan\s*=\s*["']?(\d+)/i.exec(attributes)?.[1] ?? 1))
      if (tag.startsWith('t'))
        for (let count = 0; count < width; count++) table.row.cells.push({ start, end: start, isHead: tag === 'th' })
    }
  }
  for (const table of tables) spans.push(...finishedRow(text, table))
  return spans
}

const withoutTags = (html: string) =>
  html
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

function innerText(text: string, from: number, to: number): Span {
  const inner = text.slice(from, to)
  if (inner.length > maxLineLength) return trimSpan(text, from, to)
  const start = /^(?:\s|<[^<>]*>)*/.exec(inner)?.[0].length ?? 0
  const tail = /(?:\s|<[^<>]*>)*$/.exec(inner.slice(start))?.[0].length ?? 0
  return { start: from + start, end: Math.max(from + start, to - tail) }
}

function finishedRow(text: string, table: HtmlTable): readonly Span[] {
  const { cells } = table.row
  if (cells.length === 0) return []
  table.row = { cells: [] }
  const names = cells.map(({ start, end }) => withoutTags(text.slice(start, end)))
  const row = cells.map(({ start, end }) => innerText(text, start, end))
  const isNaming = cells.every(({ isHead }) => isHead) || (!table.isBegun && !isPair(names))
  table.isBegun = true
  const [first] = cells
  if (isNaming && !(first?.isHead === true && cells.at(-1)?.isHead === false)) {
    table.columns ??= findSecretColumns(names, 'marked')
    return []
  }
  const beside = first?.isHead === true && isNameOfSecret(names[0] ?? '') ? row.slice(1) : []
  return [
    ...findSecretCells(text, row, table.columns, 'marked'),
    ...beside.flatMap((cell) => findSecretInCell(text, cell, false)),
  ]
}

const isPair = (names: readonly string[]) =>
  names.length === 2 && isNameOfSecret(names[0] ?? '') && (/\d/.test(names[1] ?? '') || !isNameOfSecret(names[1] ?? ''))
