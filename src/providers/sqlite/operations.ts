import { createHash } from 'node:crypto'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { invalid, notFound } from '../../core/errors.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import type {
  CatalogItem,
  CellValue,
  KeyQuery,
  ObjectName,
  PageQuery,
  Relation,
  RowAccess,
  RowPage,
  RowQuery,
  TableRow,
} from '../relational/model.ts'
import { hexOfBase64 } from '../relational/names.ts'
import type { DatabaseCatalog, KeyColumn, RelationDescription } from './catalog.ts'
import { type Affinity, quoteName } from './definitions.ts'
import { brokenViewError } from './errors.ts'
import type { OpenDatabaseFile } from './file.ts'

/** Creates the operations on an open file, each in one snapshot of it. */
export function createDatabaseOperations({ database, check, stamp }: OpenDatabaseFile, catalog: DatabaseCatalog) {
  const reader = createRowReader(database, catalog)
  let print: { readonly stamp: string; readonly hash: string } | undefined

  const within = <T>(work: () => T): T => {
    check()
    database.exec('begin')
    try {
      return work()
    } finally {
      // The transaction may have ended by itself, because the disk could not be read.
      if (database.isTransaction) database.exec('rollback')
      check()
    }
  }
  const hasRows = (kind: string, views: boolean) => kind === 'table' || (kind === 'view' && views)

  return {
    page: ({ from, prefix, limit }: PageQuery, views: boolean): readonly CatalogItem[] =>
      within(() => {
        const start = Buffer.from(from)
        const items = catalog.items()
        const first = firstFrom(items, start)
        return items
          .slice(first)
          .filter(({ key }) => key.startsWith(prefix))
          .slice(0, limit)
          .map(({ key, name, kind }) => ({
            ...{ key, schema: '', name, relation: kind },
            ...(hasRows(kind, views) ? { rows: true } : {}),
          }))
      }),
    relations: (names: readonly ObjectName[], views: boolean): readonly Relation[] =>
      within(() =>
        names.flatMap(({ schema, name }): readonly Relation[] => {
          const relation = schema === '' ? catalog.find(name)?.relation : undefined
          if (relation === undefined) return []
          const { rows, ...rest } = relation
          return [rows === undefined || !hasRows(relation.kind, views) ? rest : { ...rest, rows }]
        }),
      ),
    rows: (query: PlainRowQuery): RowPage => within(() => reader.read(query)),
    keys: (query: PlainKeyQuery): readonly (readonly string[])[] => within(() => reader.keys(query)),
    /** Returns the keys of the tables and views whose rows can be read, and a text that changes whenever the database does. */
    stamps: (views: boolean): { readonly keys: readonly string[]; readonly stamp: string } =>
      within(() => ({
        keys: catalog.items().flatMap(({ key, kind }) => (hasRows(kind, views) ? [key] : [])),
        stamp: stamp(),
      })),
    fingerprint: (): string =>
      within(() => {
        const now = stamp()
        if (print?.stamp !== now) print = { stamp: now, hash: hashSchema(catalog) }
        return print.hash
      }),
  }
}

export type DatabaseOperations = ReturnType<typeof createDatabaseOperations>

function firstFrom(items: readonly { readonly key: string }[], key: Buffer): number {
  return firstIndex(0, items.length, (index) => Buffer.compare(Buffer.from(items[index]?.key ?? ''), key) >= 0)
}

function hashSchema(catalog: DatabaseCatalog): string {
  const hash = createHash('sha256')
  for (const row of catalog.statements())
    hash.update(JSON.stringify(row.map((cell) => (cell === null ? null : String(cell)))))
  return hash.digest('base64url')
}

/** Row query without the caller's description of the relation: the current description is used. */
type PlainRowQuery = Omit<RowQuery, 'relation'> & TableRequest
type PlainKeyQuery = Omit<KeyQuery, 'relation'> & TableRequest

interface TableRequest {
  readonly table: string
  readonly access: RowAccess
  readonly views: boolean
}

