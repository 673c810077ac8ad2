import type { ObjectName } from '../relational/model.ts'
import { objectNameKey } from '../relational/names.ts'
import type { MysqlSession } from './session.ts'
import { type Cells, placeholdersFor, readableColumnCondition, servedSchemaCondition } from './sql.ts'

/** A foreign key as the information schema has it, whether or not the account may see all of its columns. */
export interface ForeignKeyConstraint {
  readonly name: string
  readonly from: ObjectName
  readonly columns: readonly string[]
  readonly to: ObjectName & { readonly columns: readonly string[] }
  readonly onUpdate: string
  readonly onDelete: string
  /** Whether both tables are served, and the account may read all columns of the key at both ends. */
  readonly areBothEndsSeen: boolean
}

interface ConstraintScope {
  readonly schemas: ReturnType<typeof placeholdersFor>
  readonly tables: ReturnType<typeof placeholdersFor>
  readonly wanted: ReadonlySet<string>
  readonly served: readonly string[] | undefined
}

/** Reads the foreign keys of the tables, and those of other tables that reference them. */
export async function readForeignKeys(
  query: MysqlSession['query'],
  { schemas, tables, wanted, served }: ConstraintScope,
): Promise<readonly ForeignKeyConstraint[]> {
  const columns = `CONSTRAINT_NAME, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME`
  const ends = ['TABLE', 'REFERENCED_TABLE'].map(
    (end) => `(${end}_SCHEMA IN (${schemas.sql}) AND ${end}_NAME IN (${tables.sql}))`,
  )
  const values = [...schemas.values, ...tables.values]
  const order = 'ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION'
  const rows = await query(
    `SELECT ${columns} FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL AND (${ends.join(' OR ')}) ${order}`,
    [...values, ...values],
  )
  const keys = new Map<string, Cells[]>()
  for (const row of rows) {
    const [name, schema, table, , parentSchema, parent] = row.map(String)
    const [from, to] = [
      objectNameKey({ schema: schema ?? '', name: table ?? '' }),
      objectNameKey({ schema: parentSchema ?? '', name: parent ?? '' }),
    ]
    if (!wanted.has(from) && !wanted.has(to)) continue
    const id = JSON.stringify([from, name])
    keys.set(id, [...(keys.get(id) ?? []), row])
  }
  if (keys.size === 0) return []
  const all = [...keys.values()]
  const rules = await readRules(query, all)
  const visibleKeys = await readSeen(query, all, served)
  return all.map((parts): ForeignKeyConstraint => {
    const [name, schema, table, , parentSchema, parent] = (parts[0] ?? []).map(String)
    const from = { schema: schema ?? '', name: table ?? '' }
    const to = { schema: parentSchema ?? '', name: parent ?? '' }
    const [onUpdate = '', onDelete = ''] = rules.get(JSON.stringify([from.schema, from.name, name])) ?? []
    return {
      ...{ name: name ?? '', from, columns: parts.map((part) => String(part[3])), onUpdate, onDelete },
      to: { ...to, columns: parts.map((part) => String(part[6])) },
      areBothEndsSeen: [...parts].every(
        (part) =>
          visibleKeys.has(columnId(part[1], part[2], part[3])) && visibleKeys.has(columnId(part[4], part[5], part[6])),
      ),
    }
  })
}

async function readRules(query: MysqlSession['query'], keys: readonly (readonly Cells[])[]) {
  const schemas = placeholdersFor([...new Set(keys.map(([part]) => String(part?.[1])))])
  const tables = placeholdersFor([...new Set(keys.map(([part]) => String(part?.[2])))])
  const rows = await query(
    `SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS
      WHERE CONSTRAINT_SCHEMA IN (${schemas.sql}) AND TABLE_NAME IN (${tables.sql})`,
    [...schemas.values, ...tables.values],
  )
  return new Map(
    rows.map(([schema, table, name, update, remove]) => [
      JSON.stringify([String(schema), String(table), String(name)]),
      [String(update), String(remove)] as const,
    ]),
  )
}

const columnId = (...names: readonly unknown[]) => JSON.stringify(names.map(String))

async function readSeen(
  query: MysqlSession['query'],
  keys: readonly (readonly Cells[])[],
  schemas: readonly string[] | undefined,
): Promise<ReadonlySet<string>> {
  const ends = keys.flatMap(([part]) => [[part?.[1], part?.[2]] as const, [part?.[4], part?.[5]] as const])
  const tables = placeholdersFor([...new Set(ends.map(([, table]) => String(table)))])
  const within = servedSchemaCondition('TABLE_SCHEMA', schemas)
  const rows = await query(
    `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
      WHERE ${within.sql} AND TABLE_NAME IN (${tables.sql}) AND ${readableColumnCondition}`,
    [...within.values, ...tables.values],
  )
  return new Set(rows.map((row) => columnId(...row)))
}
