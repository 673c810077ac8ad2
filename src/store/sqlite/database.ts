import { DatabaseSync } from '@photostructure/sqlite'
import { refused } from '../rules.ts'

/** A value that SQLite keeps. */
export type Value = string | number | Uint8Array | null

export type Found = Readonly<Record<string, Value>>

/** The part of SQLite that the store uses. It is the same in `node:sqlite`, which could replace the library some day. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  /** A statement whose rows are lists of the values of its columns, which are made faster than objects. */
  prepareList(sql: string): (...values: readonly Value[]) => readonly (readonly Value[])[]
  close(): void
}

export interface Statement {
  get(...values: readonly Value[]): Found | undefined
  all(...values: readonly Value[]): readonly Found[]
  run(...values: readonly Value[]): void
}

/** @param busyMs Time-out for the lock of another process that writes, in milliseconds. */
export function openDatabase(file: string, busyMs: number): Database {
  const database = new DatabaseSync(file, { timeout: busyMs, defensive: true })
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepareList: (sql) => {
      const statement = database.prepare(sql)
      statement.setReturnArrays(true)
      return (...values) => statement.all(...values) as readonly (readonly Value[])[]
    },
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

/** Parses a list that a statement returns as JSON, such as one of `json_group_array`. */
export function listIn(value: Value | undefined): readonly unknown[] {
  return JSON.parse(String(value)) as readonly unknown[]
}

/**
 * Runs a function in one transaction, completely or not at all. It takes the write lock at the beginning, so it never waits
 * halfway.
 */
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

/** Returns the result code of SQLite for an error, with its extension. `undefined`: it is not an error of SQLite. */
export function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, errcode, sqliteExtendedCode } = error as Error & Readonly<Record<string, unknown>>
  if (typeof sqliteExtendedCode === 'number' && sqliteExtendedCode !== 0) return sqliteExtendedCode
  if (typeof errcode === 'number') return errcode
  // The store writes no such number, so the row is damaged.
  if (code === 'ERR_OUT_OF_RANGE') return 11
  return code === 'ERR_SQLITE_ERROR' ? (codes[error.message] ?? 1) : undefined
}

/** Application id that marks a file of hikidashi: "hiki". */
const applicationId = 0x68696b69

/**
 * Migrations, each from the version before it. A released migration never changes: a new one is added.
 *
 * A key is compared by its UTF-8 bytes, since that is how SQLite keeps text. `sum` is a checksum of the value and `seal` of the
 * rest of the row: a read detects corruption on the disk.
 */
export const migrations: readonly string[] = [
  `create table collections (
     id integer primary key,
     name text not null unique,
     revision integer not null,
     removed integer not null,
     rows integer not null,
     bytes integer not null
   ) strict;
   create table rows (
     collection integer not null,
     key text not null,
     revision integer not null,
     created integer not null,
     modified integer not null,
     expires integer,
     bytes integer not null,
     sum integer not null,
     seal integer not null,
     terms text not null,
     value blob not null,
     primary key (collection, key)
   ) strict;
   create unique index rows_by_revision on rows (collection, revision);
   create index rows_by_expiry on rows (collection, expires) where expires is not null;
   create table terms (
     collection integer not null,
     term text not null,
     key text not null,
     primary key (collection, term, key)
   ) strict, without rowid;
   create table leases (
     name text primary key,
     holder text not null,
     expires integer not null
   ) strict, without rowid;`,
  // The terms of a part are tokens separated by spaces, and `ascii` leaves all non-ASCII characters unchanged, so the Unicode
  // version of SQLite does not matter. Ids are never reused, so a stored id always names the same text.
  `create table homes (
     id integer primary key,
     name text not null unique,
     revision integer not null,
     texts integer not null,
     parts integer not null,
     length integer not null,
     bytes integer not null
   ) strict;
   create table texts (
     id integer primary key autoincrement,
     home integer not null,
     key text not null,
     version text not null,
     edition integer not null,
     mount text not null,
     mime text,
     audience text not null,
     priority real,
     modified integer,
     parts integer not null,
     length integer not null,
     bytes integer not null,
     sum integer not null,
     value text not null,
     unique (home, key)
   ) strict;
   create index texts_by_mime on texts (home, mime, key) where mime is not null;
   create table parts (
     id integer primary key autoincrement,
     text integer not null,
     place integer not null,
     length integer not null,
     sum integer not null,
     value text not null
   ) strict;
   create index parts_by_text on parts (text, id);
   create table vectors (
     position integer primary key autoincrement,
     home integer not null,
     part integer not null unique,
     model text not null,
     sum integer not null,
     vector blob not null
   ) strict;
   create index vectors_by_model on vectors (home, model, position);
   create virtual table part_terms using fts5 (
     terms, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '~!._'"
   );
   create virtual table term_parts using fts5vocab (part_terms, row);`,
]

/**
 * Makes a new database ours, or migrates it to this version: completely or not at all.
 *
 * @throws ResourceError `invalid` if it belongs to another program, or is of a newer version.
 */
export function migrate(database: Database, steps: readonly string[] = migrations): void {
  const version = steps.length
  if (numberOf(database, 'application_id') === applicationId && numberOf(database, 'user_version') === version) return
  transaction(database, () => {
    const found = versionOf(database, version)
    for (const step of steps.slice(found)) database.exec(step)
    database.exec(`pragma application_id = ${applicationId}`)
    database.exec(`pragma user_version = ${version}`)
  })
}

function versionOf(database: Database, version: number): number {
  const owner = numberOf(database, 'application_id')
  const isEmpty = database.prepare('select count(*) as n from sqlite_schema').get()?.n === 0
  if (owner !== applicationId && !(owner === 0 && isEmpty))
    throw refused('The file of the store is a database of another program. Name another file.', 'foreign')
  const found = numberOf(database, 'user_version')
  if (found > version)
    throw refused(
      `The store was written by a newer hikidashi: its version is ${found}, and ${version} is known here. Update this one, or name another file.`,
      'newer',
    )
  return found
}

function numberOf(database: Database, pragma: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`pragma ${pragma}`).get()?.[pragma])
}

/** The code of an error of the operating system, such as `ENOENT`. */
export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
