import { displayWidth, padDisplay } from './width.ts'

export interface Column {
  /** The side that the text is on. The other one is filled with spaces. */
  readonly side: 'left' | 'right'
  /** A wider cell does not move the rest of the column. */
  readonly most?: number
}

/**
 * Lays out rows in columns, some rows at a time: what was printed stays, so widths only grow. The last cell of a row is
 * never filled up, and empty ones at its end are left out.
 */
export function createColumns(columns: readonly Column[]): (rows: readonly (readonly string[])[]) => string {
  const widths = columns.map(() => 0)
  return (rows) => {
    for (const row of rows)
      for (const [i, { most = 60 }] of columns.entries())
        widths[i] = Math.max(widths[i] ?? 0, Math.min(most, displayWidth(row[i] ?? '')))
    return rows.map((row) => `${lineOf(row, columns, widths)}\n`).join('')
  }
}

function lineOf(row: readonly string[], columns: readonly Column[], widths: readonly number[]): string {
  const last = row.findLastIndex((cell) => cell !== '')
  return row
    .slice(0, last + 1)
    .map((cell, i) => {
      const side = columns[i]?.side ?? 'left'
      return i === last && side === 'left' ? cell : padDisplay(cell, widths[i] ?? 0, side)
    })
    .join('  ')
}
