import type { TextOperations } from '../engine.ts'
import type { Database } from './database.ts'
import { createRows, type RowOperations } from './rows.ts'
import { createTexts } from './texts.ts'

/** All operations on a database. */
export interface SqliteOperations extends RowOperations, TextOperations {}

/** The operations, on a database of the right version. */
export function createOperations(database: Database): SqliteOperations {
  return { ...createRows(database), ...createTexts(database) }
}
