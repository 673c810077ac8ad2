import { DatabaseSync } from '@photostructure/sqlite'

/** A value that SQLite keeps. */
export type Value = string | number | Uint8Array | null

export type Found = Readonly<Record<string, Value>>

/** The little of SQLite that the store stands on: that of `node:sqlite`, so that it can take its place some day. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Statement {
  get(...values: readonly Value[]): Found | undefined
  all(...values: readonly Value[]): readonly Found[]
  run(...values: readonly Value[]): void
}

/** @param busyMs How long it waits for another process that writes. */
export function openDatabase(file: string, busyMs: number): Database {
  const database = new DatabaseSync(file, { timeout: busyMs, defensive: true })
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare: (sql) => {
      const statement = database.prepare(sql)
      return {
        get: (...values) => statement.get(...values) as Found | undefined,
        all: (...values) => statement.all(...values) as readonly Found[],
        run: (...values) => void statement.run(...values),
      }
    },
  }
}

/** A list that a statement answers as JSON, such as one of `json_group_array`. */
export function listIn(value: Value | undefined): readonly unknown[] {
  return JSON.parse(String(value)) as readonly unknown[]
}

/** Does something in one transaction, whole or not at all. It takes the lock for writing at once, so it never waits halfway. */
export function transaction<Result>(database: Database, act: () => Result): Result {
  database.exec('begin immediate')
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

/** Codes by message for errors of a statement with several rows: the library gives them no code. */
const codes: Readonly<Record<string, number>> = {
  'access permission denied': 3,
  'database is locked': 5,
  'database table is locked': 6,
  'out of memory': 7,
  'attempt to write a readonly database': 8,
  'disk I/O error': 10,
  'database disk image is malformed': 11,
  'database or disk is full': 13,
  'unable to open database file': 14,
  'string or blob too big': 18,
  'file is not a database': 26,
}

/** The result code of SQLite that an error stands for, with its extension. `undefined`: it is not one of SQLite's. */
export function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, errcode, sqliteExtendedCode } = error as Error & Readonly<Record<string, unknown>>
  if (typeof sqliteExtendedCode === 'number' && sqliteExtendedCode !== 0) return sqliteExtendedCode
  if (typeof errcode === 'number') return errcode
  // A number that no row has: it is not what was written.
  if (code === 'ERR_OUT_OF_RANGE') return 11
  return code === 'ERR_SQLITE_ERROR' ? (codes[error.message] ?? 1) : undefined
}
