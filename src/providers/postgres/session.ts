import { createHash } from 'node:crypto'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import pg from 'pg'
import { errorCodeOf, unavailable } from '../../core/errors.ts'
import { connectionEndedError, type ServerSettings } from '../relational/open.ts'
import { connectError, type PostgresTarget, statementError } from './connection.ts'
import { readSessionProperties, requireReadOnlyRole } from './role.ts'
import type { Cells, PostgresSession, Statement } from './sql.ts'

/** Additional time after the server's own time-out, in milliseconds, because the server may hang. */
const graceMs = 2000

const asText = { getTypeParser: () => (text: unknown) => text }

/**
 * Opens a session. All its statements are read-only and have time-outs, and look up names without a schema only in `pg_catalog` and `pg_temp`.
 *
 * @throws ResourceError `unavailable`, with the fault `refused` if a retry does not help.
 */
export async function openSession(
  target: PostgresTarget,
  settings: ServerSettings,
  signal: AbortSignal,
): Promise<PostgresSession> {
  const connection = await connectClient(target, settings, signal)
  const { client, run, close, destroy } = connection
  try {
    const onAbort = () => close()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const facts = await readSessionProperties((statement, values) => run(statement, values, false), settings)
      requireReadOnlyRole(facts, settings)
      const shared = facts.pid !== (client as unknown as { processID: number | null }).processID
      const set = (isLocal: boolean) => run(settingsStatement, settingsValues(settings, isLocal), !shared)
      if (!shared) {
        await set(false)
        // Makes the server end the statement when this process ends the connection. Not every server supports the setting.
        await run(checkStatement, [], false).catch(() => {})
      }

      const plainly = (text: string) => run({ text }, [], false)
      /** Undoes what a function in a view may have done to the session. */
      const cleanUp = async () => {
        // A rollback undoes settings, roles, temporary tables, cursors and LISTEN.
        await plainly(shared ? 'ROLLBACK TO SAVEPOINT own' : 'ROLLBACK')
        // Behind a pooler a statement outside of the transaction may go to another session, so this one comes before its end.
        const [row] = await run(leftoversStatement, [], !shared)
        if (shared) await plainly('ROLLBACK')
        // A statement that a function has prepared lasts as long as the connection, so the connection ends.
        if (row?.[0] !== 'f') throw connectionEndedError()
      }

      const transaction: PostgresSession['transaction'] = async (work) => {
        await plainly('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
        try {
          if (shared) {
            await set(true)
            await plainly('SAVEPOINT own')
          }
          return await work((statement, values) => run(statement, values, !shared))
        } finally {
          if (!connection.ended) await cleanUp().catch(destroy)
        }
      }
      return {
        shared,
        encoding: facts.encoding,
        transaction,
        query: (statement, values) =>
          shared ? transaction((query) => query(statement, values)) : run(statement, values, true),
        isUsable: () => !connection.ended && connection.busy === 0,
        close,
        onNotification: (onNotification, over) => {
          client.on('notification', onNotification)
          connection.onEnd(over)
        },
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  } catch (error) {
    destroy()
    signal.throwIfAborted()
    throw error
  }
}

/** Connects to the server. A statement that takes longer than the server's own limit and the grace ends the connection. */
async function connectClient(target: PostgresTarget, settings: ServerSettings, signal: AbortSignal) {
  signal.throwIfAborted()
  const { connectTimeoutMs, statementTimeoutMs } = settings
  const client = new pg.Client({
    ...target,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'hikidashi',
    client_encoding: 'UTF8',
    // pg expects a parser for each type; here all values stay texts.
    types: asText as unknown as pg.CustomTypesConfig,
  })
  let hasEnded = false
  let busy = 0
  let onEnd = () => {}
  const end = () => {
    hasEnded = true
    onEnd()
  }
  client.on('error', end)
  client.on('end', end)
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  const destroy = () => {
    end()
    streamOf(client, stream).destroy()
  }
  signal.addEventListener('abort', destroy, { once: true })
  try {
    await client.connect()
  } catch (error) {
    destroy()
    signal.throwIfAborted()
    throw connectError(error)
  } finally {
    signal.removeEventListener('abort', destroy)
  }
  const cancel = createCancel(client, target)

  const run = async ({ text, fixed }: Statement, values: readonly unknown[], isNamed: boolean) => {
    if (hasEnded) throw connectionEndedError()
    let late = false
    const timer = setTimeout(() => {
      late = true
      destroy()
    }, statementTimeoutMs + graceMs)
    busy++
    try {
      const result = await client.query({
        text,
        values: [...values],
        // Without this, pg sends a query without values as text, which may hold several statements.
        queryMode: 'extended',
        rowMode: 'array',
        ...(fixed && isNamed ? { name: createHash('sha256').update(text).digest('hex').slice(0, 32) } : {}),
      } as pg.QueryArrayConfig)
      return result.rows as readonly Cells[]
    } catch (error) {
      if (late) throw unavailable('The database does not answer. Try again later.', { sqlstate: 'late' })
      // An error code of the server is more precise than the end of the connection.
      throw hasEnded && errorCodeOf(error)?.length !== 5 ? connectionEndedError() : statementError(error)
    } finally {
      busy--
      clearTimeout(timer)
    }
  }

  const close = () => {
    if (hasEnded) return
    if (busy > 0) cancel()
    destroy()
  }

  return {
    client,
    run,
    close,
    destroy,
    get ended() {
      return hasEnded
    },
    get busy() {
      return busy
    },
    /** Calls a function at the end of the connection, or now if it has ended. */
    onEnd: (over: () => void) => {
      onEnd = over
      if (hasEnded) over()
    },
  }
}

/** Returns the current stream: with TLS, it is not the first one. */
function streamOf(client: pg.Client, first: { destroy(): void }): { destroy(): void } {
  return (client as unknown as { connection: { stream?: { destroy(): void } } }).connection.stream ?? first
}

const settingsStatement: Statement = {
  text: 'SELECT pg_catalog.set_config(s.name, s.value, $3::bool) FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS s(name, value)',
  fixed: true,
}

/**
 * Releases the advisory locks of the session, which outlive a transaction, and returns whether SQL has prepared a statement.
 * Statements of this provider do not count: they are prepared by the protocol.
 */
const leftoversStatement: Statement = {
  text: 'SELECT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql) FROM pg_catalog.pg_advisory_unlock_all()',
  fixed: true,
}

const checkStatement: Statement = {
  text: "SELECT pg_catalog.set_config('client_connection_check_interval', '1000', false)",
}

function settingsValues(settings: ServerSettings, isLocal: boolean): readonly unknown[] {
  const pairs: readonly (readonly [string, string])[] = [
    ['default_transaction_read_only', 'on'],
    ['search_path', 'pg_catalog, pg_temp'],
    ['statement_timeout', String(settings.statementTimeoutMs)],
    ['lock_timeout', String(settings.lockTimeoutMs)],
    ['idle_in_transaction_session_timeout', String(settings.statementTimeoutMs + graceMs)],
    ['row_security', 'on'],
    ['DateStyle', 'ISO, YMD'],
    ['IntervalStyle', 'iso_8601'],
    ['TimeZone', 'UTC'],
    ['bytea_output', 'hex'],
    ['extra_float_digits', '1'],
    ['quote_all_identifiers', 'off'],
    // These decide how the server parses statements.
    ['standard_conforming_strings', 'on'],
    ['backslash_quote', 'safe_encoding'],
    ['escape_string_warning', 'off'],
    ['transform_null_equals', 'off'],
    ['array_nulls', 'on'],
    ['xmloption', 'content'],
    ['xmlbinary', 'base64'],
    // These decide about the returned rows and their order.
    ['gin_fuzzy_search_limit', '0'],
    ['synchronize_seqscans', 'off'],
    ['default_transaction_deferrable', 'off'],
    // The planner overestimates the cost of catalog queries: JIT compilation would take longer than the query.
    ['jit', 'off'],
  ]
  return [pairs.map(([name]) => name), pairs.map(([, value]) => value), isLocal]
}

/** Time-out of a request for cancellation, in milliseconds. */
const cancelTimeoutMs = 2000

/**
 * Returns a function that cancels the running statement of a client. It sends a message over a separate connection (PostgreSQL,
 * "Canceling Requests in Progress"), encrypted if the client's connection is. It does not wait for the outcome.
 */
function createCancel(client: pg.Client, target: PostgresTarget): () => void {
  const { processID, secretKey } = client as unknown as { processID: number | null; secretKey: number | null }
  return () => {
    if (typeof processID !== 'number' || typeof secretKey !== 'number') return
    const message = Buffer.alloc(16)
    message.writeInt32BE(16, 0)
    message.writeInt32BE(80877102, 4)
    message.writeInt32BE(processID, 8)
    message.writeInt32BE(secretKey, 12)
    const { host, port, ssl } = target
    const socket = host.startsWith('/') ? connectTcp(`${host}/.s.PGSQL.${port}`) : connectTcp(port, host)
    const over = guarded(socket)
    socket.once('connect', () => {
      if (ssl === false) {
        over.end(message)
        return
      }
      const request = Buffer.alloc(8)
      request.writeInt32BE(8, 0)
      request.writeInt32BE(80877103, 4)
      socket.write(request)
      socket.once('data', (answer) => {
        if (answer.toString() !== 'S') {
          socket.destroy()
          return
        }
        const secure = connectTls({ ...ssl, socket, host, ...(isIP(host) === 0 ? { servername: host } : {}) })
        guarded(secure)
        secure.once('secureConnect', () => secure.end(message))
      })
    })
  }
}

function guarded<S extends Socket>(socket: S): S {
  socket.on('error', () => socket.destroy())
  socket.setTimeout(cancelTimeoutMs, () => socket.destroy())
  socket.unref()
  return socket
}
