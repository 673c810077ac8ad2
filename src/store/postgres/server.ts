import { Socket } from 'node:net'
import pg from 'pg'
import { failure, refused } from '../failure.ts'
import type { PostgresStore } from '../index.ts'
import { isAnswer } from './failures.ts'

export type Found = Readonly<Record<string, unknown>>

/** Asks the server one thing. */
export type Ask = (sql: string, values?: readonly unknown[]) => Promise<readonly Found[]>

/** A server that is reached by a few connections, each of which may be lost at any time. */
export interface Server {
  /** @throws ResourceError and errors of the server, which `failureOf` knows. */
  readonly ask: Ask
  /** Asks several things in one transaction. */
  within(act: (ask: Ask) => Promise<void>): Promise<void>
  /** Returns a separate client that is not yet connected. The caller ends it. */
  connection(): pg.Client
  close(): Promise<void>
}

/** How many questions may wait for a connection. */
const mostWaiting = 2000
/** How long it is waited for an answer after the server should have given up by itself, in milliseconds. */
const graceMs = 2000
/** How long what was begun has to come to its end, and then connections to theirs, in milliseconds. */
const endMs = 5000

export function connectTo(options: PostgresStore['postgres']): Server {
  const { connectionString, connections = 8, connectMs = 5000, statementMs = 10_000 } = options
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
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    lock_timeout: Math.ceil(statementMs / 2),
    idle_in_transaction_session_timeout: statementMs,
    query_timeout: statementMs + graceMs,
    keepAlive: true,
    types: { getTypeParser: parserOf },
  }
  try {
    new pg.Client(config)
  } catch {
    throw refused(
      'The connection string of the store is none. Write one like postgres://user@host:5432/database.',
      'url',
    )
  }
  const pool = new pg.Pool({ ...config, max: connections, idleTimeoutMillis: 30_000 })
  // An idle connection ended. The pool opens another.
  pool.on('error', () => {})

  const running = new Set<Promise<unknown>>()
  const borrow = <Result>(act: (ask: Ask) => Promise<Result>): Promise<Result> => {
    const run = borrowNow(act)
    const over = () => running.delete(run)
    running.add(run)
    run.then(over, over)
    return run
  }
  const borrowNow = async <Result>(act: (ask: Ask) => Promise<Result>): Promise<Result> => {
    if (pool.waitingCount >= mostWaiting) throw failure('busy')
    const client = await pool.connect()
    // One that ends while it is used fails what was asked on it: that is enough.
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
    ask: (sql, values) => borrow((ask) => ask(sql, values)),
    within: (act) =>
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
      await Promise.race([Promise.allSettled(running), late(endMs)])
      await Promise.race([pool.end().catch(() => {}), late(endMs)])
      for (const socket of sockets) socket.destroy()
    },
  }
}

function late(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}

/** Whole numbers of 64 bits are times and sizes here: they all fit. */
function parserOf(oid: number, format?: 'text' | 'binary') {
  return oid === pg.types.builtins.INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format)
}
