import type { Index } from '../relational/model.ts'
import type { Run } from './columns.ts'
import { quoteName } from './names.ts'
import { itemsOf, textOf } from './parse.ts'

/** An index, with what of it only the order of rows needs to know. */
export interface KnownIndex extends Index {
  /** `pk`, `u`: a constraint makes it; `c`: a statement does. */
  readonly origin: string
  readonly partial: boolean
  readonly parts: readonly IndexPart[]
}

interface IndexPart {
  /** `undefined` for an expression. */
  readonly column: string | undefined
  readonly collation: string
  readonly descends: boolean
}

export function indexesOf(run: Run, table: string) {
  const listed = run(
    'select l.name, l."unique", l.origin, l.partial, s.sql from pragma_index_list(?1) l left join sqlite_schema s on s.type = \'index\' and s.name = l.name order by l.name',
    table,
  )
  return listed.map(([name, unique, origin, partial, sql]): KnownIndex => {
    const rows = run(
      'select cid, name, "desc", coll from pragma_index_xinfo(?1) where key = 1 order by seqno',
      String(name),
    )
    const parts = rows.map(([cid, column, desc, collation]) => ({
      // -1 is the rowid, -2 an expression.
      column: Number(cid) < 0 || column === null ? undefined : String(column),
      ...{ collation: String(collation).toUpperCase(), descends: Number(desc) === 1 },
    }))
    const text = sql === null ? '' : String(sql)
    const written = itemsOf(text).map((item) => textOf(text, item))
    const columns = parts.map(({ column }, i) => column ?? written[i] ?? 'rowid')
    const word = origin === 'pk' ? 'PRIMARY KEY' : 'UNIQUE'
    return {
      ...{ name: String(name), unique: Number(unique) === 1, columns, parts },
      ...{ origin: String(origin), partial: Number(partial) === 1 },
      definition: text === '' ? `${word} (${columns.map(quoteName).join(', ')})` : text,
    }
  })
}
