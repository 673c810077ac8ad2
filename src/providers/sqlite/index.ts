import { lstat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { invalid, isResourceError } from '../../core/errors.ts'
import { sleep, untilAborted } from '../../core/kit/abort.ts'
import { requireKeys } from '../../core/kit/object.ts'
import { type FolderBounds, LeadsOutError, pathWithin } from '../../core/kit/within.ts'
import type { Provider } from '../../core/provider.ts'
import type { RowOptions } from '../relational/index.ts'
import type { CatalogItem, DatabaseSource, ObjectName, Relation, RowPage, SourceContext } from '../relational/model.ts'
import {
  completeDatabaseOptions,
  createConnectionPool,
  type DatabaseOptions,
  openRelational,
} from '../relational/open.ts'
import type { ChildRequest } from './child.ts'
import { fileFault, refusedError } from './errors.ts'
import type { DatabaseOperations } from './operations.ts'
import { startReaderProcess, startTimeoutMs } from './process.ts'

export interface SqliteOptions extends DatabaseOptions {
  /** The absolute path of the file. It is only read: neither the file nor anything beside it is written or created. */
  readonly file: string
  /** The folder that the file must be in, if no person named the file: its path may then have no links. By default links to its folder are followed. */
  readonly within?: FolderBounds
  /** The served rows. Undefined: none. */
  readonly rows?: SqliteRowOptions
  /** Maximum number of processes that read the file at once. Default 2. */
  readonly connections?: number
}

export interface SqliteRowOptions extends RowOptions {
  /** Whether rows of views are served, too: reading them runs the queries of the views. Default `false`. */
  readonly views?: boolean
}

/**
 * Provider of a database in an SQLite file: tables and views, and rows if they are enabled. A separate process reads the file.
 * The file is never written, created or locked for writing. See docs/providers/sqlite.md.
 *
 * If the file cannot be read at the start (for example because it is missing or locked), it is tried again at each
 * request.
 *
 * @throws ResourceError `invalid` for a fault that the operator must correct, such as a file that is not a database.
 */
export async function sqlite(options: SqliteOptions): Promise<Provider> {
  requireKeys('sqlite({ file })', options, { file: 'a string' })
  if (!isAbsolute(options.file) || options.file.includes('\0'))
    throw invalid('The option "file" must be an absolute path.', 'configuration')
  return openRelational({
    ...createSqliteSource(options),
    isFault: (error) => fileFault(error) === 'refused' || error.kind === 'internal',
    explain: ({ message }) => `${message} The file is ${JSON.stringify(options.file)}.`,
    options,
  })
}

/** Maximum number of attempts if the file is replaced while it is read. */
const attempts = 4
/** How long a process may continue a statement that no caller waits for, before it is killed, in milliseconds. */
const graceMs = 250

function createSqliteSource(options: SqliteOptions) {
  const { file, rows } = options
  const views = rows?.views ?? false
  const from = ({ name, rows }: Relation) => ({ table: name, access: rows, views })
  const closing = new AbortController()
  const settings = completeDatabaseOptions(options)
  const pool = createConnectionPool((signal) => startReader(options, settings, signal), {
    ...settings,
    connections: options.connections ?? 2,
  })

  /** Sends one request. A process that has the replaced file open, or lacks memory, is ended. */
  const once = (signal: AbortSignal, name: keyof DatabaseOperations, values: readonly unknown[]): Promise<unknown> =>
    pool.use(signal, async (reader) => {
      try {
        return await reader.ask(name, values)
      } catch (error) {
        // After a lack of memory, end the process, which frees all of its memory.
        if (fileFault(error) === 'stale' || isResourceError(error, 'too-large')) reader.close()
        throw error
      }
    })
  const untilAnswered = async (signal: AbortSignal, name: keyof DatabaseOperations, values: readonly unknown[]) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(signal, name, values)
      } catch (error) {
        if (fileFault(error) !== 'stale' || attempt === attempts) throw error
      }
    }
  }
  const ask = <T>(
    { signal }: SourceContext,
    name: keyof DatabaseOperations,
    ...values: readonly unknown[]
  ): Promise<T> => leaving(signal, (patient) => untilAnswered(patient, name, values) as Promise<T>)

  const source: DatabaseSource = {
    schema: '',
    kinds: [],
    page: (query, context) => ask<readonly CatalogItem[]>(context, 'page', query, views),
    relations: (names: readonly ObjectName[], context) => ask<readonly Relation[]>(context, 'relations', names, views),
    ...(rows && {
      rows: {
        read: ({ relation, ...query }, context) => ask<RowPage>(context, 'rows', { ...query, ...from(relation) }),
        keys: ({ relation, ...query }, context) =>
          ask<readonly (readonly string[])[]>(context, 'keys', { ...query, ...from(relation) }),
        areStampsExact: true,
        stamps: async (context) => {
          const { keys, stamp } = await ask<ReturnType<DatabaseOperations['stamps']>>(context, 'stamps', views)
          return new Map(keys.map((key) => [key, stamp]))
        },
      },
    }),
    fingerprint: (context) => ask<string>(context, 'fingerprint'),
    hints: (signal) => hintsOf(file, AbortSignal.any([signal, closing.signal])),
    close: async () => {
      closing.abort()
      pool.close()
    },
  }
  return { source, pool }
}

