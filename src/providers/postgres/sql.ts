/** Fragments of SQL. Nothing in them comes from a client: what does is bound to parameters. */
/** An identifier between quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A literal for SQL that is shown, never for SQL that is executed. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** Whether the schema `n` is served: one of those in a parameter, or where that is null all but those of the system. */
export function servedSchema(parameter: string): string {
  return `CASE WHEN ${parameter}::text[] IS NULL
    THEN n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    ELSE n.nspname = ANY (${parameter}::text[]) AND n.nspname !~ '^pg_(toast|temp)' END`
}

/** Whether the role may look into the schema `n`. */
export const openSchema = `pg_catalog.has_schema_privilege(n.oid, 'USAGE')`

/** Whether the role may see the relation `c`, or some of it. */
export const visibleRelation = `c.relkind IN ('r', 'p', 'v', 'm') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')`

/**
 * Whether rows of the relation `c` can be read without contacting another server and, unless $VIEWS is set, without running
 * functions in views.
 */
export function readableRows(views: boolean): string {
  return `(c.relkind IN (${views ? "'r', 'p', 'm', 'v'" : "'r', 'p', 'm'"}) AND NOT (c.relhassubclass AND EXISTS (
    WITH RECURSIVE below(oid) AS (
      SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
      UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below b ON i.inhparent = b.oid)
    SELECT FROM below b JOIN pg_catalog.pg_class f ON f.oid = b.oid WHERE f.relkind = 'f')))`
}

/** The segment that a name has in paths: see relational/names.ts, which has the same rule. */
export function segmentSql(name: string, encoding: string): string {
  const beyond = controlsBeyond(encoding)
  const special = `[~/\\x01-\\x1f\\x7f${beyond}]`
  return `(CASE WHEN ${name} ~ '${special}' OR ${name} IN ('.', '..') THEN (
    SELECT pg_catalog.string_agg(
      CASE WHEN t.ch ~ '${special}' OR ${name} IN ('.', '..')
        THEN pg_catalog.regexp_replace(pg_catalog.encode(pg_catalog.convert_to(t.ch, 'UTF8'), 'hex'), '(..)', '~\\1', 'g')
        ELSE t.ch END, '' ORDER BY t.i)
    FROM pg_catalog.regexp_split_to_table(${name}, '') WITH ORDINALITY AS t(ch, i)) ELSE ${name} END)`
}

/** The control characters beyond ASCII, as an encoding has them. */
function controlsBeyond(encoding: string): string {
  if (encoding === utf8) return '\\u0080-\\u009f\\u2028\\u2029'
  return /^(?:LATIN|ISO_8859)/.test(encoding) ? '\\x80-\\x9f' : ''
}

const utf8 = 'UTF8'

/** A text in the order of the bytes of its UTF-8 form. */
export function inBytes(text: string, encoding: string): string {
  return encoding === utf8 ? `(${text}) COLLATE "C"` : `pg_catalog.convert_to(${text}, 'UTF8')`
}

/** A parameter to compare with that; of the latter it is bytes. */
export function bytesParameter(parameter: string, encoding: string): string {
  return encoding === utf8 ? `${parameter}::text` : `pg_catalog.decode(${parameter}::text, 'hex')`
}

export function bytesValue(text: string, encoding: string): string {
  return encoding === utf8 ? text : Buffer.from(text).toString('hex')
}

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

/** Channel that the event trigger notifies. Every role that can connect can notify it too, so a notification only triggers a check. */
export const channel = 'hikidashi'
