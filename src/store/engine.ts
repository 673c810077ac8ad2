import { createAutoResetEvent } from '../core/kit/abort.ts'
import type { Collection, Condition, Row, RowQuery, Store, WholeRow } from './store.ts'
import type { CheckedText, TextSet, Texts, WeighedPart } from './texts.ts'

export interface CollectionOperations {
  get(collection: string, key: string): Row | undefined
  put(collection: string, row: WholeRow, condition?: Condition): Row | undefined
  delete(collection: string, key: string, condition?: Condition): boolean
  list(collection: string, query: RowQuery): readonly Row[]
  similar(collection: string, terms: readonly string[], limit: number): readonly { key: string; shared: number }[]
  size(collection: string): { rows: number; bytes: number }
  /** Does a part of the work, so that other callers do not wait for long. The work is done when it returns no keys. */
  evict(collection: string, bounds: EvictionLimits): readonly string[]
  takeLease(name: string, holder: string, ttlMs: number): boolean
  /** Returns false if the caller no longer holds the lease. */
  renewLease(name: string, holder: string, ttlMs: number): boolean
  dropLease(name: string, holder: string): void
}

export interface TextOperations {
  textsPut(name: string, texts: readonly CheckedText[]): void
  /** Does a part of the work, so that other callers do not wait for long. Returns false when there was nothing left to do. */
  textsRemove(name: string, keys: readonly string[]): boolean
  textsList(name: string, query: Parameters<Texts['list']>[0]): Awaited<ReturnType<Texts['list']>>
  textsEntries(name: string, after: number, limit: number): Awaited<ReturnType<Texts['entries']>>
  textsIds(name: string): readonly number[]
  textsMimeTypes(name: string, among?: TextSet): readonly string[]
  textsCounts(
    name: string,
    terms: readonly string[],
    among?: TextSet,
    beginnings?: readonly string[],
  ): readonly number[]
  textsFind(name: string, query: Parameters<Texts['find']>[0]): readonly number[]
  textsWeigh(name: string, query: Parameters<Texts['weigh']>[0]): readonly WeighedPart[]
  textsRead(name: string, ids: readonly number[]): Awaited<ReturnType<Texts['read']>>
  textsSize(name: string, model?: string): Awaited<ReturnType<Texts['size']>>
  textsUnembedded(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['unembedded']>>
  textsEmbed(name: string, model: string, vectors: Parameters<Texts['embed']>[1]): void
  textsVectors(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['vectors']>>
}

export type EvictionLimits = Parameters<Collection['evict']>[0]

export type AsPromises<Of> = {
  readonly [Name in keyof Of]: Of[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never
}

export interface Engine extends AsPromises<CollectionOperations>, AsPromises<TextOperations> {
  watch: Store['watch']
  close(): Promise<void>
}

/** The first string, by UTF-8 bytes, after all strings that begin with a prefix. `undefined`: there is none. */
export function prefixUpperBound(prefix: string): string | undefined {
  const points = [...prefix]
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) ?? 0
    if (point < 0x10ffff) return points.join('') + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1)
  }
  return undefined
}

/** Returns a function that converts the given columns of a row, each by its own function. */
export function createRowParser<Columns extends Readonly<Record<string, (value: unknown) => unknown>>>(
  columns: Columns,
) {
  const all = Object.entries(columns)
  return (row: Readonly<Record<string, unknown>>) => {
    const values: Record<string, unknown> = {}
    for (const [name, convert] of all) values[name] = convert(row[name])
    return values as { readonly [Name in keyof Columns]: ReturnType<Columns[Name]> }
  }
}

export const parseListRow = createRowParser({ key: String, version: String, edition: Number })

/** The differences between the SQL of the engines. */
export interface SqlDialect {
  /** Returns the placeholder of the n-th value, from 1. */
  parameter(n: number): string
  table(name: 'rows' | 'terms' | 'collections'): string
  /** Returns the columns of a row of the table with the alias `r`; with `values`, also the value of the row. */
  columns(values: boolean): string
  /** SQL for the current time, in milliseconds since 1970. */
  readonly now: string
}

