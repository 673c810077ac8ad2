import { defined } from '../../core/kit/object.ts'
import {
  type Column,
  type ForeignKey,
  type ObjectName,
  type Reference,
  type Relation,
  type RelationKind,
  roundEstimate,
  type SelectionOptions,
} from '../relational/model.ts'
import { objectNameKey } from '../relational/names.ts'
import type { ForeignKeyConstraint } from './constraints.ts'
import { mayServeRows, tableFacts } from './page.ts'
import { type RawColumn, type RawIndex, type RawTable, readRawTables } from './raw.ts'
import type { MysqlSession } from './session.ts'
import { endStatement, isKeyType, quoteName, quoteObjectName, quoteText } from './sql.ts'

/** Describes those tables and views that have a column which the account may read. Parts that it may not see are left out. */
export async function describeRelations(
  session: MysqlSession,
  names: readonly ObjectName[],
  options: SelectionOptions,
): Promise<readonly Relation[]> {
  const isServed = ({ schema }: ObjectName) => options.schemas === undefined || options.schemas.includes(schema)
  const raw = await readRawTables(session, names.filter(isServed), options.schemas)
  return raw.map((table) => relationOf(table, session.isMaria, options.views))
}

function relationOf(raw: RawTable, isMaria: boolean, views: boolean): Relation {
  const { schema, name } = raw
  const { kind: basic, engine, comment } = tableFacts(raw.type, raw.engine, raw.comment)
  const kind = basic === 'table' && raw.partitions.length > 0 ? 'partitioned table' : basic
  const columns = raw.columns.map((column) => describeColumn(column, isMaria, raw.isPart))
  const visible = new Set(columns.map((column) => column.name))
  const isWhole = (over: readonly (string | undefined)[]) => over.every((one) => one !== undefined && visible.has(one))
  // An expression may name columns that the account may not see: then its index is hidden.
  const indexes = raw.indexes.filter(({ parts }) =>
    parts.every(({ column }) => (column === undefined ? !raw.isPart : visible.has(column))),
  )
  const visibleParts = {
    ...raw,
    indexes,
    checks: raw.isPart ? [] : raw.checks,
    triggers: raw.isPart ? [] : raw.triggers,
  }
  const keys = indexes.filter(({ unique, parts }) => unique && isWhole(parts.map(({ column }) => column)))
  const columnsOf = (index: RawIndex) => index.parts.flatMap(({ column }) => (column === undefined ? [] : [column]))
  const primary = keys.find((index) => index.name === 'PRIMARY')
  const foreignKeys = foreignKeysOf(raw.foreignKeys, visible)
  return {
    ...{ schema, name, kind },
    ...defined({ comment }),
    definition: relationDefinition({ ...visibleParts, kind, columns, raw: raw.columns, foreignKeys }, isMaria),
    columns,
    ...(primary === undefined ? {} : { primaryKey: { name: primary.name, columns: columnsOf(primary) } }),
    uniqueKeys: keys
      .filter((index) => index !== primary)
      .map((index) => ({ name: index.name, columns: columnsOf(index) })),
    checks: visibleParts.checks,
    foreignKeys,
    referencedBy: referencesOf(raw.references, visible),
    indexes: indexes.map((index) => ({
      ...{
        name: index.name,
        unique: index.unique,
        columns: index.parts.map(({ column, expression }) => column ?? expression),
      },
      definition: index.definition,
    })),
    triggers: visibleParts.triggers,
    ...(raw.rowCount === undefined || kind === 'view' ? {} : { rowEstimate: roundEstimate(raw.rowCount) }),
    ...(mayServeRows(basic, engine, views)
      ? { rows: { readable: [...visible], key: keyIn(raw.columns, keys, primary) } }
      : {}),
  }
}

function describeColumn(raw: RawColumn, isMaria: boolean, isPart: boolean): Column {
  const { name, type, nullable, comment, extra, generation } = raw
  const isGenerated = generation !== ''
  const value = isGenerated ? undefined : defaultOf(raw, isMaria)
  return {
    ...{ name, type, nullable },
    ...defined({ default: value }),
    ...(isGenerated && !isPart ? { generated: generation } : {}),
    ...(/auto_increment/i.test(extra) ? { identity: 'by default' as const } : {}),
    ...(comment === '' ? {} : { comment }),
  }
}

/**
 * Returns the default of a column as an SQL expression. MariaDB reports an expression; MySQL reports a bare value, unless
 * `extra` marks it as an expression.
 */
function defaultOf({ default: value, extra }: RawColumn, isMaria: boolean): string | undefined {
  if (value === undefined || (isMaria && value === 'NULL')) return undefined
  return isMaria || /DEFAULT_GENERATED/i.test(extra) ? value : `'${value.replaceAll("'", "''")}'`
}

/** Returns the key of a table for keyset pagination: the primary key, or a unique key without nulls; empty if there is none. */
function keyIn(
  columns: readonly RawColumn[],
  keys: readonly RawIndex[],
  primary: RawIndex | undefined,
): readonly string[] {
  const byName = new Map(columns.map((column) => [column.name, column]))
  const isKey = ({ parts }: RawIndex) =>
    parts.every(({ column, isPrefix, descends }) => {
      const own = byName.get(column ?? '')
      const isSure = own !== undefined && !own.nullable && isKeyType(own.dataType)
      return isSure && !isPrefix && descends === parts[0]?.descends
    })
  const candidates = [...(primary === undefined ? [] : [primary]), ...keys]
  return candidates.find(isKey)?.parts.map(({ column }) => column ?? '') ?? []
}

const actions = new Set(['CASCADE', 'SET NULL', 'SET DEFAULT', 'RESTRICT'])

