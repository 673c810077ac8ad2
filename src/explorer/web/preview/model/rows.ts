import { isObject, stringItems } from '../../../../core/kit/object.ts'

/** Rows of cells; the first row is the head. Rows may differ in their number of cells: short rows are not filled up. */
export type Rows = readonly (readonly string[])[]

/**
 * Parses comma-separated values (RFC 4180) row by row. Lines end with CRLF, LF or CR. The parser is lenient: it keeps spaces around cells,
 * and a quote within an unquoted cell is a character. Empty lines are skipped.
 */
export function* parseCsv(text: string, delimiter = ','): Generator<readonly string[]> {
  const end = text.length
  let at = text.startsWith('\ufeff') ? 1 : 0
  let row: string[] = []
  while (at < end) {
    let cell: string
    if (text[at] === '"') {
      const quoted = quotedCell(text, at + 1)
      const stop = endOfCell(text, quoted.end, delimiter)
      cell = quoted.text + text.slice(quoted.end, stop)
      at = stop
    } else {
      const stop = endOfCell(text, at, delimiter)
      cell = text.slice(at, stop)
      at = stop
    }
    row.push(cell)
    if (text[at] === delimiter) {
      at++
      // A delimiter at the end of the text is followed by an empty cell.
      if (at === end) row.push('')
      else if (text[at] === '\n' || text[at] === '\r') {
        row.push('')
        at = behindLine(text, at)
        yield row
        row = []
      }
      continue
    }
    const isEmpty = row.length === 1 && row[0] === '' && text[at - 1] !== '"'
    at = behindLine(text, at)
    if (!isEmpty) yield row
    row = []
  }
  if (row.length > 0) yield row
}

function quotedCell(text: string, start: number): { readonly text: string; readonly end: number } {
  let cell = ''
  for (let at = start; ; ) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return { text: cell + text.slice(at), end: text.length }
    cell += text.slice(at, quote)
    if (text[quote + 1] !== '"') return { text: cell, end: quote + 1 }
    cell += '"'
    at = quote + 2
  }
}

function endOfCell(text: string, start: number, delimiter: string): number {
  let at = start
  for (; at < text.length; at++) {
    const character = text[at]
    if (character === delimiter || character === '\n' || character === '\r') break
  }
  return at
}

function behindLine(text: string, at: number): number {
  return text[at] === '\r' && text[at + 1] === '\n' ? at + 2 : at + 1
}

/** Returns the delimiter that splits most of the first rows into equally many cells: comma, tab, semicolon or bar. Comma if none does. */
export function delimiterOf(text: string, mediaType: string | undefined): string {
  if (mediaType === 'text/tab-separated-values') return '\t'
  const head = text.slice(0, 20_000)
  const isCut = head.length < text.length
  const scored = [',', '\t', ';', '|'].map((delimiter) => {
    const rows = [...parseCsv(head, delimiter)].slice(0, 21)
    const whole = isCut && rows.length > 1 ? rows.slice(0, -1) : rows
    const width = whole[0]?.length ?? 1
    const same = whole.filter((row) => row.length === width).length
    return { delimiter, score: width === 1 ? 0 : same / whole.length + Math.min(width, 50) / 1000 }
  })
  return scored.reduce((best, one) => (one.score > best.score + 0.001 ? one : best)).delimiter
}

/** Parses a number as people write it into tables; `undefined` if the text is not a number. */
export function parseCellNumber(cell: string): number | undefined {
  const text = cell
    .trim()
    .replace(/^[$€£¥￥]\s*/, '')
    .replace(/\s*%$/, '')
  if (!/^[-+]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?(e[-+]?\d+)?$/i.test(text) || !/\d/.test(text)) return undefined
  return Number(text.replaceAll(',', ''))
}

/** Returns the indexes of the rows (without the head) by one column. If 90 % of its cells are numbers, it sorts by number. Empty cells come last. */
export function rowOrder(rows: Rows, column: number, isDescending: boolean): readonly number[] {
  const cells = rows.map((row) => row[column] ?? '')
  const filled = cells.filter((cell) => cell.trim() !== '')
  const numbers = cells.map(parseCellNumber)
  const isNumeric = filled.length > 0 && numbers.filter((number) => number !== undefined).length >= filled.length * 0.9
  const collator = new Intl.Collator(undefined, { numeric: true })
  const compare = isNumeric
    ? (a: number, b: number) => (numbers[a] ?? Number.NEGATIVE_INFINITY) - (numbers[b] ?? Number.NEGATIVE_INFINITY)
    : rows.length > 20_000
      ? (a: number, b: number) =>
          (cells[a] ?? '') < (cells[b] ?? '') ? -1 : (cells[a] ?? '') > (cells[b] ?? '') ? 1 : 0
      : (a: number, b: number) => collator.compare(cells[a] ?? '', cells[b] ?? '')
  const isEmpty = (index: number) => (cells[index] ?? '').trim() === ''
  const order = Array.from(rows, (_, index) => index)
  const sorted = order
    .filter((index) => !isEmpty(index))
    .sort((a, b) => (isDescending ? compare(b, a) : compare(a, b)) || a - b)
  return [...sorted, ...order.filter(isEmpty)]
}

/** A reviver of `JSON.parse`: a number that JavaScript would write differently, such as one with too many digits, becomes its text. */
export function keepDigits(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined && source !== String(value) ? source : value
}

