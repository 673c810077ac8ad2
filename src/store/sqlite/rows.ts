import { crc32 } from 'node:zlib'
import { type CollectionOperations, createRowParser, type EvictionLimits, listSql } from '../engine.ts'
import { leasesCollection, storeError } from '../rules.ts'
import type { Condition, Row, WholeRow } from '../store.ts'
import { type Database, type SqliteRow, type SqliteValue, type Statement, transaction } from './database.ts'
import { prepareRows, type RowStatements, sqliteDialect } from './statements.ts'

export interface CollectionChange {
  readonly collection: string
  readonly revision: number
  readonly keys: readonly string[] | undefined
}

export interface RowOperations extends CollectionOperations {
  /** Returns those of the collections that have changed since their known revisions. -1: everything counts as changed. */
  changes(known: Readonly<Record<string, number>>): readonly CollectionChange[]
}

/** Number of rows that one step of an eviction removes. */
const batch = 500
/** Maximum number of changed keys. With more, everything counts as changed. */
const mostKeys = 1000

export function createRows(database: Database): RowOperations {
  const statements = prepareRows(database)
  const listing = new Map<string, Statement>()
  const { find, findOrMake } = createCollectionLookup<Home>(statements, homeOf)
  const save = ({ id, revision, removed, rows, bytes }: Home) =>
    statements.saveHome.run(revision, removed, rows, bytes, id)

  return {
    get: (collection, key) => {
      const row = statements.get.get(collection, key, Date.now())
      return row === undefined ? undefined : decodeRow(row)
    },
    put: (collection, row, condition) =>
      transaction(database, () => {
        const home = findOrMake(collection)
        const now = Date.now()
        const old = statements.old.get(home.id, row.key)
        const live = old === undefined || isOver(old, now) ? undefined : old
        if (!holds(condition, live)) return undefined
        const revision = nextRevision(home, now)
        const created = live === undefined ? now : Number(live.created)
        const newRow = writtenRow(row, { revision, created, modified: now })
        const terms = JSON.stringify(row.terms)
        statements.put.run(...sqliteRowValues(home.id, newRow, terms))
        if (terms !== (old?.terms ?? '[]')) {
          if (old !== undefined) statements.removeTerms.run(home.id, row.key, String(old.terms))
          statements.addTerms.run(home.id, row.key, terms)
        }
        const bytes = home.bytes + row.value.byteLength - Number(old?.bytes ?? 0)
        save({ ...home, revision, rows: home.rows + (old === undefined ? 1 : 0), bytes })
        return newRow
      }),
    delete: (collection, key, condition) =>
      transaction(database, () => {
        const home = find(collection)
        const old = home === undefined ? undefined : statements.old.get(home.id, key)
        if (home === undefined || old === undefined) return false
        const now = Date.now()
        const isLive = !isOver(old, now)
        if (isLive && !holds(condition, old)) return false
        save(remove(statements, home, [old], now))
        return isLive
      }),
    list: (collection, query) => {
      const { sql, values } = listSql(sqliteDialect, collection, query)
      const statement = listing.get(sql) ?? database.prepare(sql)
      listing.set(sql, statement)
      return statement.all(...values).map(decodeRow)
    },
    similar: (collection, terms, limit) =>
      statements.similar
        .all(collection, JSON.stringify(terms), Date.now(), limit)
        .map(({ key, shared }) => ({ key: String(key), shared: Number(shared) })),
    size: (collection) => {
      const { rows, bytes } = find(collection) ?? { rows: 0, bytes: 0 }
      return { rows, bytes }
    },
    evict: (collection, bounds) =>
      transaction(database, () => {
        const home = find(collection)
        if (home === undefined) return []
        const now = Date.now()
        const rows = surplus(statements, home, bounds, now)
        if (rows.length > 0) save(remove(statements, home, rows, now))
        return rows.map(({ key }) => String(key))
      }),
    takeLease: (name, holder, ttlMs) => {
      const now = Date.now()
      return transaction(
        database,
        () => statements.takeLease.get(name, holder, Math.ceil(now + ttlMs), now) !== undefined,
      )
    },
    renewLease: (name, holder, ttlMs) =>
      transaction(database, () => statements.renewLease.get(Math.ceil(Date.now() + ttlMs), name, holder) !== undefined),
    dropLease: (name, holder) =>
      transaction(database, () => {
        if (statements.dropLease.get(name, holder) === undefined) return
        const home = findOrMake(leasesCollection)
        const revision = nextRevision(home, Date.now())
        save({ ...home, revision, removed: revision })
      }),
    changes: (revisions) =>
      Object.entries(revisions).flatMap(([collection, revision]) => {
        const home = find(collection) ?? { id: 0, revision: 0, removed: 0 }
        if (home.revision === revision) return []
        const isAnything = revision < 0 || home.removed > revision || home.revision < revision
        const keys = isAnything
          ? []
          : statements.since.all(home.id, revision, mostKeys + 1).map(({ key }) => String(key))
        return [{ collection, revision: home.revision, keys: isAnything || keys.length > mostKeys ? undefined : keys }]
      }),
  }
}

