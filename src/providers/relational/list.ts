import { completeFromValues } from '../../core/completion.ts'
import { comparePaths } from '../../core/path.ts'
import type { Completion, CompletionRequest, Entry, ListQuery } from '../../core/provider.ts'
import { catalogPagesFrom, databaseMimeTypes } from './documents.ts'
import type { CatalogItem, DatabaseSource, NamedItem, ObjectName, SourceContext } from './model.ts'
import { leafNames, nameSegmentCount, nameToSegment, type ObjectLeaf, rowSegmentOf, segmentToName } from './names.ts'
import type { ReadableTable } from './rows.ts'

const listedPageLength = 2000

/** @param hasRows Whether rows are served for the object with a key. */
export function createDatabaseLister(source: DatabaseSource, hasRows: (key: string) => boolean) {
  const depth = nameSegmentCount(source.schema)

  const entriesOf = (item: CatalogItem): readonly Entry[] => {
    if (!('name' in item)) return [overviewEntry(item.key, item.schema, item.comment)]
    return leavesOf(item, hasRows).map((leaf) => leafEntry(item, leaf))
  }

  const pages: readonly Entry[] = [
    ...(source.extensions === undefined ? [] : [extensionsEntry]),
    overviewEntry('overview', source.schema === '' ? undefined : source.schema),
  ]

  const objects = async function* (prefix: string, from: string, context: SourceContext): AsyncGenerator<Entry> {
    const query = { from, prefix, limit: listedPageLength }
    for await (const page of catalogPagesFrom(source, query, context)) for (const item of page) yield* entriesOf(item)
  }

  return {
    pages,
    list: async function* ({ prefix = '', after }: ListQuery, context: SourceContext): AsyncGenerator<Entry> {
      const from = startOf(prefix, after, depth)
      if (from === undefined) return
      const ahead = prefix === '' ? [...pages] : []
      const isLeft = ({ path }: Entry) => after === undefined || comparePaths(path, after) > 0
      for await (const entry of objects(prefix, from, context)) {
        context.signal.throwIfAborted()
        while (ahead[0] !== undefined && comparePaths(ahead[0].path, entry.path) < 0) {
          const page = ahead.shift()
          if (page !== undefined && isLeft(page)) yield page
        }
        if (isLeft(entry)) yield entry
      }
      yield* ahead.filter(isLeft)
    },
    entriesAt: async (key: string, context: SourceContext): Promise<readonly Entry[]> => {
      const items = await source.page({ from: key, prefix: key.endsWith('/') ? key : '', limit: 1 }, context)
      return items.flatMap((item) => (item.key === key ? entriesOf(item) : []))
    },
  }
}

/**
 * Returns the key at which a listing begins; `undefined` when nothing is left. It begins at the object that contains `after`, because some
 * entries of that object may follow `after`.
 */
function startOf(prefix: string, after: string | undefined, depth: number): string | undefined {
  const segments = prefix.split('/').length - 1
  if (segments > depth) return undefined
  if (after === undefined || (!after.startsWith(prefix) && comparePaths(after, prefix) < 0)) return prefix
  if (!after.startsWith(prefix)) return undefined
  const parts = after.split('/')
  const from = parts.length > depth ? `${parts.slice(0, depth).join('/')}/` : after
  // No database accepts NUL in a value, and no key contains it: U+0001 gives the same position in the list.
  return from.replaceAll('\0', '\u0001')
}

function leavesOf(
  item: Extract<CatalogItem, { name: string }>,
  hasRows: (key: string) => boolean,
): readonly ObjectLeaf[] {
  const isThere: Readonly<Record<ObjectLeaf, boolean>> = {
    enum: item.isEnum === true,
    function: item.isRoutine === true,
    rows: item.rows === true && hasRows(item.key),
    schema: item.relation !== undefined,
    'schema.sql': item.relation !== undefined,
  }
  return leafNames.filter((leaf) => isThere[leaf])
}

const mimeTypeOf: Readonly<Record<ObjectLeaf, string>> = {
  enum: databaseMimeTypes.enum,
  function: databaseMimeTypes.function,
  rows: databaseMimeTypes.rows,
  schema: databaseMimeTypes.schema,
  'schema.sql': databaseMimeTypes.sql,
}

function leafEntry({ key, name, relation, comment }: Extract<CatalogItem, { name: string }>, leaf: ObjectLeaf): Entry {
  const titles: Readonly<Record<ObjectLeaf, string>> = {
    enum: `${name}: enum`,
    function: `${name}: function`,
    rows: `${name}: rows`,
    schema: `${name}: ${relation}`,
    'schema.sql': `${name}: ${relation}, as SQL`,
  }
  const description = comment?.replace(/\p{Cc}+/gu, ' ').trim() ?? ''
  return {
    path: `${key}${leaf}`,
    title: titles[leaf].replace(/\p{Cc}/gu, ' '),
    ...(description === '' ? {} : { description }),
    mimeType: mimeTypeOf[leaf],
  }
}

