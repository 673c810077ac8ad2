import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  renameSync,
  type Stats,
  truncateSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorCodeOf, isResourceError, type ResourceError } from '../../core/errors.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import type { SqliteStore } from '../options.ts'
import { bugError, moveStoreAdvice, type StoreFault, storeError, storeLimits, valueError } from '../rules.ts'
import { sqliteResultCode, systemCodeOf } from './codes.ts'
import { type Database, openDatabase, transaction } from './database.ts'
import { createOperations, type SqliteOperations } from './operations.ts'
import { migrate } from './schema.ts'

/** Time-out for another process that writes, or that opens or repairs the file, in milliseconds. */
const busyTimeoutMs = 5000

/**
 * Number of attempts to open a file: two before it counts as damaged, because a short failure of the disk causes the same error of SQLite;
 * and one for the new file.
 */
export const maxOpenAttempts = 3

export interface OpenFile {
  readonly isInMemory: boolean
  readonly operations: SqliteOperations
  /** Whether this is still the file at its path. */
  isCurrent(): boolean
  /** Closes a damaged file, and renames it, unless another process has renamed it already. */
  putAside(): void
  close(): void
}

export type WarnOperator = (message: string) => void

/** Opens the file of a store, or a store in memory if it may be there, and the file cannot be written. */
export function openFile({ file, orMemory }: SqliteStore['sqlite'], warn: WarnOperator): OpenFile {
  try {
    return openOnDisk(file, warn)
  } catch (error) {
    if (!orMemory || !isUnwritable(error)) throw error
    const cause = systemCodeOf(error) ?? 'read-only'
    warn(
      `${file} cannot be written (${cause}), so the index is in memory and is lost when this process ends. Let this user write there, or ${moveStoreAdvice}`,
    )
    return openInMemory()
  }
}

/** Whether a file cannot be created or written where it should be, by an error of its opening. */
function isUnwritable(error: unknown): boolean {
  const code = systemCodeOf(error)
  return fileErrorReason(error) === 'read-only' || (code !== undefined && impossible.has(code))
}

/** Codes of the system for a path at which there can be no file. */
const impossible: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EEXIST', 'ELOOP', 'ENAMETOOLONG', 'EINVAL'])

function openInMemory(): OpenFile {
  const database = openDatabase(':memory:', busyTimeoutMs)
  database.exec('pragma trusted_schema = off; pragma temp_store = memory')
  migrate(database)
  const { page_size: pageBytes } = database.prepare('pragma page_size').get() ?? {}
  database.exec(`pragma max_page_count = ${Math.floor(storeLimits.memory / Number(pageBytes))}`)
  const close = () => tryTo(() => database.close())
  return { isInMemory: true, operations: prepare(database), isCurrent: () => true, close, putAside: close }
}

/**
 * Opens the file of a store. It creates a missing file. It renames a damaged file and begins a new one beside it.
 *
 * @throws ResourceError `invalid` for a file that is not a store; errors of SQLite and of the file system.
 */
function openOnDisk(file: string, warn: WarnOperator): OpenFile {
  makeWritableFolder(dirname(file))
  for (const name of [file, `${file}-wal`, `${file}-shm`, `${file}-guard`]) checkOwn(name)
  return alone(file, () => {
    make(file)
    for (let look = 1; ; look++) {
      try {
        return openSound(file, warn)
      } catch (error) {
        if (fileErrorReason(error) !== 'damaged' || look === maxOpenAttempts) throw error
        if (look < maxOpenAttempts - 1) continue
        putAside(file, warn)
        make(file)
      }
    }
  })
}

/** Creates a folder and those above it, and checks that it can be written to: SQLite would only report that it cannot open the file. */
function makeWritableFolder(folder: string): void {
  let existing = folder
  while (look(existing) === undefined && dirname(existing) !== existing) existing = dirname(existing)
  // On a read-only file system, `mkdir` would only report that a folder above is missing.
  accessSync(existing, constants.W_OK)
  makeFolder(folder, 0o700)
  accessSync(folder, constants.W_OK)
}

function openSound(file: string, warn: WarnOperator): OpenFile {
  // SQLite would take a file that is shorter than its header for a new one.
  const length = look(file)?.size ?? 0
  if (length > 0 && length < 100) throw storeError('damaged', 'no header')
  // SQLite removes its log when the last process closes the file.
  const wasClosed = (look(`${file}-wal`)?.size ?? 0) === 0
  const database = openDatabase(file, busyTimeoutMs)
  try {
    database.exec('pragma trusted_schema = off; pragma cell_size_check = on; pragma temp_store = memory')
    migrate(database)
    // In one transaction, because another process may write between two reads.
    transaction(database, () => checkTables(database, wasClosed), 'begin')
    database.exec('pragma journal_mode = wal')
    // 8 MiB (negative numbers are in KiB), allocated as needed.
    database.exec('pragma cache_size = -8192')
    // A power failure may lose the last writes, a crash of the process none.
    database.exec('pragma synchronous = normal; pragma journal_size_limit = 67108864')
    const operations = prepare(database)
    const identity = identify(file)
    const isCurrent = () => identify(file) === identity
    const close = () => tryTo(() => database.close())
    return {
      isInMemory: false,
      operations,
      isCurrent,
      close,
      putAside: () => {
        close()
        alone(file, () => {
          if (isCurrent()) putAside(file, warn)
        })
      },
    }
  } catch (error) {
    tryTo(() => database.close())
    throw error
  }
}

