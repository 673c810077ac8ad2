import { requireKeys } from '../../core/kit/object.ts'
import type { Provider } from '../../core/provider.ts'
import type { RowOptions } from '../relational/index.ts'
import type { DatabaseSource, ObjectName, SelectionOptions } from '../relational/model.ts'
import { objectDirectory } from '../relational/names.ts'
import {
  completeServerOptions,
  createConnectionPool,
  openRelational,
  type ServerOptions,
  withRetry,
} from '../relational/open.ts'
import { describeRelations } from './describe.ts'
import { isTransientError } from './errors.ts'
import { mayServeRows, readCatalogPage, readKeys, readRows, tableFacts } from './page.ts'
import { describeRoutines } from './routines.ts'
import { type MysqlSession, openSession, parseDatabaseUrl } from './session.ts'
import { servedSchemaCondition } from './sql.ts'

export interface MysqlOptions extends ServerOptions {
  /** A URL of the scheme `mysql` or `mariadb` with account, password, host, port and database. */
  readonly url: string
  /** The served rows. Undefined: none. */
  readonly rows?: MysqlRowOptions
}

export interface MysqlRowOptions extends RowOptions {
  /** Whether rows of views are served, too: reading them runs the functions that the views call. Default `false`. */
  readonly views?: boolean
}

/**
 * Provider of a database of MySQL or MariaDB: tables, views, functions and procedures, and rows if they are enabled. It never
 * writes, and runs no SQL of clients. See docs/providers/mysql.md.
 *
 * If the database does not answer at the start, it is asked again at each request.
 *
 * @throws ResourceError `invalid` for a fault that the operator must correct: a wrong password, an account that could do more
 *   than read, a certificate that cannot be trusted.
 */
export async function mysql(options: MysqlOptions): Promise<Provider> {
  requireKeys('mysql({ url })', options, { url: 'a string' })
  return openRelational({ ...createMysqlSource(options), options })
}

function createMysqlSource(options: MysqlOptions) {
  const settings = completeServerOptions(options)
  const target = parseDatabaseUrl(options.url, options.tls)
  const schemas = settings.schemas ?? (target.database === undefined ? undefined : [target.database])
  const [first, second] = schemas ?? []
  const only = second === undefined ? first : undefined
  const pageOptions: SelectionOptions = { schemas, only, views: options.rows?.views ?? false }

  const pool = createConnectionPool((signal) => openSession(target, settings, signal), settings)
  const ask = withRetry(pool, isTransientError)
  const source: DatabaseSource = {
    schema: only,
    kinds: ['function'],
    page: (query, context) => ask(context, (session) => readCatalogPage(session, query, pageOptions)),
    relations: (names: readonly ObjectName[], context) =>
      ask(context, (session) => describeRelations(session, names, pageOptions)),
    routines: (names, context) => ask(context, (session) => describeRoutines(session, names, schemas)),
    ...(options.rows && {
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

/**
 * Returns the query for a checksum of rows of the information schema. Change times have a resolution of one second, so for two
 * seconds after a change in rows with such a time the checksum differs at each query.
 */
function sum([columns, from, , time]: FingerprintSource, where: string): string {
  const lately = time === undefined ? 'NULL' : `IF(MAX(${time}) >= NOW() - INTERVAL 2 SECOND, NOW(6), NULL)`
  return `SELECT CONCAT(COUNT(*), ':', COALESCE(SUM(CRC32(CONCAT_WS('|', ${columns}))), 0)), ${lately} FROM information_schema.${from} WHERE ${where}`
}

type FingerprintSource = readonly [columns: string, from: string, schema: string, time?: string]

const parts: readonly FingerprintSource[] = [
  [
    'TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, COLLATION_NAME, EXTRA, PRIVILEGES, COLUMN_COMMENT, GENERATION_EXPRESSION',
    'COLUMNS',
    'TABLE_SCHEMA',
  ],
  [
    'TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX, NON_UNIQUE, SUB_PART',
    'STATISTICS',
    'TABLE_SCHEMA',
  ],
  ['TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION', 'VIEWS', 'TABLE_SCHEMA'],
  ['TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT, CREATED', 'TRIGGERS', 'TRIGGER_SCHEMA'],
  [
    'ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, DTD_IDENTIFIER, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, ROUTINE_COMMENT, CREATED, LAST_ALTERED',
    'ROUTINES',
    'ROUTINE_SCHEMA',
    'LAST_ALTERED',
  ],
  [
    'TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COLLATION, TABLE_COMMENT, CREATE_OPTIONS, CREATE_TIME',
    'TABLES',
    'TABLE_SCHEMA',
    'CREATE_TIME',
  ],
]

/** Further parts of the fingerprint on MySQL. On MariaDB the time of a table's last change covers them. */
const partsOfMysql: readonly FingerprintSource[] = [
  [
    'TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME',
    'KEY_COLUMN_USAGE',
    'TABLE_SCHEMA',
  ],
  ['CONSTRAINT_NAME, CHECK_CLAUSE', 'CHECK_CONSTRAINTS', 'CONSTRAINT_SCHEMA'],
]

async function readFingerprint(
  { query, isMaria }: MysqlSession,
  schemas: readonly string[] | undefined,
): Promise<string> {
  const all = [...parts, ...(isMaria ? [] : partsOfMysql)]
  const conditions = all.map(([, , column]) => servedSchemaCondition(column, schemas))
  const rows = await query(
    all.map((part, i) => sum(part, conditions[i]?.sql ?? '')).join(' UNION ALL '),
    conditions.flatMap(({ values }) => values),
  )
  return rows.flat().map(String).join(' ')
}

/** Reads the time of the last change of each relation with readable rows. A view has the latest time of the tables in the served schemas. */
async function readStamps(
  { query }: MysqlSession,
  { schemas, only, views }: SelectionOptions,
): Promise<ReadonlyMap<string, string>> {
  const condition = servedSchemaCondition('TABLE_SCHEMA', schemas)
  const rows = await query(
    `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, UPDATE_TIME,
            IF(UPDATE_TIME >= NOW() - INTERVAL 2 SECOND, NOW(6), '') FROM information_schema.TABLES WHERE ${condition.sql}`,
    condition.values,
  )
  const stampOf = (row: (typeof rows)[number]) => `${String(row[4])} ${String(row[5])}`
  const latest = rows.map(stampOf).sort().at(-1) ?? ''
  return new Map(
    rows.flatMap((row): readonly (readonly [string, string])[] => {
      const [schema, name, type, engine] = row
      const { kind } = tableFacts(String(type), undefined, undefined)
      if (!mayServeRows(kind, engine === null ? undefined : String(engine), views)) return []
      const key = objectDirectory({ schema: String(schema), name: String(name) }, only)
      return [[key, kind === 'view' ? latest : stampOf(row)]]
    }),
  )
}
