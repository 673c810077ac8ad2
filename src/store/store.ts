import type { Texts } from './texts.ts'

/**
 * Rows kept on disk, for what the server itself must remember: cached analyses, its own measurements, the search index.
 * One contract, two engines: SQLite in a file, shared by the processes of one machine, and PostgreSQL, shared by replicas.
 * `contract` (test/support) runs against both.
 *
 * Every method throws only ResourceError: `unavailable` where the engine is gone, locked for too long, full or read-only
 * (`reason`: `gone`, `busy`, `full`, `read-only`), `internal` where its file is damaged (`reason`: `damaged`), `invalid` for
 * what cannot be stored. It recovers by itself once the cause is gone; no repair by hand.
 *
 * Mended since it was first written: a lease that is given back is news of the collection `leases`, which holds no rows, so
 * that whoever wants it next need not ask again and again; and what `similar` and `evict` are bounded by is said.
 */
export interface Store {
  /** The rows of one name: `results/project`. Made when first written to. */
  collection(name: string): Collection
  /** The texts of one name, to be found by their terms. Made when first written to. */
  texts(name: string): Texts
  /**
   * Takes a name for a time, for one holder among all processes. `undefined`: another has it. A holder that dies loses it
   * when its time is over; one that lives renews it. That it was given back is told to who watches the collection `leases`:
   * its name stands there for a key.
   */
  lease(name: string, ttlMs: number): Promise<Lease | undefined>
  /**
   * Waits until something may have changed in a collection, by whichever process: news is joined, and never lost. It tells
   * the keys, or `undefined`: anything may have. Once the promise resolves, whatever is written after it will be told, even
   * if the engine is gone for a while (then as `undefined`). A row that expires is not told of. Ends when the signal aborts.
   */
  watch(collection: string, signal: AbortSignal): Promise<AsyncIterable<readonly string[] | undefined>>
  close(): Promise<void>
}

export interface Row {
  /** Unique in its collection, compared by UTF-8 bytes. At most 1 KiB. */
  readonly key: string
  readonly value: Uint8Array
  /** Changes whenever the row does; greater than that of every earlier write to the collection. */
  readonly revision: number
  readonly created: number
  readonly modified: number
  /** Milliseconds since 1970, from which on the row is not there. Left out: never. */
  readonly expires?: number
  /** Index terms of the row, beside its key: `tag:weekly`, `hash:…`, `gram:…`. */
  readonly terms: readonly string[]
}

export type NewRow = Pick<Row, 'key' | 'value'> & Partial<Pick<Row, 'expires' | 'terms'>>

/** Condition of a write. `absent`: no unexpired row may exist. `revision`: the row must have exactly this revision. */
export type Condition = { readonly absent: true } | { readonly revision: number }

export interface Collection {
  get(key: string): Promise<Row | undefined>
  /** Writes one row, whole or not at all. `undefined`: the condition did not hold, and nothing was written. */
  put(row: NewRow, condition?: Condition): Promise<Row | undefined>
  /** `false`: it was not there. */
  delete(key: string, condition?: Condition): Promise<boolean>
  /** Rows in the order of their keys, strictly after `after`, without their values unless `values`. */
  list(query: RowQuery): Promise<readonly Row[]>
  /**
   * The rows that have most of the terms, best first: each with how many. For what is similar. It looks at the first 512
   * terms, and at no more than 2000 rows for each: give it what tells rows apart.
   */
  similar(
    terms: readonly string[],
    limit: number,
  ): Promise<readonly { readonly key: string; readonly shared: number }[]>
  /** How many rows there are, and the bytes of their values. Expired rows count until they are removed. */
  size(): Promise<{ readonly rows: number; readonly bytes: number }>
  /**
   * Removes what has expired, what was last written longer ago than `age` milliseconds, and then what was not written for
   * longest until the bounds hold; answers the keys.
   */
  evict(bounds: { readonly rows?: number; readonly bytes?: number; readonly age?: number }): Promise<readonly string[]>
}

export interface RowQuery {
  readonly prefix?: string
  readonly after?: string
  readonly term?: string
  /** Instead of by key: newest first, before the revision `before`. */
  readonly newest?: boolean
  readonly before?: number
  readonly limit: number
  readonly values?: boolean
}

export interface Lease {
  /** Aborts when the lease is lost: it could not be renewed in time. */
  readonly signal: AbortSignal
  release(): Promise<void>
}
