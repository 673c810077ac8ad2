import type { Column, EnumType, Extension, ObjectName, Overload, RelationKind, Routine } from '../relational/model.ts'
import {
  ownRoutineCondition,
  type PostgresSession,
  quoteName,
  quoteText,
  servedSchemaCondition,
  usableSchemaCondition,
} from './sql.ts'

/** Input of a generated definition. It holds only parts that the role may see. */
export interface DefinitionInput extends ObjectName {
  readonly kind: RelationKind
  readonly comment: string | null
  readonly columns: readonly Column[]
  /** Collations that differ from those of the types, by column. */
  readonly collations: ReadonlyMap<string, string>
  readonly constraints: readonly { readonly name: string; readonly definition: string }[]
  readonly indexes: readonly { readonly definition: string; readonly backs: boolean }[]
  readonly view: string | null
  readonly partitionKey: string | null
  readonly partitionOf: (ObjectName & { readonly bound: string }) | null
}

/** Returns the statements that create a table or view, with constraints, indexes and comments, but without rights. */
export function relationDefinition(relation: DefinitionInput): string {
  const { indexes, comment, columns } = relation
  const statements = [
    isView(relation.kind) ? viewOf(relation) : formatCreateTable(relation),
    ...indexes.filter(({ backs }) => !backs).map(({ definition }) => definition),
    ...(comment === null ? [] : [commentOn(objectWord(relation.kind), quoteObjectName(relation), comment)]),
    ...columns.flatMap((column) =>
      column.comment === undefined
        ? []
        : [commentOn('COLUMN', `${quoteObjectName(relation)}.${quoteName(column.name)}`, column.comment)],
    ),
  ]
  return statements.map((statement) => `${statement};\n`).join('\n')
}

function isView(kind: RelationKind): boolean {
  return kind === 'view' || kind === 'materialized view'
}

function viewOf(relation: DefinitionInput): string {
  const { kind, view } = relation
  // A view is described by its query, which may name more than the role may see.
  const body = view === null ? '  -- not shown: it has columns that this role may not see' : view.replace(/;\s*$/, '')
  return `CREATE ${objectWord(kind)} ${quoteObjectName(relation)} AS\n${body}`
}

function formatCreateTable(relation: DefinitionInput): string {
  const { columns, collations, constraints, partitionKey, partitionOf } = relation
  const lines = [
    ...columns.map((column) => columnLine(column, collations.get(column.name))),
    ...constraints.map(({ name, definition }) => `CONSTRAINT ${quoteName(name)} ${definition}`),
  ]
  const body = lines.length === 0 ? '()' : `(\n${lines.map((line) => `  ${line}`).join(',\n')}\n)`
  const partitioned = partitionKey === null ? '' : `\nPARTITION BY ${partitionKey}`
  const create = `CREATE TABLE ${quoteObjectName(relation)} ${body}${partitioned}`
  if (partitionOf === null) return create
  return `${create};\n\nALTER TABLE ${quoteObjectName(partitionOf)} ATTACH PARTITION ${quoteObjectName(relation)} ${partitionOf.bound}`
}

function columnLine({ name, type, nullable, default: value, generated, identity }: Column, collation?: string): string {
  const parts = [
    `${quoteName(name)} ${type}`,
    ...(collation === undefined ? [] : [`COLLATE ${collation}`]),
    ...(generated === undefined ? [] : [`GENERATED ALWAYS AS (${generated}) STORED`]),
    ...(identity === undefined ? [] : [`GENERATED ${identity.toUpperCase()} AS IDENTITY`]),
    ...(value === undefined ? [] : [`DEFAULT ${value}`]),
    ...(nullable ? [] : ['NOT NULL']),
  ]
  return parts.join(' ')
}

function objectWord(kind: RelationKind): string {
  return kind === 'partitioned table' ? 'TABLE' : kind.toUpperCase()
}

function commentOn(what: string, name: string, comment: string): string {
  return `COMMENT ON ${what} ${name} IS ${quoteText(comment)}`
}

export function quoteObjectName({ schema, name }: ObjectName): string {
  return `${quoteName(schema)}.${quoteName(name)}`
}

type Schemas = readonly string[] | undefined

