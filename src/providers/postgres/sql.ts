import type { CatalogItem, PageQuery, RelationKind, SelectionOptions } from '../relational/model.ts'
import { parseNamePrefix } from '../relational/names.ts'

/** Quotes an identifier. No identifier comes from a client: values of clients are bound to parameters. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text as a literal for SQL that is shown, never for SQL that is executed. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/**
 * Returns the SQL condition that the schema `n` is served: it is in the parameter, or the parameter is null and `n` is not a system schema.
 * Schemas of TOAST and of temporary tables are never served.
 */
export function servedSchemaCondition(parameter: string): string {
  return `CASE WHEN ${parameter}::text[] IS NULL
    THEN n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    ELSE n.nspname = ANY (${parameter}::text[]) AND n.nspname !~ '^pg_(toast|temp)' END`
}

/** Condition that the role may use the schema `n`. */
export const usableSchemaCondition = `pg_catalog.has_schema_privilege(n.oid, 'USAGE')`

/** Condition that the role may see the relation `c`, or a part of it. */
export const visibleRelationCondition = `c.relkind IN ('r', 'p', 'v', 'm') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')`

/**
 * Returns the condition that rows of the relation `c` can be served: rows of tables and materialized views without a foreign table below
 * them, which another server would answer for, and rows of views only if `views` is set, because views call functions.
 */
export function readableRowsCondition(views: boolean): string {
  return `(c.relkind IN (${views ? "'r', 'p', 'm', 'v'" : "'r', 'p', 'm'"}) AND NOT (c.relhassubclass AND EXISTS (
    WITH RECURSIVE below(oid) AS (
      SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
      UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below b ON i.inhparent = b.oid)
    SELECT FROM below b JOIN pg_catalog.pg_class f ON f.oid = b.oid WHERE f.relkind = 'f')))`
}

/** Returns the SQL of the path segment for a name. relational/names.ts has the same rule. */
function segmentSql(name: string, encoding: string): string {
  const beyond = controlsBeyond(encoding)
  const special = `[~/\\x01-\\x1f\\x7f${beyond}]`
  return `(CASE WHEN ${name} ~ '${special}' OR ${name} IN ('.', '..') THEN (
    SELECT pg_catalog.string_agg(
      CASE WHEN t.ch ~ '${special}' OR ${name} IN ('.', '..')
        THEN pg_catalog.regexp_replace(pg_catalog.encode(pg_catalog.convert_to(t.ch, 'UTF8'), 'hex'), '(..)', '~\\1', 'g')
        ELSE t.ch END, '' ORDER BY t.i)
    FROM pg_catalog.regexp_split_to_table(${name}, '') WITH ORDINALITY AS t(ch, i)) ELSE ${name} END)`
}

/** Returns the non-ASCII control characters and line separators of an encoding, as a part of a regular expression of PostgreSQL. */
function controlsBeyond(encoding: string): string {
  if (encoding === utf8) return '\\u0080-\\u009f\\u2028\\u2029'
  return /^(?:LATIN|ISO_8859)/.test(encoding) ? '\\x80-\\x9f' : ''
}

const utf8 = 'UTF8'

/** Returns the SQL of a text that is ordered by the bytes of its UTF-8 form. */
function inBytes(text: string, encoding: string): string {
  return encoding === utf8 ? `(${text}) COLLATE "C"` : `pg_catalog.convert_to(${text}, 'UTF8')`
}

/** Returns the SQL of a parameter (bytes) to compare with {@link inBytes}. */
function bytesParameter(parameter: string, encoding: string): string {
  return encoding === utf8 ? `${parameter}::text` : `pg_catalog.decode(${parameter}::text, 'hex')`
}

function bytesValue(text: string, encoding: string): string {
  return encoding === utf8 ? text : Buffer.from(text).toString('hex')
}

export interface Statement {
  readonly text: string
  /** Whether the text of the statement is constant, so that the server can plan it once. */
  readonly fixed?: boolean
}

/** A row: the texts of its columns, in order. */
export type Cells = readonly (string | null)[]

export interface PostgresSession {
  /**
   * Whether a pooler such as PgBouncer shares the connections of the server among clients: then no state of a session lasts.
   */
  readonly shared: boolean
  readonly encoding: string
  /** Runs one read-only statement, and returns its rows. */
  query(statement: Statement, values: readonly unknown[]): Promise<readonly Cells[]>
  /** Runs several statements in one read-only transaction, on one snapshot. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>
  isUsable(): boolean
  close(): void
  /** Calls `told` for each notification, and `ended` once the connection has ended. */
  onNotification(told: () => void, ended: () => void): void
}

export type Query = PostgresSession['query']

/** Channel that the event trigger notifies. Every role that can connect can notify it too, so a notification only triggers a check. */
export const notifyChannel = 'hikidashi'

/**
 * Reads a page of the objects that the role may see, in the order of their keys, with one statement. Tables, enums and
 * functions of the same name are one row.
 */
