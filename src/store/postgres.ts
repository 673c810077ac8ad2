import { createHash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { Log } from '../core/log.ts'
import { type AsPromises, type CollectionOperations, type Engine, listSql, type SqlDialect } from './engine.ts'
import type { PostgresStore } from './options.ts'
import { removalsSql, rowsSql, textTablesSql, textWritesSql } from './postgres/schema.ts'
import {
  createNotificationListener,
  createStorePool,
  isMissingTableError,
  type PostgresRow,
  type RunStatement,
  toStoreError,
} from './postgres/server.ts'
import { textOperationsOn } from './postgres/texts.ts'
import { leasesCollection, storeError, storeLimits, valueError } from './rules.ts'
import type { Condition, Row } from './store.ts'

/** Number of rows that one step of an eviction removes. */
const batch = 500

/** Opens a store in a schema of a PostgreSQL server. */
export async function openPostgres(options: PostgresStore['postgres'], log: Log): Promise<Engine> {
  const schema = schemaOf(options.schema ?? 'hikidashi')
  const server = createStorePool(options)
  const listener = createNotificationListener(server, schema.channel, (connected) =>
    log(
      connected ? 'info' : 'warn',
      connected
        ? 'The store reports changes again.'
        : 'The connection on which the store reports changes is lost. hikidashi connects again.',
    ),
  )
  const prepare = doneOnce(() => migrate(schema, server.ask, server.within))
  const ask: RunStatement = async (sql, values) => {
    try {
      await prepare()
      return await server.ask(sql, values)
    } catch (error) {
      // The next use creates the missing tables again.
      if (isMissingTableError(error)) prepare.forget()
      throw toStoreError(error)
    }
  }
  const close = async () => {
    await listener.close()
    await server.close()
  }

  try {
    await prepare()
  } catch (thrown) {
    const error = toStoreError(thrown)
    if (!isResourceError(error, 'unavailable')) {
      await close()
      throw error
    }
    log('warn', error.message)
  }
  return { ...operationsOn(ask, schema.quoted), ...textOperationsOn(ask, schema.quoted), watch: listener.watch, close }
}

function schemaOf(name: string) {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name))
    throw valueError(
      'The name of the schema of the store must have at most 63 lower-case letters, digits and underscores, and begin with no digit.',
      'configuration',
    )
  // The name of a channel has at most 63 bytes, so it has a digest of the name of the schema.
  const channel = `hikidashi_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
  return { name, quoted: `"${name}"`, channel }
}

function operationsOn(ask: RunStatement, schema: string): AsPromises<CollectionOperations> {
  const dialect = dialectOf(schema)
  const home = `(select id from ${schema}.collections where name = $1)`
  return {
    get: async (collection, key) => {
      const [row] = await ask(
        `select ${dialect.columns(true)} from ${schema}.rows r where r.collection = ${home} and r.key = $2
         and (r.expires is null or r.expires > ${dialect.now})`,
        [collection, key],
      )
      return row === undefined ? undefined : decodeRow(row)
    },
    put: async (collection, row, condition) => {
      const { key, value, expires, terms } = row
      const values = [collection, key, toBuffer(value), expires ?? null, terms, ...conditionOf(condition)]
      const [times] = await ask(`select * from ${schema}.put($1, $2, $3, $4, $5, $6, $7)`, values)
      if (times === undefined) return undefined
      const { revision, created, modified } = times
      return { ...row, revision: Number(revision), created: Number(created), modified: Number(modified) }
    },
    delete: async (collection, key, condition) => {
      const values = [collection, key, ...conditionOf(condition)]
      const [row] = await ask(`select ${schema}.delete($1, $2, $3, $4) as done`, values)
      return row?.done === true
    },
    list: async (collection, query) => {
      const { sql, values } = listSql(dialect, collection, query)
      return (await ask(sql, values)).map(decodeRow)
    },
    similar: async (collection, terms, limit) => {
      const rows = await ask(similarSql(schema, dialect.now), [collection, terms, limit])
      return rows.map(({ key, shared }) => ({ key: String(key), shared: Number(shared) }))
    },
    size: async (collection) => {
      const [row] = await ask(`select rows, bytes from ${schema}.collections where name = $1`, [collection])
      return { rows: Number(row?.rows ?? 0), bytes: Number(row?.bytes ?? 0) }
    },
    evict: async (collection, { rows = null, bytes = null, age = null }) => {
      const values = [collection, rows, bytes, age, batch]
      const keyRows = await ask(`select ${schema}.evict($1, $2, $3, $4, $5) as key`, values)
      return keyRows.map(({ key }) => String(key))
    },
    takeLease: async (name, holder, ttlMs) => {
      const rows = await ask(
        `insert into ${schema}.leases as l (name, holder, expires) values ($1, $2, ${schema}.now_ms() + $3::bigint)
         on conflict (name) do update set holder = excluded.holder, expires = excluded.expires
         where l.expires <= ${schema}.now_ms() returning name`,
        [name, holder, Math.ceil(ttlMs)],
      )
      return rows.length > 0
    },
    renewLease: async (name, holder, ttlMs) => {
      const rows = await ask(
        `update ${schema}.leases set expires = ${schema}.now_ms() + $3::bigint where name = $1 and holder = $2
         returning name`,
        [name, holder, Math.ceil(ttlMs)],
      )
      return rows.length > 0
    },
    dropLease: async (name, holder) => {
      await ask(
        `with gone as (delete from ${schema}.leases where name = $1 and holder = $2 returning name)
         select ${schema}.tell($3, array[name]) from gone`,
        [name, holder, leasesCollection],
      )
    },
  }
}

function dialectOf(schema: string): SqlDialect {
  const head = 'r.key, r.revision, r.created, r.modified, r.expires, r.terms'
  return {
    parameter: (n) => `$${n}`,
    table: (name) => `${schema}.${name}`,
    columns: (values) => (values ? `${head}, r.value` : head),
    now: `(select ${schema}.now_ms())`,
  }
}

/** Takes a limited number of rows of each term, chooses those with most of the terms, and then counts their terms. */
function similarSql(schema: string, now: string): string {
  const home = `(select id from ${schema}.collections where name = $1)`
  return `with found as (
      select t.key, count(*) as shared from unnest($2::text[]) wanted
      cross join lateral (
        select t.key from ${schema}.terms t where t.collection = ${home} and t.term = wanted limit ${storeLimits.similarRows}
      ) t
      group by t.key
    ), best as (
      select f.key from found f join ${schema}.rows r on r.collection = ${home} and r.key = f.key
      where r.expires is null or r.expires > ${now}
      order by f.shared desc, f.key limit 4 * $3::bigint
    )
    select b.key, (
      select count(*) from ${schema}.terms t
      where t.collection = ${home} and t.term = any ($2::text[]) and t.key = b.key
    ) as shared
    from best b order by shared desc, b.key limit $3::bigint`
}

function conditionOf(condition: Condition | undefined): readonly [boolean, number | null] {
  if (condition === undefined) return [false, null]
  return 'absent' in condition ? [true, null] : [false, condition.revision]
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function decodeRow(row: PostgresRow): Row {
  const { key, revision, created, modified, expires, terms, value } = row
  return {
    key: String(key),
    value: value instanceof Uint8Array ? new Uint8Array(value) : new Uint8Array(),
    revision: Number(revision),
    created: Number(created),
    modified: Number(modified),
    ...(expires === null ? {} : { expires: Number(expires) }),
    terms: Array.isArray(terms) ? terms.map(String) : [],
  }
}

/**
 * Migrations, each from the version before it. A released migration never changes: a new one is added. A write of rows or texts is an SQL
 * function, so that it is one round trip and one transaction. It first locks the row of its collection, so that writes become visible in
 * the order of their revisions.
 */
function migrations(schema: string, channel: string): readonly string[] {
  const rows = [rowsSql(schema, channel), removalsSql(schema)].join('\n\n')
  return [rows, `${textTablesSql(schema)}\n\n${textWritesSql(schema)}`]
}

/**
 * Creates the tables of a store, or migrates them to this version.
 *
 * @param within Runs a function in one transaction.
 * @throws ResourceError `invalid` if the tables are of a newer version, or belong to another program.
 */
async function migrate(
  { name, quoted, channel }: { readonly name: string; readonly quoted: string; readonly channel: string },
  ask: RunStatement,
  within: (act: (ask: RunStatement) => Promise<void>) => Promise<void>,
): Promise<void> {
  const steps = migrations(quoted, channel)
  if ((await readSchemaVersion(name, quoted, ask)) === steps.length) return
  await within(async (inside) => {
    await inside(`select pg_advisory_xact_lock(hashtext('hikidashi'), hashtext($1))`, [name])
    const schemaVersion = await readSchemaVersion(name, quoted, inside)
    if (schemaVersion > steps.length)
      throw valueError(
        `A newer hikidashi wrote the store: its version is ${schemaVersion}, and this hikidashi reads up to ${steps.length}. Update hikidashi, or name another schema.`,
        'configuration',
      )
    if (schemaVersion === 0) await make(name, quoted, inside)
    for (const step of steps.slice(schemaVersion)) await inside(step)
    await inside(`update ${quoted}.meta set version = $1`, [steps.length])
  })
}

/**
 * Reads the version of the schema; 0 when it does not exist. It asks the catalog, because a query of a missing table would fail the
 * transaction.
 */
async function readSchemaVersion(name: string, quoted: string, ask: RunStatement): Promise<number> {
  const [there] = await ask(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
     where s.nspname = $1 and c.relname = 'meta'`,
    [name],
  )
  if (there === undefined) return 0
  const [row] = await ask(`select version from ${quoted}.meta`)
  if (typeof row?.version !== 'number') throw storeError('damaged', 'no version')
  return row.version
}

async function make(name: string, quoted: string, ask: RunStatement): Promise<void> {
  const rows = await ask(
    'select count(c.oid)::int as n from pg_namespace s left join pg_class c on c.relnamespace = s.oid where s.nspname = $1 group by s.oid',
    [name],
  )
  if (rows.length === 0) await ask(`create schema ${quoted}`)
  else if (rows[0]?.n !== 0)
    throw valueError('The schema of the store has tables of another program. Name another schema.', 'configuration')
  await ask(`create table ${quoted}.meta (version integer not null)`)
  await ask(`insert into ${quoted}.meta values (0)`)
}
