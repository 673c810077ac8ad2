import { notFound } from '../../core/errors.ts'
import type { Content, Context, Entry, Provider, ReadRequest, Template } from '../../core/provider.ts'
import {
  databaseMimeTypes,
  enumDocument,
  extensionsDocument,
  jsonContent,
  readOverview,
  relationDocument,
  routineDocument,
  textContent,
  visibleRelation,
} from './documents.ts'
import { createDatabaseCompleter, createDatabaseLister } from './list.ts'
import type { DatabaseSource, ObjectName, Relation, SourceContext } from './model.ts'
import { batchRequests, type DatabasePath, objectDirectory, parseDatabasePath } from './names.ts'
import { createRowRules, type ReadableTable, type RowOptions, readRow, readRows, rowParts } from './rows.ts'
import { createDatabaseWatch } from './watch.ts'

export type { DatabaseSource } from './model.ts'
export type { RowOptions } from './rows.ts'

export interface RelationalOptions {
  readonly source: DatabaseSource
  /** The served rows. Default: none. */
  readonly rows?: RowOptions
  /** Whether changes are reported. Default `true`. */
  readonly watch?: boolean
  /** Interval at which the catalog is compared without a hint of a change, in milliseconds. Default 30,000. */
  readonly reconcile?: number
}

/**
 * Provider of a relational database: its tables, views, enums and functions as JSON and as SQL, overviews with a diagram, and
 * rows if they are enabled. See docs/providers/postgres.md.
 *
 * No text of a client becomes SQL: names are looked up in the catalog, and keys are bound as parameters.
 */
export function relational(options: RelationalOptions): Provider {
  const { source, watch = true, reconcile = 30_000 } = options
  const rules = createRowRules(options.rows)
  const { hasRows } = rules
  const lister = createDatabaseLister(source, hasRows)
  const relationOf = batchRequests((names, signal) => source.relations(names, { signal }))
  const enumOf = batchRequests(async (names, signal) => (await source.enums?.(names, { signal })) ?? [])
  const routineOf = batchRequests(async (names, signal) => (await source.routines?.(names, { signal })) ?? [])
  const templates = templatesOf(source, options.rows !== undefined)
  const watching = createDatabaseWatch(source, reconcile, hasRows)

  const relationAt = async (name: ObjectName, context: SourceContext): Promise<Relation> =>
    found(await relationOf(name, context.signal))

  const tableOf = async (name: ObjectName, context: SourceContext): Promise<ReadableTable | undefined> => {
    const key = objectDirectory(name, source.schema)
    const relation = hasRows(key) ? await relationOf(name, context.signal) : undefined
    const access = relation === undefined ? undefined : rules.accessTo(relation, key)
    return relation === undefined || access === undefined ? undefined : { relation, access }
  }

  const rowAt = async (
    { name, key, row }: DatabasePath & { readonly kind: 'row' },
    context: Context,
  ): Promise<Content> =>
    readRow(found(source.rows), found(await tableOf(name, context)), `${key}rows`, row, rules, context)

  const readPath = async (databasePath: DatabasePath, { params }: ReadRequest, context: Context): Promise<Content> => {
    switch (databasePath.kind) {
      case 'overview':
        return found(await readOverview(source, databasePath.schema, params, context))
      case 'extensions':
        return jsonContent(extensionsDocument(found(await source.extensions?.(context))), databaseMimeTypes.extensions)
      case 'schema':
        return jsonContent(
          relationDocument(visibleRelation(await relationAt(databasePath.name, context), source.schema, context)),
          databaseMimeTypes.schema,
        )
      case 'schema.sql':
        return textContent((await relationAt(databasePath.name, context)).definition, databaseMimeTypes.sql)
      case 'enum':
        return jsonContent(enumDocument(found(await enumOf(databasePath.name, context.signal))), databaseMimeTypes.enum)
      case 'function':
        return jsonContent(
          routineDocument(found(await routineOf(databasePath.name, context.signal))),
          databaseMimeTypes.function,
        )
      case 'rows':
        return readRows(found(source.rows), found(await tableOf(databasePath.name, context)), params, rules, context)
      case 'row':
        return rowAt(databasePath, context)
    }
  }

  const stat = async (path: string, context: Context): Promise<Entry> => {
    const databasePath = found(parseDatabasePath(path, source.schema))
    if (databasePath.kind === 'row') {
      await rowAt(databasePath, context)
      return { path, mimeType: databaseMimeTypes.rows }
    }
    const page = lister.pages.find((one) => one.path === path)
    if (page !== undefined) return page
    const entries = await lister.entriesAt('key' in databasePath ? databasePath.key : path, context)
    return found(entries.find((entry) => entry.path === path))
  }

  /** Yields the rows of a table, each with its own path. Undefined: the rows are not served, or have no key. */
  const parts: NonNullable<Provider['parts']> = async (path, context) => {
    context.signal.throwIfAborted()
    const databasePath = parseDatabasePath(path, source.schema)
    if (databasePath?.kind !== 'rows' || source.rows === undefined) return undefined
    const table = await tableOf(databasePath.name, context)
    if (table === undefined || table.access.key.length === 0) return undefined
    return rowParts(source.rows, table, path, rules, context)
  }

  const complete = createDatabaseCompleter(source, tableOf)
  return {
    list: async function* (query, context) {
      context.signal.throwIfAborted()
      yield* lister.list(query, context)
    },
    stat: async (path, context) => {
      context.signal.throwIfAborted()
      return stat(path, context)
    },
    read: async (request, context) => {
      context.signal.throwIfAborted()
      return [await readPath(found(parseDatabasePath(request.path, source.schema)), request, context)]
    },
    templates: async () => templates,
    ...(options.rows === undefined ? {} : { parts }),
    complete: async (request, context) => {
      context.signal.throwIfAborted()
      return complete(request, context)
    },
    ...(watch ? watching : {}),
    close: () => source.close(),
  }
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw notFound()
  return value
}

