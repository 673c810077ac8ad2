import { type Cluster, clustersOf } from './clusters.ts'

/** Meaning of a piece of text, which determines its style. */
export type Style =
  | 'plain'
  | 'dim'
  | 'bold'
  | 'folder'
  | 'heading'
  | 'code'
  | 'key'
  | 'string'
  | 'number'
  | 'mark'
  | 'changed'
  | 'picked'
  | 'error'
  | 'bar'
  | 'title'

export interface Span {
  readonly text: string
  readonly style: Style
}

/** A cluster with its look. The cells of a row have as many columns as the screen, exactly. */
export interface Cell extends Cluster {
  readonly style: Style
  /** On the chosen line: `faint` where keys go elsewhere. */
  readonly selected?: 'firm' | 'faint'
}

export type Row = readonly Cell[]

export const span = (text: string, style: Style = 'plain'): Span => ({ text, style })

const blank: Cell = { text: ' ', width: 1, sure: true, style: 'plain' }
const more: Cell = { text: '…', width: 1, sure: false, style: 'dim' }

export function cellsOf(spans: readonly Span[]): Row {
  return spans.flatMap(({ text, style }) => clustersOf(text).map((cluster) => ({ ...cluster, style })))
}

export function columnsOf(cells: Row): number {
  return cells.reduce((sum, { width }) => sum + width, 0)
}

/**
 * Cells of exactly so many columns: filled up with blanks, or cut with `…` where they are more. A wide character that fits by half only is
 * left out. `keep`: which end stays.
 */
export function fitted(cells: Row, columns: number, keep: 'start' | 'end' = 'start'): Row {
  if (columns <= 0) return []
  const width = columnsOf(cells)
  if (width <= columns) return [...cells, ...blanks(columns - width)]
  const kept: Cell[] = []
  let left = columns - 1
  for (const cell of keep === 'start' ? cells : [...cells].reverse()) {
    if (cell.width > left) break
    kept.push(cell)
    left -= cell.width
  }
  return keep === 'start' ? [...kept, more, ...blanks(left)] : [...blanks(left), more, ...kept.reverse()]
}

export function blanks(count: number, style: Style = 'plain'): Row {
  return Array.from({ length: Math.max(0, count) }, () => (style === 'plain' ? blank : { ...blank, style }))
}

/** A line of spans, as wide as it is told. */
export function line(columns: number, ...spans: readonly Span[]): Row {
  return fitted(cellsOf(spans), columns)
}

/** Two parts at the ends of one line. The right one stays whole as long as there is room for it. */
export function sides(columns: number, left: readonly Span[], right: readonly Span[]): Row {
  const end = cellsOf(right)
  const room = columns - columnsOf(end)
  return room < 1 ? fitted(end, columns) : [...fitted(cellsOf(left), room), ...end]
}

export function selected(row: Row, how: 'firm' | 'faint'): Row {
  return row.map((cell) => ({ ...cell, selected: how }))
}

/**
 * Cuts a line into rows with a maximum number of columns. A row ends at a blank if its last half has one, else at any character.
 * The blank at a cut is not drawn. An empty line is one row, and a wide character is never cut in two.
 */
export function wrap(cells: Row, columns: number): readonly Row[] {
  const most = Math.max(2, columns)
  const rows: Row[] = []
  let row: Cell[] = []
  let width = 0
  for (const cell of cells) {
    if (width + cell.width > most) {
      const isBlank = cell.text === ' '
      const blankAt = isBlank ? -1 : row.findLastIndex(({ text }) => text === ' ')
      const cut = blankAt + 1 > row.length / 2 ? blankAt + 1 : row.length
      rows.push(row.slice(0, cut))
      row = row.slice(cut)
      width = columnsOf(row)
      if (isBlank) continue
    }
    row.push(cell)
    width += cell.width
  }
  return [...rows, row]
}

/** Returns the text of a row without styles. */
export function textOf(row: Row): string {
  return row.map(({ text }) => text).join('')
}
