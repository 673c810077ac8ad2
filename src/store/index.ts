import type { Log } from '../core/log.ts'
import type { Store } from './store.ts'
import { storeOver } from './store-over.ts'

export { type ChangeLogOptions, createChangeLog } from './change-log.ts'
export { resultsInStore } from './long-results.ts'
export { type OnceOptions, type OnceOutcome, once } from './once.ts'
export type { Collection, Condition, Lease, NewRow, Row, RowQuery, Store } from './store.ts'
export type {
  FoundPart,
  KeptVector,
  ListedText,
  NewPart,
  NewText,
  PartQuery,
  PartVector,
  TextEntry,
  TextFilter,
  TextLabels,
  TextSet,
  Texts,
  TextsQuery,
  TextsSize,
  WeighedPart,
  WeightedTerm,
} from './texts.ts'

/** Location of a store. */
export type StoreOptions = (SqliteStore | PostgresStore) & {
  /** Log for the operator: a damaged file was put aside, a server is gone. Default: no log. */
  readonly log?: Log
}

export interface SqliteStore {
  readonly sqlite: {
    /** An absolute path. The file and missing folders above it are created, readable only for this user. */
    readonly file: string
  }
}

export interface PostgresStore {
  readonly postgres: {
    /** A complete URL: role, password, host, port, database, and how to verify the server (`sslmode=verify-full`). */
    readonly connectionString: string
    /** The schema of the tables. By default `hikidashi`. */
    readonly schema?: string
    /** Maximum number of connections, besides the one that listens. By default 8. */
    readonly connections?: number
    /** Time-out of connecting, and of waiting for a connection, in milliseconds. By default 5000. */
    readonly connectMs?: number
    /** Time-out of one statement, in milliseconds. By default 10,000. */
    readonly statementMs?: number
  }
}

/**
 * Opens a store. The engine's library is loaded only now. One that does not answer just now is no error: what is asked of
 * it fails with `unavailable` until it does.
 *
 * @throws ResourceError `invalid` for what no waiting mends: a file that is a link or another program's, tables of a newer
 * version, a connection string that is none.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const log = options.log ?? (() => {})
  if ('sqlite' in options) {
    const { openSqlite } = await import('./sqlite.ts')
    return storeOver(await openSqlite(options.sqlite, log))
  }
  const { openPostgres } = await import('./postgres.ts')
  return storeOver(await openPostgres(options.postgres, log))
}
