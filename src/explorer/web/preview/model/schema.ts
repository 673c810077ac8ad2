import { isObject } from '../../../../core/kit/object.ts'
import { encodeSegment } from '../../../../core/uri.ts'

/** A table, as in the overview of a database (docs/providers/sqlite.md). */
export interface SchemaTable {
  readonly id: string
  readonly schema: string | undefined
  readonly name: string
  readonly kind: string
  readonly comment: string | undefined
  readonly columns: number
  readonly keys: readonly string[]
  readonly rows: number | undefined
  /** Columns that refer to another table, in addition to `keys`. */
  readonly foreign: readonly string[]
}

export interface SchemaLink {
  readonly from: string
  readonly to: string
  readonly columns: readonly string[]
  readonly toColumns: readonly string[]
}

export interface Overview {
  readonly schema: string | undefined
  readonly tables: readonly SchemaTable[]
  readonly links: readonly SchemaLink[]
}

/** Returns `undefined` if the document is not such an overview. */
export function overviewOf(value: unknown): Overview | undefined {
  if (!isObject(value) || !Array.isArray(value.tables) || !Array.isArray(value.relations)) return undefined
  const links = value.relations.flatMap((one: unknown): readonly SchemaLink[] => {
    if (!isObject(one) || !isObject(one.from) || !isObject(one.to)) return []
    const [from, to] = [one.from, one.to]
    if (typeof from.table !== 'string' || typeof to.table !== 'string') return []
    return [{ from: idOf(from), to: idOf(to), columns: textsOf(from.columns), toColumns: textsOf(to.columns) }]
  })
  const tables = value.tables.flatMap((one: unknown): readonly SchemaTable[] => {
    if (!isObject(one) || typeof one.table !== 'string') return []
    const id = idOf(one)
    const keys = textsOf(one.primaryKey)
    const foreign = links.filter(({ from }) => from === id).flatMap(({ columns }) => columns)
    return [
      {
        id,
        schema: typeof one.schema === 'string' ? one.schema : undefined,
        name: one.table,
        kind: typeof one.kind === 'string' ? one.kind : 'table',
        comment: typeof one.comment === 'string' ? one.comment : undefined,
        columns: typeof one.columns === 'number' ? one.columns : 0,
        keys,
        rows: typeof one.rowEstimate === 'number' ? one.rowEstimate : undefined,
        foreign: [...new Set(foreign)].filter((name) => !keys.includes(name)),
      },
    ]
  })
  const ids = new Set(tables.map(({ id }) => id))
  return {
    schema: typeof value.schema === 'string' ? value.schema : undefined,
    tables,
    links: links.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  }
}

function idOf({ schema, table }: Readonly<Record<string, unknown>>): string {
  return typeof schema === 'string' ? `${schema}\n${String(table)}` : String(table)
}

export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

/**
 * The path segment for a name of a database. Characters that a segment cannot contain are written as `~` and two digits for each
 * byte.
 */
function segmentOf(name: string): string {
  if (name === '') return '~'
  const isDots = name === '.' || name === '..'
  const bytes = (text: string) =>
    Array.from(new TextEncoder().encode(text), (byte) => `~${byte.toString(16).padStart(2, '0')}`).join('')
  return encodeSegment(isDots ? bytes(name) : name.replace(/[~/\p{Cc}\u2028\u2029]/gu, bytes))
}

/**
 * Returns the URI of the definition of a table, relative to an overview: below its folder, and below the schema if the overview
 * has several schemas.
 */
export function tableUri(
  overview: string,
  { schema, name }: Pick<SchemaTable, 'schema' | 'name'>,
  only: string | undefined,
): string {
  const base = overview.replace(/[?#].*$/s, '').replace(/[^/]*$/, '')
  const middle = schema === undefined || schema === only ? '' : `${segmentOf(schema)}/`
  return `${base}${middle}${segmentOf(name)}/schema`
}

/**
 * Returns the URI of the definition of a table, relative to the definition of another table: `…/orders/schema` or
 * `…/public/orders/schema`.
 */
export function siblingTableUri(
  own: { readonly uri: string; readonly schema: string | undefined },
  other: { readonly schema: string | undefined; readonly name: string },
): string {
  const base = own.uri.replace(/[?#].*$/s, '').replace(/[^/]*\/[^/]*$/, '')
  const folder = own.schema === undefined ? undefined : `${segmentOf(own.schema)}/`
  const isNamed = folder !== undefined && base.endsWith(`/${folder}`)
  if (other.schema === undefined || other.schema === own.schema || !isNamed)
    return `${base}${segmentOf(other.name)}/schema`
  return `${base.slice(0, -folder.length)}${segmentOf(other.schema)}/${segmentOf(other.name)}/schema`
}
