import { createHash } from 'node:crypto'
import type { ObjectName, Relation } from '../relational/model.ts'
import type { Listed, PageQuery, RowPage } from '../relational/source.ts'
import type { Catalog } from './catalog.ts'
import type { OpenFile } from './file.ts'
import { createRowReader, type PlainKeyQuery, type PlainRowQuery } from './rows.ts'

/** Operations on an open file, each in one snapshot of it. */
export interface Operations {
  page(query: PageQuery, views: boolean): readonly Listed[]
  relations(names: readonly ObjectName[], views: boolean): readonly Relation[]
  rows(query: PlainRowQuery): RowPage
  keys(query: PlainKeyQuery): readonly (readonly string[])[]
  /** The tables whose rows can be read, and a text that changes whenever the database does. */
  stamps(views: boolean): { readonly keys: readonly string[]; readonly stamp: string }
  fingerprint(): string
}

export function createOperations({ database, check, stamp }: OpenFile, catalog: Catalog): Operations {
  const reader = createRowReader(database, catalog)
  let print: { readonly stamp: string; readonly hash: string } | undefined

  const within = <T>(work: () => T): T => {
    check()
    database.exec('begin')
    try {
      return work()
    } finally {
      // It may have ended by itself, because the disk could not be read.
      if (database.isTransaction) database.exec('rollback')
      check()
    }
  }
  const hasRows = (kind: string, views: boolean) => kind === 'table' || (kind === 'view' && views)

  return {
    page: ({ from, prefix, limit }, views) =>
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
    relations: (names, views) =>
      within(() =>
        names.flatMap(({ schema, name }): readonly Relation[] => {
          const found = schema === '' ? catalog.find(name)?.relation : undefined
          if (found === undefined) return []
          const { rows, ...rest } = found
          return [rows === undefined || !hasRows(found.kind, views) ? rest : { ...rest, rows }]
        }),
      ),
    rows: (query) => within(() => reader.read(query)),
    keys: (query) => within(() => reader.keys(query)),
    stamps: (views) =>
      within(() => ({
        keys: catalog.items().flatMap(({ key, kind }) => (hasRows(kind, views) ? [key] : [])),
        stamp: stamp(),
      })),
    fingerprint: () =>
      within(() => {
        const now = stamp()
        if (print?.stamp !== now) print = { stamp: now, hash: hashOf(catalog) }
        return print.hash
      }),
  }
}

/** The index of the first that does not come before a place, in the order of bytes. */
function firstFrom(items: readonly { readonly key: string }[], place: Buffer): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (Buffer.compare(Buffer.from(items[middle]?.key ?? ''), place) < 0) low = middle + 1
    else high = middle
  }
  return low
}

function hashOf(catalog: Catalog): string {
  const hash = createHash('sha256')
  for (const row of catalog.statements())
    hash.update(JSON.stringify(row.map((cell) => (cell === null ? null : String(cell)))))
  return hash.digest('base64url')
}
