import { Socket } from 'node:net'
import pg from 'pg'
import { errorCodeOf, isResourceError, type ResourceError } from '../../core/errors.ts'
import { sleep, withResolvers } from '../../core/kit/abort.ts'
import { createChangeQueue, type RowChange } from '../engine.ts'
import type { PostgresStore } from '../options.ts'
import { bugError, type StoreFault, storeError, valueError } from '../rules.ts'

export type PostgresRow = Readonly<Record<string, unknown>>

export type RunStatement = (sql: string, values?: readonly unknown[]) => Promise<readonly PostgresRow[]>

/** Maximum number of requests that wait for a connection. */
const mostWaiting = 2000
/** Additional time for an answer after the server's own time-out, in milliseconds. */
const graceMs = 2000
/** Time for running statements to finish at the end, and then for connections to close, in milliseconds. */
const endMs = 5000

/**
 * Creates a pool of connections to a server. The first statement opens the first connection.
 *
 * @throws ResourceError `invalid` for a malformed connection string.
 */
export function createStorePool(options: PostgresStore['postgres']) {
  const { connectionString, connections = 8, connectTimeoutMs = 5000, statementTimeoutMs = 10_000 } = options
  const sockets = new Set<Socket>()
  const stream = () => {
    const socket = new Socket()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return socket
  }
  const config: pg.ClientConfig = {
    connectionString,
    stream,
    application_name: 'hikidashi',
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    lock_timeout: Math.ceil(statementTimeoutMs / 2),
    idle_in_transaction_session_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + graceMs,
    keepAlive: true,
    types: { getTypeParser: parserOf },
  }
  try {
    new pg.Client(config)
  } catch {
    throw valueError(
      'The connection string of the store is not valid. Write one like postgres://user@host:5432/database.',
      'configuration',
    )
  }
  // A time-out in the options of the pool would include the wait for a free connection, so it is in those of the client.
  class Client extends pg.Client {
    constructor() {
      super(config)
    }
  }
  const pool = new pg.Pool({ max: connections, idleTimeoutMillis: 30_000, Client })
  // An idle connection ended. The pool opens another.
  pool.on('error', () => {})

  const running = new Set<Promise<unknown>>()
  const borrow = <Result>(act: (ask: RunStatement) => Promise<Result>): Promise<Result> => {
    const run = borrowNow(act)
    const over = () => running.delete(run)
    running.add(run)
    run.then(over, over)
    return run
  }
  const borrowNow = async <Result>(act: (ask: RunStatement) => Promise<Result>): Promise<Result> => {
    if (pool.waitingCount >= mostWaiting) throw storeError('busy')
    const client = await pool.connect()
    // If a connection ends while it is in use, its request fails.
    const ignore = () => {}
    client.on('error', ignore)
    const give = (broken: boolean) => {
      client.off('error', ignore)
      client.release(broken)
    }
    try {
      const result = await act(async (sql, values) => (await client.query(sql, values && [...values])).rows ?? [])
      give(false)
      return result
    } catch (error) {
      give(!isAnswer(error))
      throw error
    }
  }

  return {
    /** @throws ResourceError if too many requests wait; errors of the server, which {@link toStoreError} converts. */
    ask: (sql: string, values?: readonly unknown[]) => borrow((ask) => ask(sql, values)),
    within: (act: (ask: RunStatement) => Promise<void>) =>
      borrow(async (ask) => {
        await ask('begin isolation level read committed')
        try {
          await act(ask)
          await ask('commit')
        } catch (error) {
          await ask('rollback')
          throw error
        }
      }),
    connection: () => new pg.Client(config),
    close: async () => {
      await Promise.race([Promise.allSettled(running), sleep(endMs)])
      await Promise.race([pool.end().catch(() => {}), sleep(endMs)])
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** 64-bit integers are times, sizes, ids, revisions and weights here, which fit into a number. */
function parserOf(oid: number, format?: 'text' | 'binary') {
  return oid === pg.types.builtins.INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format)
}

/** Faults by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html): of single codes, and of whole classes. */
const reasons: Readonly<Record<string, StoreFault>> = {
  '08': 'gone',
  '25006': 'read-only', // read_only_sql_transaction
  '28': 'gone', // invalid_authorization_specification
  '3D': 'gone', // invalid_catalog_name: there is no such database
  '3F': 'gone', // invalid_schema_name: the schema was dropped, and is created again
  '40': 'busy', // deadlock_detected, serialization_failure
  '42501': 'read-only', // insufficient_privilege
  '42883': 'gone', // undefined_function
  '42P01': 'gone', // undefined_table
  '53': 'busy', // too_many_connections, out_of_memory
  '53100': 'full', // disk_full
  '55P03': 'busy', // lock_not_available
  '57': 'gone', // admin_shutdown, cannot_connect_now
  '57014': 'busy', // query_canceled, by the time-out of the statement
  '58': 'gone', // io_error
  XX001: 'damaged', // data_corrupted
  XX002: 'damaged', // index_corrupted
}

/** Codes for tables or functions that somebody has removed. The next use creates them again. */
const missing: ReadonlySet<string> = new Set(['3F000', '42P01', '42883'])

/** Converts an error to a ResourceError without text of the server and without its address. */
export function toStoreError(error: unknown): ResourceError {
  if (isResourceError(error)) return error
  if (error instanceof pg.DatabaseError) {
    const state = error.code ?? ''
    const reason = reasons[state] ?? reasons[state.slice(0, 2)]
    return reason === undefined ? bugError(`SQLSTATE ${state}`) : storeError(reason, `SQLSTATE ${state}`)
  }
  const code = errorCodeOf(error)
  // Errors of the client library have no code: a time-out, or the connection has ended.
  return storeError('gone', code)
}

/** Whether the connection can still be used: the server has answered with an error. */
function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(?:08|57P|58|XX)/.test(error.code ?? '')
}

export function isMissingTableError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && missing.has(error.code ?? '')
}