/** Reads rows. Statements contain only quoted names from the catalog; values of clients are bound. */
function createRowReader(database: DatabaseSyncInstance, catalog: DatabaseCatalog) {
  const [encoding] = database.prepare('pragma encoding').get() as readonly [string]
  const decoder = createDecoder(encoding)

  const find = ({
    table,
    access,
    views,
  }: TableRequest): { readonly known: RelationDescription; readonly key: readonly KeyColumn[] } => {
    const description = catalog.find(table)
    const kind = description?.item.kind
    if (description === undefined || kind === 'virtual table' || (kind === 'view' && !views))
      throw notFound('no such table')
    const names = new Set(description.relation.columns.map(({ name }) => name))
    if ([...access.readable, ...access.key].some((column) => !names.has(column))) throw notFound('a column is gone')
    const isSame =
      description.key.length === access.key.length && description.key.every(({ name }, i) => name === access.key[i])
    if (access.key.length > 0 && !isSame) throw notFound('the key is another one')
    return { known: description, key: access.key.length === 0 ? [] : description.key }
  }

  return {
    read: (query: PlainRowQuery): RowPage => {
      const { columns, limit, maxValueBytes, maxBytes, key: only, isShown = false, after } = query
      const { known, key } = find(query)
      // A table has columns, and so has a view whose definition can be read: this is another view.
      if (known.relation.columns.length === 0) throw brokenViewError()
      if (columns.length === 0) return { rows: [], more: false }
      const keys = only ?? after
      const values = (keys ?? []).flatMap((text, i): readonly Cell[] => {
        const value = boundOf(text, key[i]?.affinity ?? 'none')
        return isShown ? [value, text, decodeIfBase64(text)] : [value]
      })
      const isUnusable = (keys ?? []).some(
        (text, i) => key[i]?.isRowid === true && typeof boundOf(text, key[i].affinity) !== 'bigint',
      )
      if (isUnusable && only !== undefined) return { rows: [], more: false }
      if (isUnusable)
        throw invalid('The parameter "after" is not the key of a row of this table.', 'parameter', {
          parameter: 'after',
        })
      // Key values are needed in full.
      const parts = new Map([
        ...columns.map((name) => [name, maxValueBytes] as const),
        ...key.map(({ name }) => [name, maxKeyBytes] as const),
      ])
      const selected = [...parts.keys()]
      const where =
        keys === undefined
          ? present(key)
          : `WHERE ${isShown ? amongValues(key) : compared(key, only === undefined ? '>' : '=')}`
      const sql = `SELECT ${selected.map((name) => pieceOf(name, parts.get(name) ?? 0)).join(', ')}
        FROM ${tableOrSubquery(known, selected, key)} ${where} ${orderOf(key)} LIMIT ${limit + 1}`
      const at = new Map(selected.map((name, i) => [name, i]))
      const cellOf = (cells: readonly Cell[], name: string) => cells[at.get(name) ?? -1] ?? null
      const rows: TableRow[] = []
      let bytes = 0
      for (const cells of database.prepare(sql).iterate(...values) as Iterable<readonly Cell[]>) {
        const row = {
          key: key.map((part) => decoder.keyOf(cellOf(cells, part.name), part)),
          values: columns.map((name) => truncateKeyValue(decoder.valueOf(cellOf(cells, name)), maxValueBytes)),
        }
        bytes += row.values.reduce((sum, { json }) => sum + json.length, 0)
        if (rows.length === limit || (rows.length > 0 && bytes > maxBytes)) return { rows, more: true }
        rows.push(row)
      }
      return { rows, more: false }
    },
    keys: (query: PlainKeyQuery): readonly (readonly string[])[] => {
      const { typed, limit } = query
      const { known, key } = find(query)
      const [first] = key
      if (first === undefined) return []
      const from = boundOf(typed, first.affinity)
      const names = key.map(({ name }) => name)
      const where =
        typed === ''
          ? present(key)
          : `WHERE ${keyColumnSql(first)} >= ?1 ${present(key.slice(1)).replace('WHERE', 'AND')}`
      const sql = `SELECT ${names.map((name) => pieceOf(name, maxKeyBytes)).join(', ')}
        FROM ${tableOrSubquery(known, names, key)} ${where} ${orderOf(key)} LIMIT ${limit}`
      const rows = database.prepare(sql).all(...(typed === '' ? [] : [from])) as readonly (readonly Cell[])[]
      return rows.map((cells) => key.map((part, i) => decoder.keyOf(cells[i] ?? null, part)))
    },
  }
}

/** Maximum length of a part of a key, in bytes. */
const maxKeyBytes = 64 * 1024

/** Shortens the value of a key column like any other, although all of it was read for the key. */
function truncateKeyValue(value: TableRow['values'][number], most: number): TableRow['values'][number] {
  if (value.cut !== undefined || value.json.length <= most) return value
  const text: unknown = JSON.parse(value.json)
  if (typeof text !== 'string' || Buffer.byteLength(text) <= most) return value
  return { json: JSON.stringify(text.slice(0, Math.max(1, Math.floor(most / 4)))), cut: Buffer.byteLength(text) }
}

/** Returns the table or subquery after `FROM`. Without a key, rows come in table order. A subquery computes each row of a view only once. */
function tableOrSubquery({ item }: RelationDescription, columns: readonly string[], key: readonly KeyColumn[]): string {
  const name = quoteName(item.name)
  if (item.kind === 'view') return `(SELECT ${columns.map(quoteName).join(', ')} FROM main.${name})`
  return key.length === 0 ? `main.${name} NOT INDEXED` : `main.${name}`
}

function keyColumnSql({ name, collation, isRowid }: KeyColumn): string {
  return isRowid ? quoteName(name) : `${quoteName(name)} COLLATE ${collation}`
}