interface Home {
  readonly id: number
  readonly revision: number
  /** The revision of the last removal. */
  readonly removed: number
  readonly rows: number
  readonly bytes: number
}

export function createCollectionLookup<Of>(
  { home, makeHome }: Pick<RowStatements, 'home' | 'makeHome'>,
  homeOf: (found: SqliteRow) => Of,
) {
  const find = (name: string): Of | undefined => {
    const row = home.get(name)
    return row === undefined ? undefined : homeOf(row)
  }
  const findOrMake = (name: string): Of => {
    const existing = find(name)
    if (existing !== undefined) return existing
    makeHome.run(name)
    return homeOf(home.get(name) ?? {})
  }
  return { find, findOrMake }
}

function remove(statements: RowStatements, home: Home, rows: readonly SqliteRow[], now: number): Home {
  if (rows.length === 0) return home
  let bytes = 0
  for (const row of rows) {
    statements.removeTerms.run(home.id, String(row.key), String(row.terms))
    statements.remove.run(home.id, String(row.key))
    bytes += Number(row.bytes)
  }
  const revision = nextRevision(home, now)
  return { ...home, revision, removed: revision, rows: home.rows - rows.length, bytes: home.bytes - bytes }
}

/** Returns the rows to remove first; empty if the limits hold. */
function surplus(statements: RowStatements, home: Home, bounds: EvictionLimits, now: number): readonly SqliteRow[] {
  const expired = statements.expired.all(home.id, now, batch)
  if (expired.length > 0) return expired
  const oldest = statements.oldest.all(home.id, batch)
  const old = oldest.filter((row) => bounds.age !== undefined && Number(row.modified) < now - bounds.age)
  if (old.length > 0) return old
  let { rows, bytes } = home
  const tooMany = () => rows > (bounds.rows ?? rows) || bytes > (bounds.bytes ?? bytes)
  return oldest.filter((row) => {
    if (!tooMany()) return false
    rows--
    bytes -= Number(row.bytes)
    return true
  })
}

const homeOf = createRowParser({ id: Number, revision: Number, removed: Number, rows: Number, bytes: Number })

/** Returns the next revision. It follows the clock, so that it is also greater than the revisions of a lost file. */
function nextRevision(home: Home, now: number): number {
  return Math.max(home.revision + 1, now)
}

function isOver(row: SqliteRow, now: number): boolean {
  return row.expires !== null && Number(row.expires) <= now
}

function holds(condition: Condition | undefined, live: SqliteRow | undefined): boolean {
  if (condition === undefined) return true
  return 'absent' in condition ? live === undefined : live?.revision === condition.revision
}

function writtenRow(row: WholeRow, times: Pick<Row, 'revision' | 'created' | 'modified'>): Row {
  const { key, value, expires, terms } = row
  return { key, value, ...times, ...(expires === undefined ? {} : { expires }), terms }
}

function sqliteRowValues(collection: number, row: Row, terms: string): readonly SqliteValue[] {
  const { key, value, revision, created, modified, expires = null } = row
  const sum = crc32(value)
  const seal = sealOf([key, revision, created, modified, expires, value.byteLength, sum, terms])
  return [collection, key, revision, created, modified, expires, value.byteLength, sum, seal, terms, value]
}

function sealOf(values: readonly SqliteValue[]): number {
  return crc32(JSON.stringify(values))
}

/** @throws ResourceError `internal` if the row is damaged. */
function decodeRow(row: SqliteRow): Row {
  const { key, revision, created, modified, expires = null, bytes, sum, seal, terms, value } = row
  const values = [key, revision, created, modified, expires, bytes, sum, terms].map((each) => each ?? null)
  const isWhole = value === undefined || (value instanceof Uint8Array && crc32(value) === sum)
  if (!isWhole || sealOf(values) !== seal) throw storeError('damaged', 'a row')
  return {
    key: String(key),
    value: value instanceof Uint8Array ? value : new Uint8Array(),
    revision: Number(revision),
    created: Number(created),
    modified: Number(modified),
    ...(expires === null ? {} : { expires: Number(expires) }),
    terms: JSON.parse(String(terms)) as readonly string[],
  }
}