function foreignKeysOf(keys: readonly ForeignKeyConstraint[], visible: ReadonlySet<string>): readonly ForeignKey[] {
  return keys
    .filter(({ columns, areBothEndsSeen }) => areBothEndsSeen && columns.every((column) => visible.has(column)))
    .map(({ name, columns, to, onUpdate, onDelete }) => ({
      ...{ name, columns, references: to },
      ...(actions.has(onUpdate) ? { onUpdate: onUpdate.toLowerCase() } : {}),
      ...(actions.has(onDelete) ? { onDelete: onDelete.toLowerCase() } : {}),
    }))
}

function referencesOf(keys: readonly ForeignKeyConstraint[], visible: ReadonlySet<string>): readonly Reference[] {
  return keys
    .filter(({ to, areBothEndsSeen }) => areBothEndsSeen && to.columns.every((column) => visible.has(column)))
    .map(({ name, from, columns, to }) => ({ name, from: { ...from, columns }, columns: to.columns }))
    .sort((a, b) => (objectNameKey(a.from) + a.name < objectNameKey(b.from) + b.name ? -1 : 1))
}

interface ForDefinition extends Omit<RawTable, 'columns' | 'foreignKeys'> {
  readonly kind: RelationKind
  readonly columns: readonly Column[]
  /** The columns as the server reports them, for facts that only the definition contains. */
  readonly raw: readonly RawColumn[]
  readonly foreignKeys: readonly ForeignKey[]
}

/** Returns the statements that create a table or view, with keys, indexes, comments and triggers, but without rights. */
function relationDefinition(relation: ForDefinition, isMaria: boolean): string {
  const statements = [
    relation.kind === 'view' ? viewOf(relation) : formatCreateTable(relation, isMaria),
    ...relation.triggers.map(({ definition }) => definition),
  ]
  return statements.map(endStatement).join('\n')
}

function viewOf(relation: ForDefinition): string {
  const { view = '', isPart } = relation
  // A view is described by its query, which may name more than the account may see.
  const body =
    view === '' || isPart
      ? '  -- not shown: the account needs SHOW VIEW, and must be able to read all columns of the view'
      : view
  return `CREATE VIEW ${quoteObjectName(relation)} AS\n${body}`
}

function formatCreateTable(relation: ForDefinition, isMaria: boolean): string {
  const { columns, indexes, checks, foreignKeys, engine, collation, comment, partitions } = relation
  const lines = [
    ...columns.map((column, i) => columnLine(column, relation.raw[i], collation, isMaria)),
    ...indexes.map(({ name, definition }) =>
      name === 'PRIMARY'
        ? definition
        : definition.replace(/^CREATE /, '').replace(` ON ${quoteObjectName(relation)} `, () => ' '),
    ),
    ...checks.map(({ name, definition }) => `CONSTRAINT ${quoteName(name)} ${definition}`),
    ...foreignKeys.map(foreignKeyLine),
  ]
  const options = [
    ...(engine === undefined ? [] : [`ENGINE=${engine}`]),
    ...(collation === undefined ? [] : [`COLLATE=${collation}`]),
    ...(comment === '' ? [] : [`COMMENT=${quoteText(comment)}`]),
  ]
  const [first] = partitions
  const parts = partitions.map(({ name, method, values }) => {
    const range = method.startsWith('RANGE')
      ? ` VALUES LESS THAN ${values === 'MAXVALUE' ? values : `(${values})`}`
      : ''
    const list = method.startsWith('LIST') ? ` VALUES IN (${values})` : ''
    return `  PARTITION ${quoteName(name)}${range}${list}`
  })
  const partitioned =
    first === undefined ? '' : `\nPARTITION BY ${first.method}(${first.expression}) (\n${parts.join(',\n')}\n)`
  const body = lines.map((line) => `  ${line}`).join(',\n')
  return `CREATE TABLE ${quoteObjectName(relation)} (\n${body}\n) ${options.join(' ')}${partitioned}`
}

function columnLine(column: Column, raw: RawColumn | undefined, usual: string | undefined, isMaria: boolean): string {
  const { name, type, nullable, default: value, generated, identity, comment } = column
  const { collation, extra = '' } = raw ?? {}
  const [touch] = /on update current_timestamp(?:\(\d*\))?/i.exec(extra) ?? []
  const parts = [
    `${quoteName(name)} ${type}`,
    ...(collation === undefined || collation === usual ? [] : [`COLLATE ${collation}`]),
    ...(generated === undefined ? [] : [`GENERATED ALWAYS AS (${generated})${/stored/i.test(extra) ? ' STORED' : ''}`]),
    // In MariaDB the expression of a generated column decides whether the column may be null.
    ...(nullable || (isMaria && generated !== undefined) ? [] : ['NOT NULL']),
    ...(value === undefined ? [] : [`DEFAULT ${value}`]),
    ...(touch === undefined ? [] : [touch.toUpperCase()]),
    ...(identity === undefined ? [] : ['AUTO_INCREMENT']),
    ...(comment === undefined ? [] : [`COMMENT ${quoteText(comment)}`]),
  ]
  return parts.join(' ')
}

function foreignKeyLine({ name, columns, references, onUpdate, onDelete }: ForeignKey): string {
  const list = (names: readonly string[]) => `(${names.map(quoteName).join(', ')})`
  const update = onUpdate === undefined ? '' : ` ON UPDATE ${onUpdate.toUpperCase()}`
  const remove = onDelete === undefined ? '' : ` ON DELETE ${onDelete.toUpperCase()}`
  return `CONSTRAINT ${quoteName(name)} FOREIGN KEY ${list(columns)} REFERENCES ${quoteObjectName(references)} ${list(references.columns)}${remove}${update}`
}
