import type { ObjectName } from '../relational/model.ts'
import { hexOfBase64 } from '../relational/names.ts'

/** Cells of one result row, in column order. Numbers of more than 53 bits, decimals and times are strings. */
export type Cells = readonly (string | number | Buffer | null)[]

/** Runs one prepared statement, with its values separate from the text. */
export type Query = (sql: string, values?: readonly (string | number | null)[]) => Promise<readonly Cells[]>

export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

export function quoteObjectName({ schema, name }: ObjectName): string {
  return `${quoteName(schema)}.${quoteName(name)}`
}

/** Ends a statement with a semicolon that is not part of a comment. */
export function endStatement(statement: string): string {
  return `${statement}${/(?:--|#)[^\n]*$/.test(statement) ? '\n' : ''};\n`
}

/** Quotes a text as a literal for SQL that is shown, never for SQL that is executed. */
export function quoteText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

/** Rounds the number of parameters up to one of a few lengths, so that there are few distinct statements. */
function parametersFor(count: number): number {
  return [1, 10, 200, 2000].find((length) => length >= count) ?? count
}

/** Returns placeholders for values, and the values, padded with the last one. */
export function placeholdersFor(values: readonly string[]): {
  readonly sql: string
  readonly values: readonly string[]
} {
  const length = parametersFor(values.length)
  const last = values.at(-1) ?? ''
  return {
    sql: Array.from({ length }, () => '?').join(', '),
    values: Array.from({ length }, (_, i) => values[i] ?? last),
  }
}

/** Schemas of the server itself: they are served only if the configuration names them. */
const systemSchemas = ['information_schema', 'mysql', 'performance_schema', 'sys'] as const

export function servedSchemaCondition(column: string, schemas: readonly string[] | undefined) {
  const { sql, values } = placeholdersFor(schemas ?? systemSchemas)
  return { sql: `${column} ${schemas === undefined ? 'NOT IN' : 'IN'} (${sql})`, values }
}

/** Condition that the account may read a column, for rows of `information_schema.COLUMNS`. */
export const readableColumnCondition = "FIND_IN_SET('select', PRIVILEGES) > 0"

type ColumnForm = 'integer' | 'decimal' | 'real' | 'text' | 'binary' | 'time' | 'date' | 'json' | 'shape' | 'other'

const forms: readonly (readonly [ColumnForm, RegExp])[] = [
  ['integer', /^(?:tinyint|smallint|mediumint|int|integer|bigint|year|bit)$/],
  ['decimal', /^(?:decimal|numeric|fixed)$/],
  ['real', /^(?:float|double|real)$/],
  ['text', /^(?:char|varchar|tinytext|text|mediumtext|longtext|enum|set)$/],
  ['binary', /^(?:binary|varbinary|tinyblob|blob|mediumblob|longblob|vector)$/],
  ['time', /^(?:datetime|timestamp)$/],
  ['date', /^date$/],
  ['json', /^json$/],
  ['shape', /^(?:geometry|point|linestring|polygon|multi\w+|geomcollection|geometrycollection)$/],
]

export interface ColumnType {
  readonly name: string
  /** Name of the type, such as `bigint`. */
  readonly dataType: string
  /** Complete type, such as `bigint(20) unsigned`. */
  readonly type: string
}

function columnForm({ dataType }: ColumnType): ColumnForm {
  return forms.find(([, pattern]) => pattern.test(dataType))?.[0] ?? 'other'
}

/** Whether rows can be ordered and found by a column of a type. Not by an enum, whose order and comparison differ. */
export function isKeyType(dataType: string): boolean {
  return /^(?:tinyint|smallint|mediumint|int|bigint|year|decimal|char|varchar|binary|varbinary|date|datetime|timestamp|uuid)$/.test(
    dataType,
  )
}

/** Returns the SQL of a column as text, or as bytes if it holds bytes. */
function wholeOf(column: ColumnType): string {
  const name = quoteName(column.name)
  switch (columnForm(column)) {
    case 'text':
    case 'binary':
      return name
    case 'integer':
      return column.dataType === 'bit' ? `CAST(${name} + 0 AS CHAR)` : `CAST(${name} AS CHAR)`
    case 'real':
      // A conversion to text would leave only six digits.
      return `CAST(${name} + 0e0 AS CHAR)`
    case 'shape':
      return `ST_AsText(${name})`
    default:
      return `CAST(${name} AS CHAR)`
  }
}

export function lengthSql(column: ColumnType): string {
  return `LENGTH(${columnForm(column) === 'shape' ? wholeOf(column) : quoteName(column.name)})`
}

