import { invalid, notFound } from '../../core/errors.ts'
import { comparePaths } from '../../core/path.ts'
import type {
  CatalogItem,
  KeyQuery,
  ObjectName,
  PageQuery,
  RelationKind,
  RowPage,
  RowQuery,
  SelectionOptions,
} from '../relational/model.ts'
import { nameToSegment, objectDirectory, objectNameKey, parseNamePrefix } from '../relational/names.ts'
import { brokenViewError, isBrokenViewError, isUnusableValueError } from './errors.ts'
import { servedRoutineCondition } from './routines.ts'
import type { MysqlSession } from './session.ts'
import {
  type ColumnType,
  cellToJson,
  cutColumnSql,
  keySql,
  keyText,
  lengthIfCutSql,
  lengthSql,
  parameterFor,
  placeholdersFor,
  type Query,
  quoteName,
  quoteObjectName,
  readableColumnCondition,
  servedSchemaCondition,
  shownValueToKey,
} from './sql.ts'

/**
 * Reads a page of the tables and views of which the account may see a part, and of the functions and procedures that it may
 * run, in the order of their keys. It takes at most three queries. Objects of the same name are one item.
 */
export async function readCatalogPage(
  { query }: MysqlSession,
  { from, prefix, limit }: PageQuery,
  options: SelectionOptions,
): Promise<readonly CatalogItem[]> {
  const selected = parseNamePrefix(prefix, options.only)
  if (selected === undefined) return []
  const { schema, name } = selected
  const namesIn = async (of: 'TABLE' | 'ROUTINE', from: string, condition: string) => {
    const schemaCondition = servedSchemaCondition(`${of}_SCHEMA`, options.schemas)
    const within = [
      ...(schema === undefined ? [] : [[`${of}_SCHEMA = ?`, schema] as const]),
      ...(name === undefined ? [] : [[`${of}_NAME = ?`, name] as const]),
    ]
    const rows = await query(
      `SELECT DISTINCT ${exact(`${of}_SCHEMA`)}, ${exact(`${of}_NAME`)} FROM information_schema.${from}
        WHERE ${[schemaCondition.sql, ...within.map(([one]) => one)].join(' AND ')} AND ${condition}`,
      [...schemaCondition.values, ...within.map(([, value]) => value)],
    )
    const names = rows.map(([at, own]): ObjectName => ({ schema: String(at), name: String(own) }))
    return new Map(names.map((one) => [objectNameKey(one), one]))
  }
  const tables = await namesIn('TABLE', 'COLUMNS', readableColumnCondition)
  const routines = await namesIn('ROUTINE', 'ROUTINES', servedRoutineCondition)
  const objects = [...new Map([...tables, ...routines]).values()]
  const all: readonly CatalogItem[] = [
    ...objects.map((object) => ({ key: objectDirectory(object, options.only), ...object })),
    // The overview of a schema is listed: its key is among those of the objects.
    ...(options.only === undefined ? [...new Set(objects.map((object) => object.schema))] : []).map((one) => ({
      ...{ key: `${nameToSegment(one)}/overview`, schema: one },
    })),
  ]
  const page = all
    .filter(({ key }) => key.startsWith(prefix) && comparePaths(key, from) >= 0)
    .sort((a, b) => comparePaths(a.key, b.key))
    .slice(0, limit)
  const facts = await readTableFacts(
    query,
    page.filter((item): item is CatalogItem & ObjectName => 'name' in item && tables.has(objectNameKey(item))),
  )
  return page.flatMap((item): readonly CatalogItem[] => {
    if (!('name' in item)) return [item]
    const id = objectNameKey(item)
    const isRoutine = routines.has(id) ? { isRoutine: true } : {}
    if (!tables.has(id)) return [{ ...item, ...isRoutine }]
    const tableFacts = facts.get(id)
    // The table may have been dropped in between: then the most likely kind is used.
    const kind = tableFacts?.kind ?? 'table'
    return [
      {
        ...{ ...item, relation: kind, ...isRoutine },
        ...(tableFacts !== undefined && mayServeRows(kind, tableFacts.engine, options.views) ? { rows: true } : {}),
        ...(tableFacts?.comment === undefined ? {} : { comment: tableFacts.comment }),
      },
    ]
  })
}

/** Compares a name of the information schema by its bytes; by default the comparison ignores case. */
const exact = (column: string) => `CONVERT(${column} USING utf8mb4) COLLATE utf8mb4_bin`

