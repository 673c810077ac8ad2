import { DatabaseSync } from '@photostructure/sqlite'

export type SqliteValue = string | number | Uint8Array | null

export type SqliteRow = Readonly<Record<string, SqliteValue>>

export interface Statement {
  get(...values: readonly SqliteValue[]): SqliteRow | undefined
  all(...values: readonly SqliteValue[]): readonly SqliteRow[]
  run(...values: readonly SqliteValue[]): void
}

/**
 * Opens a database, with the part of SQLite that the store uses. `node:sqlite` has the same interface.
 *
 * @param busyTimeoutMs Time-out for the lock of another process that writes, in milliseconds.
 */
export function openDatabase(file: string, busyTimeoutMs: number) {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs, defensive: true })
  return {
    exec: (sql: string): void => database.exec(sql),
    close: (): void => database.close(),
    /** A statement whose rows are lists of the values of its columns. */
    prepareList: (sql: string): ((...values: readonly SqliteValue[]) => readonly (readonly SqliteValue[])[]) => {
      const statement = database.prepare(sql)
      statement.setReturnArrays(true)
      return (...values) => statement.all(...values) as readonly (readonly SqliteValue[])[]
    },
    prepare: (sql: string): Statement => {
      const statement = database.prepare(sql)
      return {
        get: (...values) => statement.get(...values) as SqliteRow | undefined,
        all: (...values) => statement.all(...values) as readonly SqliteRow[],
        run: (...values) => void statement.run(...values),
      }
    },
  }
}

export type Database = ReturnType<typeof openDatabase>

export function parseJsonList(value: SqliteValue | undefined): readonly unknown[] {
  return JSON.parse(String(value)) as readonly unknown[]
}

/**
 * Runs a function in one transaction.
 *
 * @param begin By default the transaction takes the write lock at its beginning, so it never waits halfway. `begin`: for reads of one
 *   state of the file.
 */
export function transaction<Result>(
  database: Database,
  act: () => Result,
  begin: 'begin' | 'begin immediate' = 'begin immediate',
): Result {
  database.exec(begin)
  try {
    const result = act()
    database.exec('commit')
    return result
  } catch (error) {
    try {
      database.exec('rollback')
    } catch {
      // SQLite has already rolled back: the disk is full, or has failed.
    }
    throw error
  }
}
