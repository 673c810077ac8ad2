import { formatCellText, formatNumber, type NumberKind } from '../number-formats.ts'
import { decodeSymbols } from '../symbols.ts'
import type { DocumentWriter } from '../writer.ts'

export interface CellStyle {
  readonly kind: NumberKind
  readonly font: string
}

const plainStyle: CellStyle = { kind: 'plain', font: '' }

/** Error values of a cell, by their codes ([MS-XLS], 2.5.10). */
const errors: Readonly<Record<number, string>> = {
  0: '#NULL!',
  7: '#DIV/0!',
  15: '#VALUE!',
  23: '#REF!',
  29: '#NAME?',
  36: '#NUM!',
  42: '#N/A',
  43: '#GETTING_DATA',
}

const maxColumns = 16_384

export function createCells(writer: Pick<DocumentWriter, 'plain' | 'row' | 'end'>) {
  const rows = new Map<number, Map<number, string>>()
  let last = -1
  const add = (row: number, column: number, text: string) => {
    if (text === '' || column >= maxColumns) return
    const cells = rows.get(row) ?? new Map<number, string>()
    rows.set(row, cells)
    cells.set(column, writer.plain(text.toWellFormed()))
  }
  return {
    text: (row: number, column: number, text: string, { kind, font }: CellStyle = plainStyle) =>
      add(row, column, formatCellText(decodeSymbols(text, font), kind)),
    number: (row: number, column: number, value: number, since1904: boolean, { kind }: CellStyle = plainStyle) =>
      add(row, column, formatNumber(String(value), kind, since1904)),
    boolean: (row: number, column: number, value: boolean) => add(row, column, value ? 'TRUE' : 'FALSE'),
    error: (row: number, column: number, code: number) => add(row, column, errors[code] ?? '#ERR!'),
    /** Writes the rows collected so far, and drops them. An empty row separates two tables. */
    write: () => {
      for (const [number, cells] of [...rows].sort(([a], [b]) => a - b)) {
        if (number > last + 1) writer.end()
        const width = Math.max(...cells.keys()) + 1
        writer.row(Array.from({ length: width }, (_, column) => cells.get(column) ?? ''))
        last = number
      }
      rows.clear()
    },
  }
}

export type SheetCells = ReturnType<typeof createCells>

/** Reads a number of 30 bits: an integer, or the upper part of a double. A flag says that the value is divided by 100. */
export function readPackedNumber(bytes: Buffer, at: number): number {
  const packed = bytes.readInt32LE(at)
  const double = Buffer.alloc(8)
  double.writeInt32LE(packed & ~3, 4)
  const value = (packed & 2) === 0 ? double.readDoubleLE(0) : packed >> 2
  return (packed & 1) === 0 ? value : value / 100
}
