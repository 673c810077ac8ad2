import { compileGlobs } from '../../core/glob.ts'
import type { Relation, RowAccess } from './model.ts'
import { segmentOf } from './names.ts'

/** The served rows, and their limits. */
export interface RowOptions {
  /** Globs over tables, as their paths have them: `customers`, `public/*`. By default all. */
  readonly tables?: readonly string[]
  /** Globs over columns, below the path of their table: `customers/email`, `public/customers/*_hash`. A denial wins. */
  readonly columns?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] }
  /** The most rows that one answer has. Default 1000. */
  readonly limit?: number
  /** The longest value, in bytes: of a longer one its beginning is answered. Default 16 KiB. */
  readonly maxValueBytes?: number
  /** About how many bytes of values one answer has. Default 1 MiB. */
  readonly maxBytes?: number
}

export interface RowRules {
  readonly limit: number
  readonly maxValueBytes: number
  readonly maxBytes: number
  /** Whether rows of a table are served, by its key. */
  hasRows(key: string): boolean
  /** Returns the row access that a table allows; `undefined` when its rows may not be read. */
  accessTo(relation: Relation, key: string): RowAccess | undefined
}

/** @param options `undefined`: no rows are served. */
export function createRowRules(options: RowOptions | undefined): RowRules {
  const { tables, columns = {}, limit = 1000, maxValueBytes = 16 * 1024, maxBytes = 1024 * 1024 } = options ?? {}
  const isTable = tables === undefined ? () => true : compileGlobs(tables)
  const isAllowed = columns.allow === undefined ? () => true : compileGlobs(columns.allow)
  const isDenied = columns.deny === undefined ? () => false : compileGlobs(columns.deny)
  const hasRows = (key: string) => options !== undefined && isTable(key.slice(0, -1))
  return {
    limit,
    maxValueBytes,
    maxBytes,
    hasRows,
    accessTo: ({ rows }, key) => {
      if (rows === undefined || !hasRows(key)) return undefined
      const isOpen = (column: string) => {
        const path = `${key}${segmentOf(column)}`
        return isAllowed(path) && !isDenied(path)
      }
      const readable = rows.readable.filter(isOpen)
      // A key tells of its columns.
      return { readable, key: rows.key.every((column) => readable.includes(column)) ? rows.key : [] }
    },
  }
}