/** Returns the condition that no column of the key is null; empty without a key, and for the rowid, which is never null. */
function present(key: readonly KeyColumn[]): string {
  const parts = key.filter(({ isRowid }) => !isRowid).map(({ name }) => `${quoteName(name)} IS NOT NULL`)
  return parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`
}

function compared(key: readonly KeyColumn[], comparison: '>' | '='): string {
  const also = present(key.slice(1)).replace('WHERE', 'AND')
  return `(${key.map(keyColumnSql).join(', ')}) ${comparison} (${key.map((_, i) => `?${i + 1}`).join(', ')}) ${also}`
}

/** Returns the condition that each column of the key has one of the three values that are shown as the same text. */
function amongValues(key: readonly KeyColumn[]): string {
  const isOne = (part: KeyColumn, i: number) => `${keyColumnSql(part)} IN (?${3 * i + 1}, ?${3 * i + 2}, ?${3 * i + 3})`
  return key.map(isOne).join(' AND ')
}

function orderOf(key: readonly KeyColumn[]): string {
  return key.length === 0 ? '' : `ORDER BY ${key.map(keyColumnSql).join(', ')}`
}

type Cell = string | bigint | number | null | Uint8Array

/** Size above which not even the beginning of a value is read, in bytes, because SQLite would have to load all of it. */
const maxReadBytes = 16 * 2 ** 20

/**
 * Returns the SQL of a column as a value of its own type: numbers unchanged; texts as bytes in the encoding of the database,
 * after a letter, because a text may contain NUL; bytes as hexadecimal digits, after another letter. Of a longer value, its
 * length and its beginning.
 */
function pieceOf(column: string, most: number): string {
  const name = quoteName(column)
  const start = (piece: string) => `CASE WHEN octet_length(${name}) > ${maxReadBytes} THEN '' ELSE ${piece} END`
  // A character has up to four bytes.
  const letters = start(`substr(${name}, 1, ${Math.max(1, Math.floor(most / 4))})`)
  const digits = start(`hex(substr(${name}, 1, ${most}))`)
  return `CASE typeof(${name})
    WHEN 'text' THEN CASE WHEN octet_length(${name}) > ${most}
      THEN CAST('c' || octet_length(${name}) || ':' || ${letters} AS BLOB) ELSE CAST('t' || ${name} AS BLOB) END
    WHEN 'blob' THEN CASE WHEN octet_length(${name}) > ${most}
      THEN 'd' || octet_length(${name}) || ':' || ${digits} ELSE 'b' || hex(${name}) END
    ELSE ${name} END`
}

function createDecoder(encoding: string) {
  const decoder = new TextDecoder(encoding.toLowerCase())
  return {
    valueOf: (cell: Cell): CellValue => {
      if (cell === null) return { json: 'null' }
      if (typeof cell === 'bigint') return { json: isSafe(cell) ? String(cell) : JSON.stringify(String(cell)) }
      if (typeof cell === 'number') return { json: Number.isFinite(cell) ? realOf(cell) : JSON.stringify(String(cell)) }
      const isText = typeof cell !== 'string'
      const value = isText ? decoder.decode(cell) : cell
      const isCut = value[0] === 'c' || value[0] === 'd'
      const from = isCut ? value.indexOf(':') + 1 : 1
      const json = JSON.stringify(isText ? value.slice(from) : base64Of(value.slice(from)))
      return isCut ? { json, cut: Number(value.slice(1, from - 1)) } : { json }
    },
    /** Converts a part of a key to the text that {@link boundOf} parses. */
    keyOf: (cell: Cell, { affinity }: KeyColumn): string => {
      if (cell === null) return ''
      if (typeof cell === 'bigint') return String(cell)
      if (typeof cell === 'number') return realOf(cell)
      if (typeof cell === 'string') return `x'${cell.slice(1)}'`
      const text = decoder.decode(cell).slice(1)
      return boundOf(text, affinity) === text ? text : `'${text.replaceAll("'", "''")}'`
    },
  }
}

function isSafe(whole: bigint): boolean {
  return whole <= BigInt(Number.MAX_SAFE_INTEGER) && whole >= BigInt(Number.MIN_SAFE_INTEGER)
}

/** Formats a real number so that it differs from an integer. */
function realOf(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value)
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}

function base64Of(digits: string): string {
  return Buffer.from(digits, 'hex').toString('base64')
}

function decodeIfBase64(text: string): Cell {
  const digits = hexOfBase64(text)
  return digits === undefined ? text : Uint8Array.from(Buffer.from(digits, 'hex'))
}

const [smallest, largest] = [-(2n ** 63n), 2n ** 63n - 1n]

/** Parses a part of a key for a column: `x'00'` is bytes, `'7'` is a string, and `7` is a string when the column holds text. */
function boundOf(text: string, affinity: Affinity): Cell {
  if (/^x'(?:[0-9A-F]{2})*'$/.test(text)) return Uint8Array.from(Buffer.from(text.slice(2, -1), 'hex'))
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'")
  if (affinity === 'text') return text
  if (/^-?(?:0|[1-9]\d{0,18})$/.test(text)) {
    const whole = BigInt(text)
    return whole >= smallest && whole <= largest ? whole : text
  }
  if (/^-?\d+(?:\.\d+)?(?:e[+-]\d+)?$/.test(text)) return Number(text)
  return text
}
