import { defined } from '../../core/kit/object.ts'
import {
  type Column,
  type ForeignKey,
  type ObjectName,
  type Reference,
  type Relation,
  roundEstimate,
  type SelectionOptions,
  type TableIndex,
  type Trigger,
} from '../relational/model.ts'
import { type DefinitionInput, relationDefinition } from './ddl.ts'
import {
  type PostgresSession,
  readableRowsCondition,
  relationKind,
  type Statement,
  servedSchemaCondition,
  usableSchemaCondition,
  visibleRelationCondition,
} from './sql.ts'

interface RawColumn {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  readonly default: string | null
  readonly identity: string
  readonly generated: string
  readonly collation: string | null
  readonly comment: string | null
}

interface RawConstraint {
  readonly name: string
  readonly type: string
  readonly columns: readonly string[]
  readonly definition: string
  readonly to: (ObjectName & { readonly columns: readonly string[] }) | null
  readonly onUpdate: string
  readonly onDelete: string
}

interface RawIndex extends TableIndex {
  readonly primary: boolean
  /** Whether the index identifies rows: it is unique, and none of its columns can be null. */
  readonly key: boolean
  readonly backs: boolean
}

/** A relation as the catalog query returns it. Empty lists are `null`. */
interface RawRelation extends ObjectName, Pick<DefinitionInput, 'comment' | 'view' | 'partitionKey' | 'partitionOf'> {
  readonly relkind: string
  readonly owner: string
  readonly estimate: number
  readonly rows: boolean
  readonly hidden: boolean
  readonly columns: readonly RawColumn[] | null
  readonly constraints: readonly RawConstraint[] | null
  readonly indexes: readonly RawIndex[] | null
  readonly references: readonly Reference[] | null
  readonly triggers: readonly Trigger[] | null
}

/** Describes relations that the role may see, all in one statement. Parts that the role may not see are left out. */
export async function describeRelations(
  session: PostgresSession,
  names: readonly ObjectName[],
  { schemas, views }: SelectionOptions,
): Promise<readonly Relation[]> {
  const rows = await session.query(relationsStatement(views), [
    schemas ?? null,
    names.map(({ schema }) => schema),
    names.map(({ name }) => name),
  ])
  return rows.map(([json]) => relationOf(JSON.parse(json ?? 'null') as RawRelation))
}

function relationOf(raw: RawRelation): Relation {
  const { schema, name, owner, comment, rows, relkind } = raw
  const kind = relationKind(relkind)
  const columns = (raw.columns ?? []).map((column) => describeColumn(column, raw.hidden))
  const constraints = raw.constraints ?? []
  const indexes = raw.indexes ?? []
  const ofType = (type: string) => constraints.filter((constraint) => constraint.type === type)
  const keys = (type: string) => ofType(type).map((one) => ({ name: one.name, columns: one.columns }))
  const [primaryKey] = keys('p')
  const key = indexes.find((index) => index.primary && index.key) ?? indexes.find((index) => index.key)
  const described: DefinitionInput = {
    ...{ schema, name, kind, columns, indexes },
    comment,
    collations: new Map((raw.columns ?? []).flatMap((one) => (one.collation ? [[one.name, one.collation]] : []))),
    constraints,
    view: raw.view,
    partitionKey: raw.partitionKey,
    partitionOf: raw.partitionOf,
  }
  return {
    ...{ schema, name, kind, owner },
    ...(comment === null ? {} : { comment }),
    definition: relationDefinition(described),
    columns,
    ...defined({ primaryKey }),
    uniqueKeys: keys('u'),
    checks: [...ofType('c'), ...ofType('x')].map((one) => ({ name: one.name, definition: one.definition })),
    foreignKeys: ofType('f').flatMap(foreignKeyOf),
    referencedBy: raw.references ?? [],
    indexes: indexes.map((index) => ({
      name: index.name,
      unique: index.unique,
      columns: index.columns,
      definition: index.definition,
    })),
    triggers: raw.triggers ?? [],
    // A view has no rows of its own, and the size of a table that was never analysed is unknown.
    ...(relkind === 'v' || raw.estimate < 0 ? {} : { rowEstimate: roundEstimate(raw.estimate) }),
    ...(rows ? { rows: { readable: columns.map((column) => column.name), key: key?.columns ?? [] } } : {}),
  }
}

