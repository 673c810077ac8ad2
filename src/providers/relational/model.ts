/**
 * The model of a relational database that all relational providers share. Everything here is JSON and becomes part of documents
 * that clients read: a source leaves out everything that its role may not see.
 */

/** The name of an object in the words of the database: never escaped, folded or quoted. */
export interface ObjectName {
  /** `''` for a database without schemas. */
  readonly schema: string
  readonly name: string
}

export type RelationKind = 'table' | 'partitioned table' | 'virtual table' | 'view' | 'materialized view'

export interface Column {
  readonly name: string
  /** In the notation of the database, with length, precision and time zone: `numeric(10,2)`, `varchar(80)`. */
  readonly type: string
  readonly nullable: boolean
  /** The expression of its default. */
  readonly default?: string
  /** The expression that it is generated from. */
  readonly generated?: string
  readonly identity?: 'always' | 'by default'
  readonly comment?: string
}

/** A primary key, or a set of columns that are unique together. */
export interface Key {
  readonly name: string
  readonly columns: readonly string[]
}

export interface Check {
  readonly name: string
  /** In the notation of DDL: `CHECK ((price > 0))`. */
  readonly definition: string
}

/** A foreign key of a table. */
export interface ForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  readonly references: ObjectName & { readonly columns: readonly string[] }
  /** `cascade`, `restrict`, `set null`, `set default`; left out for `no action`. */
  readonly onUpdate?: string
  readonly onDelete?: string
}

/** A foreign key of another table that points at this one. */
export interface Reference {
  readonly name: string
  readonly from: ObjectName & { readonly columns: readonly string[] }
  /** The columns of this table. */
  readonly columns: readonly string[]
}

export interface Index {
  readonly name: string
  readonly unique: boolean
  /** Names of columns; an expression as the database writes it. */
  readonly columns: readonly string[]
  readonly definition: string
}

export interface Trigger {
  readonly name: string
  readonly definition: string
}

/** The description of a table or a view. Lists are in an order that only a change of the schema changes. */
export interface Relation extends ObjectName {
  readonly kind: RelationKind
  readonly owner?: string
  readonly comment?: string
  /** The statements that create it, with its keys, indexes and comments. */
  readonly definition: string
  readonly columns: readonly Column[]
  readonly primaryKey?: Key
  readonly uniqueKeys: readonly Key[]
  readonly checks: readonly Check[]
  readonly foreignKeys: readonly ForeignKey[]
  readonly referencedBy: readonly Reference[]
  readonly indexes: readonly Index[]
  readonly triggers: readonly Trigger[]
  /** Approximate number of rows, rounded (see {@link roundEstimate}), never counted. Undefined if it is unknown. */
  readonly rowEstimate?: number
  /** Access to rows; left out when rows have no key (a view) or cannot be read. */
  readonly rows?: RowAccess
}

/** How rows of a relation are found. It is not shown to clients. */
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

/** All functions and procedures of one name. */
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
  /** `immutable`, `stable`, `volatile`, or the word of the database. */
  readonly volatility?: string
  /** Whether it runs with the rights of its owner. */
  readonly securityDefiner?: boolean
  /** Undefined if it has none (as a function in C). */
  readonly definition?: string
}

export interface Extension {
  readonly name: string
  readonly version: string
  readonly schema?: string
  readonly comment?: string
}

/** Rounds to two digits, so that the value changes with the size of a table, not with every row. */
export function roundEstimate(rows: number): number {
  if (!Number.isFinite(rows) || rows < 0) return 0
  return Number(rows.toPrecision(2))
}