interface TableFacts {
  readonly kind: RelationKind
  readonly engine: string | undefined
  readonly comment: string | undefined
}

async function readTableFacts(
  query: MysqlSession['query'],
  names: readonly ObjectName[],
): Promise<ReadonlyMap<string, TableFacts>> {
  if (names.length === 0) return new Map()
  const [schemas, tables] = [
    placeholdersFor([...new Set(names.map(({ schema }) => schema))]),
    placeholdersFor(names.map(({ name }) => name)),
  ]
  const rows = await query(
    `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT FROM information_schema.TABLES
      WHERE TABLE_SCHEMA IN (${schemas.sql}) AND TABLE_NAME IN (${tables.sql})`,
    [...schemas.values, ...tables.values],
  )
  return new Map(
    rows.map(([schema, name, type, engine, comment]) => [
      objectNameKey({ schema: String(schema), name: String(name) }),
      tableFacts(String(type), engine === null ? undefined : String(engine), String(comment ?? '')),
    ]),
  )
}

/** Converts a row of the information schema to the facts of a table. The comment of a view, which is only the word VIEW, is left out. */
export function tableFacts(type: string, engine: string | undefined, comment: string | undefined): TableFacts {
  const kind = type.includes('VIEW') ? 'view' : 'table'
  return { kind, engine, comment: kind === 'view' || comment === '' ? undefined : comment }
}

/** Storage engines that hold their rows on this server. Other engines may fetch rows from anywhere that a table names. */
const local = new Set([
  'INNODB',
  'MYISAM',
  'ARIA',
  'MEMORY',
  'ARCHIVE',
  'MRG_MYISAM',
  'ROCKSDB',
  'TOKUDB',
  'NDBCLUSTER',
  'COLUMNSTORE',
])

/** Whether rows of a table or view may be served: those of a table that this server holds itself, and those of a view if `views` is set. */
export function mayServeRows(kind: RelationKind, engine: string | undefined, views: boolean): boolean {
  return kind === 'view' ? views : engine !== undefined && local.has(engine.toUpperCase())
}

/**
 * Reads a page of rows, in one read-only snapshot. Statements contain only quoted names from the catalog; values of clients are
 * bound.
 */
export async function readRows(session: MysqlSession, query: RowQuery, options: SelectionOptions): Promise<RowPage> {
  const { relation, columns, limit, key: only, isShown, after, maxBytes, maxValueBytes } = query
  const keyNames = relation.rows?.key ?? []
  // A table has columns, and so has a view whose definition the server can read: this is another view.
  if (relation.columns.length === 0) throw brokenViewError()
  if (columns.length === 0) return { rows: [], more: false }
  try {
    return await session.transaction(async (run) => {
      const types = await typesOf(run, relation, options)
      const key = keyNames.map((name) => requireColumnType(types, name))
      const columnTypes = columns.map((name) => requireColumnType(types, name))
      const bounds = isShown
        ? only?.map((text, i) => (key[i] === undefined ? text : shownValueToKey(text, key[i])))
        : only
      const bound = boundBy(key, bounds ?? after, only === undefined)
      if (bound === undefined) throw unusable()
      const from = `FROM ${quoteObjectName(relation)} ${bound.sql} ${orderOf(key)}`
      // First query how long the rows are, to fetch only as many as fit.
      const length = columnTypes
        .map((column) => `LEAST(COALESCE(${lengthSql(column)}, 0), ${maxValueBytes})`)
        .join(' + ')
      const lengths = await run(`SELECT ${length} ${from} LIMIT ${limit + 1}`, bound.values)
      let [fitting, total] = [0, 0]
      for (const [bytes] of lengths) {
        total += Number(bytes)
        if (fitting === limit || (fitting > 0 && total > maxBytes)) break
        fitting++
      }
      if (fitting === 0) return { rows: [], more: false }
      const selected = [
        ...key.map(keySql),
        ...columnTypes.flatMap((column) => [
          cutColumnSql(column, maxValueBytes),
          lengthIfCutSql(column, maxValueBytes),
        ]),
      ]
      const valueRows = await run(`SELECT ${selected.join(', ')} ${from} LIMIT ${fitting}`, bound.values)
      const rows = valueRows.map((cells) => ({
        key: key.map((column, i) => keyText(cells[i] ?? null, column)),
        values: columnTypes.map((column, i) => {
          const at = key.length + 2 * i
          const cell = cells[at + 1] ?? null
          const json = cellToJson(cells[at] ?? null, column, cell !== null)
          return cell === null ? { json } : { json, cut: Number(cell) }
        }),
      }))
      return { rows, more: lengths.length > fitting }
    })
  } catch (error) {
    if (isBrokenViewError(error)) throw brokenViewError()
    if (error !== unusableKey && !isUnusableValueError(error)) throw error
    if (only !== undefined) return { rows: [], more: false }
    if (after !== undefined)
      throw invalid('The parameter "after" is not the key of a row of this table.', 'parameter', { parameter: 'after' })
    // Without a value of the caller, a view failed on a value in a row that it converts.
    throw error
  }
}

