import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { defined } from '../../core/kit/object.ts'
import { comparePaths } from '../../core/path.ts'
import { type Reference, type Relation, roundEstimate, type TableIndex } from '../relational/model.ts'
import { nameToSegment } from '../relational/names.ts'
import {
  type Affinity,
  affinityOf,
  type Cells,
  checksOf,
  definitionItemsOf,
  foldName,
  foreignKeysOf,
  generatedColumnsOf,
  quoteName,
  type RawColumn,
  type RelationItem,
  type RunQuery,
  readTableColumns,
  referencesIn,
  rowsOrNone,
  tokenRangeText,
} from './definitions.ts'

export interface KeyColumn {
  readonly name: string
  readonly affinity: Affinity
  /** Whether the column is the rowid, which holds only integers. */
  readonly isRowid: boolean
  readonly collation: string
}

export interface RelationDescription {
  readonly item: RelationItem
  readonly relation: Relation
  readonly key: readonly KeyColumn[]
}

export type DatabaseCatalog = ReturnType<typeof createDatabaseCatalog>

/** The collations of SQLite itself. The order of any other collation is unknown here. */
const collations = new Set(['BINARY', 'NOCASE', 'RTRIM'])

/** Creates the catalog of a database. Callers must be in a transaction. */
export function createDatabaseCatalog(database: DatabaseSyncInstance) {
  const prepared = new Map<string, ReturnType<typeof database.prepare>>()
  const run = (sql: string, ...values: readonly string[]) => {
    const statement = prepared.get(sql) ?? database.prepare(sql)
    prepared.set(sql, statement)
    return statement.all(...values) as readonly Cells[]
  }
  const version = database.prepare('pragma schema_version')
  let cachedListing: Listing | undefined

  const listing = (): Listing => {
    const now = String(version.get())
    if (cachedListing?.version !== now) cachedListing = { version: now, ...listAll(run), relations: new Map() }
    return cachedListing
  }
  return {
    items: (): readonly RelationItem[] => listing().items,
    statements: (): readonly Cells[] => run('select type, name, tbl_name, sql from sqlite_schema order by type, name'),
    find: (name: string): RelationDescription | undefined => {
      const { byName, relations, references } = listing()
      const item = byName.get(name)
      if (item === undefined) return undefined
      const description =
        relations.get(name) ?? describeRelation(run, item, references(), (other) => findTableName(byName, other))
      relations.set(name, description)
      return description
    },
  }
}

interface Listing {
  readonly version: string
  readonly items: readonly RelationItem[]
  readonly byName: ReadonlyMap<string, RelationItem>
  readonly references: () => ReadonlyMap<string, readonly Reference[]>
  readonly relations: Map<string, RelationDescription>
}

function listAll(run: RunQuery): Omit<Listing, 'version' | 'relations'> {
  const rows = run("select name, type, wr, strict from pragma_table_list where schema = 'main'")
  const items = rows.flatMap(([name, type, wr, strict]): readonly RelationItem[] => {
    const text = String(name)
    // Leaves out tables of SQLite itself, the shadow tables of a virtual table, and names that are not Unicode.
    if (type === 'shadow' || /^sqlite_/i.test(text) || text.includes('\ufffd')) return []
    const kind = type === 'view' ? 'view' : type === 'virtual' ? 'virtual table' : 'table'
    return [
      { key: `${nameToSegment(text)}/`, name: text, kind, hasRowid: Number(wr) === 0, isStrict: Number(strict) === 1 },
    ]
  })
  const relationItems = [...items].sort((a, b) => comparePaths(a.key, b.key))
  const byName = new Map(relationItems.map((item) => [item.name, item]))
  let references: ReadonlyMap<string, readonly Reference[]> | undefined
  return {
    items: relationItems,
    byName,
    references: () => {
      references ??= referencesIn(run, relationItems, byName)
      return references
    },
  }
}

/** Returns a table name as the table itself spells it, because references may differ in case. */
function findTableName(byName: ReadonlyMap<string, RelationItem>, name: string): string {
  if (byName.has(name)) return name
  const same = foldName(name)
  return [...byName.keys()].find((one) => foldName(one) === same) ?? name
}

