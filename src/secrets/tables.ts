import { patternOf } from '../core/kit/matching.ts'
import type { Span } from '../core/kit/sorted.ts'
import { type KeyKind, kindOfKey } from './keys.ts'
import { isNothing, isPlausible } from './values.ts'

/** Files that are tables. In other files, a table is searched only after a line that looks like column names. */
const tableFile = /\.(?:csv|tsv|tab|psv|xlsx|xlsm|ods)$/i

/** Maximum length of a header line, in characters. */
const maxHeader = 4096

/** Quick check for a header line that may hold the name of a secret. */
const secretName = /pass|pwd|secret|token|key|cred|auth|pin|cvv|cookie|session|jwt|[^\0-\x7f]/i

/** The name of a column. */
const columnName = patternOf('^[\\p{L}_][^(){}<>=:[\\]`]{0,63}$', 'u')

/** An access key id of AWS. Its secret is 40 characters of base64 close to it. */
const awsId = /(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])/g
const awsSecret = /(?<![A-Za-z0-9+/])(?![0-9a-f]{40})[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/g
/** Maximum distance of an AWS secret from its access key id, in characters. */
const maxPairDistance = 200

/** Whether a file is a table by its name, so that its first line names the columns of all others. */
export function isTableFile(path: string): boolean {
  return tableFile.test(path)
}

interface Column {
  readonly at: number
  readonly kind: Exclude<KeyKind, undefined>
  readonly counts: boolean
}

interface Header {
  readonly delimiter: string
  readonly cells: number
  readonly columns: readonly Column[]
}

/**
 * Returns the cells below columns with the name of a secret, in a table with commas, semicolons, tabs or bars between its cells
 * (CSV as in RFC 4180, tables of Markdown). Also returns secrets of AWS next to their ids, with or without a header line.
 *
 * @param head The first line of the file, if the text does not begin with it.
 */
export function findTableSecrets(text: string, path: string, head?: string): readonly Span[] {
  const isTable = isTableFile(path)
  const found: Span[] = [...findAwsSecrets(text)]
  if (!isTable && !/[\t|;,]/.test(text)) return found
  let header = isTable && head !== undefined ? headerOf(head, isTable) : undefined
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(at, end)
    const start = at
    at = end + 1
    const own = headerOf(line, isTable)
    if (own !== undefined) {
      header = own
      continue
    }
    if (header === undefined) continue
    const { cells, next } = recordAt(text, start, header.delimiter)
    if (cells.length === 1 ? !isTable || line.trim() !== '' : !isTable && cells.length !== header.cells) {
      if (!isTable) header = undefined
      continue
    }
    for (const column of header.columns) found.push(...secretCell(text, cells[column.at], column, isTable))
    at = Math.max(at, next)
  }
  return found
}

function findAwsSecrets(text: string): readonly Span[] {
  if (!text.includes('AKIA') && !text.includes('ASIA')) return []
  const found: Span[] = []
  for (const { 0: id, index } of text.matchAll(awsId)) {
    const from = Math.max(0, index - maxPairDistance)
    for (const match of text.slice(from, index + id.length + maxPairDistance).matchAll(awsSecret))
      found.push({ start: from + match.index, end: from + match.index + match[0].length })
  }
  return found
}

function secretCell(text: string, cell: Span | undefined, { kind, counts }: Column, isTable: boolean): readonly Span[] {
  if (cell === undefined) return []
  const value = text.slice(cell.start, cell.end)
  if (isNothing(value) || /^[:\s-]+$/.test(value) || (counts && /^[\d,._]+[kKM]?$/.test(value))) return []
  if ((kind === 'weak' || !isTable) && (!isPlausible(value) || /\s/.test(value))) return []
  return [cell]
}

/** Parses a header line of a table; `undefined` when no column has the name of a secret. */
function headerOf(line: string, isTable: boolean): Header | undefined {
  if (line.length > maxHeader || !secretName.test(line)) return undefined
  for (const delimiter of ['\t', '|', ';', ',']) {
    if (!line.includes(delimiter)) continue
    const { cells } = recordAt(line, 0, delimiter)
    const names = cells.map(({ start, end }) => line.slice(start, end).replace(/^[\s\ufeff]+/, ''))
    if (names.length < 2 || !names.every((name) => name === '' || columnName().test(name))) continue
    // A sentence is not a line of column names.
    if (!isTable && names.some((name) => name.split(' ').length > 4)) continue
    const columns = names.flatMap((name, at): Column[] => {
      const kind = kindOfKey(name)
      return kind === undefined || (kind === 'weak' && !isTable) ? [] : [{ at, kind, counts: /tokens?$/i.test(name) }]
    })
    if (columns.length > 0) return { delimiter, cells: names.length, columns }
  }
  return undefined
}

/** Maximum length of a quoted cell, in characters. */
const maxCell = 4096

/** Returns the cells of a record without their quotes and outer white space, and the start of the next record. */
function recordAt(
  text: string,
  from: number,
  delimiter: string,
): { readonly cells: readonly Span[]; readonly next: number } {
  const cells: Span[] = []
  for (let at = from; ; ) {
    while (text[at] === ' ') at++
    let start = at
    let end: number
    const close = text[at] === '"' ? closingQuote(text, at + 1) : -1
    if (close === -1) {
      while (at < text.length && text[at] !== delimiter && text[at] !== '\n') at++
      end = at
      while (end > start && /\s/.test(text[end - 1] ?? '')) end--
    } else {
      start++
      end = close
      at = close + 1
      while (at < text.length && text[at] !== delimiter && text[at] !== '\n') at++
    }
    cells.push({ start, end })
    if (text[at] !== delimiter) return { cells, next: at + 1 }
    at++
  }
}

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
