/** A statement, always with its values apart. */
export interface Statement {
  readonly text: string
  /** Whether it is the same each time: the server then plans it once. */
  readonly fixed?: boolean
}

/** A row: its columns in order, as texts. */
export type Cells = readonly (string | null)[]

/** One connection. */
export interface Session {
  /** Whether something between us and the server shares its connections among clients (PgBouncer): nothing of a session lasts. */
  readonly shared: boolean
  /** The encoding of the database. */
  readonly encoding: string
  /** Rows of one statement. It is read-only, and its settings end with it. */
  query(statement: Statement, values: readonly unknown[]): Promise<readonly Cells[]>
  /** The same for several statements, in one transaction and one snapshot. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>
  isUsable(): boolean
  /** Closes the connection at once, and cancels its statement. */
  close(): void
  /** Calls back for each notification; `ended` once the connection has ended. */
  onNotification(told: () => void, ended: () => void): void
}

export type Query = Session['query']