function overviewEntry(path: string, schema: string | undefined, comment?: string): Entry {
  const of = schema === undefined ? 'the database' : `the schema ${schema.replace(/\p{Cc}/gu, ' ')}`
  const commentText = comment === undefined ? '' : ` ${comment.replace(/\p{Cc}+/gu, ' ').trim()}`
  return {
    path,
    title: `Overview of ${of}`,
    description: `Tables, views and how they refer to each other, with a diagram.${commentText}`,
    mimeType: databaseMimeTypes.overview,
    priority: 0.8,
  }
}

const extensionsEntry: Entry = {
  path: 'extensions',
  title: 'Extensions',
  description: 'The extensions that are installed, with their versions.',
  mimeType: databaseMimeTypes.extensions,
}

const maxValues = 100
const maxLooks = 4000
const searchedPageLength = 500
/** Maximum number of keys examined: keys that begin with the same digits are not adjacent. */
const maxKeys = 1000
const nothing: Completion = { values: [], total: 0, hasMore: false }

/**
 * Creates the completer of names of tables, enums and functions, columns and keys.
 *
 * @param tableOf Returns a table whose rows may be read; `undefined` if there is none.
 */
export function createDatabaseCompleter(
  source: DatabaseSource,
  tableOf: (name: ObjectName, context: SourceContext) => Promise<ReadableTable | undefined>,
) {
  const names = async (
    head: string,
    typed: string,
    isWanted: (item: NamedItem) => boolean,
    context: SourceContext,
  ): Promise<Completion> => {
    const values: string[] = []
    const beginning = `${head}${typed}`
    let looks = 0
    for await (const page of catalogPagesFrom(
      source,
      { from: beginning, prefix: head, limit: searchedPageLength },
      context,
    )) {
      if (looks >= maxLooks) return { values, hasMore: true }
      looks += page.length
      for (const item of page) {
        if (!item.key.startsWith(beginning)) return completeFromValues(values)
        if (!('name' in item) || !isWanted(item)) continue
        if (values.length === maxValues) return { values, hasMore: true }
        values.push(item.key.slice(head.length, -1))
      }
    }
    return completeFromValues(values)
  }

  const columns = ({ access }: ReadableTable, typed: string): Completion => {
    const comma = typed.lastIndexOf(',') + 1
    const [before, started] = [typed.slice(0, comma), typed.slice(comma).toLowerCase()]
    const columns = new Set(before.split(','))
    const left = access.readable
      .map((column) => rowSegmentOf([column]))
      .filter((column) => !columns.has(column) && column.toLowerCase().startsWith(started))
    return completeFromValues(left.map((column) => before + column))
  }

  const keys = async (
    { relation, access }: ReadableTable,
    typed: string,
    context: SourceContext,
  ): Promise<Completion> => {
    if (source.rows === undefined || access.key.length === 0) return nothing
    const first = segmentToName(typed.split(',')[0] ?? '') ?? ''
    const keys = await source.rows.keys(
      { relation: { ...relation, rows: access }, typed: typed === '' ? '' : first, limit: maxKeys },
      context,
    )
    const values = keys.map(rowSegmentOf).filter((key) => key.startsWith(typed))
    return { values: values.slice(0, maxValues), hasMore: values.length > maxValues }
  }

  return async (
    { argument, arguments: filled }: CompletionRequest,
    context: SourceContext,
  ): Promise<Completion | undefined> => {
    const { name, value } = argument
    if (name === 'schema' || name === 'path') return undefined
    if (name === 'format') return completeFromValues(['mermaid'], value)
    const schemaName = filled.get('schema') ?? ''
    const schema = source.schema ?? segmentToName(schemaName)
    if (schema === undefined || (source.schema === undefined && schemaName === '')) return nothing
    const head = source.schema === undefined ? `${nameToSegment(schema)}/` : ''
    const isWanted = filters[name]
    if (isWanted !== undefined) return value.includes('/') ? nothing : names(head, value, isWanted, context)
    if (name !== 'columns' && name !== 'key') return nothing
    const tableName = segmentToName(filled.get('table') ?? '')
    const table = tableName === undefined ? undefined : await tableOf({ schema, name: tableName }, context)
    if (table === undefined) return nothing
    return name === 'columns' ? columns(table, value) : keys(table, value, context)
  }
}

const filters: Readonly<Record<string, (item: NamedItem) => boolean>> = {
  table: (item) => item.relation !== undefined,
  enum: (item) => item.isEnum === true,
  function: (item) => item.isRoutine === true,
}
