/** Rows of cells; the first row is the head. Rows may differ in their number of cells: short rows are not filled up. */
export type Rows = readonly (readonly string[])[]

/**
 * The rows of comma-separated values (RFC 4180), one after the other, so that who reads them can rest in between. Lines end with CRLF, LF or
 * CR. It takes what people write too: spaces around cells stay, a quote within a cell without quotes is a character, and a quote that is never
 * closed takes the rest of the text. An empty line is no row.
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

/** Returns the delimiter: comma, tab, semicolon or bar, whichever occurs equally often in each of the first lines. */
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
export function numberOf(cell: string): number | undefined {
  const text = cell
    .trim()
    .replace(/^[$€£¥￥]\s*/, '')
    .replace(/\s*%$/, '')
  if (!/^[-+]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?(e[-+]?\d+)?$/i.test(text) || !/\d/.test(text)) return undefined
  return Number(text.replaceAll(',', ''))
}

/** The order of the rows (without the head) by one column. If most of its cells are numbers, they are compared as numbers; empty cells come last. */
export function sortedBy(rows: Rows, column: number, isDescending: boolean): readonly number[] {
  const cells = rows.map((row) => row[column] ?? '')
  const filled = cells.filter((cell) => cell.trim() !== '')
  const numbers = cells.map(numberOf)
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
