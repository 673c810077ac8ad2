import type { DocumentWriter } from './writer.ts'

/** The open tables, each in a cell of the table before it. */
export function createTableStack(writer: DocumentWriter) {
  const tables: { row: string[]; cell: string[] }[] = []
  return {
    begin: () => {
      writer.end()
      tables.push({ row: [], cell: [] })
    },
    /** Adds text to the open cell. Returns whether a table is open. */
    add: (text: string): boolean => {
      tables.at(-1)?.cell.push(text.trim())
      return tables.length > 0
    },
    endCell: () => {
      const table = tables.at(-1)
      table?.row.push(table.cell.join(' '))
      if (table !== undefined) table.cell = []
    },
    endRow: () => {
      const table = tables.at(-1)
      if (table === undefined) return
      const outer = tables.at(-2)
      if (outer === undefined) writer.row(table.row)
      else outer.cell.push(table.row.join(' '))
      table.row = []
    },
    end: () => {
      tables.pop()
      writer.end()
    },
  }
}
