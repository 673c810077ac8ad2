import { isResourceError, type ResourceError } from '../../core/errors.ts'
import { failure, fault, type Reason } from '../failure.ts'
import { codeOf } from './database.ts'

/** https://www.sqlite.org/rescode.html: the primary ones. */
const reasons: Readonly<Record<number, Reason>> = {
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

/** Those where the extension says more. */
const extended: Readonly<Record<number, Reason>> = {
  // The shared memory cannot be enlarged (IOERR_SHMSIZE), or the file was moved (READONLY_DBMOVED).
  4874: 'full',
  1032: 'gone',
}

/** https://man7.org/linux/man-pages/man3/errno.3.html */
const bySystem: Readonly<Record<string, Reason>> = {
  EACCES: 'read-only',
  EPERM: 'read-only',
  EROFS: 'read-only',
  ENOSPC: 'full',
  EDQUOT: 'full',
}

/** Why the file does not do what it was asked to. */
export function reasonOf(error: unknown): Reason | undefined {
  if (isResourceError(error)) return error.detail.reason === 'damaged' ? 'damaged' : undefined
  const code = codeOf(error)
  if (code !== undefined) return extended[code] ?? reasons[code & 0xff]
  const system = systemCodeOf(error)
  return system === undefined ? undefined : (bySystem[system] ?? 'gone')
}

/** Converts an error to a ResourceError without a path and without text of SQLite. */
export function failureOf(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const code = codeOf(error)
  const name = code === undefined ? (systemCodeOf(error) ?? 'unknown') : `SQLite ${code}`
  const reason = reasonOf(error)
  return reason === undefined ? fault(name) : failure(reason, name)
}

function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
