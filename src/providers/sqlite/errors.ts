import { invalid, isResourceError, ResourceError, tooLarge, unavailable } from '../../core/errors.ts'
import { sqliteResultCode, systemCodeOf } from '../../store/sqlite/codes.ts'

/** The reason for which a file does not answer, as `detail.fault`. */
type Fault = 'refused' | 'stale' | 'away'

export function refusedError(message: string): ResourceError {
  return unavailable(message, { fault: 'refused' satisfies Fault })
}

/** Returns the error for a file that was replaced: another process opens the new one. */
export function replacedFileError(): ResourceError {
  return unavailable('The file of the database was replaced while it was read. Try again.', {
    fault: 'stale' satisfies Fault,
  })
}

export function unavailableError(message: string, code?: string): ResourceError {
  const text = code === undefined ? message : `${message} (${code})`
  return unavailable(text, { fault: 'away' satisfies Fault })
}

/** Returns why the file does not answer; undefined for an error without that detail. */
export function fileFault(error: unknown): Fault | undefined {
  return isResourceError(error) ? (error.detail.fault as Fault | undefined) : undefined
}

/** Returns the error for a view, or a generated column, that refers to a missing table or column, or whose expression fails. */
export function brokenViewError(): ResourceError {
  return invalid(
    'The view or generated column cannot be read: what it names does not exist, or its expression fails. Correct it. (SQLite 1)',
    'unreadable',
  )
}

/** Messages by primary result code (https://www.sqlite.org/rescode.html). */
const messages: Readonly<Record<number, string>> = {
  3: 'This user may not read the file of the database. Change its mode or its owner.', // PERM
  5: 'Another process holds a lock on the database for longer than the lock time-out. Try again later.', // BUSY
  6: 'Another process holds a lock on the database for longer than the lock time-out. Try again later.', // LOCKED
  8: 'The database was left in the middle of a change. Open it once with a program that may write to it.', // READONLY
  10: 'The file of the database cannot be read. Check the disk.', // IOERR
  11: 'The database is damaged. Check it with: PRAGMA integrity_check.', // CORRUPT
  14: 'The file of the database cannot be opened. Check the rights of this user to the file and its folder.', // CANTOPEN
  15: 'Another process changes the database too often to read it. Try again later.', // PROTOCOL
  17: 'The database changed too often while it was read. Try again later.', // SCHEMA
  22: 'The file of the database is too large for this system.', // NOLFS
  26: 'The file is not a database of SQLite, or it is encrypted.', // NOTADB
}

const exceededMessage = 'The database computes values here that exceed the memory limit. Ask for fewer columns or rows.'

export function memoryError(): ResourceError {
  return tooLarge(exceededMessage, { reason: 'too-much' })
}

/** Codes of a view or generated column that exceeds the memory or length limit: NOMEM and TOOBIG. */
const tooMuch = new Set([7, 18])

const reopened = new Set([10, 11, 14, 26])

export function isWorthReopening(error: unknown): boolean {
  const code = sqliteResultCode(error)
  return code !== undefined && reopened.has(code & 0xff)
}

/** Converts an error to a ResourceError without a path and without text of SQLite. */
export function translateSqliteError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const code = sqliteResultCode(error)
  if (code !== undefined) {
    const primary = code & 0xff
    if (tooMuch.has(primary)) return memoryError()
    const message = messages[primary]
    if (message !== undefined) return unavailableError(message, `SQLite ${code}`)
    if (primary === 1) return brokenViewError()
    // An error in a view or a generated column does not make the source unavailable.
    return new ResourceError('internal', `SQLite cannot do this request (SQLite ${code}).`)
  }
  const system = systemCodeOf(error)
  if (system === 'ENOENT' || system === 'ENOTDIR')
    return unavailableError('The file of the database does not exist. Correct the path.', system)
  if (system !== undefined)
    return unavailableError('The file of the database cannot be read. Check the rights of this user.', system)
  return new ResourceError('internal', 'SQLite cannot do this request.')
}
