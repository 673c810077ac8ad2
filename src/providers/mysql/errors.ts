import { errorCodeOf, invalid, isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { connectionEndedError, tlsFaultMessage } from '../relational/open.ts'

/** Messages for faults that an operator must fix, by error number. */
const faults: Readonly<Record<number, string>> = {
  1044: 'The account may not use this database. Grant it SELECT there, or correct the URL.',
  1045: 'The database rejects the account or its password. Correct the URL.',
  1049: 'The server has no database of this name. Correct the URL.',
  1130: 'The database refuses connections from this host. Check the hosts of the account.',
  1251: 'The server requires an insecure method of authentication. Change the authentication plugin of the account.',
  1275: 'The server requires an insecure method of authentication. Change the authentication plugin of the account.',
  1698: 'The database rejects the account or its password. Correct the URL.',
  3159: 'The database accepts only encrypted connections. Turn "tls" on.',
  1820: 'The password of the account has expired. Set another one.',
  1862: 'The password of the account has expired. Set another one.',
  4151: 'The account is locked. Unlock it in the database: ALTER USER … ACCOUNT UNLOCK.',
  3118: 'The account is locked. Unlock it in the database: ALTER USER … ACCOUNT UNLOCK.',
}

const full = 'The database has no free connection. Raise max_connections, or lower "connections".'
const late = 'The statement exceeded its time-out, or was cancelled. Try again later, or raise "statementTimeout".'
const locked = 'Another session holds a lock that the statement needs. Try again, or raise "lockTimeout".'
const exhausted = 'The account has reached a limit, such as max_user_connections. Raise it, or lower "connections".'

const away: Readonly<Record<number, string>> = {
  1040: full,
  1203: exhausted,
  1226: exhausted,
  1129: 'The database has blocked this host after too many errors. Run FLUSH HOSTS there.',
  1053: 'The database is starting or stopping. Try again later.',
  1205: locked,
  1213: locked,
  1317: late,
  1907: 'The database is stopping. Try again later.',
  1969: late,
  3024: late,
  1028: late,
}

/** Error numbers after which the connection has ended: another connection may work. */
const ends = new Set([1053, 1927, 4031, 1152, 1158, 1159, 1160, 1161])

/** Error numbers for an object that was dropped, or became invisible, after it was looked up. */
const goneCodes = new Set([1049, 1051, 1054, 1109, 1142, 1143, 1146, 1044, 1356, 1412, 1615])

/** Error numbers for a value that is invalid for its type, or for the character set of a column. */
const unusable = new Set([1264, 1292, 1366, 1367, 1411, 1525, 3988, 1267, 1270, 1271, 1300, 1977])

/** Returns the error number of the server. Undefined: the error is not from the server. */
function serverErrorNumber(error: unknown): number | undefined {
  return error instanceof Error && 'errno' in error && typeof error.errno === 'number' && error.errno >= 1000
    ? error.errno
    : undefined
}

function mysqlErrorCode(error: unknown): string {
  const number = serverErrorNumber(error)
  if (number !== undefined) return String(number)
  const code = errorCodeOf(error) ?? ''
  return /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown'
}

/** Whether a value of the caller caused the failure, and not the statement. */
export function isUnusableValueError(error: unknown): boolean {
  return isResourceError(error) && unusable.has(Number(error.detail.code))
}

/** Codes of a view with a missing table, or whose definer is missing or may not read. */
const brokenViews = new Set(['1045', '1356', '1449'])

/** Whether an error is that of a view with a table, column or function that is missing, or that the account or the definer may not use. */
export function isBrokenViewError(error: unknown): boolean {
  return isResourceError(error) && brokenViews.has(String(error.detail.code))
}

export function brokenViewError(): ResourceError {
  return invalid(
    'The view cannot be read: a table, column or function that it names does not exist, or its definer may not use it. Correct the view.',
    'unreadable',
  )
}

/** Whether trying once more, over another connection, may help: the catalog changed, or the connection had ended. */
export function isTransientError(error: unknown): boolean {
  return isResourceError(error) && (error.detail.fault === 'gone' || error.detail.fault === 'ended')
}

export function refusedOpeningError(message: string, code = 'refused'): ResourceError {
  return unavailable(message, { fault: 'refused', code })
}

export function databaseTimeoutError(): ResourceError {
  return unavailable('The database does not answer. Try again later.', { code: 'late' })
}

/** Converts an error of connecting. The text of the server is left out, because it may name hosts and accounts. */
export function connectError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const [number, code] = [serverErrorNumber(error) ?? 0, mysqlErrorCode(error)]
  const fault = faults[number] ?? tlsFaultMessage(code, code === 'HANDSHAKE_NO_SSL_SUPPORT')
  if (fault !== undefined) return refusedOpeningError(fault, code)
  return unavailable(
    away[number] ?? `The database cannot be reached (${code}). Check that it runs, and the host and port in the URL.`,
    { code },
  )
}

/** Converts an error of the set-up statements of a new connection: no caller's statement caused it. */
export function openingError(error: unknown): unknown {
  if (!isResourceError(error) || error.kind === 'unavailable') return error
  return unavailable(
    `The database refuses the queries that set up a connection (${String(error.detail.code)}). Check the rights of the account.`,
    error.detail,
  )
}

/** Converts an error of a statement. The text of the server is left out. */
export function statementError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const [number, code] = [serverErrorNumber(error), mysqlErrorCode(error)]
  // Errors without a server error number concern the connection only.
  if (number === undefined || ends.has(number)) return connectionEndedError()
  if (goneCodes.has(number)) return new ResourceError('not-found', `not there (${code})`, { code, fault: 'gone' })
  const message = away[number]
  // An error in a row or a view does not make the source unavailable.
  if (message === undefined)
    return new ResourceError('internal', `The statement failed in the database (${code}).`, { code })
  return unavailable(message, { code })
}