function templatesOf(source: DatabaseSource, hasRows: boolean): readonly Template[] {
  const head = source.schema === undefined ? '{schema}/' : ''
  const has = (kind: 'enum' | 'function') => source.kinds.includes(kind)
  return [
    {
      template: `${head}{table}/schema`,
      name: 'Table',
      title: 'A table or view: columns, keys, foreign keys both ways, indexes',
      description: 'As JSON, with its definition as SQL.',
      mimeType: databaseMimeTypes.schema,
    },
    {
      template: `${head}{table}/schema.sql`,
      name: 'Table as SQL',
      title: 'The statements that make a table or view',
      mimeType: databaseMimeTypes.sql,
    },
    {
      template: 'overview{?format}',
      name: 'Overview',
      title: 'Tables and how they refer to each other',
      description: 'As JSON with a diagram in it, or with format=mermaid the diagram alone.',
    },
    ...(source.schema === undefined
      ? [
          {
            template: '{schema}/overview{?format}',
            name: 'Overview of a schema',
            title: 'The tables of a schema and how they refer to each other',
          },
        ]
      : []),
    ...(has('enum')
      ? [
          {
            template: `${head}{enum}/enum`,
            name: 'Enum',
            title: 'An enum and its values',
            mimeType: databaseMimeTypes.enum,
          },
        ]
      : []),
    ...(has('function')
      ? [
          {
            template: `${head}{function}/function`,
            name: 'Function',
            title: 'The functions and procedures with a name, and their definitions',
            mimeType: databaseMimeTypes.function,
          },
        ]
      : []),
    ...(hasRows && source.rows !== undefined
      ? [
          {
            template: `${head}{table}/rows{?limit,after,columns}`,
            free: ['limit', 'after'],
            name: 'Rows',
            title: 'Rows of a table, in the order of its key',
            description:
              'limit is a number of rows, by default 100; after is the "next" of an answer; columns are names separated by commas.',
            mimeType: databaseMimeTypes.rows,
          },
          {
            template: `${head}{table}/rows/{key}`,
            name: 'Row',
            title: 'The row with a primary key',
            description: 'The values of a key of several columns are separated by commas: 7,en.',
            mimeType: databaseMimeTypes.rows,
          },
        ]
      : []),
  ]
}