/** Returns the rows of a page of a database table, with the header first. Any other value gives no rows. */
export function databaseRows(value: unknown): Rows {
  if (!isObject(value)) return []
  const columns = (Array.isArray(value.columns) ? value.columns : []).flatMap((column: unknown) =>
    isObject(column) ? stringItems([column.name]) : [],
  )
  const rows = (Array.isArray(value.rows) ? value.rows : []).filter(isObject)
  return [columns, ...rows.map((row) => columns.map((name) => databaseCell(row[name])))]
}

function databaseCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** One row of a JSON document as a tree. */
export interface JsonRow {
  /** The JSON Pointer of the value (RFC 6901), which also identifies the row. */
  readonly pointer: string
  readonly depth: number
  /** Name of the value in its object, or its index in its array. Absent at the root. */
  readonly name?: string
  readonly isIndex: boolean
  readonly kind: 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'
  /** The value on one line; of an object or array, only the beginning. */
  readonly text: string
  /** Number of members. Absent for empty objects and arrays, and for all other values. */
  readonly count?: number
  readonly isOpen: boolean
  /** Position of the value among its siblings, from 1, and the number of siblings, including the value. */
  readonly position: number
  readonly siblings: number
}

/** Maximum number of rows of a tree. Further values are only in the source view. */
export const maxJsonRows = 200_000

function pointerStep(name: string): string {
  return `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

export function jsonRows(
  value: unknown,
  isOpen: (row: Pick<JsonRow, 'pointer' | 'depth' | 'siblings'>, count: number) => boolean,
): readonly JsonRow[] {
  const rows: JsonRow[] = []
  // An explicit stack, because a document may be nested deeper than the call stack allows.
  const pending: { value: unknown; row: Omit<JsonRow, 'kind' | 'text' | 'isOpen' | 'count'> }[] = [
    { value, row: { pointer: '', depth: 0, isIndex: false, position: 1, siblings: 1 } },
  ]
  for (let next = pending.pop(); next !== undefined && rows.length < maxJsonRows; next = pending.pop()) {
    const { value: own, row } = next
    const count = countOf(own)
    const open = count !== undefined && count > 0 && isOpen(row, count)
    rows.push({
      ...row,
      kind: jsonValueKind(own),
      text: summarizeValue(own),
      isOpen: open,
      ...(count === undefined || count === 0 ? {} : { count }),
    })
    if (!open) continue
    const names = Array.isArray(own) ? undefined : Object.keys(own as object)
    const length = Math.min(count, maxJsonRows)
    for (let index = length - 1; index >= 0; index--) {
      const name = names === undefined ? String(index) : (names[index] ?? '')
      pending.push({
        value: names === undefined ? (own as readonly unknown[])[index] : (own as Record<string, unknown>)[name],
        row: {
          pointer: row.pointer + pointerStep(name),
          depth: row.depth + 1,
          name,
          isIndex: names === undefined,
          position: index + 1,
          siblings: count,
        },
      })
    }
  }
  return rows
}

function jsonValueKind(value: unknown): JsonRow['kind'] {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  const type = typeof value
  return type === 'string' || type === 'number' || type === 'boolean' ? type : 'object'
}

function countOf(value: unknown): number | undefined {
  if (Array.isArray(value)) return value.length
  return typeof value === 'object' && value !== null ? Object.keys(value).length : undefined
}

const longest = 300

function summarizeValue(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : glimpseOf(value.slice(0, 8).map(briefly), '[', ']')
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).slice(0, 8)
    if (entries.length === 0) return '{}'
    const descriptions = entries.map(([name, item]) => `${name}: ${briefly(item)}`)
    return glimpseOf(descriptions, '{ ', ' }')
  }
  const isLong = typeof value === 'string' && value.length > longest
  return JSON.stringify(isLong ? `${value.slice(0, longest)}…` : value) ?? 'null'
}

function briefly(value: unknown): string {
  if (typeof value !== 'object' || value === null) return summarizeValue(value)
  if (Array.isArray(value)) return value.length === 0 ? '[]' : '[…]'
  return '{…}'
}

function glimpseOf(items: readonly string[], open: string, close: string): string {
  const parts: string[] = []
  let length = 0
  for (const item of items) {
    length += item.length
    parts.push(length > 80 ? '…' : item)
    if (length > 80) break
  }
  return `${open}${parts.join(', ')}${close}`
}

/** Whether a node is open by default: the root, and its children if neither they nor their members are many. */
export function isOpenAtFirst({ depth, siblings }: Pick<JsonRow, 'depth' | 'siblings'>, count: number): boolean {
  return depth === 0 || (depth === 1 && count <= 30 && siblings <= 30)
}

/** The values of JSON Lines. A line that is not JSON is kept as text; empty lines are skipped. */
export function parseLines(text: string): readonly unknown[] {
  return text.split(/\r?\n/).flatMap((line) => {
    if (line.trim() === '') return []
    try {
      return [JSON.parse(line) as unknown]
    } catch {
      return [line]
    }
  })
}

/**
 * Returns objects as a table: their names, and the values as texts. `undefined` if a value is no object, and for no names or more than 60.
 */
export function tabulateObjects(values: readonly unknown[]): readonly (readonly string[])[] | undefined {
  const objects = values.filter((value): value is Record<string, unknown> => jsonValueKind(value) === 'object')
  if (objects.length === 0 || objects.length < values.length) return undefined
  const uris = new Set<string>()
  for (const object of objects) {
    for (const name of Object.keys(object)) uris.add(name)
    if (uris.size > 60) return undefined
  }
  const names = [...uris]
  if (names.length === 0) return undefined
  return [names, ...objects.map((object) => names.map((name) => cellOf(object[name])))]
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
