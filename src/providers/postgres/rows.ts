import { invalid, isResourceError, notFound } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type {
  KeyQuery,
  ObjectName,
  RowPage,
  RowQuery,
  SelectionOptions,
  SourceContext,
  TableRow,
} from '../relational/model.ts'
import { hexOfBase64 } from '../relational/names.ts'
import { isUnusableValueError } from './connection.ts'
import { quoteObjectName } from './ddl.ts'
import {
  type PostgresSession,
  type Query,
  quoteName,
  readableRowsCondition,
  servedSchemaCondition,
  usableSchemaCondition,
  visibleRelationCondition,
} from './sql.ts'

export interface RowSettings extends SelectionOptions {
  readonly principalSetting: string | undefined
}

type Types = ReadonlyMap<string, string>

/**
 * Reads a page of rows, in one read-only snapshot. Statements contain only quoted names from the catalog; values of clients are
 * bound.
 */
export async function readRows(
  session: PostgresSession,
  query: RowQuery,
  settings: RowSettings,
  context: SourceContext,
): Promise<RowPage> {
  const { relation, columns, limit, key: only, after, isShown = false } = query
  const key = relation.rows?.key ?? []
  if (columns.length === 0) return { rows: [], more: false }
  try {
    return await session.transaction(async (run) => {
      await become(run, settings, context)
      const types = await typesOf(run, relation, settings)
      if ([...columns, ...key].some((column) => !types.has(column))) throw notFound('a column is gone')
      const boundOf = (text: string, i: number) => boundOfShown(text, types.get(key[i] ?? '') ?? '')
      const values = (isShown ? only?.map(boundOf) : only) ?? after ?? []
      const text = rowsSql(query, key, types, only === undefined ? '>' : '=')
      const pageRows = await run({ text }, [...values, limit + 1, query.maxBytes])
      const rows = pageRows.map(([json]) => toTableRow(JSON.parse(json ?? '') as RawRow, columns, types))
      const rowCount = Number(pageRows[0]?.[1] ?? 0)
      return { rows: rows.slice(0, limit), more: rowCount > Math.min(limit, rows.length) }
    })
  } catch (error) {
    if (!isUnusableValueError(error)) throw error
    if (only !== undefined) return { rows: [], more: false }
    if (after !== undefined)
      throw invalid('The parameter "after" is not the key of a row of this table.', 'parameter', { parameter: 'after' })
    // Without a value of the caller, a view failed on a value in a row that it converts.
    throw error
  }
}

function boundOfShown(text: string, type: string): string {
  return type === 'bytea' ? `\\x${hexOfBase64(text) ?? ''}` : text
}

export async function readKeys(
  session: PostgresSession,
  { relation, typed, limit }: KeyQuery,
  settings: RowSettings,
  context: SourceContext,
): Promise<readonly (readonly string[])[]> {
  const key = relation.rows?.key ?? []
  const [first] = key
  if (first === undefined) return []
  try {
    return await session.transaction(async (run) => {
      await become(run, settings, context)
      const types = await typesOf(run, relation, settings)
      if (key.some((column) => !types.has(column))) return []
      const names = key.map(quoteName)
      const from = typed === '' ? 'WHERE $1::text IS NOT NULL' : `WHERE ${quoteName(first)} >= $1`
      const text = `SELECT pg_catalog.json_build_array(${key.map(castToText).join(', ')})::text
        FROM ${quoteObjectName(relation)} ${from} ORDER BY ${names.join(', ')} LIMIT $2::int`
      const rows = await run({ text }, [typed, limit])
      return rows.map(([json]) => JSON.parse(json ?? '[]') as readonly string[])
    })
  } catch (error) {
    if (isUnusableValueError(error) || isResourceError(error, 'not-found')) return []
    throw error
  }
}

/** Sets `principalSetting` to the id of the caller, for this transaction only, for policies of row-level security. */
async function become(run: Query, { principalSetting }: RowSettings, { principal }: SourceContext): Promise<void> {
  if (principalSetting === undefined) return
  const text = 'SELECT pg_catalog.set_config($1, $2, true)'
  await run({ text, fixed: true }, [principalSetting, principal?.id ?? ''])
}