function describeColumn(raw: RawColumn, isHidden: boolean): Column {
  const { name, type, notNull, identity, generated, comment } = raw
  return {
    ...{ name, type, nullable: !notNull },
    // The expression of a generated column may name columns that the role may not see.
    ...(raw.default === null || generated !== '' ? {} : { default: raw.default }),
    ...(raw.default === null || generated === '' || isHidden ? {} : { generated: raw.default }),
    ...(identity === 'a' ? { identity: 'always' as const } : {}),
    ...(identity === 'd' ? { identity: 'by default' as const } : {}),
    ...(comment === null ? {} : { comment }),
  }
}

const actions: Readonly<Record<string, string>> = { r: 'restrict', c: 'cascade', n: 'set null', d: 'set default' }

function foreignKeyOf({ name, columns, to, onUpdate, onDelete }: RawConstraint): readonly ForeignKey[] {
  if (to === null) return []
  const [update, remove] = [actions[onUpdate], actions[onDelete]]
  return [
    {
      ...{ name, columns, references: to },
      ...defined({ onUpdate: update, onDelete: remove }),
    },
  ]
}

const statements = new Map<boolean, Statement>()

function relationsStatement(views: boolean): Statement {
  const statement = statements.get(views) ?? { text: relationsSql(views), fixed: true }
  statements.set(views, statement)
  return statement
}

const columnNames = (relation: string, numbers: string) => `(
  SELECT pg_catalog.json_agg(a.attname ORDER BY k.i)
    FROM pg_catalog.unnest(${numbers}) WITH ORDINALITY AS k(attnum, i)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = ${relation} AND a.attnum = k.attnum)`

/** Returns the condition that the role may read all of these columns. */
const allVisible = (relation: string, numbers: string) => `(
  SELECT pg_catalog.bool_and(pg_catalog.has_column_privilege(${relation}, k.attnum, 'SELECT'))
    FROM pg_catalog.unnest(${numbers}) AS k(attnum) WHERE k.attnum > 0)`

