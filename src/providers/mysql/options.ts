import type { RowOptions } from '../relational/index.ts'
import type { ServerOptions } from '../relational/server.ts'

export interface MysqlOptions extends ServerOptions {
  /** A URL of the scheme `mysql` or `mariadb` with account, password, host, port and database. It never appears in anything that is told. */
  readonly url: string
  /** Which rows are served. Left out: none. */
  readonly rows?: MysqlRowOptions
}

export interface MysqlRowOptions extends RowOptions {
  /** Whether rows of views are served too: reading them runs whatever the views call. Default `false`. */
  readonly views?: boolean
}
