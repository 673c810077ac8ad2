import { type ConnectionOptions, checkServerIdentity } from 'node:tls'
import pg from 'pg'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { isLoopback } from '../../core/uri.ts'
import type { RowOptions } from '../relational/index.ts'
import type { ServerOptions, TlsOptions } from '../relational/open.ts'

/** Address of the database server and the role. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  readonly ssl: false | ConnectionOptions
}

/**
 * Parses the URL of a database. `tls` decides about encryption: a URL can ask for more than that, never for less.
 *
 * @throws ResourceError `invalid`, in words that hold nothing of the URL.
 */
export function targetOf(url: string, tls: TlsOptions | undefined): Target {
  if (!/^postgres(?:ql)?:\/\//.test(url))
    throw invalid('The URL of the database is not of the form postgres://role:password@host:5432/database.', 'url')
  let client: pg.Client
  try {
    client = new pg.Client({ connectionString: url })
  } catch {
    throw invalid('The URL of the database cannot be read. Percent-encode what its password holds.', 'url')
  }
  const { host, port, user = '', database = '', password } = client
  if (user === '' || database === '')
    throw invalid('The URL of the database has to name a role and a database: postgres://role@host/database.', 'url')
  return {
    host,
    port,
    user,
    database,
    password: typeof password === 'string' ? password : '',
    ssl: sslOf(host, (client as unknown as { ssl: boolean | ConnectionOptions }).ssl, tls),
  }
}

function sslOf(host: string, asked: boolean | ConnectionOptions, tls: TlsOptions | undefined): Target['ssl'] {
  const own = typeof asked === 'object' ? asked : {}
  const isNear = host.startsWith('/') || isLoopback(host)
  const mode = tls?.mode ?? (isNear && asked === false ? 'off' : 'verify')
  if (mode === 'off') {
    if (asked === false) return false
    throw invalid('The URL of the database asks for TLS, and "tls" is "off": remove one of them.', 'tls')
  }
  if (own.rejectUnauthorized === false)
    throw invalid('The URL asks for a connection whose server is not verified: remove "sslmode" from it.', 'tls')
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
  /** A URL of the scheme `postgres` with role, password, host, port and database. It never appears in any output. */
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
