import pg from 'pg'
import { isResourceError, type ResourceError } from '../../core/errors.ts'
import { failure, fault, type Reason } from '../failure.ts'

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: single ones, and whole classes of them. */
const reasons: Readonly<Record<string, Reason>> = {
  '08': 'gone',
  '25006': 'read-only', // read_only_sql_transaction
  '28': 'gone', // it does not let us in
  '3D': 'gone', // there is no such database
  '3F': 'gone', // the schema was dropped: it is made again
  '40': 'busy', // deadlock_detected, serialization_failure
  '42501': 'read-only', // insufficient_privilege
  '42883': 'gone', // undefined_function
  '42P01': 'gone', // undefined_table
  '53': 'busy', // too_many_connections, out_of_memory
  '53100': 'full', // disk_full
  '55P03': 'busy', // lock_not_available
  '57': 'gone', // admin_shutdown, cannot_connect_now
  '57014': 'busy', // query_canceled, by its time-out
  '58': 'gone', // io_error
  XX001: 'damaged', // data_corrupted
  XX002: 'damaged', // index_corrupted
}

/** Those after which the tables are looked for again: somebody has removed them. */
const missing: ReadonlySet<string> = new Set(['3F000', '42P01', '42883'])

/** Converts an error to a ResourceError without text of the server and without its address. */
export function failureOf(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  if (error instanceof pg.DatabaseError) {
    const state = error.code ?? ''
    const reason = reasons[state] ?? reasons[state.slice(0, 2)]
    return reason === undefined ? fault(`SQLSTATE ${state}`) : failure(reason, `SQLSTATE ${state}`)
  }
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
  // Errors of its own have no code: it took too long, or the connection has ended.
  return failure('gone', code)
}

/** Whether the connection is as good as before: the server has answered, and goes on. */
export function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(?:08|57P|58|XX)/.test(error.code ?? '')
}

/** Whether the tables are gone. */
export function isMissing(error: unknown): boolean {
  return error instanceof pg.DatabaseError && missing.has(error.code ?? '')
}
