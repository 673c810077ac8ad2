import type { CheckConstraint, ObjectName, Trigger } from '../relational/model.ts'
import { objectNameKey } from '../relational/names.ts'
import { type ForeignKeyConstraint, readForeignKeys } from './constraints.ts'
import type { MysqlSession } from './session.ts'
import { type Cells, placeholdersFor, quoteName, quoteObjectName, readableColumnCondition } from './sql.ts'

export interface RawTable extends ObjectName {
  readonly type: string
  readonly engine: string | undefined
  readonly collation: string | undefined
  readonly comment: string
  readonly rowCount: number | undefined
  readonly columns: readonly RawColumn[]
  readonly indexes: readonly RawIndex[]
  readonly foreignKeys: readonly ForeignKeyConstraint[]
  readonly references: readonly ForeignKeyConstraint[]
  readonly checks: readonly CheckConstraint[]
  readonly triggers: readonly Trigger[]
  readonly partitions: readonly Partition[]
  /** Query of a view; empty when the account may not see it, undefined for a table. */
  readonly view: string | undefined
  /** Whether the account may see only some of the columns, as far as known. */
  readonly isPart: boolean
}

export interface RawColumn {
  readonly name: string
  readonly position: number
  readonly default: string | undefined
  readonly nullable: boolean
  readonly dataType: string
  readonly type: string
  readonly collation: string | undefined
  readonly extra: string
  readonly comment: string
  readonly generation: string
}

export interface RawIndex {
  readonly name: string
  readonly unique: boolean
  readonly definition: string
  readonly parts: readonly {
    readonly column: string | undefined
    readonly expression: string
    readonly descends: boolean
    readonly isPrefix: boolean
  }[]
}

interface Partition {
  readonly name: string
  readonly method: string
  readonly expression: string
  readonly values: string
}

/** Reads the facts about tables and views. Those without a visible column are left out. */
export async function readRawTables(
  { query, isMaria }: MysqlSession,
  names: readonly ObjectName[],
  schemaNames: readonly string[] | undefined,
): Promise<readonly RawTable[]> {
  if (names.length === 0) return []
  const schemas = placeholdersFor([...new Set(names.map(({ schema }) => schema))])
  const tables = placeholdersFor(names.map(({ name }) => name))
  const keys = new Set(names.map(objectNameKey))
  const by = async (
    columns: string,
    from: string,
    order: string,
    [schema, table]: readonly [string, string],
    more = '',
  ) => {
    const rows = await query(
      `SELECT ${schema}, ${table}, ${columns} FROM information_schema.${from}
        WHERE ${schema} IN (${schemas.sql}) AND ${table} IN (${tables.sql}) ${more} ORDER BY ${order}`,
      [...schemas.values, ...tables.values],
    )
    return groupRows(rows, keys)
  }
  const own = ['TABLE_SCHEMA', 'TABLE_NAME'] as const
  const columns = await by(
    'COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, COLUMN_TYPE, COLLATION_NAME, EXTRA, COLUMN_COMMENT, GENERATION_EXPRESSION',
    ...(['COLUMNS', 'ORDINAL_POSITION', own, `AND ${readableColumnCondition}`] as const),
  )
  const facts = await by(
    'TABLE_TYPE, ENGINE, TABLE_COLLATION, TABLE_COMMENT, TABLE_ROWS, CREATE_OPTIONS',
    'TABLES',
    '2',
    own,
  )
  const expression = isMaria ? 'NULL' : 'EXPRESSION'
  const indexes = await by(
    `INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, COLLATION, SUB_PART, INDEX_TYPE, ${expression}`,
    ...(['STATISTICS', 'INDEX_NAME, SEQ_IN_INDEX', own] as const),
  )
  const views = await by('VIEW_DEFINITION', 'VIEWS', '2', own)
  const triggers = await by(
    'TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT',
    ...(['TRIGGERS', 'TRIGGER_NAME', ['EVENT_OBJECT_SCHEMA', 'EVENT_OBJECT_TABLE']] as const),
  )
  const parts = await by('COLUMN_NAME', 'COLUMN_PRIVILEGES', 'COLUMN_NAME', own)
  const isPartitioned = [...facts.values()].some(([row]) => /partitioned/i.test(String(row?.[7])))
  const partitions = isPartitioned
    ? await by(
        'PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION',
        ...(['PARTITIONS', 'PARTITION_ORDINAL_POSITION', own, 'AND PARTITION_NAME IS NOT NULL'] as const),
      )
    : new Map<string, readonly Cells[]>()
  const checks = isMaria
    ? await by('CONSTRAINT_NAME, CHECK_CLAUSE', 'CHECK_CONSTRAINTS', 'CONSTRAINT_NAME', [
        'CONSTRAINT_SCHEMA',
        'TABLE_NAME',
      ])
    : await by(
        'CONSTRAINT_NAME, CHECK_CLAUSE',
        ...([
          'TABLE_CONSTRAINTS t JOIN information_schema.CHECK_CONSTRAINTS c USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)',
          'CONSTRAINT_NAME',
          own,
        ] as const),
      )
  const constraints = await readForeignKeys(query, { schemas, tables, wanted: keys, served: schemaNames })

  return names.flatMap((name): readonly RawTable[] => {
    const id = objectNameKey(name)
    const [of] = facts.get(id) ?? []
    const rawColumns = (columns.get(id) ?? []).map(toRawColumn)
    if (of === undefined || rawColumns.length === 0) return []
    const [, , type, engine, collation, comment, rowCount] = of
    const hasGaps = rawColumns.some(({ position }, i) => position !== i + 1)
    return [
      {
        ...{
          ...name,
          type: String(type),
          engine: textIn(engine),
          collation: textIn(collation),
          comment: String(comment ?? ''),
        },
        rowCount: rowCount === null || rowCount === undefined ? undefined : Number(rowCount),
        columns: rawColumns,
        indexes: indexesOf(indexes.get(id) ?? [], name),
        foreignKeys: constraints.filter(({ from }) => objectNameKey(from) === id),
        references: constraints.filter(({ to }) => objectNameKey(to) === id),
        checks: (checks.get(id) ?? []).map(([, , own, clause]) => ({
          name: String(own),
          definition: `CHECK (${String(clause)})`,
        })),
        triggers: (triggers.get(id) ?? []).map(([, , own, timing, event, statement]) => ({
          name: String(own),
          definition: `CREATE TRIGGER ${quoteName(String(own))} ${String(timing)} ${String(event)} ON ${quoteObjectName(name)} FOR EACH ROW ${String(statement)}`,
        })),
        partitions: (partitions.get(id) ?? []).map(([, , own, method, over, values]) => ({
          ...{
            name: String(own),
            method: String(method),
            expression: String(over ?? ''),
            values: String(values ?? ''),
          },
        })),
        view: views.has(id) ? String(views.get(id)?.[0]?.[2] ?? '') : undefined,
        isPart: hasGaps || parts.has(id),
      },
    ]
  })
}

