import { invalid, notFound } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { defined } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Content, Context, EntryPart, Params } from '../../core/provider.ts'
import { databaseMimeTypes, schemaMember, textContent } from './documents.ts'
import type { Relation, RowAccess, RowPage, RowQuery, RowSource, SourceContext, TableRow } from './model.ts'
import { nameToSegment, rowKeyOf, rowSegmentOf } from './names.ts'

const defaultLimit = 100

export interface ReadableTable {
  readonly relation: Relation
  readonly access: RowAccess
}

export async function readRows(
  source: RowSource,
  { relation, access }: ReadableTable,
  params: Params,
  rules: RowRules,
  context: SourceContext,
): Promise<Content> {
  const limit = limitIn(params, rules.limit)
  const columns = columnsIn(params, access)
  const after = afterIn(params, access)
  const page = await readRowPage(
    source,
    { relation, access },
    rules,
    { columns, limit, ...defined({ after }) },
    context,
  )
  const last = page.rows.at(-1)
  const next = page.more && last !== undefined && access.key.length > 0 ? rowSegmentOf(last.key) : undefined
  return rowPageContent(relation, access, columns, page, next)
}

/** Yields the rows of a table with their paths, page by page in the order of its key. The table must have a key. */
export async function* rowParts(
  source: RowSource,
  { relation, access }: ReadableTable,
  path: string,
  rules: RowRules,
  context: SourceContext,
): AsyncGenerator<EntryPart> {
  const { limit } = rules
  const types = new Map(relation.columns.map(({ name, type }) => [name, type]))
  const columns = access.readable.filter((column) => !bytesType.test(types.get(column) ?? ''))
  let after: readonly string[] | undefined
  for (;;) {
    const query = { columns, limit, ...defined({ after }) }
    const page: RowPage = await readRowPage(source, { relation, access }, rules, query, context)
    for (const row of page.rows)
      yield {
        path: `${path}/${rowSegmentOf(row.key)}`,
        title: `${relation.name} ${row.key.join(', ')}`.replace(/\p{Cc}/gu, ' '),
        mimeType: databaseMimeTypes.rows,
        text: searchableText(row, columns),
      }
    after = page.rows.at(-1)?.key
    if (!page.more || after === undefined) return
  }
}

/** Types whose values have no words to search. */
const bytesType = /bytea|blob|binary/i

function searchableText({ values }: TableRow, columns: readonly string[]): string {
  return columns
    .flatMap((column, i) => {
      const json = values[i]?.json
      if (json === undefined || json === 'null') return []
      // Numbers stay as the database wrote them.
      const words = json.startsWith('"') ? String(JSON.parse(json)) : json
      return [`${column}: ${words}`]
    })
    .join('\n')
}

/**
 * Reads the row with a key. The segment may also have the key as rows show it, such as base64 for bytes.
 *
 * @param path The path of the rows. Access rules apply to the key as the database spells it, whatever spelling the caller uses.
 */
export async function readRow(
  source: RowSource,
  { relation, access }: ReadableTable,
  path: string,
  segment: string,
  rules: RowRules,
  context: SourceContext & Pick<Context, 'allows'>,
): Promise<Content> {
  const key = access.key.length === 0 ? undefined : rowKeyOf(segment, access.key.length)
  if (key === undefined) throw notFound('no such key')
  const columns = access.readable
  const isSame = createKeyTest(relation, access, key)
  for (const isShown of [false, true]) {
    const query = { columns, key, isShown, limit: isShown ? mostAlike : 1 }
    const page = await readRowPage(source, { relation, access }, rules, query, context)
    const row = page.rows.find(isSame)
    if (row === undefined) continue
    const own = rowSegmentOf(row.key)
    if (own !== segment && context.allows?.(`${path}/${own}`) === false) break
    return rowPageContent(relation, access, columns, { rows: [row], more: false }, undefined)
  }
  throw notFound('no such row')
}

/** Maximum number of rows that are compared when several keys have the same shown form. */
const mostAlike = 10

/** Types whose values have several spellings, such as a UUID in capitals. Texts with different capitals are different values. */
const valueType = /uuid|numeric|decimal|date|time|bytea|blob|binary|real|double|float/i

/**
 * Creates the test whether a row has a key. A database also finds a row by other spellings of its key (`01` for `1`). The test accepts the
 * spelling of the row, the one that is shown, and any spelling with a digit for the types in {@link valueType}.
 */
function createKeyTest({ columns }: Relation, { key: names, readable }: RowAccess, key: readonly string[]) {
  const types = names.map((name) => columns.find((column) => column.name === name)?.type ?? '')
  return ({ key: own, values }: TableRow): boolean =>
    key.every((part, i) => {
      if (part === own[i]) return true
      const { json = 'null', cut } = values[readable.indexOf(names[i] ?? '')] ?? {}
      const text = json.startsWith('"') ? String(JSON.parse(json)) : json
      return (part === text && cut === undefined) || (/\d/.test(part) && valueType.test(types[i] ?? ''))
    })
}

