import type { Log } from '../core/log.ts'

export type StoreOptions = (SqliteStore | PostgresStore) & {
  /** Log for the operator: a damaged file was put aside, a server is gone. Default: no log. */
  readonly log?: Log
}

export interface SqliteStore {
  readonly sqlite: {
    /** An absolute path. The file and missing folders above it are created, readable only for this user. */
    readonly file: string
    /** Keeps the store in memory, with a warning, if the file cannot be written. By default requests fail until the file can be written. */
    readonly orMemory?: boolean
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
    readonly connectTimeoutMs?: number
    /** Time-out of one statement, in milliseconds. By default 10,000. */
    readonly statementTimeoutMs?: number
  }
}