const textIn = (cell: Cells[number] | undefined) => (cell === null || cell === undefined ? undefined : String(cell))

export function groupRows(rows: readonly Cells[], keys: ReadonlySet<string>): ReadonlyMap<string, readonly Cells[]> {
  const rowsById = new Map<string, Cells[]>()
  for (const row of rows) {
    const id = objectNameKey({ schema: String(row[0]), name: String(row[1]) })
    if (!keys.has(id)) continue
    const list = rowsById.get(id)
    if (list === undefined) rowsById.set(id, [row])
    else list.push(row)
  }
  return rowsById
}

function toRawColumn([
  ,
  ,
  name,
  position,
  value,
  nullable,
  dataType,
  type,
  collation,
  extra,
  comment,
  generation,
]: Cells): RawColumn {
  return {
    ...{ name: String(name), position: Number(position), default: textIn(value), nullable: nullable === 'YES' },
    ...{ dataType: String(dataType).toLowerCase(), type: String(type), collation: textIn(collation) },
    ...{ extra: String(extra ?? ''), comment: String(comment ?? ''), generation: String(generation ?? '') },
  }
}

function indexesOf(rows: readonly Cells[], table: ObjectName): readonly RawIndex[] {
  const all = [...new Set(rows.map((row) => String(row[2])))]
  const names = [...all.filter((name) => name === 'PRIMARY'), ...all.filter((name) => name !== 'PRIMARY')]
  return names.map((name) => {
    const own = rows.filter((row) => row[2] === name)
    const parts = own.map(([, , , , , column, order, prefix, , expression]) => ({
      ...{ column: textIn(column), expression: textIn(expression) ?? '' },
      ...{ descends: order === 'D', isPrefix: prefix !== null, prefix },
    }))
    const [, , , isNot, , , , , type] = own[0] ?? []
    const unique = Number(isNot) === 0
    const over = parts.map(({ column, expression, prefix, descends }) => {
      const what = column === undefined ? `(${expression})` : quoteName(column)
      return `${what}${prefix === null ? '' : `(${String(prefix)})`}${descends ? ' DESC' : ''}`
    })
    const special = type === 'FULLTEXT' || type === 'SPATIAL' ? `${type} ` : ''
    const list = `(${over.join(', ')})`
    return {
      ...{ name, unique, parts },
      definition:
        name === 'PRIMARY'
          ? `PRIMARY KEY ${list}`
          : `CREATE ${unique ? 'UNIQUE ' : special}INDEX ${quoteName(name)} ON ${quoteObjectName(table)} ${list}`,
    }
  })
}