const relationsSql = (views: boolean) => `
WITH wanted AS MATERIALIZED (
  SELECT c.*, n.nspname, EXISTS (
      SELECT FROM pg_catalog.pg_attribute a
       WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         AND NOT pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')) AS hidden, c.oid AS id
    FROM ROWS FROM (pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(schema, name)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
   WHERE ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND ${visibleRelationCondition}
), refs AS MATERIALIZED (
  SELECT f.confrelid, pg_catalog.json_agg(pg_catalog.json_build_object(
      'name', f.conname,
      'from', pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'columns', ${columnNames('f.conrelid', 'f.conkey')}),
      'columns', ${columnNames('f.confrelid', 'f.confkey')}
    ) ORDER BY n.nspname, c.relname, f.conname) AS list
    FROM pg_catalog.pg_constraint f
    JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE f.contype = 'f' AND f.conparentid = 0 AND f.confrelid IN (SELECT w.id FROM wanted w)
     AND ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND ${visibleRelationCondition}
     AND ${allVisible('f.conrelid', 'f.conkey')} AND ${allVisible('f.confrelid', 'f.confkey')}
   GROUP BY f.confrelid
)
SELECT pg_catalog.json_build_object(
  'schema', c.nspname, 'name', c.relname, 'relkind', c.relkind, 'hidden', c.hidden,
  'owner', pg_catalog.pg_get_userbyid(c.relowner),
  'comment', pg_catalog.obj_description(c.id, 'pg_class'),
  'estimate', c.reltuples,
  'rows', ${readableRowsCondition(views).replaceAll('c.oid', 'c.id')},
  'view', CASE WHEN c.relkind IN ('v', 'm') AND NOT c.hidden THEN pg_catalog.pg_get_viewdef(c.id) END,
  'partitionKey', CASE WHEN c.relkind = 'p' AND NOT c.hidden THEN pg_catalog.pg_get_partkeydef(c.id) END,
  'partitionOf', CASE WHEN c.relispartition THEN (
    SELECT pg_catalog.json_build_object('schema', n.nspname, 'name', p.relname,
        'bound', pg_catalog.pg_get_expr(c.relpartbound, c.id))
      FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
      JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
     WHERE i.inhrelid = c.id AND pg_catalog.has_any_column_privilege(p.oid, 'SELECT') AND ${usableSchemaCondition}) END,
  'columns', (
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'notNull', a.attnotnull,
        'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid), 'identity', a.attidentity, 'generated', a.attgenerated,
        'collation', CASE WHEN a.attcollation <> t.typcollation THEN (
          SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(l.collname)
            FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace
           WHERE l.oid = a.attcollation) END,
        'comment', pg_catalog.col_description(c.id, a.attnum)
      ) ORDER BY a.attnum)
      FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = c.id AND a.attnum > 0 AND NOT a.attisdropped
       AND pg_catalog.has_column_privilege(c.id, a.attnum, 'SELECT')),
  'constraints', (
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', f.conname, 'type', f.contype, 'columns', COALESCE(${columnNames('c.id', 'f.conkey')}, '[]'::json),
        'definition', pg_catalog.pg_get_constraintdef(f.oid), 'onUpdate', f.confupdtype, 'onDelete', f.confdeltype,
        'to', CASE WHEN f.contype = 'f' THEN (
          SELECT pg_catalog.json_build_object('schema', n.nspname, 'name', r.relname,
              'columns', ${columnNames('f.confrelid', 'f.confkey')})
            FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace WHERE r.oid = f.confrelid) END
      ) ORDER BY f.conname)
      FROM pg_catalog.pg_constraint f
     WHERE f.conrelid = c.id AND f.contype IN ('p', 'u', 'f', 'c', 'x')
       AND (NOT c.hidden OR (f.contype IN ('p', 'u', 'f') AND ${allVisible('c.id', 'f.conkey')}))
       AND (f.contype <> 'f' OR (
         pg_catalog.has_any_column_privilege(f.confrelid, 'SELECT') AND ${allVisible('f.confrelid', 'f.confkey')}
         AND EXISTS (SELECT FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
                      WHERE r.oid = f.confrelid AND ${usableSchemaCondition})))),
  'indexes', (
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', x.relname, 'unique', i.indisunique, 'primary', i.indisprimary,
        'definition', pg_catalog.pg_get_indexdef(i.indexrelid),
        'backs', EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conindid = i.indexrelid AND f.conrelid = c.id AND f.contype IN ('p', 'u', 'x')),
        'key', i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND (
          SELECT pg_catalog.bool_and(a.attnotnull) FROM pg_catalog.pg_attribute a
           WHERE a.attrelid = c.id AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])),
        'columns', (SELECT pg_catalog.json_agg(COALESCE(a.attname::text, pg_catalog.pg_get_indexdef(i.indexrelid, k::int, true)) ORDER BY k)
           FROM pg_catalog.generate_series(1, i.indnkeyatts) AS k
           LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.id AND a.attnum = i.indkey[k - 1] AND a.attnum > 0)
      ) ORDER BY x.relname)
      FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
     WHERE i.indrelid = c.id AND i.indislive
       AND (NOT c.hidden OR (i.indexprs IS NULL AND i.indpred IS NULL AND ${allVisible('c.id', 'i.indkey::int2[]')}))),
  'triggers', CASE WHEN NOT c.hidden THEN (
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', t.tgname, 'definition', pg_catalog.pg_get_triggerdef(t.oid)) ORDER BY t.tgname)
      FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.id AND NOT t.tgisinternal) END,
  'references', (SELECT r.list FROM refs r WHERE r.confrelid = c.id)
)::text FROM wanted c`
