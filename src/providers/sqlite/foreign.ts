import { defined } from '../../core/kit/defined.ts'
import type { ForeignKey, Reference } from '../relational/model.ts'
import type { Item } from './columns.ts'
import { type Cells, columnsOf, type Run } from './columns.ts'

/** SQLite takes names for the same that differ in the case of their ASCII letters. */
export const folded = (name: string) => name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

const actions: Readonly<Record<string, string>> = {
  RESTRICT: 'restrict',
  CASCADE: 'cascade',
  'SET NULL': 'set null',
  'SET DEFAULT': 'set default',
}

/** SQLite does not report the names of foreign keys, so each is named after its columns. */
export function foreignKeysOf(run: Run, table: string, spelled: (name: string) => string): readonly ForeignKey[] {
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
    // Without columns it is the primary key that is meant.
    const own = parts.every(([, , , target]) => target !== null)
      ? parts.map(([, , , target]) => String(target))
      : columnsOf(run, parent)
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
  run: Run,
  items: readonly Item[],
  byName: ReadonlyMap<string, Item>,
): ReadonlyMap<string, readonly Reference[]> {
  const found = new Map<string, Reference[]>()
  const pointing = new Set(
    run(
      "select distinct m.name from sqlite_schema m join pragma_foreign_key_list(m.name) f where m.type = 'table'",
    ).map(([name]) => String(name)),
  )
  const spellings = new Map([...byName.keys()].map((name) => [folded(name), name]))
  for (const { name, kind } of items) {
    if (kind !== 'table' || !pointing.has(name)) continue
    const keys = foreignKeysOf(run, name, (other) => spellings.get(folded(other)) ?? other)
    for (const key of keys) {
      const { name: parent, columns } = key.references
      const reference = { name: key.name, from: { schema: '', name, columns: key.columns }, columns }
      found.set(parent, [...(found.get(parent) ?? []), reference])
    }
  }
  return found
}