function describeRelation(
  run: RunQuery,
  item: RelationItem,
  references: ReadonlyMap<string, readonly Reference[]>,
  spelled: (name: string) => string,
): RelationDescription {
  const { name, kind, hasRowid, isStrict } = item
  const rows = run("select type, sql from sqlite_schema where tbl_name = ?1 order by type = 'trigger', rowid", name)
  const sql = String(rows.find(([type]) => type === 'table' || type === 'view')?.[1] ?? '')
  const generated = kind === 'table' ? generatedColumnsOf(sql) : new Map<string, string>()
  const columns = readTableColumns(run, name)
  const indexes = kind === 'table' ? indexesOf(run, name) : []
  const ids = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
  const isAlias = hasRowid && ids.length > 0 && !indexes.some(({ origin }) => origin === 'pk')
  const isNullable = (column: RawColumn) => !column.notNull && !(column.pk > 0 && (isAlias || !hasRowid))
  const key = kind === 'table' ? findKeyColumns(columns, ids, indexes, isAlias, isNullable, isStrict) : []
  const estimate = kind === 'table' ? estimateOf(run, name) : undefined
  const triggers = run(
    "select name, sql from sqlite_schema where type = 'trigger' and tbl_name = ?1 order by name",
    name,
  )
  const relation: Relation = {
    ...{ schema: '', name, kind },
    definition: rows.flatMap(([, text]) => (text === null ? [] : [`${String(text)};\n`])).join('\n'),
    columns: columns.map((column) => {
      const expression = column.isGenerated ? generated.get(column.name) : undefined
      return {
        ...{ name: column.name, type: column.type, nullable: isNullable(column) },
        ...(column.default === undefined || column.isGenerated ? {} : { default: column.default }),
        ...defined({ generated: expression }),
      }
    }),
    ...(ids.length === 0
      ? {}
      : {
          primaryKey: {
            name: indexes.find(({ origin }) => origin === 'pk')?.name ?? 'primary key',
            columns: ids.map((column) => column.name),
          },
        }),
    uniqueKeys: indexes
      .filter(({ origin }) => origin === 'u')
      .map((index) => ({ name: index.name, columns: index.columns })),
    checks: kind === 'table' ? checksOf(sql) : [],
    foreignKeys: kind === 'table' ? foreignKeysOf(run, name, spelled) : [],
    referencedBy: references.get(name) ?? [],
    indexes: indexes.map(({ name: own, unique, columns: over, definition }) => ({
      name: own,
      unique,
      columns: over,
      definition,
    })),
    triggers: triggers.map(([own, text]) => ({ name: String(own), definition: String(text) })),
    ...(estimate === undefined ? {} : { rowEstimate: roundEstimate(estimate) }),
    ...(kind === 'virtual table'
      ? {}
      : { rows: { readable: columns.map((column) => column.name), key: key.map((one) => one.name) } }),
  }
  return { item, relation, key }
}

function findKeyColumns(
  columns: readonly RawColumn[],
  ids: readonly RawColumn[],
  indexes: readonly KnownIndex[],
  isAlias: boolean,
  isNullable: (column: RawColumn) => boolean,
  isStrict: boolean,
): readonly KeyColumn[] {
  const [id] = ids
  if (isAlias && id !== undefined) return [{ name: id.name, affinity: 'numeric', isRowid: true, collation: 'BINARY' }]
  const byName = new Map(columns.map((column) => [column.name, column]))
  const isKey = ({ unique, partial, parts, origin }: KnownIndex) =>
    unique &&
    !partial &&
    parts.every(({ column, collation, descends }) => {
      const own = column === undefined ? undefined : byName.get(column)
      // SQLite allows null in a primary key. Such rows are rare, and are left out.
      const isTold = own !== undefined && (origin === 'pk' || !isNullable(own))
      return isTold && collations.has(collation) && descends === parts[0]?.descends
    })
  const keyIndex = indexes.find((index) => index.origin === 'pk' && isKey(index)) ?? indexes.find(isKey)
  return (keyIndex?.parts ?? []).flatMap(({ column, collation }) => {
    const own = column === undefined ? undefined : byName.get(column)
    if (own === undefined) return []
    return [{ name: own.name, affinity: affinityOf(own.type, isStrict), isRowid: false, collation }]
  })
}

/** Returns the row estimate of the last `ANALYZE`. Undefined: there was none. */
function estimateOf(run: RunQuery, table: string): number | undefined {
  const rows = rowsOrNone(() => run('select stat from sqlite_stat1 where tbl = ?1 and stat is not null limit 1', table))
  const rowCount = Number.parseInt(String(rows[0]?.[0] ?? ''), 10)
  return Number.isNaN(rowCount) ? undefined : rowCount
}

interface KnownIndex extends TableIndex {
  /** Origin: `pk` or `u` for a constraint, `c` for a statement `CREATE INDEX`. */
  readonly origin: string
  readonly partial: boolean
  readonly parts: readonly IndexPart[]
}

interface IndexPart {
  /** Name of the column. `undefined` for an expression or the rowid. */
  readonly column: string | undefined
  readonly collation: string
  readonly descends: boolean
}

function indexesOf(run: RunQuery, table: string) {
  const listed = run(
    'select l.name, l."unique", l.origin, l.partial, s.sql from pragma_index_list(?1) l left join sqlite_schema s on s.type = \'index\' and s.name = l.name order by l.name',
    table,
  )
  return listed.map(([name, unique, origin, partial, sql]): KnownIndex => {
    const rows = run(
      'select cid, name, "desc", coll from pragma_index_xinfo(?1) where key = 1 order by seqno',
      String(name),
    )
    const parts = rows.map(([cid, column, desc, collation]) => ({
      // -1 is the rowid, -2 an expression.
      column: Number(cid) < 0 || column === null ? undefined : String(column),
      ...{ collation: String(collation).toUpperCase(), descends: Number(desc) === 1 },
    }))
    const text = sql === null ? '' : String(sql)
    const definitionItems = definitionItemsOf(text).map((item) => tokenRangeText(text, item))
    const columns = parts.map(({ column }, i) => column ?? definitionItems[i] ?? 'rowid')
    const word = origin === 'pk' ? 'PRIMARY KEY' : 'UNIQUE'
    return {
      ...{ name: String(name), unique: Number(unique) === 1, columns, parts },
      ...{ origin: String(origin), partial: Number(partial) === 1 },
      definition: text === '' ? `${word} (${columns.map(quoteName).join(', ')})` : text,
    }
  })
}
