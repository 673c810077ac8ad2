import type { RelationKind } from '../relational/model.ts'

/** A row of a result, and the function that queries it. */
export type Cells = readonly (string | bigint | number | null | Uint8Array)[]
export type Run = (sql: string, ...values: readonly string[]) => readonly Cells[]

export interface RawColumn {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  readonly default: string | undefined
  readonly pk: number
  readonly isGenerated: boolean
}

export function columnsOf(run: Run, table: string): readonly RawColumn[] {
  // The columns of a view are unknown if its tables were dropped, or it needs functions that SQLite does not have.
  const rows = tryTo(() =>
    run('select name, type, "notnull", dflt_value, pk, hidden from pragma_table_xinfo(?1)', table),
  )
  return rows.flatMap(([name, type, notNull, value, pk, hidden]) => {
    if (Number(hidden) === 1) return []
    return [
      {
        ...{ name: String(name), type: String(type), notNull: Number(notNull) === 1, pk: Number(pk) },
        ...{ default: value === null ? undefined : String(value), isGenerated: Number(hidden) > 1 },
      },
    ]
  })
}

/** Returns the rows of a statement; empty when the statement fails. */
export function tryTo(act: () => readonly Cells[]): readonly Cells[] {
  try {
    return act()
  } catch {
    return []
  }
}

/** A table or view, as the catalog lists it. */
export interface Item {
  readonly key: string
  readonly name: string
  readonly kind: RelationKind
  readonly hasRowid: boolean
  readonly isStrict: boolean
}

/** An identifier between quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Affinity that SQLite derives from a declared type (https://www.sqlite.org/datatype3.html#determination_of_column_affinity). */
export type Affinity = 'numeric' | 'text' | 'none'

export function affinityOf(type: string, isStrict: boolean): Affinity {
  if (isStrict && /^any$/i.test(type)) return 'none'
  if (/int/i.test(type)) return 'numeric'
  if (/char|clob|text/i.test(type)) return 'text'
  return type === '' || /blob/i.test(type) ? 'none' : 'numeric'
}
