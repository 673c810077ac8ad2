import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createConnection } from 'mysql2/promise'
import { sharedVariable } from './run-folders.ts'

const run = promisify(execFile)
// The folders of server programs on Debian, for users without them in their path.
const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
const find = (name: string) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
const [server, installer] = [find('mariadbd'), find('mariadb-install-db')]

/** Whether MariaDB is installed, and the advice if it is not. */
export const hasMariadb = server !== undefined && installer !== undefined
export const mariadbReason = 'there is no MariaDB; on Debian: apt-get install mariadb-server'

/** A MariaDB server for a test, with its own folder and port. */
export interface Mariadb {
  readonly port: number
  /** The URL of the database `app` for the account `reader`, which may only select. */
  readonly readerUrl: string
  readonly rootUrl: string
  /** Runs statements as root. Returns the rows of the last one. */
  run(sql: string): Promise<readonly Record<string, unknown>[]>
  /** Returns the number of connections of `reader`, as the server counts them. */
  connections(): Promise<number>
  start(): Promise<void>
  /** Stops it like an operator: its connections end with an error. */
  stop(): Promise<void>
  kill(): Promise<void>
  freeze(): void
  thaw(): void
  /** Stops it, and removes its folder. */
  remove(): Promise<void>
}

export const readerPassword = 'the-password-of-reader'
const certificates = join(import.meta.dirname, '../fixtures/tls')
const rootPassword = 'the-password-of-root'
/** Maximum time of one step, in milliseconds, on slow machines. */
const patience = 120_000

/** Creates the data folder of a server. */
async function initialise(installer: string, data: string, user: readonly string[]): Promise<void> {
  const flags = [`--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db', ...user]
  // Several servers would share temporary tables otherwise.
  const env = { ...process.env, TMPDIR: dirname(data) }
  await run(installer, ['--no-defaults', ...flags], { timeout: patience, env })
}

/** Copies a data folder that was created once for the test run. */
async function makeData(installer: string, data: string, user: readonly string[]): Promise<void> {
  const shared = process.env[sharedVariable]
  if (shared === undefined) return initialise(installer, data, user)
  const known = join(shared, 'mariadb')
  if (!existsSync(known)) {
    mkdirSync(shared, { recursive: true })
    const made = mkdtempSync(join(shared, 'making-'))
    await initialise(installer, join(made, 'data'), user)
    try {
      renameSync(join(made, 'data'), known)
    } catch (error) {
      // Another test file was faster.
      if (!existsSync(known)) throw error
    }
    rmSync(made, { recursive: true, force: true })
  }
  await run('cp', ['-a', known, data])
}

/** Starts a server, and runs `sql`. Share one per file: it takes a few seconds. */
export async function startMariadb(sql: string): Promise<Mariadb> {
  if (server === undefined || installer === undefined) throw new Error(mariadbReason)
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-mariadb-'))
  const data = join(folder, 'data')
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  await makeData(installer, data, user)
  let port = 0
  let child: ChildProcess | undefined

  const launch = async () => {
    const log = join(folder, 'log')
    const started = spawn(
      server,
      [
        ...[
          '--no-defaults',
          ...user,
          `--datadir=${data}`,
          `--socket=${join(folder, 's')}`,
          `--tmpdir=${folder}`,
          `--port=${port}`,
        ],
        ...['--bind-address=127.0.0.1', `--pid-file=${join(folder, 'pid')}`, `--log-error=${log}`],
        // The data needs to survive the process, but not the machine.
        ...[
          '--innodb-flush-log-at-trx-commit=0',
          '--innodb-buffer-pool-size=32M',
          '--skip-log-bin',
          '--max-connections=60',
          '--max-user-connections=50',
        ],
        ...['--ssl-cert=', '--ssl-key='].map(
          (flag, i) => `${flag}${join(certificates, i === 0 ? 'server.pem' : 'server.key')}`,
        ),
        ...['--character-set-server=utf8mb4', '--skip-name-resolve', '--performance-schema=OFF'],
      ],
      { stdio: 'ignore' },
    )
    const end = () => started.kill('SIGKILL')
    process.once('exit', end)
    started.once('exit', () => process.removeListener('exit', end))
    child = started
    const until = Date.now() + patience
    for (;;) {
      if (started.exitCode !== null || started.signalCode !== null || Date.now() > until) {
        started.kill('SIGKILL')
        throw new Error(`MariaDB did not start: ${existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : ''}`)
      }
      if (await answers()) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  let password = ''
  const connect = (database?: string) =>
    createConnection({
      ...{ host: '127.0.0.1', port, user: 'root', password, multipleStatements: true, charset: 'utf8mb4' },
      ...(database === undefined ? {} : { database }),
    })
  const answers = () =>
    connect().then(
      (client) => client.end().then(() => true),
      () => false,
    )
  const query = async (text: string, database?: string) => {
    const client = await connect(database)
    client.on('error', () => {})
    try {
      const [rows] = await client.query(text)
      const last = Array.isArray(rows) && Array.isArray(rows.at(-1)) ? rows.at(-1) : rows
      return (Array.isArray(last) ? last : []) as readonly Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }
  const ended = async (how: NodeJS.Signals) => {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const gone = new Promise<void>((resolve) => running.once('exit', () => resolve()))
    // A stopped process does not receive signals.
    running.kill('SIGCONT')
    running.kill(how)
    await gone
  }
  const remove = async () => {
    await ended('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }

  try {
    // Another process may take the port before it is used.
    for (let attempt = 1; ; attempt++) {
      port = await freePort()
      try {
        await launch()
        break
      } catch (error) {
        if (attempt === 3) throw error
      }
    }
    const roots = ['localhost', '127.0.0.1', '::1'].map((host) => `root@'${host}' IDENTIFIED BY '${rootPassword}'`)
    await query(
      `CREATE DATABASE app CHARACTER SET utf8mb4; ALTER USER ${roots.join(', ')}; CREATE USER reader@'%' IDENTIFIED BY '${readerPassword}'; GRANT SELECT, SHOW VIEW ON app.* TO reader@'%'`,
    )
    password = rootPassword
    await query(sql, 'app')
  } catch (error) {
    await remove()
    throw error
  }
  return {
    port,
    readerUrl: `mysql://reader:${readerPassword}@127.0.0.1:${port}/app`,
    rootUrl: `mysql://root:${rootPassword}@127.0.0.1:${port}/app`,
    run: (text) => query(text, 'app'),
    connections: async () => {
      const [row] = await query("SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE USER = 'reader'")
      return Number(row?.n)
    },
    start: launch,
    stop: () => ended('SIGTERM'),
    kill: () => ended('SIGKILL'),
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    remove,
  }
}

async function freePort(): Promise<number> {
  const listener = createServer()
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  await new Promise((resolve) => listener.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
