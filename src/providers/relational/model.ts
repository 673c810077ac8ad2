import type { Context } from '../../core/provider.ts'

/** The name of an object as the database stores it: not escaped, folded or quoted. */
export interface ObjectName {
  /** Name of the schema; `''` for a database without schemas. */
  readonly schema: string
  readonly name: string
}

export type RelationKind = 'table' | 'partitioned table' | 'virtual table' | 'view' | 'materialized view'

export interface Column {
  readonly name: string
  /** The type in the notation of the database, with length, precision and time zone: `numeric(10,2)`, `varchar(80)`. */
  readonly type: string
  readonly nullable: boolean
  readonly default?: string
  readonly generated?: string
  readonly identity?: 'always' | 'by default'
  readonly comment?: string
}

/** A primary key, or a set of columns that are unique together. */
export interface UniqueKey {
  readonly name: string
  readonly columns: readonly string[]
}

export interface CheckConstraint {
  readonly name: string
  /** The constraint in DDL: `CHECK ((price > 0))`. */
  readonly definition: string
}

export interface ForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  readonly references: ObjectName & { readonly columns: readonly string[] }
  /** The action: `cascade`, `restrict`, `set null` or `set default`. Undefined: `no action`. */
  readonly onUpdate?: string
  readonly onDelete?: string
}

/** A foreign key of another table that points at this one. */
export interface Reference {
  readonly name: string
  readonly from: ObjectName & { readonly columns: readonly string[] }
  /** The referenced columns of this table. */
  readonly columns: readonly string[]
}

export interface TableIndex {
  readonly name: string
  readonly unique: boolean
  /** Names of columns, or expressions as the database writes them. */
  readonly columns: readonly string[]
  readonly definition: string
}

export interface Trigger {
  readonly name: string
  readonly definition: string
}

export interface Relation extends ObjectName {
  readonly kind: RelationKind
  readonly owner?: string
  readonly comment?: string
  /** SQL statements that create the table or view, with its keys, indexes and comments. */
  readonly definition: string
  readonly columns: readonly Column[]
  readonly primaryKey?: UniqueKey
  readonly uniqueKeys: readonly UniqueKey[]
  readonly checks: readonly CheckConstraint[]
  readonly foreignKeys: readonly ForeignKey[]
  readonly referencedBy: readonly Reference[]
  readonly indexes: readonly TableIndex[]
  readonly triggers: readonly Trigger[]
  /** Approximate number of rows, rounded (see {@link roundEstimate}), never counted. Undefined if it is unknown. */
  readonly rowEstimate?: number
  /** How to read rows. Undefined: rows of this relation cannot be read. */
  readonly rows?: RowAccess
}

export interface RowAccess {
  /**
   * The columns that identify a row, in the order of an index: the primary key, or a unique key without nulls. Empty if there is
   * none: then only the first rows can be read.
   */
  readonly key: readonly string[]
  /** The columns whose values the role may read, in the order of the table. */
  readonly readable: readonly string[]
}

export interface EnumType extends ObjectName {
  readonly owner?: string
  readonly comment?: string
  readonly definition: string
  readonly values: readonly string[]
}

export interface Routine extends ObjectName {
  readonly overloads: readonly Overload[]
}

export interface Overload {
  readonly kind: 'function' | 'procedure' | 'aggregate' | 'window function'
  readonly arguments: string
  readonly returns?: string
  readonly language: string
  readonly owner?: string
  readonly comment?: string
  /** Volatility: `immutable`, `stable`, `volatile`, or the term of the database. */
  readonly volatility?: string
  /** Whether the routine runs with the rights of its owner. */
  readonly securityDefiner?: boolean
  /** The statement that creates the routine. Undefined: it is not available, as for a function in C. */
  readonly definition?: string
}

export interface Extension {
  readonly name: string
  readonly version: string
  readonly schema?: string
  readonly comment?: string
}

/** Rounds to two significant digits, so that the value does not change with every row. Returns 0 if the number is negative or not finite. */
export function roundEstimate(rows: number): number {
  if (!Number.isFinite(rows) || rows < 0) return 0
  return Number(rows.toPrecision(2))
}

/**
 * A relational database, as `relational` uses it. Methods throw ResourceErrors (`unavailable` if the database does not answer), without text of the
 * database. Objects that the role may not see are left out, as if they were missing.
 */