/**
 * Returns the result of some work, unless the signal aborts first. The signal of the work aborts a moment later: by then most
 * statements have ended, and their process can be kept.
 */
async function leaving<T>(signal: AbortSignal, work: (patient: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const later = new AbortController()
  const leave = () => setTimeout(() => later.abort(signal.reason), graceMs).unref()
  signal.addEventListener('abort', leave, { once: true })
  return untilAborted(work(later.signal), signal).finally(() => signal.removeEventListener('abort', leave))
}

/** Interval at which the file is checked for changes, in milliseconds. */
const pollIntervalMs = 500

/** Yields whenever the file, its log or its journal was touched or replaced. */
async function hintsOf(file: string, signal: AbortSignal): Promise<AsyncIterable<void>> {
  const first = await traceOf(file)
  return (async function* () {
    for (let before = first; ; ) {
      await sleep(pollIntervalMs, signal)
      if (signal.aborted) return
      const now = await traceOf(file)
      if (now === before) continue
      before = now
      yield
    }
  })()
}

async function traceOf(file: string): Promise<string> {
  const traces = await Promise.all(
    ['', '-wal', '-journal'].map(async (end) => {
      const stats = await lstat(`${file}${end}`, { bigint: true }).catch(() => undefined)
      return stats === undefined ? '' : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`
    }),
  )
  return traces.join(' ')
}

/**
 * Starts a process that opens the file.
 *
 * @throws ResourceError `unavailable`, with the fault `refused` if only an operator can solve the problem.
 */
async function startReader(
  options: Pick<SqliteOptions, 'file' | 'within'>,
  { statementTimeoutMs, lockTimeoutMs }: Pick<Required<DatabaseOptions>, 'statementTimeoutMs' | 'lockTimeoutMs'>,
  signal: AbortSignal,
) {
  const file = await placeOf(options)
  signal.throwIfAborted()
  const reader = await startReaderProcess()
  signal.addEventListener('abort', reader.close, { once: true })
  try {
    signal.throwIfAborted()
    const values = [file, lockTimeoutMs, options.within !== undefined]
    await reader.ask('open', values, startTimeoutMs + lockTimeoutMs + statementTimeoutMs)
  } catch (error) {
    reader.close()
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', reader.close)
  }
  return {
    ...reader,
    ask: (name: ChildRequest['name'], values: readonly unknown[]) =>
      reader.ask(name, values, statementTimeoutMs + lockTimeoutMs),
  }
}

/** Returns the path of the file. With `within`, a path that leads through a symbolic link is refused. */
async function placeOf({ file, within }: Pick<SqliteOptions, 'file' | 'within'>): Promise<string> {
  if (within === undefined) return file
  try {
    return await pathWithin(file, within)
  } catch (error) {
    if (error instanceof LeadsOutError)
      throw refusedError('The path of the database leads through a symbolic link. Name its target instead.')
    // The path cannot be resolved. The process that opens the file reports why.
    return file
  }
}
