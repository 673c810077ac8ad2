import { comparePaths } from '../../core/path.ts'
import { identityOf } from '../relational/batch.ts'
import type { ObjectName, RelationKind } from '../relational/model.ts'
import { keyOf, nameOf, segmentOf } from '../relational/names.ts'
import type { Listed, PageQuery } from '../relational/source.ts'
import { servedRoutine } from './routines.ts'
import type { Session } from './session.ts'
import { listed, readableColumn, servedSchema } from './sql.ts'

export interface PageOptions {
  readonly schemas: readonly string[] | undefined
  /** The only schema, which is left out of keys. */
  readonly only: string | undefined
  /** Whether rows of views are served. */
  readonly views: boolean
}

/**
 * A page of the tables and views that the account may see something of, and the functions and procedures that it may run, in the order
 * of their keys: three queries, whatever there is. Those of one name are one item of it.
 */
export async function readPage(
  { query }: Session,
  { from, prefix, limit }: PageQuery,
  options: PageOptions,
): Promise<readonly Listed[]> {
  const names = prefix.split('/').slice(0, -1).map(nameOf)
  if (names.includes(undefined)) return []
  const [schema, name, ...rest] = options.only === undefined ? names : [options.only, ...names]
  if (rest.length > 0) return []
  const namesIn = async (of: 'TABLE' | 'ROUTINE', from: string, condition: string) => {
    const served = servedSchema(`${of}_SCHEMA`, options.schemas)
    const within = [
      ...(schema === undefined ? [] : [[`${of}_SCHEMA = ?`, schema] as const]),
      ...(name === undefined ? [] : [[`${of}_NAME = ?`, name] as const]),
    ]
    const rows = await query(
      `SELECT DISTINCT ${exact(`${of}_SCHEMA`)}, ${exact(`${of}_NAME`)} FROM information_schema.${from}
        WHERE ${[served.sql, ...within.map(([one]) => one)].join(' AND ')} AND ${condition}`,
      [...served.values, ...within.map(([, value]) => value)],
    )
    const found = rows.map(([at, own]): ObjectName => ({ schema: String(at), name: String(own) }))
    return new Map(found.map((one) => [identityOf(one), one]))
  }
  const tables = await namesIn('TABLE', 'COLUMNS', readableColumn)
  const routines = await namesIn('ROUTINE', 'ROUTINES', servedRoutine)
  const objects = [...new Map([...tables, ...routines]).values()]
  const all: readonly Listed[] = [
    ...objects.map((object) => ({ key: keyOf(object, options.only), ...object })),
    // The overview of a schema is listed: its key is among those of the objects.
    ...(options.only === undefined ? [...new Set(objects.map((object) => object.schema))] : []).map((one) => ({
      ...{ key: `${segmentOf(one)}/overview`, schema: one },
    })),
  ]
  const page = all
    .filter(({ key }) => key.startsWith(prefix) && comparePaths(key, from) >= 0)
    .sort((a, b) => comparePaths(a.key, b.key))
    .slice(0, limit)
  const facts = await factsOf(
    query,
    page.filter((item): item is Listed & ObjectName => 'name' in item && tables.has(identityOf(item))),
  )
  return page.flatMap((item): readonly Listed[] => {
    if (!('name' in item)) return [item]
    const id = identityOf(item)
    const isRoutine = routines.has(id) ? { isRoutine: true } : {}
    if (!tables.has(id)) return [{ ...item, ...isRoutine }]
    const found = facts.get(id)
    // It may have been dropped in between: then the most likely kind is used.
    const kind = found?.kind ?? 'table'
    return [
      {
        ...{ ...item, relation: kind, ...isRoutine },
        ...(found !== undefined && hasRows(kind, found.engine, options.views) ? { rows: true } : {}),
        ...(found?.comment === undefined ? {} : { comment: found.comment }),
      },
    ]
  })
}

/** Compares a name of the information schema by its bytes; by default the comparison ignores case. */
const exact = (column: string) => `CONVERT(${column} USING utf8mb4) COLLATE utf8mb4_bin`

export interface TableFacts {
  readonly kind: RelationKind
  readonly engine: string | undefined
  readonly comment: string | undefined
}

async function factsOf(
  query: Session['query'],
  names: readonly ObjectName[],
): Promise<ReadonlyMap<string, TableFacts>> {
  if (names.length === 0) return new Map()
  const [schemas, tables] = [
    listed([...new Set(names.map(({ schema }) => schema))]),
    listed(names.map(({ name }) => name)),
  ]
  const rows = await query(
    `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT FROM information_schema.TABLES
      WHERE TABLE_SCHEMA IN (${schemas.sql}) AND TABLE_NAME IN (${tables.sql})`,
    [...schemas.values, ...tables.values],
  )
  return new Map(
    rows.map(([schema, name, type, engine, comment]) => [
      identityOf({ schema: String(schema), name: String(name) }),
      tableFacts(String(type), engine === null ? undefined : String(engine), String(comment ?? '')),
    ]),
  )
}

/** Converts a row of the information schema to the facts of a table. For a view its comment is the word VIEW, which is left out. */
export function tableFacts(type: string, engine: string | undefined, comment: string | undefined): TableFacts {
  const kind = type.includes('VIEW') ? 'view' : 'table'
  return { kind, engine, comment: kind === 'view' || comment === '' ? undefined : comment }
}

/** Engines that keep their rows on this server: others fetch them from wherever their tables say. */
const local = new Set([
  'INNODB',
  'MYISAM',
  'ARIA',
  'MEMORY',
  'ARCHIVE',
  'MRG_MYISAM',
  'ROCKSDB',
  'TOKUDB',
  'NDBCLUSTER',
  'COLUMNSTORE',
])

export function hasRows(kind: RelationKind, engine: string | undefined, views: boolean): boolean {
  return kind === 'view' ? views : engine !== undefined && local.has(engine.toUpperCase())
}