/** Returns the statement of `list`, with its values. */
export function listSql(dialect: SqlDialect, collection: string, query: RowQuery) {
  const values: (string | number)[] = []
  const value = (value: string | number) => dialect.parameter(values.push(value))
  const { prefix = '', after, term, newest = false, before } = query
  const home = `(select id from ${dialect.table('collections')} where name = ${value(collection)})`
  const from =
    term === undefined
      ? `${dialect.table('rows')} r where r.collection = ${home}`
      : `${dialect.table('terms')} t join ${dialect.table('rows')} r on r.collection = t.collection and r.key = t.key
         where t.collection = ${home} and t.term = ${value(term)}`
  // Column by which the rows are ordered.
  const key = term === undefined ? 'r.key' : 't.key'
  const end = prefix === '' ? undefined : prefixUpperBound(prefix)
  const conditions = [
    `(r.expires is null or r.expires > ${dialect.now})`,
    ...(prefix === '' ? [] : [`${key} >= ${value(prefix)}`]),
    ...(end === undefined ? [] : [`${key} < ${value(end)}`]),
    ...(after === undefined ? [] : [`${key} > ${value(after)}`]),
    ...(before === undefined ? [] : [`r.revision < ${value(before)}`]),
  ]
  const order = newest ? 'r.revision desc' : key
  const sql = `select ${dialect.columns(query.values === true)} from ${from}
    and ${conditions.join(' and ')} order by ${order} limit ${value(query.limit)}`
  return { sql, values }
}

/** Keys that may have changed; undefined means "everything". */
export type RowChange = readonly string[] | undefined

/** Maximum number of single keys. Above it, everything counts as changed. */
const most = 1000

interface Listener {
  readonly collection: string
  keys: Set<string>
  anything: boolean
  ended: boolean
  readonly event: ReturnType<typeof createAutoResetEvent>
}

export function createChangeQueue(onChange: () => void) {
  const listeners = new Set<Listener>()

  const tellOne = (listener: Listener, change: RowChange) => {
    if (change === undefined) listener.anything = true
    else for (const key of change) listener.keys.add(key)
    if (listener.keys.size > most) listener.anything = true
    if (listener.anything) listener.keys.clear()
    listener.event.set()
  }
  const end = (listener: Listener) => {
    listener.ended = true
    listener.event.set()
    if (listeners.delete(listener)) onChange()
  }

  return {
    /** Yields changes from now on. Ends when the signal aborts, or with `close`. */
    listen: (collection: string, signal: AbortSignal): AsyncIterable<RowChange> => {
      const { aborted: isEnded } = signal
      const listener: Listener = {
        collection,
        keys: new Set(),
        anything: false,
        ended: isEnded,
        event: createAutoResetEvent(),
      }
      const stop = () => end(listener)
      if (!listener.ended) {
        listeners.add(listener)
        signal.addEventListener('abort', stop, { once: true })
        onChange()
      }
      return changesOf(listener, () => {
        signal.removeEventListener('abort', stop)
        stop()
      })
    },
    tell: (collection: string, change: RowChange): void => {
      for (const listener of listeners) if (listener.collection === collection) tellOne(listener, change)
    },
    tellAll: (): void => {
      for (const listener of listeners) tellOne(listener, undefined)
    },
    get collections(): readonly string[] {
      return [...new Set([...listeners].map(({ collection }) => collection))]
    },
    close: (): void => {
      for (const listener of listeners) end(listener)
    },
  }
}

async function* changesOf(listener: Listener, stop: () => void): AsyncGenerator<RowChange> {
  try {
    while (!listener.ended) {
      if (listener.anything || listener.keys.size > 0) {
        const change = listener.anything ? undefined : [...listener.keys]
        listener.anything = false
        listener.keys = new Set()
        yield change
      } else await listener.event.wait()
    }
  } finally {
    stop()
  }
}