export interface DatabaseSource {
  /**
   * The only served schema: paths do not contain its name. `undefined`: paths begin with the name of a schema. `''`: the
   * database has no schemas.
   */
  readonly schema: string | undefined
  /** Kinds of objects of the database besides tables. */
  readonly kinds: readonly ('enum' | 'function')[]
  /**
   * Returns a page of the objects, in the order of keys, from `from` on (inclusive; it need not be a key itself). A key is a path: the segments of
   * the name, each followed by `/` (`public/customers/`; `customers/` if the schema is left out); and for a schema, if paths begin with one,
   * `public/overview`. Keys are ordered by the bytes of their UTF-8 form. Fewer than `limit` items mean that there are no more.
   */
  page(query: PageQuery, context: SourceContext): Promise<readonly CatalogItem[]>
  /** Returns the descriptions of tables and views, in any order, without missing ones. */
  relations(names: readonly ObjectName[], context: SourceContext): Promise<readonly Relation[]>
  enums?(names: readonly ObjectName[], context: SourceContext): Promise<readonly EnumType[]>
  routines?(names: readonly ObjectName[], context: SourceContext): Promise<readonly Routine[]>
  extensions?(context: SourceContext): Promise<readonly Extension[]>
  readonly rows?: RowSource
  /**
   * A fingerprint that changes whenever the result of `page`, `relations`, `enums`, `routines` or `extensions` does, except
   * estimates. It must be cheap for any size, because it is polled.
   */
  fingerprint(context: SourceContext): Promise<string>
  /**
   * Yields whenever something may have changed, earlier than the next poll would see it; resolves once it listens. If the
   * iteration ends, hints were lost, and it is called again later. `undefined`: there are no hints at the moment.
   */
  hints?(signal: AbortSignal): Promise<AsyncIterable<void> | undefined>
  close(): Promise<void>
}

/** The context of the request of a caller, or of a poll by the provider itself, which has no `principal`. */
export type SourceContext = Pick<Context, 'signal'> & Partial<Pick<Context, 'principal'>>

export interface PageQuery {
  /** Only keys at or after this one, in the order of bytes. `''`: from the beginning. */
  readonly from: string
  /** Only keys that begin with this prefix, which is empty or ends in `/`. */
  readonly prefix: string
  readonly limit: number
}

/** A schema, or all objects with one name in it: a table, an enum and functions may share a name. */
export type CatalogItem =
  | { readonly key: string; readonly schema: string; readonly comment?: string }
  | ({
      readonly key: string
      /** Kind of the table or view with this name. Undefined: there is none. */
      readonly relation?: RelationKind
      /** Whether rows of the table or view can be read, as far as the source knows without another query. */
      readonly rows?: boolean
      readonly isEnum?: boolean
      readonly isRoutine?: boolean
      readonly comment?: string
    } & ObjectName)
export type NamedItem = Extract<CatalogItem, { name: string }>

export interface RowSource {
  /**
   * Returns rows in the order of the key: the one with `key`, or those strictly after `after`. If a key is invalid for the types of its
   * columns: no rows for `key`, the error `invalid` for `after`.
   */
  read(query: RowQuery, context: SourceContext): Promise<RowPage>
  /** Returns the keys at or after a text in the order of the key columns, for completion. */
  keys(query: KeyQuery, context: SourceContext): Promise<readonly (readonly string[])[]>
  /**
   * Returns a text per relation with readable rows, by key, that changes with the rows. Without it, row changes are not reported.
   */
  stamps?(context: SourceContext): Promise<ReadonlyMap<string, string>>
  /** Whether `stamps` shows every committed change at once. Statistics of a server show a change only a moment later. */
  readonly areStampsExact?: boolean
}

export interface RowQuery {
  /** The relation as last described. */
  readonly relation: Relation
  /** The requested columns, all of them readable, in this order. */
  readonly columns: readonly string[]
  /** Key of the only row to return: the texts of its columns. */
  readonly key?: readonly string[]
  /**
   * Whether the key has the forms in which its values are shown, such as base64 for bytes, instead of those of {@link TableRow.key}. Several
   * rows may have it, if the type of a column has several kinds of values.
   */
  readonly isShown?: boolean
  readonly after?: readonly string[]
  readonly limit: number
  /** Maximum length of a value, in bytes. Only the beginning of a longer value is returned. */
  readonly maxValueBytes: number
  /** Approximate maximum size of all values, in bytes; the first row is always returned. */
  readonly maxBytes: number
}

export interface KeyQuery {
  readonly relation: Relation
  readonly typed: string
  readonly limit: number
}

export interface RowPage {
  readonly rows: readonly TableRow[]
  readonly more: boolean
}

export interface TableRow {
  /** The texts of the key columns, in the notation of the database; empty without a key. */
  readonly key: readonly string[]
  /** The values, in the order of the requested columns. */
  readonly values: readonly CellValue[]
}

export interface CellValue {
  /**
   * The value as a fragment of JSON that loses nothing: integers of up to 32 bits (of SQLite, 53 bits) and finite floats as numbers, booleans, JSON
   * as it is; larger integers, decimals and everything else as strings; bytes in base64, times in ISO 8601.
   */
  readonly json: string
  /** The length of the whole value in bytes, if this is only its beginning. */
  readonly cut?: number
}

export interface SelectionOptions {
  readonly schemas: readonly string[] | undefined
  /** The only schema, which is left out of keys. */
  readonly only: string | undefined
  /** Whether rows of views are served. */
  readonly views: boolean
}
