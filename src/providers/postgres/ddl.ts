import type { Column, ObjectName, RelationKind } from '../relational/model.ts'
import { quoteName, quoteText } from './sql.ts'

/** Input of a generated definition. It holds only parts that the role may see. */
export interface ForDefinition extends ObjectName {
  readonly kind: RelationKind
  readonly comment: string | null
  readonly columns: readonly Column[]
  /** Collations that are not those of the types, by column. */
  readonly collations: ReadonlyMap<string, string>
  readonly constraints: readonly { readonly name: string; readonly definition: string }[]
  readonly indexes: readonly { readonly definition: string; readonly backs: boolean }[]
  readonly view: string | null
  readonly partitionKey: string | null
  readonly partitionOf: (ObjectName & { readonly bound: string }) | null
}

/** The statements that make a table or view: with constraints, indexes and comments, but without rights. */
export function definitionOf(relation: ForDefinition): string {
  const { indexes, comment, columns } = relation
  const statements = [
    isView(relation.kind) ? viewOf(relation) : tableOf(relation),
    ...indexes.filter(({ backs }) => !backs).map(({ definition }) => definition),
    ...(comment === null ? [] : [commentOn(objectWord(relation.kind), nameOf(relation), comment)]),
    ...columns.flatMap((column) =>
      column.comment === undefined
        ? []
        : [commentOn('COLUMN', `${nameOf(relation)}.${quoteName(column.name)}`, column.comment)],
    ),
  ]
  return statements.map((statement) => `${statement};\n`).join('\n')
}

function isView(kind: RelationKind): boolean {
  return kind === 'view' || kind === 'materialized view'
}

function viewOf(relation: ForDefinition): string {
  const { kind, view } = relation
  // A view is described by its query, which may name more than the role may see.
  const body = view === null ? '  -- not shown: it has columns that this role may not see' : view.replace(/;\s*$/, '')
  return `CREATE ${objectWord(kind)} ${nameOf(relation)} AS\n${body}`
}

function tableOf(relation: ForDefinition): string {
  const { columns, collations, constraints, partitionKey, partitionOf } = relation
  const lines = [
    ...columns.map((column) => columnLine(column, collations.get(column.name))),
    ...constraints.map(({ name, definition }) => `CONSTRAINT ${quoteName(name)} ${definition}`),
  ]
  const body = lines.length === 0 ? '()' : `(\n${lines.map((line) => `  ${line}`).join(',\n')}\n)`
  const partitioned = partitionKey === null ? '' : `\nPARTITION BY ${partitionKey}`
  const create = `CREATE TABLE ${nameOf(relation)} ${body}${partitioned}`
  if (partitionOf === null) return create
  return `${create};\n\nALTER TABLE ${nameOf(partitionOf)} ATTACH PARTITION ${nameOf(relation)} ${partitionOf.bound}`
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

/** A name with its schema, quoted. */
export function nameOf({ schema, name }: ObjectName): string {
  return `${quoteName(schema)}.${quoteName(name)}`
}
