import type { Context } from '../../core/provider.ts'
import type { EnumType, Extension, ObjectName, Relation, RelationKind, Routine } from './model.ts'

/**
 * A relational database, as `relational` uses it. Every method throws only ResourceError (`unavailable` if the database does
 * not answer, without any of its text), and ends its statement soon after the signal aborts. Objects that the role may not see
 * are left out everywhere: denied and missing look the same.
 */
export interface Source {
  /**
   * The only served schema: paths do not contain its name. `undefined`: paths begin with the name of a schema. `''`: the
   * database has no schemas.
   */
  readonly schema: string | undefined
  /** Whether it has enums and functions: templates are offered only for these. */
  readonly kinds: readonly ('enum' | 'function')[]
  /**
   * Returns a page of all objects, in the order of keys, from `from` on (inclusive; it need not be a key itself). A key is a
   * path: the segments of the name, each followed by `/` (`public/customers/`; `customers/` if the schema is left out); and for
   * a schema, if paths begin with one, `public/overview`. Keys are ordered by the bytes of their UTF-8 form. Fewer than `limit`
   * items mean that there are no more.
   *
   * It is always one query. `from` and `until` limit the rows that it examines.
   */
  page(query: PageQuery, context: SourceContext): Promise<readonly Listed[]>
  /** Returns the descriptions of objects, in any order; missing ones are left out. It takes at most one query for each kind. */
  relations(names: readonly ObjectName[], context: SourceContext): Promise<readonly Relation[]>
  enums?(names: readonly ObjectName[], context: SourceContext): Promise<readonly EnumType[]>
  routines?(names: readonly ObjectName[], context: SourceContext): Promise<readonly Routine[]>
  extensions?(context: SourceContext): Promise<readonly Extension[]>
  /** The source of rows. `undefined`: rows cannot be read. */
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

/** `principal` is set for the request of a caller, but not for polls of the provider itself. */
export type SourceContext = Pick<Context, 'signal'> & Partial<Pick<Context, 'principal'>>

export interface PageQuery {
  /** Only keys from here on, in the order of bytes. `''`: from the beginning. */
  readonly from: string
  /** Only keys that begin with this prefix, which is empty or ends in `/`. */
  readonly prefix: string
  readonly limit: number
}

/** A schema, or everything of one name in it: a table, an enum and functions may have the same one. */
export type Listed =
  | { readonly key: string; readonly schema: string; readonly comment?: string }
  | ({
      readonly key: string
      /** The table or view of this name. */
      readonly relation?: RelationKind
      /** Whether its rows can be read, as far as the source knows without another query. */
      readonly rows?: boolean
      readonly isEnum?: boolean
      readonly isRoutine?: boolean
      readonly comment?: string
    } & ObjectName)

export interface RowSource {
  /**
   * Returns rows in the order of the key, strictly after a key. If a key is invalid for the types of its columns: `[]` for
   * `key`, the error `invalid` for `after`.
   */
  read(query: RowQuery, context: SourceContext): Promise<RowPage>
  /** Keys that come at or after a text in the order of the first column of the key, for completion. */
  keys(query: KeyQuery, context: SourceContext): Promise<readonly (readonly string[])[]>
  /**
   * For each relation whose rows can be read, a text that changes when its rows do; by key. Without one, changes of
   * rows are not reported.
   */
  stamps?(context: SourceContext): Promise<ReadonlyMap<string, string>>
}

export interface RowQuery {
  /** The relation as it was described a moment ago. If it has changed since: `not-found`. */
  readonly relation: Relation
  /** The requested columns, all of them readable, in this order. */
  readonly columns: readonly string[]
  /** Texts of the key columns: only this row. */
  readonly key?: readonly string[]
  readonly after?: readonly string[]
  /** Maximum number of rows. */
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
  readonly rows: readonly Row[]
  /** Whether more rows follow. */
  readonly more: boolean
}

export interface Row {
  /** The texts of the key columns, in the notation of the database; empty without a key. */
  readonly key: readonly string[]
  /** In the order of the requested columns. */
  readonly values: readonly Value[]
}

/**
 * A value as a fragment of JSON that loses nothing: integers of up to 32 bits and finite floats as numbers, booleans, JSON
 * as it is; whole numbers of 64 bits, decimals and everything else as strings; bytes in base64, times in ISO 8601.
 */
export interface Value {
  readonly json: string
  /** The length of the whole value in bytes, if this is only its beginning. */
  readonly cut?: number
}
