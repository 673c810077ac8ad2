import type { Listed, PageOptions, PageQuery, RelationKind } from '../relational/model.ts'
import { nameOf } from '../relational/names.ts'
import {
  bytesParameter,
  bytesValue,
  inBytes,
  openSchema,
  readableRows,
  type Session,
  type Statement,
  segmentSql,
  servedSchema,
  visibleRelation,
} from './sql.ts'

/**
 * Reads a page of the objects that the role may see, in the order of their keys, with one statement. Tables, enums and
 * functions of the same name are one row.
 */
export async function readPage(session: Session, query: PageQuery, options: PageOptions): Promise<readonly Listed[]> {
  const { only, schemas } = options
  const within = namesIn(query.prefix, only)
  if (within === undefined) return []
  const rows = await session.query(pageStatement(options, session.encoding), [
    schemas ?? null,
    bytesValue(query.from, session.encoding),
    within.schema ?? null,
    within.name ?? null,
    query.limit,
  ])
  return rows.map(([key, schema, name, relkind, isReadable, isEnum, isRoutine, comment]): Listed => {
    const said = comment === null || comment === undefined ? {} : { comment }
    if (name === null || name === undefined) return { key: key ?? '', schema: schema ?? '', ...said }
    return {
      key: key ?? '',
      schema: schema ?? '',
      name,
      ...(relkind === null || relkind === undefined ? {} : { relation: kindOf(relkind) }),
      ...(isReadable === 't' ? { rows: true } : {}),
      ...(isEnum === 't' ? { isEnum: true } : {}),
      ...(isRoutine === 't' ? { isRoutine: true } : {}),
      ...said,
    }
  })
}

/** Returns the names that a prefix selects; `undefined` if there can be none. */
function namesIn(prefix: string, only: string | undefined) {
  const names = prefix.split('/').slice(0, -1).map(nameOf)
  if (names.includes(undefined)) return undefined
  const [schema, name, ...rest] = only === undefined ? names : [only, ...names]
  return rest.length > 0 ? undefined : { schema, name }
}

const statements = new Map<string, Statement>()

function pageStatement(options: PageOptions, encoding: string): Statement {
  const id = `${options.only === undefined} ${options.views} ${encoding}`
  const known = statements.get(id)
  if (known !== undefined) return known
  const statement = { text: pageSql(options, encoding), fixed: true }
  statements.set(id, statement)
  return statement
}

function pageSql({ only, views }: PageOptions, encoding: string): string {
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
     WHERE ${servedSchema('$1')} AND ($3::text IS NULL OR n.nspname = $3::text) AND ${openSchema}) s
), named AS (
  SELECT o.schema, o.name, pg_catalog.max(o.relation) AS relation, pg_catalog.max(o.relkind) AS relkind,
         pg_catalog.bool_or(o.rows) AS rows, pg_catalog.bool_or(o.is_enum) AS is_enum,
         pg_catalog.bool_or(o.is_routine) AS is_routine, pg_catalog.max(o.type) AS type
    FROM (
      SELECT c.relnamespace AS schema, c.relname::text AS name, c.oid AS relation, c.relkind::text AS relkind,
             ${readableRows(views)} AS rows, false AS is_enum, false AS is_routine, NULL::oid AS type
        FROM pg_catalog.pg_class c
       WHERE c.relnamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('c.relname')} AND ${visibleRelation}
      UNION ALL
      SELECT t.typnamespace, t.typname::text, NULL, NULL, false, true, false, t.oid
        FROM pg_catalog.pg_type t
       WHERE t.typnamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('t.typname')}
         AND t.typtype = 'e' AND pg_catalog.has_type_privilege(t.oid, 'USAGE')
      UNION ALL
      SELECT p.pronamespace, p.proname::text, NULL, NULL, false, false, true, NULL
        FROM pg_catalog.pg_proc p
       WHERE p.pronamespace IN (SELECT s.oid FROM schemas s) AND ${isUnder('p.proname')}
         AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AND ${ownRoutine}
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

/** Condition that the routine `p` belongs to the database itself. Those of extensions are many, and documented elsewhere. */
export const ownRoutine = `NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
  WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`

/** Converts a letter of `pg_class.relkind` to a kind of relation. */
export function kindOf(letter: string): RelationKind {
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
