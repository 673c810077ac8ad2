/** Fragments of SQL. Nothing in them comes from a client: what does is bound to parameters. */
/** Quotes an identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Quotes a text as a literal for SQL that is shown, never for SQL that is executed. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted
}

/** Condition that the schema `n` is served: it is in the parameter, or the parameter is null and `n` is not a system schema. */
export function servedSchema(parameter: string): string {
  return `CASE WHEN ${parameter}::text[] IS NULL
    THEN n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    ELSE n.nspname = ANY (${parameter}::text[]) AND n.nspname !~ '^pg_(toast|temp)' END`
}

/** Condition that the role may use the schema `n`. */
export const openSchema = `pg_catalog.has_schema_privilege(n.oid, 'USAGE')`

/** Condition that the role may see the relation `c`, or a part of it. */
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

/** Returns the SQL of the path segment for a name. relational/names.ts has the same rule. */
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

/** Returns the SQL of the non-ASCII control characters in an encoding. */
function controlsBeyond(encoding: string): string {
  if (encoding === utf8) return '\\u0080-\\u009f\\u2028\\u2029'
  return /^(?:LATIN|ISO_8859)/.test(encoding) ? '\\x80-\\x9f' : ''
}

const utf8 = 'UTF8'

/** Returns the SQL of a text that is ordered by the bytes of its UTF-8 form. */
export function inBytes(text: string, encoding: string): string {
  return encoding === utf8 ? `(${text}) COLLATE "C"` : `pg_catalog.convert_to(${text}, 'UTF8')`
}

/** Returns the SQL of a parameter (bytes) to compare with {@link inBytes}. */
export function bytesParameter(parameter: string, encoding: string): string {
  return encoding === utf8 ? `${parameter}::text` : `pg_catalog.decode(${parameter}::text, 'hex')`
}

export function bytesValue(text: string, encoding: string): string {
  return encoding === utf8 ? text : Buffer.from(text).toString('hex')
}

/** A statement. Its values are always separate from its text. */
export interface Statement {
  readonly text: string
  /** Whether its text is always the same: the server then plans it once. */
  readonly fixed?: boolean
}

/** A row: the texts of its columns, in order. */
export type Cells = readonly (string | null)[]

/** One connection. */
export interface Session {
  /**
   * Whether a pooler such as PgBouncer shares the connections of the server among clients: then no state of a session lasts.
   */
  readonly shared: boolean
  /** The encoding of the database. */
  readonly encoding: string
  /** Returns the rows of one statement. It is read-only, and its settings end with it. */
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
