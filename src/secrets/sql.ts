import type { Span } from '../core/kit/sorted.ts'
import { type CellRow, endOfLine, findSecretCells, findSecretColumns, trimSpan } from './columns.ts'

const insertion =
  /\b(?:insert\s+(?:(?:or|ignore|low_priority|delayed|overwrite)\s+){0,2}(?:\w+\s+)?into|replace\s+into)\s+(?:table\s+)?[\w."`[\]\\]{1,200}\s*\((?<columns>[^()]{1,8192})\)\s*(?:overriding\s+\w+\s+value\s*)?values\s*(?=\()/gi
const copying = /^COPY\s+[\w."]{1,200}\s*\((?<columns>[^()]{1,8192})\)\s+FROM\s+stdin[^\n]*\n/gim

/** Finds values of columns with the name of a secret: `INSERT INTO … (…, password) VALUES (…), (…)`, `COPY … FROM stdin`. */
export function findSqlSecrets(text: string): readonly Span[] {
  if (!/\b(?:into|copy)\s/i.test(text)) return []
  const spans: Span[] = []
  for (const { 0: head, index, groups = {} } of text.matchAll(insertion)) {
    const columns = findSecretColumns(splitColumnNames(groups.columns ?? ''), 'marked')
    if (columns === undefined || columns.secret.length === 0) continue
    for (let at = index + head.length; text[at] === '('; ) {
      const { cells, end } = tupleAt(text, at)
      for (const { at } of columns.secret) {
        const cell = cells[at]
        if (cell !== undefined) spans.push(...literalSpans(text, cell))
      }
      at = end + (/^\s*,\s*/.exec(text.slice(end, end + 80))?.[0].length ?? text.length)
    }
  }
  for (const { 0: head, index, groups = {} } of text.matchAll(copying)) {
    const columns = findSecretColumns(splitColumnNames(groups.columns ?? ''), 'marked')
    for (let at = index + head.length; at < text.length && !text.startsWith('\\.', at); at = endOfLine(text, at) + 1) {
      const row = cellsOfLine(text, at)
      spans.push(
        ...findSecretCells(text, row, columns, 'marked').filter(({ start, end }) => text.slice(start, end) !== '\\N'),
      )
    }
  }
  return spans
}

const splitColumnNames = (columns: string) => columns.split(',').map((name) => name.replace(/[\s"`'[\]\\]/g, ''))

function cellsOfLine(text: string, at: number): CellRow {
  const end = endOfLine(text, at)
  let start = at
  return text
    .slice(at, end)
    .split('\t')
    .map((cell) => {
      const span = trimSpan(text, start, start + cell.length)
      start += cell.length + 1
      return span
    })
}

/** The values between the brackets at an index, and the index after them. A doubled quote, or one after a backslash, ends no text. */
function tupleAt(text: string, from: number): { readonly cells: CellRow; readonly end: number } {
  const cells: Span[] = []
  let depth = 0
  let quote = ''
  let start = from + 1
  for (let at = from; at < text.length; at++) {
    const sign = text[at] ?? ''
    if (quote !== '') {
      if (sign === '\\') at++
      else if (sign === quote) quote = ''
    } else if (sign === "'" || sign === '"') quote = sign
    else if (sign === '(') depth++
    else if ((sign === ',' && depth === 1) || (sign === ')' && --depth === 0)) {
      cells.push(trimSpan(text, start, at))
      start = at + 1
      if (sign === ')') return { cells, end: at + 1 }
    }
  }
  return { cells, end: text.length }
}

/** The text in quotes of a value, as of `crypt('…')`, or a number. Other values are names and placeholders. */
function literalSpans(text: string, { start, end }: Span): readonly Span[] {
  const cell = text.slice(start, end)
  const match = /^[^'"]*(['"])((?:(?!\1)[^\\]|\\[\s\S]|\1\1)*)/.exec(cell)
  if (match?.[2] === undefined) return /^\d{3,}$/.test(cell) ? [{ start, end }] : []
  const value = match[2]
  const at = start + match[0].length - value.length
  return value === '' || value.startsWith('[redacted]') || /^(?:%s|\?|:\w+|\$\d+)$/.test(value)
    ? []
    : [{ start: at, end: at + value.length }]
}