export async function readCatalogPage(
  session: PostgresSession,
  query: PageQuery,
  options: SelectionOptions,
): Promise<readonly CatalogItem[]> {
  const { only, schemas } = options
  const within = parseNamePrefix(query.prefix, only)
  if (within === undefined) return []
  const rows = await session.query(pageStatement(options, session.encoding), [
    schemas ?? null,
    bytesValue(query.from, session.encoding),
    within.schema ?? null,
    within.name ?? null,
    query.limit,
  ])
  return rows.map(([key, schema, name, relkind, isReadable, isEnum, isRoutine, comment]): CatalogItem => {
    const commentMember = comment === null || comment === undefined ? {} : { comment }
    if (name === null || name === undefined) return { key: key ?? '', schema: schema ?? '', ...commentMember }
    return {
      key: key ?? '',
      schema: schema ?? '',
      name,
      ...(relkind === null || relkind === undefined ? {} : { relation: relationKind(relkind) }),
      ...(isReadable === 't' ? { rows: true } : {}),
      ...(isEnum === 't' ? { isEnum: true } : {}),
      ...(isRoutine === 't' ? { isRoutine: true } : {}),
      ...commentMember,
    }
  })
}

const statements = new Map<string, Statement>()

function pageStatement(options: SelectionOptions, encoding: string): Statement {
  const id = `${options.only === undefined} ${options.views} ${encoding}`
  const previous = statements.get(id)
  if (previous !== undefined) return previous
  const statement = { text: pageSql(options, encoding), fixed: true }
  statements.set(id, statement)
  return statement
}

function pageSql({ only, views }: SelectionOptions, encoding: string): string {
  const schemaSegment = segmentSql('s.name', encoding)
  const head = only === undefined ? `s.segment || '/' || ` : ''
  const isUnder = (name: string) => `($4::text IS NULL OR ${name} = $4::text)`
  // The overview of a schema is listed: its key is among those of the objects.
  const schemas =
    only === undefined
      ? `UNION ALL
      SELECT s.segment || '/overview', s.oid, s.name, NULL, NULL, NULL, NULL, false, false, false
        FROM schemas s WHERE $4::text IS NULL`
      : ''
  return `
WITH schemas AS MATERIALIZED (
  SELECT s.oid, s.name, ${schemaSegment} AS segment FROM (
    SELECT n.oid, n.nspname::text AS name FROM pg_catalog.pg_namespace n
     WHERE ${servedSchemaCondition('$1')} AND ($3::text IS NULL OR n.nspname = $3::text) AND ${usableSchemaCondition}) s
), named AS (
  SELECT o.schema, o.name, pg_catalog.max(o.relation) AS relation, pg_catalog.max(o.relkind) AS relkind,
         pg_catalog.bool_or(o.rows) AS rows, pg_catalog.bool_or(o.is_enum) AS is_enum,
         pg_catalog.bool_or(o.is_routine) AS is_routine, pg_catalog.max(o.type) AS type
    FROM (
      SELECT c.relnamespace AS schema, c.relname::text AS name, c.oid AS relation, c.relkind::text AS relkind,
             ${readableRowsCondition(views)} AS rows, false AS is_enum, false AS is_routine, NULL::oid AS type
        FROM pg_catalog.pg_class c
       WHERE c.relnamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('c.relname')} AND ${visibleRelationCondition}
      UNION ALL
      SELECT t.typnamespace, t.typname::text, NULL, NULL, false, true, false, t.oid
        FROM pg_catalog.pg_type t
       WHERE t.typnamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('t.typname')}
         AND t.typtype = 'e' AND pg_catalog.has_type_privilege(t.oid, 'USAGE')
      UNION ALL
      SELECT p.pronamespace, p.proname::text, NULL, NULL, false, false, true, NULL
        FROM pg_catalog.pg_proc p
       WHERE p.pronamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('p.proname')}
         AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AND ${ownRoutineCondition}
    ) o GROUP BY o.schema, o.name
), keyed AS (
  SELECT ${head}${segmentSql('o.name', encoding)} || '/' AS key, s.oid AS schema_oid, s.name AS schema, o.name,
         o.relation, o.relkind, o.rows, o.is_enum, o.is_routine, o.type
    FROM named o JOIN schemas s ON s.oid = o.schema
)
SELECT p.key, p.schema, p.name, p.relkind, p.rows, p.is_enum, p.is_routine,
       CASE WHEN p.name IS NULL THEN pg_catalog.obj_description(p.schema_oid, 'pg_namespace')
            WHEN p.relation IS NOT NULL THEN pg_catalog.obj_description(p.relation, 'pg_class')
            WHEN p.type IS NOT NULL THEN pg_catalog.obj_description(p.type, 'pg_type') END
  FROM (
    SELECT * FROM (
      SELECT k.key, k.schema_oid, k.schema, k.name, k.relation, k.type, k.relkind, k.rows, k.is_enum, k.is_routine FROM keyed k
      ${schemas}
    ) u
     WHERE ${inBytes('u.key', encoding)} >= ${bytesParameter('$2', encoding)}
     ORDER BY ${inBytes('u.key', encoding)} LIMIT $5::int
  ) p ORDER BY ${inBytes('p.key', encoding)}`
}

/** Condition that the routine `p` is not part of an extension. Extensions have many routines, which are documented elsewhere. */
export const ownRoutineCondition = `NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`

export function relationKind(letter: string): RelationKind {
  switch (letter) {
    case 'p':
      return 'partitioned table'
    case 'v':
      return 'view'
    case 'm':
      return 'materialized view'
    default:
      return 'table'
  }
}
