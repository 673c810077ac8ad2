import { invalid, notFound } from '../../core/errors.ts'
import { identityOf } from '../relational/batch.ts'
import type { ObjectName } from '../relational/model.ts'
import type { KeyQuery, RowPage, RowQuery } from '../relational/source.ts'
import { isUnusableValue } from './errors.ts'
import { hasRows, type PageOptions, tableFacts } from './page.ts'
import type { Session } from './session.ts'
import {
  type ColumnType,
  jsonOf,
  keyOf,
  keyText,
  lengthOf,
  nameOf,
  parameterFor,
  pieceOf,
  type Query,
  quoteName,
  readableColumn,
  sizeOf,
} from './sql.ts'

/**
 * Reads a page of rows, in one read-only snapshot. Statements contain only quoted names from the catalog; values of clients are
 * bound.
 */
export async function readRows(session: Session, query: RowQuery, options: PageOptions): Promise<RowPage> {
  const { relation, columns, limit, key: only, after, maxBytes, maxValueBytes } = query
  const keyNames = relation.rows?.key ?? []
  if (columns.length === 0) return { rows: [], more: false }
  try {
    return await session.transaction(async (run) => {
      const types = await typesOf(run, relation, options)
      const key = keyNames.map((name) => typeOf(types, name))
      const shown = columns.map((name) => typeOf(types, name))
      const bound = boundBy(key, only ?? after, only === undefined)
      if (bound === undefined) throw unusable()
      const from = `FROM ${nameOf(relation)} ${bound.sql} ${orderOf(key)}`
      // First how long the rows are, so that no more of them are fetched than there is room for.
      const length = shown.map((column) => `LEAST(COALESCE(${lengthOf(column)}, 0), ${maxValueBytes})`).join(' + ')
      const lengths = await run(`SELECT ${length} ${from} LIMIT ${limit + 1}`, bound.values)
      let [fitting, total] = [0, 0]
      for (const [bytes] of lengths) {
        total += Number(bytes)
        if (fitting === limit || (fitting > 0 && total > maxBytes)) break
        fitting++
      }
      if (fitting === 0) return { rows: [], more: false }
      const selected = [
        ...key.map(keyOf),
        ...shown.flatMap((column) => [pieceOf(column, maxValueBytes), sizeOf(column, maxValueBytes)]),
      ]
      const found = await run(`SELECT ${selected.join(', ')} ${from} LIMIT ${fitting}`, bound.values)
      const rows = found.map((cells) => ({
        key: key.map((column, i) => keyText(cells[i] ?? null, column)),
        values: shown.map((column, i) => {
          const at = key.length + 2 * i
          const cut = cells[at + 1] ?? null
          const json = jsonOf(cells[at] ?? null, column, cut !== null)
          return cut === null ? { json } : { json, cut: Number(cut) }
        }),
      }))
      return { rows, more: lengths.length > fitting }
    })
  } catch (error) {
    if (error !== unusableKey && !isUnusableValue(error)) throw error
    // A value in a row can also make a view fail that converts it.
    if (only !== undefined) return { rows: [], more: false }
    if (after !== undefined) throw invalid('The parameter "after" is not the key of a row of this table.', 'after')
    throw error
  }
}

const unusableKey = new Error('the key is not one of the type of its columns')
const unusable = () => unusableKey

/** Keys from a text on, in the order of the first column. */
export async function readKeys(
  session: Session,
  { relation, typed, limit }: KeyQuery,
  options: PageOptions,
): Promise<readonly (readonly string[])[]> {
  return session.transaction(async (run) => {
    const types = await typesOf(run, relation, options)
    const key = (relation.rows?.key ?? []).map((name) => typeOf(types, name))
    const [first] = key
    if (first === undefined) return []
    const parameter = typed === '' ? '' : parameterFor(typed, first)
    if (parameter === undefined) return []
    const where = parameter === '' ? '' : `WHERE ${quoteName(first.name)} >= ${parameter}`
    const rows = await run(
      `SELECT ${key.map(keyOf).join(', ')} FROM ${nameOf(relation)} ${where} ${orderOf(key)} LIMIT ${limit}`,
      parameter === '' ? [] : [typed],
    ).catch((error: unknown) => {
      if (isUnusableValue(error)) return []
      throw error
    })
    return rows.map((cells) => key.map((column, i) => keyText(cells[i] ?? null, column)))
  })
}

/** The columns that the account may read, as they are now. */
async function typesOf(
  run: Query,
  name: ObjectName,
  { schemas, views }: PageOptions,
): Promise<ReadonlyMap<string, ColumnType>> {
  if (schemas !== undefined && !schemas.includes(name.schema)) throw notFound('not served')
  const values = [name.schema, name.name]
  const rows = await run(
    `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND ${readableColumn}`,
    values,
  )
  const facts = await run(
    'SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?',
    values,
  )
  // The information schema does not tell names apart that differ in case.
  const isOwn = ([schema, table]: readonly unknown[]) =>
    identityOf({ schema: String(schema), name: String(table) }) === identityOf(name)
  const [, , type, engine] = facts.find(isOwn) ?? []
  const { kind } = tableFacts(String(type), undefined, undefined)
  if (type === undefined || !hasRows(kind, engine === null ? undefined : String(engine), views))
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

function typeOf(types: ReadonlyMap<string, ColumnType>, name: string): ColumnType {
  const found = types.get(name)
  if (found === undefined) throw notFound('a column has gone')
  return found
}

/**
 * The rows with a key, or those behind one; `undefined` where the key is not of the type of its columns. Written out, since the
 * server finds its way by an index for these and not for `(a, b) > (?, ?)`.
 */
function boundBy(key: readonly ColumnType[], told: readonly string[] | undefined, isAfter: boolean) {
  if (told === undefined) return { sql: '', values: [] }
  const parameters = key.map((column, i) => parameterFor(told[i] ?? '', column))
  const values: string[] = []
  const compared = (i: number, comparison: string) => {
    values.push(told[i] ?? '')
    return `${quoteName(key[i]?.name ?? '')} ${comparison} ${parameters[i]}`
  }
  if (parameters.includes(undefined)) return undefined
  const equal = (count: number) => key.slice(0, count).map((_, i) => compared(i, '='))
  const conditions = isAfter
    ? key.map((_, i) => `(${[...equal(i), compared(i, '>')].join(' AND ')})`).join(' OR ')
    : equal(key.length).join(' AND ')
  return { sql: `WHERE ${conditions}`, values }
}

function orderOf(key: readonly ColumnType[]): string {
  return key.length === 0 ? '' : `ORDER BY ${key.map(({ name }) => quoteName(name)).join(', ')}`
}
