import { createAutoResetEvent } from '../../core/kit/abort.ts'
import { requireKeys } from '../../core/kit/object.ts'
import type { Provider } from '../../core/provider.ts'
import type { DatabaseSource, ObjectName, SelectionOptions, SourceContext } from '../relational/model.ts'
import { objectDirectory } from '../relational/names.ts'
import {
  completeServerOptions,
  createConnectionPool,
  openRelational,
  type ServerSettings,
  withRetry,
} from '../relational/open.ts'
import {
  isDroppedObjectError,
  isEndedError,
  isUnusableValueError,
  type PostgresOptions,
  type PostgresTarget,
  parseDatabaseUrl,
} from './connection.ts'
import { describeEnums, describeRoutines, readExtensions } from './ddl.ts'
import { describeRelations } from './describe.ts'
import { type RowSettings, readKeys, readRows, readStamps } from './rows.ts'
import { openSession } from './session.ts'
import { notifyChannel, type PostgresSession, readCatalogPage, servedSchemaCondition } from './sql.ts'

export type { PostgresOptions, PostgresRowOptions, TlsOptions } from './connection.ts'

/**
 * Provider of a PostgreSQL database: tables, views, materialized views, enums, functions and extensions, and rows if they are
 * enabled. It never writes, and runs no SQL of clients. See docs/providers/postgres.md.
 *
 * If the database does not answer at the start, it is asked again at each request.
 *
 * @throws ResourceError `invalid` for a fault that the operator must correct: a wrong password, a role that could do more than
 *   read, a certificate that cannot be trusted.
 */
export async function postgres(options: PostgresOptions): Promise<Provider> {
  requireKeys('postgres({ url })', options, { url: 'a string' })
  return openRelational({ ...createPostgresSource(options), options })
}

function createPostgresSource(options: PostgresOptions) {
  const settings = completeServerOptions(options)
  const { schemas, log } = settings
  const target = parseDatabaseUrl(options.url, options.tls)
  const [first, second] = schemas ?? []
  const only = second === undefined ? first : undefined
  const pageOptions: SelectionOptions = { schemas, only, views: options.rows?.views ?? false }
  const rowSettings: RowSettings = { ...pageOptions, principalSetting: options.rows?.principalSetting }
  const closing = new AbortController()
  let warned = false

  const pool = createConnectionPool(async (signal) => {
    const session = await openSession(target, settings, signal)
    if (session.shared && !warned) {
      warned = true
      log('info', 'a pooler shares the connections (PgBouncer): changes are found by polling alone')
    }
    return session
  }, settings)
  const ask = withRetry(pool, (error) => isDroppedObjectError(error) || isEndedError(error))

  /**
   * Describes objects by their names. If the encoding of the database lacks a character of one name, the others are queried
   * without it.
   */
  const describe =
    <T>(work: (session: PostgresSession, names: readonly ObjectName[]) => Promise<readonly T[]>) =>
    async (names: readonly ObjectName[], context: SourceContext): Promise<readonly T[]> => {
      const shortNames = names.filter(({ name }) => Buffer.byteLength(name) <= maxNameBytes)
      if (shortNames.length === 0) return []
      try {
        return await ask(context, (session) => work(session, shortNames))
      } catch (error) {
        if (!isUnusableValueError(error)) throw error
        if (shortNames.length === 1) return []
        const each = await Promise.all(shortNames.map((name) => describe(work)([name], context)))
        return each.flat()
      }
    }

  const source: DatabaseSource = {
    schema: only,
    kinds: ['enum', 'function'],
    page: async (query, context) => {
      try {
        return await ask(context, (session) => readCatalogPage(session, query, pageOptions))
      } catch (error) {
        if (isUnusableValueError(error)) return []
        throw error
      }
    },
    relations: describe((session, names) => describeRelations(session, names, pageOptions)),
    enums: describe((session, names) => describeEnums(session, names, schemas)),
    routines: describe((session, names) => describeRoutines(session, names, schemas)),
    extensions: (context) => ask(context, readExtensions),
    ...(options.rows && {
      rows: {
        read: (query, context) => ask(context, (session) => readRows(session, query, rowSettings, context)),
        keys: (query, context) => ask(context, (session) => readKeys(session, query, rowSettings, context)),
        stamps: (context) =>
          ask(context, (session) => readStamps(session, pageOptions, (name) => objectDirectory(name, only))),
      },
    }),
    fingerprint: (context) => ask(context, (session) => readFingerprint(session, schemas)),
    hints: (signal) => listenForNotifications(target, settings, AbortSignal.any([signal, closing.signal])),
    close: async () => {
      closing.abort()
      pool.close()
    },
  }
  return { source, pool }
}

