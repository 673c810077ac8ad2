import { defined } from '../../core/kit/object.ts'
import type { ForeignKey, Reference, RelationKind } from '../relational/model.ts'

/** Token of an SQL statement. Definitions are tokenized because SQLite keeps them as they were written. */
interface SqlToken {
  readonly text: string
  /** Number of parentheses around the token; for a parenthesis, around its pair. */
  readonly depth: number
  readonly start: number
  readonly end: number
}

const pattern =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\p{L}\p{N}_$]+|\s+|[\s\S]/gu

function tokenizeSql(sql: string): readonly SqlToken[] {
  const tokens: SqlToken[] = []
  let depth = 0
  for (const { 0: text, index } of sql.matchAll(pattern)) {
    if (/^(?:\s|--|\/\*)/.test(text)) continue
    if (text === ')') depth--
    tokens.push({ text, depth, start: index, end: index + text.length })
    if (text === '(') depth++
  }
  return tokens
}

/**
 * Returns the items between the first parentheses of a statement, split at commas: the columns of a table or an index, and
 * constraints.
 */
export function definitionItemsOf(sql: string): readonly (readonly SqlToken[])[] {
  const tokens = tokenizeSql(sql)
  const from = tokens.findIndex(({ text, depth }) => text === '(' && depth === 0)
  if (from === -1) return []
  const items: SqlToken[][] = [[]]
  for (const token of tokens.slice(from + 1)) {
    if (token.text === ')' && token.depth === 0) break
    if (token.text === ',' && token.depth === 1) items.push([])
    else items.at(-1)?.push(token)
  }
  return items
}

export function tokenRangeText(sql: string, tokens: readonly SqlToken[]): string {
  const [first, last] = [tokens[0], tokens.at(-1)]
  return first === undefined || last === undefined ? '' : sql.slice(first.start, last.end)
}

/** Returns the identifier that SQL writes as `[a]`, `"a"`, `` `a` `` or `'a'`, in which a doubled quote stands for one. */
function unquoted(text: string): string {
  const mark = text[0]
  if (mark === '[') return text.slice(1, -1)
  if (mark !== undefined && '"`\''.includes(mark)) return text.slice(1, -1).replaceAll(mark + mark, mark)
  return text
}

function group(tokens: readonly SqlToken[], at: number): readonly SqlToken[] {
  const opening = tokens[at]
  if (opening?.text !== '(') return []
  const end = tokens.findIndex(({ text, depth }, i) => i > at && text === ')' && depth === opening.depth)
  return end === -1 ? [] : tokens.slice(at, end + 1)
}

export function checksOf(sql: string): readonly { readonly name: string; readonly definition: string }[] {
  return definitionItemsOf(sql).flatMap((item) =>
    item.flatMap(({ text, depth }, i) => {
      if (depth !== 1 || !/^check$/i.test(text)) return []
      const condition = group(item, i + 1)
      if (condition.length === 0) return []
      const isNamed = /^constraint$/i.test(item[i - 2]?.text ?? '')
      return [
        {
          name: isNamed ? unquoted(item[i - 1]?.text ?? '') : '',
          definition: `CHECK ${tokenRangeText(sql, condition)}`,
        },
      ]
    }),
  )
}

export function generatedColumnsOf(sql: string): ReadonlyMap<string, string> {
  const definitionItems = definitionItemsOf(sql).flatMap((item): readonly (readonly [string, string])[] => {
    const at = item.findIndex(({ text, depth }, i) => i > 0 && depth === 1 && /^as$/i.test(text))
    const expression = at === -1 ? [] : group(item, at + 1).slice(1, -1)
    return expression.length === 0 ? [] : [[unquoted(item[0]?.text ?? ''), tokenRangeText(sql, expression)]]
  })
  return new Map(definitionItems)
}

/** Writes the ASCII letters of a name in lower case, because SQLite ignores their case. */
export const foldName = (name: string) => name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

