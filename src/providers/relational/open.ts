import { invalid, isResourceError, type ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import type { Log } from '../../core/log.ts'
import type { Provider } from '../../core/provider.ts'
import { type RelationalOptions, relational } from './index.ts'
import type { Pool } from './pool.ts'

interface Opening<C> extends Omit<RelationalOptions, 'rows' | 'watch' | 'reconcile'> {
  readonly pool: Pool<C>
  /** Whether an operator must correct something: a retry does not help. Default: errors with the reason `refused`. */
  readonly isFault?: (error: ResourceError) => boolean
  /** Returns the text that reports a fault. Default: its message. */
  readonly explain?: (error: ResourceError) => string
  readonly options: Partial<Pick<RelationalOptions, 'rows' | 'watch' | 'reconcile'>> & { readonly log?: Log }
}

/**
 * Opens a provider over a source, after a first connection attempt. A database that does not answer now is not an error: each use
 * tries again.
 *
 * @throws ResourceError `invalid` for a fault that the operator must correct.
 */
export async function openRelational<C>(opening: Opening<C>): Promise<Provider> {
  const { source, pool, explain = ({ message }) => message, options } = opening
  const { isFault = ({ detail }) => detail.reason === 'refused' } = opening
  try {
    await pool.use(new AbortController().signal, async () => {})
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (isFault(error)) {
      await source.close()
      throw invalid(explain(error), 'database')
    }
    options.log?.('warn', 'the database does not answer: it is asked again when somebody asks', {
      reason: error.message,
    })
  }
  const { rows, watch, reconcile } = options
  return relational({ source, ...defined({ rows, watch, reconcile }) })
}

/** Options of every source over a database. The connections to a file are processes that read it. */
export interface DatabaseOptions {
  /** Time-out of one statement, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number
  /** Time-out of one statement that waits for a lock, in milliseconds. Default 2000. */
  readonly lockTimeoutMs?: number
  /** Time-out of waiting for a free connection, in milliseconds. Default 5000. */
  readonly waitTimeoutMs?: number
  /** Idle time after which a connection is closed, in milliseconds. Default 60,000. */
  readonly idleTimeoutMs?: number
  /** Whether changes are reported. Default `true`. */
  readonly watch?: boolean
  /** Interval at which the database is compared without a hint of a change, in milliseconds. Default 30,000. */
  readonly reconcile?: number
  readonly log?: Log
}

/** Options of every source over a database server, besides its address. */
export interface ServerOptions extends DatabaseOptions {
  /** The served schemas. If it is a single one, paths do not contain its name. Default: all but those of the system. */
  readonly schemas?: readonly string[]
  /** Encryption of the connection. Default: `verify`, but `off` on the loopback interface unless the URL requests it. */
  readonly tls?: TlsOptions
  /** Accepts a role that could do more than read. */
  readonly allowPrivileged?: boolean
  /** Maximum number of connections, besides one that listens. Default 4. */
  readonly connections?: number
  /** Time-out of connecting, in milliseconds. Default 5000. */
  readonly connectTimeoutMs?: number
}

export interface TlsOptions {
  /** `verify`: the certificate must be valid for this host. `off`: no encryption. */
  readonly mode: 'verify' | 'off'
  /** Certificates (PEM) to trust instead of the usual ones. */
  readonly ca?: string
  /** The name in the certificate of the server, if it differs from the host. */
  readonly serverName?: string
}

/** Options with their defaults. */
interface DatabaseSettings {
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly waitTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly log: Log
}

export function completeDatabaseOptions(options: DatabaseOptions): DatabaseSettings {
  return {
    statementTimeoutMs: options.statementTimeoutMs ?? 10_000,
    lockTimeoutMs: options.lockTimeoutMs ?? 2000,
    waitTimeoutMs: options.waitTimeoutMs ?? 5000,
    idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
    log: options.log ?? (() => {}),
  }
}

/** Options with their defaults. */
export interface ServerSettings extends DatabaseSettings {
  readonly schemas: readonly string[] | undefined
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly allowPrivileged: boolean
}

export function completeServerOptions(options: ServerOptions): ServerSettings {
  return {
    ...completeDatabaseOptions(options),
    schemas: options.schemas,
    connections: options.connections ?? 4,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    allowPrivileged: options.allowPrivileged ?? false,
  }
}