/** Reads the types of the columns that the role may read, by name. A domain has its base type, and a type from outside `pg_catalog` is empty. */
async function typesOf(run: Query, name: ObjectName, { schemas, views }: RowSettings): Promise<Types> {
  const rows = await run({ text: typesSql(views), fixed: true }, [schemas ?? null, name.schema, name.name])
  return new Map(rows.map(([column, type]) => [column ?? '', type ?? '']))
}

const typesSql = (views: boolean) => `
SELECT a.attname, (
    WITH RECURSIVE base AS (
      SELECT t.typname, t.typtype, t.typbasetype, t.typnamespace FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
      UNION ALL SELECT t.typname, t.typtype, t.typbasetype, t.typnamespace
        FROM pg_catalog.pg_type t JOIN base b ON b.typtype = 'd' AND t.oid = b.typbasetype)
    SELECT CASE WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname::text ELSE '' END FROM base b WHERE b.typtype <> 'd')
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
 WHERE n.nspname = $2::text AND c.relname = $3::text AND ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND ${visibleRelationCondition}
   AND ${readableRowsCondition(views)} AND a.attnum > 0 AND NOT a.attisdropped
   AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')`

function rowsSql(
  { relation, columns, maxValueBytes, key: only, after }: RowQuery,
  key: readonly string[],
  types: Types,
  comparison: '>' | '=',
): string {
  const names = key.map(quoteName)
  const bound = only ?? after
  const where =
    bound === undefined
      ? ''
      : `WHERE (${names.join(', ')}) ${comparison} (${names.map((_, i) => `$${i + 1}`).join(', ')})`
  const order = names.length === 0 ? '' : `ORDER BY ${names.join(', ')}`
  const [limit, budget] = [`$${(bound?.length ?? 0) + 1}::int`, `$${(bound?.length ?? 0) + 2}::bigint`]
  const typed = columns.map((column) => ({ column, type: types.get(column) ?? '' }))
  // Uses arrays, because a table may have as many columns as a statement can return.
  const pieces = typed.map(({ column, type }) => pieceOf(column, type, maxValueBytes)).join(', ')
  const sizes = typed.map(({ column, type }) => lengthIfCutSql(column, type, maxValueBytes)).join(', ')
  const keys = key.length === 0 ? "'{}'::text[]" : `ARRAY[${key.map(castToText).join(', ')}]`
  return `
SELECT pg_catalog.json_build_array(r.k, r.v, r.s)::text, r.fetched
  FROM (
    SELECT q.*, pg_catalog.count(*) OVER () AS fetched,
           pg_catalog.sum(pg_catalog.octet_length(pg_catalog.array_to_string(q.v, ''))) OVER (ORDER BY q.n) AS total
      FROM (
        SELECT ${keys} AS k, ARRAY[${pieces}]::text[] AS v, ARRAY[${sizes}]::int[] AS s,
               pg_catalog.row_number() OVER (${order}) AS n
          FROM ${quoteObjectName(relation)} ${where} ${order} LIMIT ${limit}
      ) q
  ) r WHERE r.n = 1 OR r.total <= ${budget} ORDER BY r.n`
}

type RawRow = readonly [readonly string[], readonly (string | null)[], readonly (number | null)[]]

function toTableRow([key, values, sizes]: RawRow, columns: readonly string[], types: Types): TableRow {
  return {
    key,
    values: columns.map((column, i) => {
      const size = sizes[i] ?? undefined
      const json = valueToJson(values[i] ?? null, types.get(column) ?? '', size !== undefined)
      return { json, ...defined({ cut: size }) }
    }),
  }
}

/**
 * Returns, for each relation with readable rows, a text that changes when its rows do. The text of a view changes with every write to the
 * database, because its rows may come from any table.
 */
