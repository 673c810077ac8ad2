import { endOf } from './rules.ts'
import type { RowQuery } from './store.ts'

/** The differences between the SQL of the engines. */
export interface Dialect {
  /** The n-th value, from 1. */
  parameter(n: number): string
  table(name: 'rows' | 'terms' | 'collections'): string
  /** The columns of a row, from the table that is called `r`. */
  columns(values: boolean): string
  /** The time now, in milliseconds since 1970. */
  readonly now: string
}

/** A statement, with its values. */
interface Sql {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** Returns the statement of `list`. */
export function listSql(dialect: Dialect, collection: string, query: RowQuery): Sql {
  const values: (string | number)[] = []
  const value = (given: string | number) => dialect.parameter(values.push(given))
  const { prefix = '', after, term, newest = false, before } = query
  const home = `(select id from ${dialect.table('collections')} where name = ${value(collection)})`
  const from =
    term === undefined
      ? `${dialect.table('rows')} r where r.collection = ${home}`
      : `${dialect.table('terms')} t join ${dialect.table('rows')} r on r.collection = t.collection and r.key = t.key
         where t.collection = ${home} and t.term = ${value(term)}`
  // Column by which the rows are ordered.
  const key = term === undefined ? 'r.key' : 't.key'
  const end = prefix === '' ? undefined : endOf(prefix)
  const conditions = [
    `(r.expires is null or r.expires > ${dialect.now})`,
    ...(prefix === '' ? [] : [`${key} >= ${value(prefix)}`]),
    ...(end === undefined ? [] : [`${key} < ${value(end)}`]),
    ...(after === undefined ? [] : [`${key} > ${value(after)}`]),
    ...(before === undefined ? [] : [`r.revision < ${value(before)}`]),
  ]
  const order = newest ? 'r.revision desc' : key
  const sql = `select ${dialect.columns(query.values === true)} from ${from}
    and ${conditions.join(' and ')} order by ${order} limit ${value(query.limit)}`
  return { sql, values }
}
