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
    /** An absolute path. The file and the folders above it are made where they are missing, for this user alone. */
    readonly file: string
  }
}

export interface PostgresStore {
  readonly postgres: {
    /** A URL with everything in it: role, password, host, port, database, and how to trust the server (`sslmode=verify-full`). */
    readonly connectionString: string
    /** The schema that the tables are in. By default `hikidashi`. */
    readonly schema?: string
    /** How many connections there are at most, besides the one that listens. By default 8. */
    readonly connections?: number
    /** How long connecting, and waiting for a connection, may take in milliseconds. By default 5000. */
    readonly connectMs?: number
    /** How long one statement may take in milliseconds. By default 10,000. */
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