export async function readStamps(
  session: PostgresSession,
  { schemas, views, only }: SelectionOptions,
  keyOf: (name: ObjectName) => string,
): Promise<ReadonlyMap<string, string>> {
  const rows = await session.query({ text: stampsSql(views), fixed: true }, [schemas ?? null])
  return new Map(
    rows.map(([schema, name, stamp]) => [keyOf({ schema: schema ?? only ?? '', name: name ?? '' }), stamp ?? '']),
  )
}

const stampsSql = (views: boolean) => `
WITH counted AS MATERIALIZED (
  SELECT c.oid, pg_catalog.pg_stat_get_tuples_inserted(c.oid) + pg_catalog.pg_stat_get_tuples_updated(c.oid)
       + pg_catalog.pg_stat_get_tuples_deleted(c.oid) AS writes, pg_catalog.pg_relation_filenode(c.oid) AS file
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_'
), summed AS MATERIALIZED (
  SELECT a.oid, pg_catalog.sum(t.writes) AS writes, pg_catalog.sum(t.file::bigint) AS files FROM counted t
    CROSS JOIN LATERAL (SELECT t.oid UNION SELECT p.relid FROM pg_catalog.pg_partition_ancestors(t.oid) p) a GROUP BY a.oid
), everything AS MATERIALIZED (SELECT pg_catalog.sum(t.writes) AS writes, pg_catalog.sum(t.file::bigint) AS files FROM counted t)
SELECT n.nspname, c.relname, CASE WHEN c.relkind = 'v' THEN e.writes || ' ' || e.files ELSE s.writes || ' ' || s.files END
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN summed s ON s.oid = c.oid CROSS JOIN everything e
 WHERE ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND ${visibleRelationCondition} AND ${readableRowsCondition(views)}`

/** Types whose text form is valid JSON. */
const plain = new Set(['bool', 'int2', 'int4', 'oid', 'json', 'jsonb'])
const floats = new Set(['float4', 'float8'])
const times = new Set(['timestamp', 'timestamptz'])
const texts = new Set(['text', 'varchar', 'bpchar'])

function castToText(column: string): string {
  return `${quoteName(column)}::text`
}

function pieceOf(column: string, type: string, most: number): string {
  const name = quoteName(column)
  if (type === 'bytea')
    return `pg_catalog.encode(CASE WHEN pg_catalog.octet_length(${name}) > ${most} THEN pg_catalog.substring(${name}, 1, ${most}) ELSE ${name} END, 'base64')`
  // A character has up to four bytes.
  const start = `pg_catalog.left(${castToText(column)}, ${Math.max(1, Math.floor(most / 4))})`
  return `CASE WHEN ${lengthOf(column, type)} > ${most} THEN ${start} ELSE ${castToText(column)} END`
}

function lengthIfCutSql(column: string, type: string, most: number): string {
  const length = lengthOf(column, type)
  return `CASE WHEN ${length} > ${most} THEN ${length} END`
}

function lengthOf(column: string, type: string): string {
  // The length of these types is known without fetching the value.
  const isStored = type === 'bytea' || texts.has(type)
  return `pg_catalog.octet_length(${isStored ? quoteName(column) : castToText(column)})`
}

/**
 * Converts a text of the database to a fragment of JSON, without loss. The beginning of a cut value is a string, whatever its
 * type.
 */
function valueToJson(text: string | null, type: string, isCut: boolean): string {
  if (text === null) return 'null'
  if (isCut) return JSON.stringify(type === 'bytea' ? text.replaceAll('\n', '') : text)
  if (plain.has(type)) return text
  if (floats.has(type)) return /^-?\d/.test(text) ? text : JSON.stringify(text)
  if (type === 'bytea') return JSON.stringify(text.replaceAll('\n', ''))
  if (times.has(type)) return JSON.stringify(isoOf(text))
  return JSON.stringify(text)
}

/** Converts `2026-11-21 18:00:00+00` to ISO 8601. Values without an ISO form (infinity, years before Christ) stay unchanged. */
function isoOf(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?$/.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}${match[3] === undefined ? '' : 'Z'}`
}
