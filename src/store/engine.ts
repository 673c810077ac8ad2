import { failure } from './failure.ts'
import { holdLease } from './leases.ts'
import {
  checkCollection,
  checkKey,
  checkLease,
  checkLimit,
  checkQuery,
  checkRow,
  checkTerms,
  leases,
  limits,
  type WholeRow,
} from './rules.ts'
import type { Collection, Condition, Row, RowQuery, Store } from './store.ts'
import type { TextSet, Texts } from './texts.ts'
import { textsOf } from './texts-rules.ts'

/** What is done with rows, each of it at once and whole. Whoever calls it has checked what it is given. */
export interface Operations {
  get(collection: string, key: string): Row | undefined
  put(collection: string, row: WholeRow, condition?: Condition): Row | undefined
  delete(collection: string, key: string, condition?: Condition): boolean
  list(collection: string, query: RowQuery): readonly Row[]
  similar(collection: string, terms: readonly string[], limit: number): readonly { key: string; shared: number }[]
  size(collection: string): { rows: number; bytes: number }
  /** Does a part of it, so that nobody waits for long. Nothing is left to do once it answers with no key. */
  evict(collection: string, bounds: Bounds): readonly string[]
  takeLease(name: string, holder: string, ttlMs: number): boolean
  /** `false`: it is not the holder's any more. */
  renewLease(name: string, holder: string, ttlMs: number): boolean
  dropLease(name: string, holder: string): void
}

/** What is done with texts: the same as {@link Texts}, each under the name of the texts that it is of. */
export interface TextOperations {
  textsPut(name: string, texts: Parameters<Texts['put']>[0]): void
  /** Does a part of it, so that nobody waits for long. `false`: nothing was left to do. */
  textsRemove(name: string, keys: readonly string[]): boolean
  textsList(name: string, query: Parameters<Texts['list']>[0]): Awaited<ReturnType<Texts['list']>>
  textsEntries(name: string, after: number, limit: number): Awaited<ReturnType<Texts['entries']>>
  textsIds(name: string): readonly number[]
  textsMimeTypes(name: string, among?: TextSet): readonly string[]
  textsCounts(name: string, terms: readonly string[], among?: TextSet): readonly number[]
  textsFind(name: string, query: Parameters<Texts['find']>[0]): readonly number[]
  textsRead(name: string, ids: readonly number[]): Awaited<ReturnType<Texts['read']>>
  textsSize(name: string, model?: string): Awaited<ReturnType<Texts['size']>>
  textsUnembedded(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['unembedded']>>
  textsEmbed(name: string, model: string, vectors: Parameters<Texts['embed']>[1]): void
  textsVectors(name: string, model: string, after: number, limit: number): Awaited<ReturnType<Texts['vectors']>>
}

export interface Bounds {
  readonly rows?: number
  readonly bytes?: number
  readonly age?: number
}

/** The same, by somebody who has to be waited for: another thread, or a server. */
export type Remote<Of> = {
  readonly [Name in keyof Of]: Of[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : never
}

export interface Engine extends Remote<Operations>, Remote<TextOperations> {
  watch: Store['watch']
  close(): Promise<void>
}

/** How many parts an eviction has at most: what is written meanwhile as fast as it is removed is left to the next one. */
const mostParts = 100_000

/** A store over an engine: what is the same for all of them. */
export function storeOver(engine: Engine): Store {
  const held = new Set<() => Promise<void>>()
  let closed: Promise<void> | undefined

  const open = () => {
    if (closed !== undefined) throw failure('gone', 'closed')
  }

  return {
    collection: (name) => {
      checkCollection(name)
      return collectionOf(engine, name, open)
    },
    texts: (name) => {
      checkCollection(name)
      return textsOf(engine, name, open)
    },
    lease: async (name, ttlMs) => {
      open()
      checkLease(name, ttlMs)
      const lease = await holdLease(engine, name, ttlMs)
      if (lease === undefined) return undefined
      held.add(lease.release)
      const gone = () => void held.delete(lease.release)
      lease.signal.addEventListener('abort', gone, { once: true })
      return { signal: lease.signal, release: () => lease.release().finally(gone) }
    },
    watch: async (collection, signal) => {
      open()
      if (collection !== leases) checkCollection(collection)
      return engine.watch(collection, signal)
    },
    close: () => {
      closed ??= Promise.allSettled([...held].map((release) => release())).then(() => engine.close())
      return closed
    },
  }
}

function collectionOf(engine: Engine, name: string, open: () => void): Collection {
  return {
    get: async (key) => {
      open()
      checkKey(key)
      return engine.get(name, key)
    },
    put: async (row, condition) => {
      open()
      return engine.put(name, checkRow(row), condition)
    },
    delete: async (key, condition) => {
      open()
      checkKey(key)
      return engine.delete(name, key, condition)
    },
    list: async (query) => {
      open()
      return engine.list(name, checkQuery(query))
    },
    similar: async (terms, limit) => {
      open()
      const known = checkTerms(terms).slice(0, limits.similarTerms)
      return known.length === 0 ? [] : engine.similar(name, known, checkLimit(limit))
    },
    size: async () => {
      open()
      return engine.size(name)
    },
    evict: async (bounds) => {
      open()
      const keys: string[] = []
      for (let part = 0; part < mostParts; part++) {
        const more = await engine.evict(name, bounds)
        if (more.length === 0) break
        keys.push(...more)
      }
      return keys
    },
  }
}
