import type { ObjectName } from '../relational/model.ts'

/** Cells of one result row, in column order. Numbers of more than 53 bits, decimals and times are strings. */
export type Cells = readonly (string | number | Buffer | null)[]

type Bound = string | number | null

/** Runs one prepared statement, with its values apart. */
export type Query = (sql: string, values?: readonly Bound[]) => Promise<readonly Cells[]>

/** An identifier between quotes. */
export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/** A name with its schema, quoted. */
export function nameOf({ schema, name }: ObjectName): string {
  return `${quoteName(schema)}.${quoteName(name)}`
}

/** A statement with its end, which a comment at the end of its last line does not swallow. */
export function ended(statement: string): string {
  return `${statement}${/(?:--|#)[^\n]*$/.test(statement) ? '\n' : ''};\n`
}

/** A literal for SQL that is shown, never for SQL that is executed. */
export function quoteText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

/** Rounds the number of parameters up to one of a few lengths, so that there are few distinct statements. */
export function parametersFor(count: number): number {
  return [1, 10, 200, 2000].find((length) => length >= count) ?? count
}

/** Placeholders and their values, padded with the last value. */
export function listed(values: readonly string[]): { readonly sql: string; readonly values: readonly string[] } {
  const length = parametersFor(values.length)
  const last = values.at(-1) ?? ''
  return {
    sql: Array.from({ length }, () => '?').join(', '),
    values: Array.from({ length }, (_, i) => values[i] ?? last),
  }
}

/** Schemas of the server itself: they are served where they are named. */
export const systemSchemas = ['information_schema', 'mysql', 'performance_schema', 'sys'] as const

/** A condition on a column of the information schema that selects the served schemas. */
export function servedSchema(column: string, schemas: readonly string[] | undefined) {
  const { sql, values } = listed(schemas ?? systemSchemas)
  return { sql: `${column} ${schemas === undefined ? 'NOT IN' : 'IN'} (${sql})`, values }
}

/** Whether the account may read a column of the information schema's list. */
export const readableColumn = "FIND_IN_SET('select', PRIVILEGES) > 0"

/** How to read a column, by the name of its type. */
type Form = 'integer' | 'decimal' | 'real' | 'text' | 'binary' | 'time' | 'date' | 'json' | 'shape' | 'other'

const forms: readonly (readonly [Form, RegExp])[] = [
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

/** A column, as statements need to know it. */
export interface ColumnType {
  readonly name: string
  /** `bigint`. */
  readonly dataType: string
  /** `bigint(20) unsigned`. */
  readonly type: string
}

function formOf({ dataType }: ColumnType): Form {
  return forms.find(([, pattern]) => pattern.test(dataType))?.[0] ?? 'other'
}

/** Whether rows can be put in an order by a column and found by it. Of an enum, the order and the comparison are two things. */
export function isKeyType(dataType: string): boolean {
  return /^(?:tinyint|smallint|mediumint|int|bigint|year|decimal|char|varchar|binary|varbinary|date|datetime|timestamp|uuid)$/.test(
    dataType,
  )
}

/** A column as a text, or bytes where it holds bytes. */
function wholeOf(column: ColumnType): string {
  const name = quoteName(column.name)
  switch (formOf(column)) {
    case 'text':
    case 'binary':
      return name
    case 'integer':
      return column.dataType === 'bit' ? `CAST(${name} + 0 AS CHAR)` : `CAST(${name} AS CHAR)`
    case 'real':
      // Converted to text it would have six digits.
      return `CAST(${name} + 0e0 AS CHAR)`
    case 'shape':
      return `ST_AsText(${name})`
    default:
      return `CAST(${name} AS CHAR)`
  }
}

/** The length of the value of a column, in bytes. */
export function lengthOf(column: ColumnType): string {
  return `LENGTH(${formOf(column) === 'shape' ? wholeOf(column) : quoteName(column.name)})`
}

/** A column as a value of limited length in bytes: the beginning of a longer one. */
export function pieceOf(column: ColumnType, most: number): string {
  const whole = wholeOf(column)
  const form = formOf(column)
  if (form !== 'text' && form !== 'binary' && form !== 'json' && form !== 'shape') return whole
  // A character has up to four bytes.
  const letters = form === 'binary' ? most : Math.max(1, Math.floor(most / 4))
  return `IF(${lengthOf(column)} > ${most}, LEFT(${whole}, ${letters}), ${whole})`
}

/** The length of a column, if it exceeds a number of bytes. */
export function sizeOf(column: ColumnType, most: number): string {
  const length = lengthOf(column)
  return `IF(${length} > ${most}, ${length}, NULL)`
}

/** A value as a fragment of JSON, without loss. The beginning of a value is a string, whatever its type. */
export function jsonOf(cell: Cells[number], column: ColumnType, isCut: boolean): string {
  if (cell === null) return 'null'
  if (Buffer.isBuffer(cell)) return JSON.stringify(cell.toString('base64'))
  const text = String(cell)
  const form = formOf(column)
  if (form === 'integer') return isShort(column) ? plain(text) : JSON.stringify(plain(text))
  if (form === 'real' && /^-?\d/.test(text)) return text
  if (form === 'json' && !isCut) return text
  if (form === 'time') return JSON.stringify(isoOf(text, column.dataType === 'timestamp'))
  return JSON.stringify(text)
}

/** Whole numbers of 32 bits or less, which every reader of JSON takes as they are. */
function isShort({ dataType, type }: ColumnType): boolean {
  if (dataType === 'bit') return Number(/\((\d+)\)/.exec(type)?.[1] ?? 64) <= 32
  return dataType !== 'bigint'
}

/** A whole number without the zeros that a column fills it up with. */
function plain(text: string): string {
  return text.replace(/^(-?)0+(?=\d)/, '$1')
}

/** `2026-11-21 18:00:00` as ISO 8601 has it. Values without an ISO form (days and months of zero) stay unchanged. */
function isoOf(text: string, isUtc: boolean): string {
  const match = /^(\d{4}-(?!00)\d\d-(?!00)\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$/.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}${isUtc ? 'Z' : ''}`
}

/** A column of a key as a text. */
export function keyOf(column: ColumnType): string {
  return formOf(column) === 'binary' ? `HEX(${quoteName(column.name)})` : wholeOf(column)
}

export function keyText(cell: Cells[number], column: ColumnType): string {
  const text = String(cell ?? '')
  return formOf(column) === 'integer' ? plain(text) : text
}

const valid: Readonly<Partial<Record<Form, RegExp>>> = {
  integer: /^-?\d{1,20}$/,
  decimal: /^-?\d{1,65}(?:\.\d{1,38})?$/,
  binary: /^(?:[0-9A-Fa-f]{2})*$/,
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?$/,
}

/** A parameter to compare with a column; `undefined` where the text is not one of its type. */
export function parameterFor(text: string, column: ColumnType): string | undefined {
  const form = formOf(column)
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