/** First and longest pause before another connection is tried, in milliseconds (backoff). */
const retryMs = { first: 100, most: 2000 }
/** Interval at which an idle connection is checked, in milliseconds. */
const heartbeatIntervalMs = 10_000

/**
 * Creates a listener to the notifications of a channel, with one connection.
 *
 * @param onConnected Called when the connection is lost, and when it is back.
 */
export function createNotificationListener(
  server: ReturnType<typeof createStorePool>,
  channel: string,
  onConnected: (connected: boolean) => void,
) {
  let running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined
  let tried: Promise<void> = Promise.resolve()

  const news = createChangeQueue(() => {
    if (news.collections.length > 0 && running === undefined) begin()
    if (news.collections.length === 0 && running !== undefined) {
      running.stop.abort()
      running = undefined
    }
  })

  const begin = () => {
    const stop = new AbortController()
    const { promise, resolve } = withResolvers<void>()
    tried = promise
    running = { stop, ended: run(stop.signal, resolve) }
  }

  const run = async (signal: AbortSignal, tried: () => void) => {
    let wait: number = retryMs.first
    for (let isLost = false; !signal.aborted; ) {
      const connected = await hear(signal, () => {
        // Notifications in between are unknown.
        if (isLost) {
          news.tellAll()
          onConnected(true)
        }
        wait = retryMs.first
        tried()
      })
      tried()
      if (signal.aborted) return
      if (connected || !isLost) onConnected(false)
      isLost = true
      await sleep(wait * (0.5 + Math.random()), signal)
      wait = Math.min(wait * 2, retryMs.most)
    }
  }

  /** Listens until the connection is lost. `false`: there was no connection. */
  const hear = async (signal: AbortSignal, ready: () => void): Promise<boolean> => {
    const client = server.connection()
    const over = new AbortController()
    const end = () => over.abort()
    client.on('error', end)
    client.on('end', end)
    signal.addEventListener('abort', end, { once: true })
    client.on('notification', ({ payload }) => tell(payload))
    try {
      await client.connect()
      await client.query(`listen ${client.escapeIdentifier(channel)}`)
      ready()
      await beat(client, over.signal)
      return true
    } catch {
      return false
    } finally {
      signal.removeEventListener('abort', end)
      client.end().catch(() => {})
    }
  }

  const tell = (payload: string | undefined) => {
    const { collection, keys } = parseNotification(payload)
    if (collection === undefined) news.tellAll()
    else news.tell(collection, keys)
  }

  return {
    watch: async (collection: string, signal: AbortSignal): Promise<AsyncIterable<RowChange>> => {
      const changes = news.listen(collection, signal)
      await tried
      return changes
    },
    close: async () => {
      const { ended } = running ?? {}
      news.close()
      await ended
    },
  }
}

async function beat(client: pg.Client, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(heartbeatIntervalMs, signal)
    if (!signal.aborted) await client.query('select 1').catch(() => {})
  }
}

/** A notification without a collection counts as a change of everything. */
function parseNotification(payload = ''): { readonly collection?: string; readonly keys: RowChange } {
  try {
    const news = JSON.parse(payload) as { collection?: unknown; keys?: unknown }
    const keys = Array.isArray(news.keys) ? news.keys.map(String) : undefined
    return typeof news.collection === 'string' ? { collection: news.collection, keys } : { keys: undefined }
  } catch {
    return { keys: undefined }
  }
}