const actions: Readonly<Record<string, string>> = {
  RESTRICT: 'restrict',
  CASCADE: 'cascade',
  'SET NULL': 'set null',
  'SET DEFAULT': 'set default',
}

/** Returns the foreign keys of a table. SQLite does not report their names, so each is named after its columns. */
export function foreignKeysOf(run: RunQuery, table: string, spelled: (name: string) => string): readonly ForeignKey[] {
  const rows = run(
    'select id, "table", "from", "to", on_update, on_delete from pragma_foreign_key_list(?1) order by id desc, seq',
    table,
  )
  const byId = new Map<string, Cells[]>()
  for (const row of rows) byId.set(String(row[0]), [...(byId.get(String(row[0])) ?? []), row])
  return [...byId.values()].map((parts) => {
    const [, to, , , onUpdate, onDelete] = parts[0] ?? []
    const parent = spelled(String(to))
    const columns = parts.map(([, , from]) => String(from))
    // Without columns, the reference is to the primary key.
    const own = parts.every(([, , , target]) => target !== null)
      ? parts.map(([, , , target]) => String(target))
      : readTableColumns(run, parent)
          .filter(({ pk }) => pk > 0)
          .sort((a, b) => a.pk - b.pk)
          .map(({ name }) => name)
    const [update, remove] = [actions[String(onUpdate)], actions[String(onDelete)]]
    return {
      ...{
        name: `${table}_${columns.join('_')}_fkey`,
        columns,
        references: { schema: '', name: parent, columns: own },
      },
      ...defined({ onUpdate: update, onDelete: remove }),
    }
  })
}

/** Returns the foreign keys that reference each table. */
export function referencesIn(
  run: RunQuery,
  items: readonly RelationItem[],
  byName: ReadonlyMap<string, RelationItem>,
): ReadonlyMap<string, readonly Reference[]> {
  const references = new Map<string, Reference[]>()
  const pointing = new Set(
    run(
      "select distinct m.name from sqlite_schema m join pragma_foreign_key_list(m.name) f where m.type = 'table'",
    ).map(([name]) => String(name)),
  )
  const spellings = new Map([...byName.keys()].map((name) => [foldName(name), name]))
  for (const { name, kind } of items) {
    if (kind !== 'table' || !pointing.has(name)) continue
    const keys = foreignKeysOf(run, name, (other) => spellings.get(foldName(other)) ?? other)
    for (const key of keys) {
      const { name: parent, columns } = key.references
      const reference = { name: key.name, from: { schema: '', name, columns: key.columns }, columns }
      references.set(parent, [...(references.get(parent) ?? []), reference])
    }
  }
  return references
}

export type Cells = readonly (string | bigint | number | null | Uint8Array)[]
export type RunQuery = (sql: string, ...values: readonly string[]) => readonly Cells[]

export interface RawColumn {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  readonly default: string | undefined
  readonly pk: number
  readonly isGenerated: boolean
}

export function readTableColumns(run: RunQuery, table: string): readonly RawColumn[] {
  // The columns of a view are unknown if its tables were dropped, or it needs functions that SQLite does not have.
  const rows = rowsOrNone(() =>
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
export function rowsOrNone(act: () => readonly Cells[]): readonly Cells[] {
  try {
    return act()
  } catch {
    return []
  }
}

export interface RelationItem {
  readonly key: string
  readonly name: string
  readonly kind: RelationKind
  readonly hasRowid: boolean
  readonly isStrict: boolean
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * Affinity that SQLite derives from a declared type: `numeric` also stands for INTEGER and REAL, `none` for BLOB.
 * Source: https://www.sqlite.org/datatype3.html#determination_of_column_affinity
 */
export type Affinity = 'numeric' | 'text' | 'none'

export function affinityOf(type: string, isStrict: boolean): Affinity {
  if (isStrict && /^any$/i.test(type)) return 'none'
  if (/int/i.test(type)) return 'numeric'
  if (/char|clob|text/i.test(type)) return 'text'
  return type === '' || /blob/i.test(type) ? 'none' : 'numeric'
}
