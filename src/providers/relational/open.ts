import { invalid, isResourceError, type ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Provider } from '../../core/provider.ts'
import { createSemaphore } from '../../wrap/slots.ts'
import { type RelationalOptions, relational } from './index.ts'
import type { SourceContext } from './model.ts'

interface RelationalOpenOptions extends Omit<RelationalOptions, 'rows' | 'watch' | 'reconcile'> {
  readonly pool: { use(signal: AbortSignal, work: () => Promise<void>): Promise<void> }
  /** Whether an operator must correct something: a retry does not help. Default: errors with the fault `refused`. */
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
export async function openRelational(opening: RelationalOpenOptions): Promise<Provider> {
  const { source, pool, explain = ({ message }) => message, options } = opening
  const { isFault = ({ detail }) => detail.fault === 'refused' } = opening
  try {
    await pool.use(new AbortController().signal, async () => {})
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (isFault(error)) {
      await source.close()
      throw invalid(explain(error), 'configuration')
    }
    options.log?.('warn', 'the database does not answer: the next request tries it again', {
      reason: error.message,
    })
  }
  const { rows, watch, reconcile } = options
  return relational({ source, ...defined({ rows, watch, reconcile }) })
}

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

export interface ServerOptions extends DatabaseOptions {
  /** The served schemas. If it is a single one, paths do not contain its name. Default: all but those of the system; of MySQL, the database of the URL. */
  readonly schemas?: readonly string[]
  /** Encryption of the connection. Default: `verify`, but `off` on the loopback interface unless the URL requests it. */
  readonly tls?: TlsOptions
  /** Whether a role that could do more than read is accepted. Default `false`. */
  readonly allowPrivileged?: boolean
  /** Maximum number of connections; with PostgreSQL another one listens for changes. Default 4. */
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

type DatabaseSettings = Required<Omit<DatabaseOptions, 'watch' | 'reconcile'>>

export function completeDatabaseOptions(options: DatabaseOptions): DatabaseSettings {
  const { statementTimeoutMs = 10_000, lockTimeoutMs = 2000, waitTimeoutMs = 5000 } = options
  const { idleTimeoutMs = 60_000, log = () => {} } = options
  return { statementTimeoutMs, lockTimeoutMs, waitTimeoutMs, idleTimeoutMs, log }
}

export interface ServerSettings
  extends DatabaseSettings,
    Required<Pick<ServerOptions, 'connections' | 'connectTimeoutMs' | 'allowPrivileged'>> {
  readonly schemas: readonly string[] | undefined
}

export function completeServerOptions(options: ServerOptions): ServerSettings {
  const { schemas, connections = 4, connectTimeoutMs = 5000, allowPrivileged = false } = options
  return { ...completeDatabaseOptions(options), schemas, connections, connectTimeoutMs, allowPrivileged }
}

interface PooledConnection {
  /** Closes the connection at once, even while a statement runs. */
  close(): void
  isUsable(): boolean
  /** Resets the connection between two uses. A connection that cannot be reset is closed. */
  reset?(): Promise<void>
}

type Pool<C extends PooledConnection> = ReturnType<typeof createConnectionPool<C>>

/**
 * Creates a bounded pool of connections with a time-out for waiting callers.
 *
 * @param open Opens a connection. Its error goes to the caller that waits for this connection.
 */
export function createConnectionPool<C extends PooledConnection>(
  open: (signal: AbortSignal) => Promise<C>,
  settings: Pick<ServerSettings, 'connections' | 'waitTimeoutMs' | 'idleTimeoutMs'>,
) {
  const { connections, waitTimeoutMs, idleTimeoutMs } = settings
  const free = new Map<C, NodeJS.Timeout>()
  const slots = createSemaphore(connections, Number.POSITIVE_INFINITY)
  const closing = new AbortController()
  const busy = () =>
    unavailable(`All ${connections} connections to the database are in use. Try again later, or raise "connections".`)

  const takeFree = (): C | undefined => {
    // Take the connection that was used last, so that the others become idle and close.
    const connection = [...free.keys()].at(-1)
    if (connection === undefined) return undefined
    clearTimeout(free.get(connection))
    free.delete(connection)
    if (connection.isUsable()) return connection
    connection.close()
    return takeFree()
  }

  const keep = (connection: C): void => {
    if (closing.signal.aborted || !connection.isUsable()) {
      connection.close()
      return
    }
    const timer = setTimeout(() => {
      free.delete(connection)
      connection.close()
    }, idleTimeoutMs)
    timer.unref()
    free.set(connection, timer)
  }

  const giveBack = async (connection: C): Promise<void> => {
    if (connection.reset === undefined || !connection.isUsable()) return keep(connection)
    const onClose = () => connection.close()
    closing.signal.addEventListener('abort', onClose, { once: true })
    try {
      await connection.reset()
      keep(connection)
    } catch {
      connection.close()
    } finally {
      closing.signal.removeEventListener('abort', onClose)
    }
  }

  return {
    /**
     * Runs work with a connection of its own. Afterwards the connection goes back to the pool, if it can still be used. If the
     * signal aborts, the connection is closed at once.
     *
     * @throws ResourceError `unavailable` if no connection is free in time.
     */
    use: async <T>(signal: AbortSignal, work: (connection: C) => Promise<T>): Promise<T> => {
      const either = AbortSignal.any([signal, closing.signal])
      either.throwIfAborted()
      const leave = slots.take() ?? (await slots.wait(either, waitTimeoutMs, busy))
      let connection: C | undefined
      const onAbort = () => connection?.close()
      either.addEventListener('abort', onAbort, { once: true })
      try {
        connection = takeFree() ?? (await open(either))
        either.throwIfAborted()
        return await work(connection)
      } finally {
        either.removeEventListener('abort', onAbort)
        if (connection === undefined) leave()
        else if (either.aborted) {
          connection.close()
          leave()
        } else void giveBack(connection).finally(leave)
      }
    },
    /** Closes every connection. Running statements fail. */
    close: (): void => {
      closing.abort(unavailable('The source is closed.'))
      for (const [connection, timer] of free) {
        clearTimeout(timer)
        connection.close()
      }
      free.clear()
    },
  }
}

/** Returns a function that runs work with a connection, and once more after a temporary failure: a pooled connection may have ended meanwhile. */
export function withRetry<C extends PooledConnection>(pool: Pool<C>, isTransient: (error: unknown) => boolean) {
  return async <T>({ signal }: SourceContext, work: (connection: C) => Promise<T>): Promise<T> => {
    try {
      return await pool.use(signal, work)
    } catch (error) {
      signal.throwIfAborted()
      if (!isTransient(error)) throw error
      return pool.use(signal, work)
    }
  }
}

export function connectionEndedError(): ResourceError {
  return unavailable('The connection to the database has ended.', { fault: 'ended' })
}

/** Returns the message for a failed TLS connection, by its error code. Undefined: TLS is not the cause. @param isPlain Whether the server does not encrypt. */
export function tlsFaultMessage(code: string, isPlain: boolean): string | undefined {
  if (isPlain)
    return 'The database does not encrypt connections, but this mount requires it. Turn TLS on in the database.'
  if (/^(?:ERR_TLS_CERT_ALTNAME|HOSTNAME_MISMATCH)/.test(code))
    return 'The certificate of the database is for another host. Correct the host in the URL, or set "tls": { "serverName": … }.'
  if (code === 'CERT_HAS_EXPIRED') return 'The certificate of the database has expired. Renew it there.'
  if (/^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code))
    return 'The certificate of the database cannot be trusted. Set "tls": { "ca": … } to the certificate of the authority that signed it.'
  if (/^(?:ERR_TLS|ERR_SSL|HANDSHAKE_SSL)/.test(code))
    return `The TLS connection to the database failed (${code}). Check its certificate; "tls" can name its authority ("ca") and its host ("serverName").`
  return undefined
}