const unusableKey = new Error('the key is not one of the type of its columns')
const unusable = () => unusableKey

export async function readKeys(
  session: MysqlSession,
  { relation, typed, limit }: KeyQuery,
  options: SelectionOptions,
): Promise<readonly (readonly string[])[]> {
  return session.transaction(async (run) => {
    const types = await typesOf(run, relation, options)
    const key = (relation.rows?.key ?? []).map((name) => requireColumnType(types, name))
    const [first] = key
    if (first === undefined) return []
    const parameter = typed === '' ? '' : parameterFor(typed, first)
    if (parameter === undefined) return []
    const where = parameter === '' ? '' : `WHERE ${quoteName(first.name)} >= ${parameter}`
    const rows = await run(
      `SELECT ${key.map(keySql).join(', ')} FROM ${quoteObjectName(relation)} ${where} ${orderOf(key)} LIMIT ${limit}`,
      parameter === '' ? [] : [typed],
    ).catch((error: unknown) => {
      if (isUnusableValueError(error)) return []
      throw error
    })
    return rows.map((cells) => key.map((column, i) => keyText(cells[i] ?? null, column)))
  })
}

async function typesOf(
  run: Query,
  name: ObjectName,
  { schemas, views }: SelectionOptions,
): Promise<ReadonlyMap<string, ColumnType>> {
  if (schemas !== undefined && !schemas.includes(name.schema)) throw notFound('not served')
  const values = [name.schema, name.name]
  const rows = await run(
    `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND ${readableColumnCondition}`,
    values,
  )
  const facts = await run(
    'SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?',
    values,
  )
  // The information schema ignores the case of names, so it may also return other tables.
  const isOwn = ([schema, table]: readonly unknown[]) =>
    objectNameKey({ schema: String(schema), name: String(table) }) === objectNameKey(name)
  const [, , type, engine] = facts.find(isOwn) ?? []
  const { kind } = tableFacts(String(type), undefined, undefined)
  if (type === undefined || !mayServeRows(kind, engine === null ? undefined : String(engine), views))
    throw notFound('no such table')
  return new Map(
    rows
      .filter(isOwn)
      .map(([, , column, dataType, full]) => [
        String(column),
        { name: String(column), dataType: String(dataType).toLowerCase(), type: String(full) },
      ]),
  )
}

function requireColumnType(types: ReadonlyMap<string, ColumnType>, name: string): ColumnType {
  const columnType = types.get(name)
  if (columnType === undefined) throw notFound('a column is gone')
  return columnType
}

/**
 * Returns the condition for the row with a key, or for the rows after it; `undefined` if the key is invalid for the types of its columns. The
 * condition is written out, because the server may use no index for `(a, b) > (?, ?)`.
 */
function boundBy(key: readonly ColumnType[], bounds: readonly string[] | undefined, isAfter: boolean) {
  if (bounds === undefined) return { sql: '', values: [] }
  const parameters = key.map((column, i) => parameterFor(bounds[i] ?? '', column))
  const values: string[] = []
  const compare = (i: number, comparison: string) => {
    values.push(bounds[i] ?? '')
    return `${quoteName(key[i]?.name ?? '')} ${comparison} ${parameters[i]}`
  }
  if (parameters.includes(undefined)) return undefined
  const equal = (count: number) => key.slice(0, count).map((_, i) => compare(i, '='))
  const conditions = isAfter
    ? key.map((_, i) => `(${[...equal(i), compare(i, '>')].join(' AND ')})`).join(' OR ')
    : equal(key.length).join(' AND ')
  return { sql: `WHERE ${conditions}`, values }
}

function orderOf(key: readonly ColumnType[]): string {
  return key.length === 0 ? '' : `ORDER BY ${key.map(({ name }) => quoteName(name)).join(', ')}`
}
