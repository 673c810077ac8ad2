import type { Column, ForeignKey, RelationKind } from '../relational/model.ts'
import type { RawColumn, RawTable } from './raw.ts'
import { ended, nameOf, quoteName, quoteText } from './sql.ts'

/** Input of a generated definition. It holds only parts that the account may see. */
export interface ForDefinition extends Omit<RawTable, 'columns' | 'foreignKeys'> {
  readonly kind: RelationKind
  readonly columns: readonly Column[]
  /** The same columns, with what is told of them in the definition alone. */
  readonly raw: readonly RawColumn[]
  readonly foreignKeys: readonly ForeignKey[]
}

/** The statements that make a table or view: with keys, indexes, comments and triggers, but without rights. */
export function definitionOf(relation: ForDefinition, isMaria: boolean): string {
  const statements = [
    relation.kind === 'view' ? viewOf(relation) : tableOf(relation, isMaria),
    ...relation.triggers.map(({ definition }) => definition),
  ]
  return statements.map(ended).join('\n')
}

function viewOf(relation: ForDefinition): string {
  const { view = '', isPart } = relation
  // A view is told of by what it selects, which may be more than the account may see.
  const body =
    view === '' || isPart ? '  -- not shown: it takes the right SHOW VIEW, and to see all of its columns' : view
  return `CREATE VIEW ${nameOf(relation)} AS\n${body}`
}

function tableOf(relation: ForDefinition, isMaria: boolean): string {
  const { columns, indexes, checks, foreignKeys, engine, collation, comment, partitions } = relation
  const lines = [
    ...columns.map((column, i) => columnLine(column, relation.raw[i], collation, isMaria)),
    ...indexes.map(({ name, definition }) =>
      name === 'PRIMARY'
        ? definition
        : definition.replace(/^CREATE /, '').replace(` ON ${nameOf(relation)} `, () => ' '),
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
  return `CREATE TABLE ${nameOf(relation)} (\n${body}\n) ${options.join(' ')}${partitioned}`
}

function columnLine(column: Column, raw: RawColumn | undefined, usual: string | undefined, isMaria: boolean): string {
  const { name, type, nullable, default: value, generated, identity, comment } = column
  const { collation, extra = '' } = raw ?? {}
  const [touch] = /on update current_timestamp(?:\(\d*\))?/i.exec(extra) ?? []
  const parts = [
    `${quoteName(name)} ${type}`,
    ...(collation === undefined || collation === usual ? [] : [`COLLATE ${collation}`]),
    ...(generated === undefined ? [] : [`GENERATED ALWAYS AS (${generated})${/stored/i.test(extra) ? ' STORED' : ''}`]),
    // Whether a generated column of MariaDB is null follows from what it is made of.
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
  return `CONSTRAINT ${quoteName(name)} FOREIGN KEY ${list(columns)} REFERENCES ${nameOf(references)} ${list(references.columns)}${remove}${update}`
}