const nameSource = `ROWS FROM (pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(schema, name)
  JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema`

function parameters(names: readonly ObjectName[], schemas: Schemas): readonly unknown[] {
  return [schemas ?? null, names.map(({ schema }) => schema), names.map(({ name }) => name)]
}

const enumsSql = `
SELECT pg_catalog.json_build_object('schema', n.nspname, 'name', t.typname,
    'owner', pg_catalog.pg_get_userbyid(t.typowner), 'comment', pg_catalog.obj_description(t.oid, 'pg_type'),
    'values', (SELECT COALESCE(pg_catalog.json_agg(e.enumlabel ORDER BY e.enumsortorder), '[]'::json)
                 FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid))::text
  FROM ${nameSource} JOIN pg_catalog.pg_type t ON t.typnamespace = n.oid AND t.typname = w.name
 WHERE t.typtype = 'e' AND ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND pg_catalog.has_type_privilege(t.oid, 'USAGE')`

export async function describeEnums(
  session: PostgresSession,
  names: readonly ObjectName[],
  schemas: Schemas,
): Promise<readonly EnumType[]> {
  const rows = await session.query({ text: enumsSql, fixed: true }, parameters(names, schemas))
  return rows.map(([json]) => {
    const { comment, values, ...rest } = JSON.parse(json ?? '') as Omit<EnumType, 'comment'> & {
      comment: string | null
    }
    const type = quoteObjectName(rest)
    const labels = values.map((value) => quoteText(value).trim()).join(', ')
    const commentSql = comment === null ? '' : `\nCOMMENT ON TYPE ${type} IS ${quoteText(comment)};\n`
    return {
      ...rest,
      values,
      ...(comment === null ? {} : { comment }),
      definition: `CREATE TYPE ${type} AS ENUM (${labels});\n${commentSql}`,
    }
  })
}

const routinesSql = `
SELECT pg_catalog.json_build_object('schema', n.nspname, 'name', p.proname, 'overloads',
    pg_catalog.json_agg(pg_catalog.json_build_object(
      'kind', CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' WHEN 'w' THEN 'window function' ELSE 'function' END,
      'arguments', pg_catalog.pg_get_function_arguments(p.oid),
      'returns', CASE WHEN p.prokind <> 'p' THEN pg_catalog.pg_get_function_result(p.oid) END,
      'language', l.lanname, 'owner', pg_catalog.pg_get_userbyid(p.proowner),
      'comment', pg_catalog.obj_description(p.oid, 'pg_proc'),
      'volatility', CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
      'securityDefiner', p.prosecdef,
      'definition', CASE WHEN p.prokind <> 'a' AND l.lanname <> 'c' AND l.lanname <> 'internal' THEN pg_catalog.pg_get_functiondef(p.oid) END
    ) ORDER BY pg_catalog.pg_get_function_identity_arguments(p.oid)))::text
  FROM ${nameSource} JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = w.name
  JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE ${servedSchemaCondition('$1')} AND ${usableSchemaCondition} AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') AND ${ownRoutineCondition}
 GROUP BY n.nspname, p.proname`

export async function describeRoutines(
  session: PostgresSession,
  names: readonly ObjectName[],
  schemas: Schemas,
): Promise<readonly Routine[]> {
  const rows = await session.query({ text: routinesSql, fixed: true }, parameters(names, schemas))
  return rows.map(([json]) => {
    const functions = JSON.parse(json ?? '') as ObjectName & { overloads: readonly Record<string, unknown>[] }
    return {
      ...functions,
      overloads: functions.overloads.map((overload) => withoutNulls(overload) as unknown as Overload),
    }
  })
}

const extensionsSql = `
SELECT pg_catalog.json_build_object('name', e.extname, 'version', e.extversion, 'schema', n.nspname,
    'comment', pg_catalog.obj_description(e.oid, 'pg_extension'))::text
  FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace ORDER BY e.extname`

export async function readExtensions(session: PostgresSession): Promise<readonly Extension[]> {
  const rows = await session.query({ text: extensionsSql, fixed: true }, [])
  return rows.map(([json]) => withoutNulls(JSON.parse(json ?? '') as Record<string, unknown>) as unknown as Extension)
}

function withoutNulls(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
}