/** Maximum length of a name, in bytes: 63 in the encoding of the database, which may be more in UTF-8. */
const maxNameBytes = 63 * 3

/**
 * Returns the SQL of a text that changes whenever rows of a catalog table do: their number, and the sum of the ids of the transactions
 * that wrote them. Statistics are updated in place, and do not change the text.
 */
const sum = (table: string, join = '') =>
  `(SELECT pg_catalog.count(*) || ':' || COALESCE(pg_catalog.sum(x.xmin::text::bigint), 0) FROM pg_catalog.${table} x ${join})`

const inRelation = (column: string) => `WHERE x.${column} IN (SELECT r.oid FROM relations r)`

const fingerprintSql = `
WITH schemas AS MATERIALIZED (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE ${servedSchemaCondition('$1')}),
relations AS MATERIALIZED (
  SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace IN (SELECT s.oid FROM schemas s)),
described AS MATERIALIZED (
  SELECT r.oid FROM relations r UNION ALL SELECT s.oid FROM schemas s
  UNION ALL SELECT t.oid FROM pg_catalog.pg_type t WHERE t.typnamespace IN (SELECT s.oid FROM schemas s) AND t.typtype = 'e'
  UNION ALL SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace IN (SELECT s.oid FROM schemas s)
  UNION ALL SELECT e.oid FROM pg_catalog.pg_extension e)
SELECT pg_catalog.concat_ws(' ',
  ${sum('pg_namespace', 'WHERE x.oid IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_class', 'WHERE x.oid IN (SELECT r.oid FROM relations r)')},
  ${sum('pg_attribute', `${inRelation('attrelid')} AND x.attnum > 0`)},
  ${sum('pg_attrdef', inRelation('adrelid'))},
  ${sum('pg_constraint', inRelation('conrelid'))},
  ${sum('pg_index', inRelation('indrelid'))},
  ${sum('pg_trigger', inRelation('tgrelid'))},
  ${sum('pg_rewrite', inRelation('ev_class'))},
  ${sum('pg_inherits', inRelation('inhrelid'))},
  ${sum('pg_type', 'WHERE x.typnamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_enum', 'JOIN pg_catalog.pg_type t ON t.oid = x.enumtypid WHERE t.typnamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_proc', 'WHERE x.pronamespace IN (SELECT s.oid FROM schemas s)')},
  ${sum('pg_description', 'WHERE x.objoid IN (SELECT d.oid FROM described d)')},
  ${sum('pg_extension')},
  ${sum('pg_auth_members')},
  (SELECT pg_catalog.sum(pg_catalog.hashtext(r.rolname::text)::bigint) FROM pg_catalog.pg_roles r))`

async function readFingerprint(session: PostgresSession, schemas: readonly string[] | undefined): Promise<string> {
  const [row] = await session.query({ text: fingerprintSql, fixed: true }, [schemas ?? null])
  return row?.[0] ?? ''
}

/** Interval at which a connection that only listens is checked, in milliseconds. */
const checkIntervalMs = 30_000

/**
 * Listens for notifications over a separate connection; resolves once it listens. `undefined` when a proxy between this process
 * and the server would lose notifications. Every role that can connect can notify, so the payload is ignored.
 */
async function listenForNotifications(
  target: PostgresTarget,
  settings: ServerSettings,
  signal: AbortSignal,
): Promise<AsyncIterable<void> | undefined> {
  const session = await openSession(target, settings, signal)
  if (session.shared) {
    session.close()
    return undefined
  }
  let hasEnded = false
  const event = createAutoResetEvent()
  session.onNotification(event.set, () => {
    hasEnded = true
    event.set()
  })
  try {
    await session.query({ text: `LISTEN ${notifyChannel}` }, [])
  } catch (error) {
    session.close()
    throw error
  }
  // A query detects a connection that was lost without being closed.
  const timer = setInterval(
    () => void session.query({ text: 'SELECT 1' }, []).catch(() => session.close()),
    checkIntervalMs,
  )
  timer.unref()
  const stop = () => session.close()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()

  return (async function* () {
    try {
      while (!hasEnded) {
        await event.wait()
        if (!hasEnded) yield
      }
    } finally {
      clearInterval(timer)
      signal.removeEventListener('abort', stop)
      session.close()
    }
  })()
}