function readRowPage(
  source: RowSource,
  { relation, access }: ReadableTable,
  { maxValueBytes, maxBytes }: RowRules,
  query: Omit<RowQuery, 'relation' | 'maxValueBytes' | 'maxBytes'>,
  context: SourceContext,
): Promise<RowPage> {
  return source.read({ relation: { ...relation, rows: access }, maxValueBytes, maxBytes, ...query }, context)
}

function limitIn(params: Params, most: number): number {
  const text = params.get('limit')
  if (text === undefined) return Math.min(defaultLimit, most)
  const limit = Number(text)
  if (!/^[0-9]{1,9}$/.test(text) || limit < 1 || limit > most)
    throw invalid(`The parameter "limit" must be a whole number from 1 to ${most}.`, 'parameter', {
      parameter: 'limit',
      limit: most,
    })
  return limit
}

function columnsIn(params: Params, { readable }: RowAccess): readonly string[] {
  const text = params.get('columns')
  if (text === undefined) return readable
  const columns = rowKeyOf(text, text.split(',').length)
  const isKnown = columns?.every((column) => readable.includes(column)) && new Set(columns).size === columns.length
  if (columns === undefined || !isKnown)
    throw invalid(
      'The parameter "columns" must be different columns of this table, separated by commas.',
      'parameter',
      { parameter: 'columns' },
    )
  return columns
}

function afterIn(params: Params, { key }: RowAccess): readonly string[] | undefined {
  const text = params.get('after')
  if (text === undefined) return undefined
  if (key.length === 0)
    throw invalid('This table has no key, so the parameter "after" is not allowed.', 'parameter', {
      parameter: 'after',
    })
  const after = rowKeyOf(text, key.length)
  if (after === undefined)
    throw invalid('The parameter "after" must be the key of a row, as an answer gives it in "next".', 'parameter', {
      parameter: 'after',
    })
  return after
}

/** Returns rows as JSON, concatenated from the texts of the database, because numbers of JavaScript would lose digits. */
function rowPageContent(
  relation: Relation,
  access: RowAccess,
  columns: readonly string[],
  page: RowPage,
  next: string | undefined,
): Content {
  const types = new Map(relation.columns.map(({ name, type }) => [name, type]))
  const head = {
    ...schemaMember(relation.schema),
    table: relation.name,
    columns: columns.map((name) => ({ name, type: types.get(name) ?? null })),
    key: access.key,
    more: page.more,
    next: next ?? null,
    cut: page.rows.flatMap((row, index) => cutsOf(row, index, columns)),
  }
  const rows = page.rows.map((row) => `    ${rowText(row, columns)}`).join(',\n')
  const text = `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "rows": [${rows === '' ? '' : `\n${rows}\n  `}]\n}\n`
  return textContent(text, databaseMimeTypes.rows, page.more ? { [metaKeys.truncated]: true } : undefined)
}

function rowText({ values }: TableRow, columns: readonly string[]): string {
  return `{ ${columns.map((column, i) => `${JSON.stringify(column)}: ${values[i]?.json ?? 'null'}`).join(', ')} }`
}

function cutsOf({ values }: TableRow, row: number, columns: readonly string[]) {
  return columns.flatMap((column, i) => {
    const bytes = values[i]?.cut
    return bytes === undefined ? [] : [{ row, column, bytes }]
  })
}

export interface RowOptions {
  /** Globs over the paths of tables: `customers`, `public/*`. By default all. */
  readonly tables?: readonly string[]
  /** Globs over columns, each below the path of its table: `customers/email`, `public/customers/*_hash`. A denial wins. */
  readonly columns?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] }
  /** Maximum number of rows per answer. Default 1000. */
  readonly limit?: number
  /** Maximum length of a value, in bytes. Only the beginning of a longer value is returned. Default 16 KiB. */
  readonly maxValueBytes?: number
  /** Approximate maximum size of the values of one answer, in bytes. Default 1 MiB. */
  readonly maxBytes?: number
}

type RowRules = ReturnType<typeof createRowRules>

/** @param options Undefined: no rows are served. */
export function createRowRules(options: RowOptions | undefined) {
  const { tables, columns = {}, limit = 1000, maxValueBytes = 16 * 1024, maxBytes = 1024 * 1024 } = options ?? {}
  const isTable = tables === undefined ? () => true : compileGlobs(tables)
  const isAllowed = columns.allow === undefined ? () => true : compileGlobs(columns.allow)
  const isDenied = columns.deny === undefined ? () => false : compileGlobs(columns.deny)
  const hasRows = (key: string) => options !== undefined && isTable(key.slice(0, -1))
  return {
    limit,
    maxValueBytes,
    maxBytes,
    /** Whether rows of a table are served, by its key. */
    hasRows,
    /** Returns the readable columns and the key of a table; undefined when its rows may not be read. */
    accessTo: ({ rows }: Relation, key: string): RowAccess | undefined => {
      if (rows === undefined || !hasRows(key)) return undefined
      const isOpen = (column: string) => {
        const path = `${key}${nameToSegment(column)}`
        return isAllowed(path) && !isDenied(path)
      }
      const readable = rows.readable.filter(isOpen)
      // A key reveals the values of its columns, so a key with a hidden column is not used.
      return { readable, key: rows.key.every((column) => readable.includes(column)) ? rows.key : [] }
    },
  }
}
