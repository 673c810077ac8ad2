import { type ConnectionOptions, checkServerIdentity } from 'node:tls'
import pg from 'pg'
import { errorCodeOf, invalid, isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { isLoopback } from '../../core/uri.ts'
import type { RowOptions } from '../relational/index.ts'
import { type ServerOptions, type TlsOptions, tlsFaultMessage } from '../relational/open.ts'

export interface PostgresTarget {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  readonly ssl: false | ConnectionOptions
}

/**
 * Parses the URL of a database. `tls` decides about encryption: a URL may require encryption, but can never weaken it.
 *
 * @throws ResourceError `invalid`, whose message contains no part of the URL.
 */
export function parseDatabaseUrl(url: string, tls: TlsOptions | undefined): PostgresTarget {
  if (!/^postgres(?:ql)?:\/\//.test(url))
    throw invalid(
      'The URL of the database must have the form postgres://role:password@host:5432/database.',
      'configuration',
    )
  let client: pg.Client
  try {
    client = new pg.Client({ connectionString: url })
  } catch {
    throw invalid(
      'The URL of the database cannot be parsed. Percent-encode the special characters of its password.',
      'configuration',
    )
  }
  const { host, port, user = '', database = '', password } = client
  if (user === '' || database === '')
    throw invalid(
      'The URL of the database must have a role and a database: postgres://role@host/database.',
      'configuration',
    )
  return {
    host,
    port,
    user,
    database,
    password: typeof password === 'string' ? password : '',
    ssl: sslOf(host, (client as unknown as { ssl: boolean | ConnectionOptions }).ssl, tls),
  }
}

function sslOf(
  host: string,
  connectionOptions: boolean | ConnectionOptions,
  tls: TlsOptions | undefined,
): PostgresTarget['ssl'] {
  const own = typeof connectionOptions === 'object' ? connectionOptions : {}
  const isNear = host.startsWith('/') || isLoopback(host)
  const mode = tls?.mode ?? (isNear && connectionOptions === false ? 'off' : 'verify')
  if (mode === 'off') {
    if (connectionOptions === false) return false
    throw invalid('The URL of the database requires TLS, but "tls" is "off". Remove one of them.', 'configuration')
  }
  if (own.rejectUnauthorized === false)
    throw invalid(
      'The URL asks for a connection that does not verify the server. Remove "sslmode" from the URL.',
      'configuration',
    )
  const { cert, key, ca } = own
  const serverName = tls?.serverName
  return {
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(serverName === undefined
      ? {}
      : { checkServerIdentity: (_host, certificate) => checkServerIdentity(serverName, certificate) }),
    ...defined({ cert, key }),
    ...(tls?.ca !== undefined ? { ca: tls.ca } : ca === undefined ? {} : { ca }),
  }
}

export type { TlsOptions } from '../relational/open.ts'

export interface PostgresOptions extends ServerOptions {
  /** A URL of the scheme `postgres` with role, password, host, port and database. */
  readonly url: string
  /** The served rows. Default: none. */
  readonly rows?: PostgresRowOptions
}

export interface PostgresRowOptions extends RowOptions {
  /** Whether rows of views are served, too: reading them runs the functions that the views call. Default `false`. */
  readonly views?: boolean
  /** Name of a setting (`app.user`) that contains the id of the caller while rows are read, for row-level security. */
  readonly principalSetting?: string
}

/** Messages for faults that an operator must fix, by SQLSTATE code. */
const faults: Readonly<Record<string, string>> = {
  '28P01': 'The database rejects the role or its password. Correct the URL.',
  '28000':
    'The database refuses this role, perhaps from this host. Check that it may log in (LOGIN, pg_hba.conf), and the URL.',
  '3D000': 'The server has no database of this name. Correct the URL.',
  '42501': 'The role may not connect to this database. Grant it CONNECT.',
}

const away: Readonly<Record<string, string>> = {
  '53300': 'The database has no free connection. Raise max_connections, or lower "connections".',
  '57P03': 'The database is starting or stopping. Try again later.',
  '57P01': 'The database ended the connection. Try again.',
  '57P02': 'The database ended the connection. Try again.',
  '57P05': 'The database ended the connection. Try again.',
  '57014': 'The statement exceeded its time-out, or was cancelled. Try again later, or raise "statementTimeout".',
  '55P03': 'Another session holds a lock for longer than the lock time-out. Try again later, or raise "lockTimeout".',
  '25P03': 'The database ended a transaction that was idle for too long. Try again.',
}

/** SQLSTATE codes for an object that was dropped, or became invisible, after it was looked up. */
const goneCodes = new Set(['42P01', '42703', '42501', '3F000', '42704', '42883'])

/** SQLSTATE codes for a value that is invalid for its type. */
const unusable = new Set(['22P02', '22003', '22007', '22008', '22021', '22P05', '22023', '22P03', '22026', '22001'])

/** Whether a value of the caller caused the failure, and not the statement. */
export function isUnusableValueError(error: unknown): boolean {
  return isResourceError(error) && error.detail.sqlstate !== undefined && unusable.has(String(error.detail.sqlstate))
}

/** Whether an object in the catalog was dropped while it was described: a retry may help. */
export function isDroppedObjectError(error: unknown): boolean {
  return isResourceError(error) && (error.detail.sqlstate === 'XX000' || error.detail.fault === 'gone')
}

/** Whether a connection has ended, for example because the server was restarted: another one may work. */
export function isEndedError(error: unknown): boolean {
  return isResourceError(error) && error.detail.fault === 'ended'
}

/** Converts an error of connecting. The text of the server is left out, because it may name hosts and roles. */
export function connectError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const code = errorCodeOf(error) ?? 'unknown'
  const isPlain = error instanceof Error && /does not support SSL/.test(error.message)
  const fault = faults[code] ?? tlsFaultMessage(code, isPlain)
  if (fault !== undefined) return unavailable(fault, { fault: 'refused', sqlstate: code })
  const message =
    away[code] ?? `The database cannot be reached (${code}). Check that it runs, and the host and port in the URL.`
  return unavailable(message, { sqlstate: code })
}

/** Converts an error of a statement. The text of the server is left out. */
export function statementError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  const code = errorCodeOf(error) ?? 'unknown'
  if (goneCodes.has(code))
    return new ResourceError('not-found', `not there (${code})`, { sqlstate: code, fault: 'gone' })
  if (code === '55000')
    return invalid('A materialized view has no data yet. Run REFRESH MATERIALIZED VIEW there.', 'unreadable')
  const message = away[code] ?? `The statement failed in the database (${code}).`
  if (/^57P0[125]$/.test(code)) return unavailable(message, { sqlstate: code, fault: 'ended' })
  // An error in a row or a view does not make the source unavailable.
  const isOurs = /^(?:2[0-8]|3|4[2-4]|P0|XX|0A|38|39|54)/.test(code)
  return new ResourceError(isOurs ? 'internal' : 'unavailable', message, { sqlstate: code })
}