/** Returns the SQL of a column, cut to a length in bytes if its type can be long. */
export function cutColumnSql(column: ColumnType, most: number): string {
  const whole = wholeOf(column)
  const form = columnForm(column)
  if (form !== 'text' && form !== 'binary' && form !== 'json' && form !== 'shape') return whole
  // A character has up to four bytes.
  const letters = form === 'binary' ? most : Math.max(1, Math.floor(most / 4))
  return `IF(${lengthSql(column)} > ${most}, LEFT(${whole}, ${letters}), ${whole})`
}

export function lengthIfCutSql(column: ColumnType, most: number): string {
  const length = lengthSql(column)
  return `IF(${length} > ${most}, ${length}, NULL)`
}

/** Converts a value to a fragment of JSON, without loss. The beginning of a cut value is a string, whatever its type. */
export function cellToJson(cell: Cells[number], column: ColumnType, isCut: boolean): string {
  if (cell === null) return 'null'
  if (Buffer.isBuffer(cell)) return JSON.stringify(cell.toString('base64'))
  const text = String(cell)
  const form = columnForm(column)
  if (form === 'integer') return isShort(column) ? stripLeadingZeros(text) : JSON.stringify(stripLeadingZeros(text))
  if (form === 'real' && /^-?\d/.test(text)) return column.dataType === 'float' ? shortestFloat(text) : text
  if (form === 'json' && !isCut) return text
  if (form === 'time') return JSON.stringify(isoOf(text, column.dataType === 'timestamp'))
  return JSON.stringify(text)
}

/** Returns the shortest decimal of a 32-bit number that is written with the digits of a 64-bit one. */
function shortestFloat(text: string): string {
  const value = Math.fround(Number(text))
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return String(short)
  }
  return text
}

/** Whether a type has only whole numbers of 32 bits or less, which every JSON parser reads exactly. */
function isShort({ dataType, type }: ColumnType): boolean {
  if (dataType === 'bit') return Number(/\((\d+)\)/.exec(type)?.[1] ?? 64) <= 32
  return dataType !== 'bigint'
}

function stripLeadingZeros(text: string): string {
  return text.replace(/^(-?)0+(?=\d)/, '$1')
}

/** Converts `2026-11-21 18:00:00` to ISO 8601. Values without an ISO form (days and months of zero) stay unchanged. */
function isoOf(text: string, isUtc: boolean): string {
  const match = /^(\d{4}-(?!00)\d\d-(?!00)\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$/.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}${isUtc ? 'Z' : ''}`
}

export function keySql(column: ColumnType): string {
  return columnForm(column) === 'binary' ? `HEX(${quoteName(column.name)})` : wholeOf(column)
}

export function keyText(cell: Cells[number], column: ColumnType): string {
  const text = String(cell ?? '')
  return columnForm(column) === 'integer' ? stripLeadingZeros(text) : text
}

const valid: Readonly<Partial<Record<ColumnForm, RegExp>>> = {
  integer: /^-?\d{1,20}$/,
  decimal: /^-?\d{1,65}(?:\.\d{1,38})?$/,
  binary: /^(?:[0-9A-Fa-f]{2})*$/,
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?$/,
}

/** Converts the form in which a value is shown to the form that it has in a key. */
export function shownValueToKey(text: string, column: ColumnType): string {
  const form = columnForm(column)
  if (form === 'binary') return hexOfBase64(text) ?? ''
  if (form === 'time') return text.replace(/^([\d-]{10})T/, '$1 ').replace(/(?:Z|\+00:00)$/, '')
  return text
}

/** Returns the SQL of a parameter to compare with a column; `undefined` if the text is invalid for its type. */
export function parameterFor(text: string, column: ColumnType): string | undefined {
  const form = columnForm(column)
  if (valid[form]?.test(text) === false) return undefined
  switch (form) {
    case 'integer':
      return /unsigned/i.test(column.type) || column.dataType === 'year' ? unsigned(text) : 'CAST(? AS SIGNED)'
    case 'decimal':
      return 'CAST(? AS DECIMAL(65, 30))'
    case 'binary':
      return 'UNHEX(?)'
    case 'date':
      return 'CAST(? AS DATE)'
    case 'time':
      return 'CAST(? AS DATETIME(6))'
    default:
      return '?'
  }
}

function unsigned(text: string): string | undefined {
  return text.startsWith('-') ? undefined : 'CAST(? AS UNSIGNED)'
}
