import { connect, isIP, type Socket } from 'node:net'
import { type Connection, type ConnectionOptions, createConnection } from 'mysql2'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { decodeComponent, isLoopback } from '../../core/uri.ts'
import { connectionEndedError, type ServerSettings, type TlsOptions } from '../relational/open.ts'
import { type AccountProperties, readAccountProperties, requireReadOnlyAccount } from './account.ts'
import { connectError, databaseTimeoutError, openingError, refusedOpeningError, statementError } from './errors.ts'
import type { Cells, Query } from './sql.ts'

/** Additional time after the server's own time-out, in milliseconds, because the server may hang. */
const graceMs = 2000

/**
 * Opens a connection. All its statements are read-only, with time-outs.
 *
 * @throws ResourceError `unavailable`, with the fault `refused` if a retry does not help.
 */
export async function openSession(target: Target, settings: ServerSettings, signal: AbortSignal) {
  signal.throwIfAborted()
  const { connectTimeoutMs, statementTimeoutMs } = settings
  let isOurs = false
  const socket = target.open()
  const connection = openConnection(target, connectTimeoutMs, () => socket)
  const commands = createCommands(() => close())
  connection.on('error', commands.fail)
  connection.on('end', () => commands.fail(connectionEndedError()))
  socket.on('close', () => commands.fail(connectionEndedError()))
  const destroy = () => {
    commands.fail(connectionEndedError())
    connection.destroy()
    socket.destroy()
  }

  const run: Query = async (sql, values = []) => {
    try {
      return await commands.answered(statementTimeoutMs + graceMs, (settle) =>
        connection.execute({ sql, rowsAsArray: true }, [...values], (error, rows) =>
          settle(error, rows as unknown as readonly Cells[]),
        ),
      )
    } catch (error) {
      throw statementError(error)
    }
  }
  /** Runs a statement that cannot be prepared. Its text must be constant. */
  const say = (sql: string) =>
    commands
      .answered<unknown>(statementTimeoutMs + graceMs, (settle) =>
        connection.query(sql, (error, rows) => settle(error, rows)),
      )
      .catch((error: unknown) => {
        throw statementError(error)
      })
  /** Sets the state of the session, whatever the server or its `init_connect` has made of it. */
  const begin = async (facts: AccountProperties): Promise<void> => {
    await say('SET NAMES utf8mb4 COLLATE utf8mb4_bin')
    await prepare(run, facts, settings)
  }
  const close = (): void => {
    if (commands.hasEnded() && socket.destroyed) return
    if (isOurs && commands.isRunning()) kill(target, connection.threadId)
    destroy()
  }

  const onAbort = () => close()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await commands
      .answered<void>(connectTimeoutMs, (settle) => connection.connect((error) => settle(error, undefined)))
      .catch((error: unknown) => {
        throw connectError(error)
      })
    isOurs = true
    const facts = await readAccountProperties(run)
    await begin(facts)
    requireReadOnlyAccount(facts, settings, target.database)
    await requireSchema(run, settings.schemas === undefined ? target.database : undefined)
    // Whether rows were read since the last reset: only then may code in views have run.
    let isUsed = false
    return {
      isMaria: facts.isMaria,
      query: run,
      /** Resets the session after code in views may have changed it: locks, variables, settings, temporary tables. */
      reset: async (): Promise<void> => {
        if (!isUsed) return
        isUsed = false
        await commands.answered<void>(statementTimeoutMs + graceMs, (settle) =>
          connection.reset((error) => settle(error, undefined)),
        )
        await begin(facts)
      },
      /** Runs several statements in one read-only snapshot. */
      transaction: async <T>(work: (query: Query) => Promise<T>): Promise<T> => {
        isUsed = true
        await say('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY')
        try {
          return await work(run)
        } finally {
          if (!commands.hasEnded()) await say('ROLLBACK').catch(destroy)
        }
      },
      isUsable: (): boolean => !commands.hasEnded() && !commands.isRunning(),
      close,
    }
  } catch (error) {
    destroy()
    signal.throwIfAborted()
    throw openingError(error)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function createCommands(onTimeout: () => void) {
  const waiting = new Set<(error: Error) => void>()
  let hasEnded = false
  return {
    /** Runs a command and returns its answer, within `most` milliseconds. The promise settles even if the connection is lost. */
    answered: <T>(most: number, run: (settle: (error: Error | null, value: T) => void) => void): Promise<T> =>
      new Promise((resolve, reject) => {
        const finish = () => {
          clearTimeout(timer)
          waiting.delete(fail)
        }
        const fail = (error: Error) => {
          finish()
          reject(error)
        }
        const timer = setTimeout(() => {
          fail(databaseTimeoutError())
          onTimeout()
        }, most)
        if (hasEnded) return fail(connectionEndedError())
        waiting.add(fail)
        run((error, value) => {
          if (error !== null) return fail(error)
          finish()
          resolve(value)
        })
      }),
    fail: (error: Error): void => {
      hasEnded = true
      for (const settle of [...waiting]) settle(error)
    },
    hasEnded: () => hasEnded,
    isRunning: () => waiting.size > 0,
  }
}

export type MysqlSession = Awaited<ReturnType<typeof openSession>>

function openConnection(target: Target, connectTimeout: number, stream: () => unknown): Connection {
  const { user, password, host, ssl } = target
  return createConnection({
    ...{ user, password, host, connectTimeout, stream },
    ...defined({ ssl }),
    // Forbid local files, multiple statements and generated decoder code, and read numbers without loss.
    ...{ multipleStatements: false, flags: ['-LOCAL_FILES'], disableEval: true, maxPreparedStatements: 64 },
    ...{
      supportBigNumbers: true,
      bigNumberStrings: true,
      dateStrings: true,
      jsonStrings: true,
      charset: 'UTF8MB4_BIN',
    },
    connectAttributes: { program_name: 'hikidashi' },
  })
}

async function prepare(run: Query, { isMaria }: AccountProperties, settings: ServerSettings): Promise<void> {
  const { statementTimeoutMs, lockTimeoutMs } = settings
  const seconds = Math.max(1, Math.ceil(lockTimeoutMs / 1000))
  await run('SET SESSION TRANSACTION READ ONLY')
  await run('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  if (isMaria) await run('SET SESSION max_statement_time = ?', [statementTimeoutMs / 1000])
  else await run('SET SESSION max_execution_time = CAST(? AS UNSIGNED)', [statementTimeoutMs])
  const common =
    "SET SESSION sql_mode = '', time_zone = '+00:00', " +
    'sql_safe_updates = 0, sql_select_limit = 18446744073709551615, sql_big_selects = 1, ' +
    'autocommit = 1, completion_type = NO_CHAIN, sql_auto_is_null = 0, sql_quote_show_create = 1, max_sort_length = 1024'
  await run(`${common}, lock_wait_timeout = CAST(? AS UNSIGNED), innodb_lock_wait_timeout = CAST(? AS UNSIGNED)`, [
    seconds,
    seconds,
  ])
  if (isMaria) await run('SET SESSION system_versioning_asof = DEFAULT').catch(() => {})
  // Read current estimates and times of changes, instead of values that are cached for a day.
  if (!isMaria) await run('SET SESSION information_schema_stats_expiry = 0').catch(() => {})
}

/** Checks that the URL names a visible database. A missing one would look empty, because the connection does not select it. */
async function requireSchema(run: Query, database: string | undefined): Promise<void> {
  if (database === undefined) return
  const rows = await run('SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?', [database])
  if (!rows.some(([name]) => name === database))
    throw refusedOpeningError(
      'The server has no database of this name that the account may see. Correct the URL, or grant it SELECT.',
    )
}

/** Kills a connection on the server, over another one, because its statement would continue. The result is not awaited. */
function kill(target: Target, id: number): void {
  const socket = target.open()
  const connection = openConnection(target, 2000, () => socket)
  const over = () => {
    connection.destroy()
    socket.destroy()
  }
  socket.unref()
  socket.setTimeout(2000, over)
  connection.on('error', over)
  connection.query(`KILL ${Number(id)}`, over)
}

interface Target {
  readonly user: string
  readonly password: string
  /** Name of the database. Undefined: the URL names none, so the configured schemas, or all, are served. */
  readonly database: string | undefined
  /** The name that the certificate of the server must have. Without encryption it has no effect. */
  readonly host: string
  readonly ssl: NonNullable<Exclude<ConnectionOptions['ssl'], string>> | undefined
  open(): Socket
}

const form =
  /^(?:mysql|mariadb):\/\/([^:@/?#]+)(?::([^@/?#]*))?@(\[[0-9A-Fa-f:.]+\]|[^:@/?#[\]]+)(?::([0-9]{1,5}))?(?:\/([^/?#]*))?$/

/**
 * Parses the URL of a database. The URL may have no parameters, so it cannot weaken a setting.
 *
 * @throws ResourceError `invalid`, whose message contains no part of the URL.
 */
export function parseDatabaseUrl(url: string, tls: TlsOptions | undefined): Target {
  const match = form.exec(url)
  if (match === null)
    throw invalid(
      'The URL of the database must have the form mysql://account:password@host:3306/database, without parameters. Percent-encode the special characters of its password.',
      'configuration',
    )
  const [, user, password = '', named = '', port = '3306', database = ''] = match
  const [account, secret, address, schema] = [user ?? '', password, named, database].map(decodeUrlPart)
  if (account === undefined || secret === undefined || address === undefined || schema === undefined)
    throw invalid(
      'The URL of the database cannot be parsed. Percent-encode the special characters of its password.',
      'configuration',
    )
  if (Number(port) < 1 || Number(port) > 65_535)
    throw invalid('The port in the URL of the database is not valid. Write a number from 1 to 65535.', 'configuration')
  const host = address.replace(/^\[|\]$/g, '')
  const isSocket = host.startsWith('/')
  const mode = tls?.mode ?? (isSocket || isLoopback(host) ? 'off' : 'verify')
  return {
    ...{ user: account, password: secret, database: schema === '' ? undefined : schema },
    ...(mode === 'off' ? { host, ssl: undefined } : { host: verifiedName(host, tls), ssl: sslOf(tls) }),
    open: () => {
      const socket = isSocket ? connect(host) : connect(Number(port), host)
      return socket.setNoDelay(true).setKeepAlive(true, 10_000)
    },
  }
}

function decodeUrlPart(text: string): string | undefined {
  const plain = decodeComponent(text)
  return plain?.includes('\0') ? undefined : plain
}

/** Returns the name to verify in the certificate. @throws ResourceError `invalid` for an address, which the client cannot verify. */
function verifiedName(host: string, tls: TlsOptions | undefined): string {
  const name = tls?.serverName ?? host
  if (isIP(name) === 0 && !name.startsWith('/')) return name
  throw invalid(
    'The connection must be encrypted, but the host in the URL is not a name that a certificate can have. Write the host name, or set "tls": { "serverName": … }.',
    'configuration',
  )
}

function sslOf(tls: TlsOptions | undefined): NonNullable<Target['ssl']> {
  return {
    ...{ rejectUnauthorized: true, verifyIdentity: true, minVersion: 'TLSv1.2' },
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
  }
}
