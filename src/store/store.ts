import { defined } from '../core/kit/object.ts'
import type { Texts } from './texts.ts'

/**
 * Rows and texts for data that the server itself must remember. One contract, two engines: SQLite in a file, shared by the processes of one
 * machine, and PostgreSQL, shared by replicas. test/contract/store.test.ts runs against both. Methods throw ResourceError: `unavailable` if
 * the engine is gone, locked for too long, full or read-only (`fault`: `gone`, `busy`, `full`, `read-only`), `internal` if its file is
 * damaged (`fault`: `damaged`), `invalid` for a value that cannot be stored.
 */
export interface Store {
  /** The rows of a collection such as `results/project`. Created by the first write. */
  collection(name: string): Collection
  /** The texts of a collection, which can be found by their terms. Created by the first write. */
  texts(name: string): Texts
  /**
   * Takes a lease for a time; it has one holder among all processes. `undefined`: the lease is held already. It is renewed until it is
   * released; if the process dies, it ends when its time is over.
   */
  lease(name: string, ttlMs: number): Promise<Lease | undefined>
  /**
   * Watches a collection for changes by any process. It yields the changed keys, or `undefined`: anything may have changed. Once the
   * promise resolves, every later write is reported, even if the engine is gone for a while (then as `undefined`). The expiry of a row is
   * not reported. It ends when the signal aborts.
   */
  watch(collection: string, signal: AbortSignal): Promise<AsyncIterable<readonly string[] | undefined>>
  close(): Promise<void>
}

export interface Row {
  readonly key: string
  readonly value: Uint8Array
  /** Revision of the row. Every write gets one that is greater than all earlier ones of the collection. */
  readonly revision: number
  /** Time of the first write, and of the last one, in milliseconds since 1970. */
  readonly created: number
  readonly modified: number
  /** Time from which on the row does not exist, in milliseconds since 1970. Undefined: never. */
  readonly expires?: number
  /** Index terms of the row, beside its key: `tag:weekly`, `hash:…`, `gram:…`. */
  readonly terms: readonly string[]
}

export type NewRow = Pick<Row, 'key' | 'value'> & Partial<Pick<Row, 'expires' | 'terms'>>

export type WholeRow = NewRow & Pick<Row, 'terms'>

/** Condition of a write. `absent`: no unexpired row may exist. `revision`: the row must have exactly this revision. */
export type Condition = { readonly absent: true } | { readonly revision: number }

export interface Collection {
  get(key: string): Promise<Row | undefined>
  /** Writes one row, wholly or not at all. `undefined`: the condition was false, and nothing was written. */
  put(row: NewRow, condition?: Condition): Promise<Row | undefined>
  /** Deletes a row. Resolves to `false` if the row did not exist, or the condition was false. */
  delete(key: string, condition?: Condition): Promise<boolean>
  /** Lists rows, by default in the order of their keys, strictly after `after`; with their values only if `values` is set. */
  list(query: RowQuery): Promise<readonly Row[]>
  /**
   * The keys of the rows that have most of the terms, best first, each with the number of shared terms. It uses the first 512 terms, and at
   * most 2000 rows for each.
   */
  similar(
    terms: readonly string[],
    limit: number,
  ): Promise<readonly { readonly key: string; readonly shared: number }[]>
  /** The number of rows, and the bytes of their values. Expired rows count until they are removed. */
  size(): Promise<{ readonly rows: number; readonly bytes: number }>
  /**
   * Removes expired rows, rows that were last written longer ago than `age` milliseconds, and then the rows that were written least
   * recently, until the limits hold. Returns the keys.
   */
  evict(bounds: { readonly rows?: number; readonly bytes?: number; readonly age?: number }): Promise<readonly string[]>
}

export interface RowQuery {
  readonly prefix?: string
  readonly after?: string
  readonly term?: string
  /** Whether to list by revision, newest first, and only rows before the revision `before`. Default: by key. */
  readonly newest?: boolean
  readonly before?: number
  readonly limit: number
  readonly values?: boolean
}

/** The rows of a query, by key. They are read in pages of `limit` rows. */
export async function* rowsIn(
  rows: Collection,
  query: Omit<RowQuery, 'newest' | 'before'>,
  signal?: AbortSignal,
): AsyncGenerator<Row> {
  for (let after = query.after; ; ) {
    signal?.throwIfAborted()
    const page = await rows.list({ ...query, ...defined({ after }) })
    for (const row of page) {
      signal?.throwIfAborted()
      yield row
    }
    after = page.at(-1)?.key
    if (page.length < query.limit) return
  }
}

export interface Lease {
  readonly signal: AbortSignal
  release(): Promise<void>
}
