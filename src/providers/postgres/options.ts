import type { RowOptions } from '../relational/index.ts'
import type { ServerOptions } from '../relational/server.ts'

export type { TlsOptions } from '../relational/server.ts'

export interface PostgresOptions extends ServerOptions {
  /** A URL of the scheme `postgres` with role, password, host, port and database. It never appears in any output. */
  readonly url: string
  /** The served rows. Undefined: none. */
  readonly rows?: PostgresRowOptions
}

export interface PostgresRowOptions extends RowOptions {
  /** Whether rows of views are served too: reading them runs whatever the views call. Default `false`. */
  readonly views?: boolean
  /** The name of a setting (`app.user`) that holds the id of who asks while rows are read, for row-level security. */
  readonly principalSetting?: string
}
