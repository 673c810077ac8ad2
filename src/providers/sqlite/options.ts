import type { Log } from '../../core/log.ts'
import type { RowOptions } from '../relational/index.ts'

export interface SqliteOptions {
  /** The absolute path of the file. It is read, and nothing else: neither it nor anything beside it is written or made. */
  readonly file: string
  /** Which rows are served. Left out: none. */
  readonly rows?: SqliteRowOptions
  /** How many processes read it at most, at once. Default 2. */
  readonly connections?: number
  /** How long one statement may take, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number
  /** How long one statement may wait for another process that writes, in milliseconds. Default 2000. */
  readonly lockTimeoutMs?: number
  /** How long one waits for a free process, in milliseconds. Default 5000. */
  readonly waitTimeoutMs?: number
  /** After how long without use a process is ended, in milliseconds. Default 60,000. */
  readonly idleTimeoutMs?: number
  /** Whether changes are told. Default `true`. */
  readonly watch?: boolean
  /** How often the database is looked at, in milliseconds, even where its file seems to be as it was. Default 30,000. */
  readonly reconcile?: number
  readonly log?: Log
}

export interface SqliteRowOptions extends RowOptions {
  /** Whether rows of views are served too: reading them computes whatever they are made of. Default `false`. */
  readonly views?: boolean
}
