import { requireKeys } from '../../core/kit/required.ts'
import type { Provider } from '../../core/provider.ts'
import type { ObjectName } from '../relational/model.ts'
import { openRelational } from '../relational/open.ts'
import { askingAgain, createPool, type Pool } from '../relational/pool.ts'
import { completeServerOptions } from '../relational/server.ts'
import type { Source, SourceContext } from '../relational/source.ts'
import { describeRelations } from './describe.ts'
import { isFault, isPassing } from './errors.ts'
import { readFingerprint, readStamps } from './fingerprint.ts'
import type { MysqlOptions } from './options.ts'
import { type PageOptions, readPage } from './page.ts'
import { describeRoutines } from './routines.ts'
import { readKeys, readRows } from './rows.ts'
import { openSession, type Session } from './session.ts'
import { targetOf } from './target.ts'

export type { MysqlOptions, MysqlRowOptions } from './options.ts'

/**
 * A database of MySQL or MariaDB: tables, views, functions and procedures, and rows where they are asked for. It never writes, and runs no statement of
 * a client's. See docs/providers/mysql.md.
 *
 * A database that does not answer just now is no error: it is asked again when somebody asks.
 *
 * @throws ResourceError `invalid` for what an operator has to mend: a wrong password, an account that could do more than read, a
 *   certificate that cannot be trusted.
 */
export async function mysql(options: MysqlOptions): Promise<Provider> {
  requireKeys('mysql({ url })', options, { url: 'a text' })
  return openRelational({ ...createSource(options), isFault, options })
}

function createSource(options: MysqlOptions): { readonly source: Source; readonly pool: Pool<Session> } {
  const settings = completeServerOptions(options)
  const target = targetOf(options.url, options.tls)
  const schemas = settings.schemas ?? (target.database === undefined ? undefined : [target.database])
  const [first, second] = schemas ?? []
  const only = second === undefined ? first : undefined
  const pageOptions: PageOptions = { schemas, only, views: options.rows?.views ?? false }

  const pool = createPool<Session>({
    open: (signal) => openSession(target, settings, signal),
    close: (session) => session.close(),
    isUsable: (session) => session.isUsable(),
    reset: (session) => session.reset(),
    size: settings.connections,
    patience: settings.waitTimeoutMs,
    idle: settings.idleTimeoutMs,
  })

  const again = askingAgain(pool, isPassing)
  const ask = <T>({ signal }: SourceContext, work: (session: Session) => Promise<T>): Promise<T> => again(signal, work)

  const source: Source = {
    schema: only,
    kinds: ['function'],
    page: (query, context) => ask(context, (session) => readPage(session, query, pageOptions)),
    relations: (names: readonly ObjectName[], context) =>
      ask(context, (session) => describeRelations(session, names, pageOptions)),
    routines: (names, context) => ask(context, (session) => describeRoutines(session, names, schemas)),
    ...(options.rows === undefined
      ? {}
      : {
          rows: {
            read: (query, context) => ask(context, (session) => readRows(session, query, pageOptions)),
            keys: (query, context) => ask(context, (session) => readKeys(session, query, pageOptions)),
            stamps: (context) => ask(context, (session) => readStamps(session, pageOptions)),
          },
        }),
    fingerprint: (context) => ask(context, (session) => readFingerprint(session, schemas)),
    close: async () => pool.close(),
  }
  return { source, pool }
}
