import { createHash } from 'node:crypto'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import pg from 'pg'
import { ResourceError } from '../../core/errors.ts'
import type { ServerSettings } from '../relational/open.ts'
import { codeOf, connectError, endedError, statementError } from './errors.ts'
import { requireHarmless, sessionFacts } from './role.ts'
import type { Cells, Session, Statement } from './sql.ts'
import type { Target } from './target.ts'

/** Additional time after the server's own time-out, in milliseconds, because the server may hang. */
const grace = 2000

const asText = { getTypeParser: () => (text: unknown) => text }

/**
 * Opens a session. All it does is read-only, with time-outs, and names are looked for in `pg_catalog` alone.
 *
 * @throws ResourceError `unavailable`, with the reason `refused` where trying again does not help.
 */
export async function openSession(target: Target, settings: ServerSettings, signal: AbortSignal): Promise<Session> {
  const connection = await connect(target, settings, signal)
  const { client, run, close, destroy } = connection
  try {
    const onAbort = () => close()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const facts = await sessionFacts((statement, values) => run(statement, values, false), settings)
      requireHarmless(facts, settings)
      const shared = facts.pid !== (client as unknown as { processID: number | null }).processID
      const set = (isLocal: boolean) => run(settingsStatement, settingsValues(settings, isLocal), !shared)
      if (!shared) {
        await set(false)
        // A connection that we ended then ends its statement too. Not every server can tell.
        await run(checkStatement, [], false).catch(() => {})
      }

      const plainly = (text: string) => run({ text }, [], false)
      /** Undoes everything that a function in a view may have done to the session. */
      const cleanUp = async () => {
        // Rolling back takes back settings, roles, temporary tables, cursors and LISTEN.
        await plainly(shared ? 'ROLLBACK TO SAVEPOINT own' : 'ROLLBACK')
        // Behind a pooler the next statement outside of the transaction may go to another session.
        const [row] = await run(leftoversStatement, [], !shared)
        if (shared) await plainly('ROLLBACK')
        // A statement that a function prepared lasts as long as the connection does.
        if (row?.[0] !== 'f') throw endedError()
      }

      const transaction: Session['transaction'] = async (work) => {
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
        onNotification: (told, over) => {
          client.on('notification', told)
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
async function connect(target: Target, settings: ServerSettings, signal: AbortSignal) {
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
  let ended = false
  let busy = 0
  let onEnd = () => {}
  const end = () => {
    ended = true
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

  const run = async ({ text, fixed }: Statement, values: readonly unknown[], named: boolean) => {
    if (ended) throw endedError()
    let late = false
    const timer = setTimeout(() => {
      late = true
      destroy()
    }, statementTimeoutMs + grace)
    busy++
    try {
      const result = await client.query({
        text,
        values: [...values],
        // Without this, pg sends a query without values as text, which may hold several statements.
        queryMode: 'extended',
        rowMode: 'array',
        ...(fixed && named ? { name: createHash('sha256').update(text).digest('hex').slice(0, 32) } : {}),
      } as pg.QueryArrayConfig)
      return result.rows as readonly Cells[]
    } catch (error) {
      if (late) throw new ResourceError('unavailable', 'The database does not answer.', { sqlstate: 'late' })
      // The last error of the server is more precise.
      throw ended && codeOf(error)?.length !== 5 ? endedError() : statementError(error)
    } finally {
      busy--
      clearTimeout(timer)
    }
  }

  const close = () => {
    if (ended) return
    if (busy > 0) cancel()
    destroy()
  }

  return {
    client,
    run,
    close,
    destroy,
    get ended() {
      return ended
    },
    /** Number of running statements. */
    get busy() {
      return busy
    },
    /** Calls a function at the end of the connection, or now if it has ended. */
    onEnd: (over: () => void) => {
      onEnd = over
      if (ended) over()
    },
  }
}

/** With TLS the stream is another one by now. */
function streamOf(client: pg.Client, first: { destroy(): void }): { destroy(): void } {
  return (client as unknown as { connection: { stream?: { destroy(): void } } }).connection.stream ?? first
}

const settingsStatement: Statement = {
  text: 'SELECT pg_catalog.set_config(s.name, s.value, $3::bool) FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS s(name, value)',
  fixed: true,
}

/**
 * Gives back the advisory locks of the session, which outlive a transaction, and tells whether anything was prepared by a
 * statement of SQL: ours are prepared by the protocol.
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
    ['idle_in_transaction_session_timeout', String(settings.statementTimeoutMs + grace)],
    ['row_security', 'on'],
    ['DateStyle', 'ISO, YMD'],
    ['IntervalStyle', 'iso_8601'],
    ['TimeZone', 'UTC'],
    ['bytea_output', 'hex'],
    ['extra_float_digits', '1'],
    ['quote_all_identifiers', 'off'],
    // Statements over the catalog look expensive, and are not: compiling them takes longer than they do.
    ['jit', 'off'],
  ]
  return [pairs.map(([name]) => name), pairs.map(([, value]) => value), isLocal]
}

/** Time-out of a request for cancellation, in milliseconds. */
const patience = 2000

/**
 * How to end the statement that a client runs: a message over a connection of its own (PostgreSQL, "Canceling Requests in
 * Progress"), encrypted where the client's is. Whether it helps is not waited for.
 */
function createCancel(client: pg.Client, target: Target): () => void {
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
  socket.setTimeout(patience, () => socket.destroy())
  socket.unref()
  return socket
}