/**
 * Checks the pages of tables and indexes; unless the file was closed properly, also the entries of the term index, which may take seconds.
 */
function checkTables(database: Database, wasClosed: boolean): void {
  const tables = database
    .prepare(`select name from sqlite_schema where type = 'table' and (rootpage > 0 or not ?)`)
    .all(Number(wasClosed))
  for (const name of ['sqlite_schema', ...tables.map((table) => String(table.name))]) {
    const quoted = `"${name.replaceAll('"', '""')}"`
    const report = String(database.prepare(`pragma quick_check(${quoted})`).get()?.quick_check)
    if (report === 'ok') continue
    // A page that could not be read proves no damage.
    const code = Number(/error code=(\d+)/.exec(report)?.[1] ?? 11)
    throw (code & 0xff) === 11 ? storeError('damaged', 'a page') : storeError('gone', `SQLite ${code}`)
  }
}

function prepare(database: Database): SqliteOperations {
  try {
    return createOperations(database)
  } catch (error) {
    throw sqliteResultCode(error) === 1 ? storeError('damaged', 'a table is missing') : error
  }
}

/** Creates the file with mode 0600 from the start. An existing file is not opened. */
function make(file: string): void {
  try {
    closeSync(openSync(file, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600))
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error
  }
}

/** Throws if there is anything but a regular file, and removes the permissions of other users. A missing file is allowed. */
function checkOwn(name: string): void {
  const stats = look(name)
  if (stats === undefined) return
  if (!stats.isFile()) {
    const what = stats.isSymbolicLink() ? 'a symbolic link' : 'not a file'
    throw valueError(`The path ${name} of the store is ${what}. Remove it, or name another file.`, 'configuration')
  }
  if ((stats.mode & 0o077) !== 0 && process.platform !== 'win32') chmodSync(name, 0o600)
}

function look(name: string): Stats | undefined {
  return lstatSync(name, { throwIfNoEntry: false })
}

function identify(file: string): string | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false, bigint: true })
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`
}

/** Renames the file before its write-ahead log, because SQLite ignores a log without its file. */
function putAside(file: string, warn: WarnOperator): void {
  const stamp = new Date().toISOString().replace(/[-:]/g, '')
  const movedFile = `${file}.damaged-${stamp}`
  for (const end of ['', '-wal', '-shm']) if (look(`${file}${end}`)) renameSync(`${file}${end}`, `${movedFile}${end}`)
  warn(`The file of the store was damaged. It was renamed to ${movedFile}, and a new one was created. Check the disk.`)
}

/** Runs a function while no other process runs one for this file (mutex). The lock is one on an empty database beside the file. */
function alone<Result>(file: string, act: () => Result): Result {
  const guard = `${file}-guard`
  make(guard)
  // The guard file is always empty; other content is removed.
  if ((look(guard)?.size ?? 0) > 0) truncateSync(guard)
  const database = openDatabase(guard, busyTimeoutMs)
  try {
    database.exec('begin exclusive')
    return act()
  } finally {
    tryTo(() => database.exec('rollback'))
    tryTo(() => database.close())
  }
}

function tryTo(act: () => void): void {
  try {
    act()
  } catch {
    // The caller can do nothing about it.
  }
}

/** Faults by primary result code (https://www.sqlite.org/rescode.html). */
const reasons: Readonly<Record<number, StoreFault>> = {
  3: 'read-only', // PERM
  5: 'busy', // BUSY
  6: 'busy', // LOCKED
  7: 'gone', // NOMEM
  8: 'read-only', // READONLY
  10: 'gone', // IOERR
  11: 'damaged', // CORRUPT
  13: 'full', // FULL
  14: 'gone', // CANTOPEN
  22: 'gone', // NOLFS
  26: 'damaged', // NOTADB
}

/** Extended codes that are more precise than their primary code. */
const extended: Readonly<Record<number, StoreFault>> = {
  // The shared memory cannot be enlarged (IOERR_SHMSIZE), or the file was moved (READONLY_DBMOVED).
  4874: 'full',
  1032: 'gone',
}

/** Faults by error code of the system (https://man7.org/linux/man-pages/man3/errno.3.html). */
const bySystem: Readonly<Record<string, StoreFault>> = {
  EACCES: 'read-only',
  EPERM: 'read-only',
  EROFS: 'read-only',
  ENOSPC: 'full',
  EDQUOT: 'full',
}

export function fileErrorReason(error: unknown): StoreFault | undefined {
  if (isResourceError(error)) return error.detail.fault === 'damaged' ? 'damaged' : undefined
  const code = sqliteResultCode(error)
  if (code !== undefined) return extended[code] ?? reasons[code & 0xff]
  const system = systemCodeOf(error)
  return system === undefined ? undefined : (bySystem[system] ?? 'gone')
}

/** Converts an error to a ResourceError without a path and without text of SQLite. */
export function toStoreError(error: unknown, isInMemory = false): ResourceError {
  if (isResourceError(error)) return error
  const code = sqliteResultCode(error)
  const name = code === undefined ? (systemCodeOf(error) ?? 'unknown') : `SQLite ${code}`
  const reason = fileErrorReason(error)
  return reason === undefined ? bugError(name) : storeError(reason, isInMemory && reason === 'full' ? 'memory' : name)
}
