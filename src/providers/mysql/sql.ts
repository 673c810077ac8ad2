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
