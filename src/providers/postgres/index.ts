import { requireKeys } from '../../core/kit/required.ts'
import type { Provider } from '../../core/provider.ts'
import type { ObjectName } from '../relational/model.ts'
import { keyOf } from '../relational/names.ts'
import { openRelational } from '../relational/open.ts'
import { askingAgain, createPool, type Pool } from '../relational/pool.ts'
import { completeServerOptions } from '../relational/server.ts'
import type { Source, SourceContext } from '../relational/source.ts'
import { describeRelations } from './describe.ts'
import { isDisturbed, isEnded, isFault, isUnusableValue } from './errors.ts'
import { readFingerprint } from './fingerprint.ts'
import { listen } from './listen.ts'
import { describeEnums, describeRoutines, readExtensions } from './objects.ts'
import type { PostgresOptions } from './options.ts'
import { type PageOptions, readPage } from './page.ts'
import type { Session } from './query.ts'
import { type RowSettings, readKeys, readRows, readStamps } from './rows.ts'
import { openSession } from './session.ts'
import { targetOf } from './target.ts'

export type { PostgresOptions, PostgresRowOptions, TlsOptions } from './options.ts'

/**
 * A PostgreSQL database: tables, views, materialized views, enums, functions and extensions, and rows where they are asked
 * for. It never writes, and runs no statement of a client's. See docs/providers/postgres.md.
 *
 * A database that does not answer just now is no error: it is asked again when somebody asks.
 *
 * @throws ResourceError `invalid` for what an operator has to mend: a wrong password, a role that could do more than read, a
 *   certificate that cannot be trusted.
 */
export async function postgres(options: PostgresOptions): Promise<Provider> {
  requireKeys('postgres({ url })', options, { url: 'a text' })
  return openRelational({ ...createSource(options), isFault, options })
}

function createSource(options: PostgresOptions): { readonly source: Source; readonly pool: Pool<Session> } {
  const settings = completeServerOptions(options)
  const { schemas, log } = settings
  const target = targetOf(options.url, options.tls)
  const [first, second] = schemas ?? []
  const only = second === undefined ? first : undefined
  const pageOptions: PageOptions = { schemas, only, views: options.rows?.views ?? false }
  const rowSettings: RowSettings = { ...pageOptions, principalSetting: options.rows?.principalSetting }
  const closing = new AbortController()
  let warned = false

  const pool = createPool<Session>({
    open: async (signal) => {
      const session = await openSession(target, settings, signal)
      if (session.shared && !warned) {
        warned = true
        log('info', 'connections are shared by something in between (PgBouncer): changes are found by looking alone')
      }
      return session
    },
    close: (session) => session.close(),
    isUsable: (session) => session.isUsable(),
    size: settings.connections,
    patience: settings.waitTimeoutMs,
    idle: settings.idleTimeoutMs,
  })

  const again = askingAgain(pool, (error) => isDisturbed(error) || isEnded(error))
  const ask = <T>({ signal }: SourceContext, work: (session: Session) => Promise<T>): Promise<T> => again(signal, work)

  /** Describes objects by their names. In an encoding that lacks a character of one, the others are asked for alone. */
  const describe =
    <T>(work: (session: Session, names: readonly ObjectName[]) => Promise<readonly T[]>) =>
    async (names: readonly ObjectName[], context: SourceContext): Promise<readonly T[]> => {
      const most = names.filter(({ name }) => Buffer.byteLength(name) <= maxName)
      if (most.length === 0) return []
      try {
        return await ask(context, (session) => work(session, most))
      } catch (error) {
        if (!isUnusableValue(error)) throw error
        if (most.length === 1) return []
        const each = await Promise.all(most.map((name) => describe(work)([name], context)))
        return each.flat()
      }
    }

  const source: Source = {
    schema: only,
    kinds: ['enum', 'function'],
    page: async (query, context) => {
      try {
        return await ask(context, (session) => readPage(session, query, pageOptions))
      } catch (error) {
        if (isUnusableValue(error)) return []
        throw error
      }
    },
    relations: describe((session, names) => describeRelations(session, names, pageOptions)),
    enums: describe((session, names) => describeEnums(session, names, schemas)),
    routines: describe((session, names) => describeRoutines(session, names, schemas)),
    extensions: (context) => ask(context, readExtensions),
    ...(options.rows === undefined
      ? {}
      : {
          rows: {
            read: (query, context) => ask(context, (session) => readRows(session, query, rowSettings, context)),
            keys: (query, context) => ask(context, (session) => readKeys(session, query, rowSettings, context)),
            stamps: (context) =>
              ask(context, (session) => readStamps(session, pageOptions, (name) => keyOf(name, only))),
          },
        }),
    fingerprint: (context) => ask(context, (session) => readFingerprint(session, schemas)),
    hints: (signal) => listen(target, settings, AbortSignal.any([signal, closing.signal])),
    close: async () => {
      closing.abort()
      pool.close()
    },
  }
  return { source, pool }
}

/** The longest name, in bytes: one has 63 in the encoding of the database, which are more in UTF-8. */
const maxName = 63 * 3
