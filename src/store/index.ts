import { randomUUID } from 'node:crypto'
import type { Engine } from './engine.ts'
import type { StoreOptions } from './options.ts'
import {
  checkCollection,
  checkKey,
  checkLease,
  createEngineTexts,
  leasesCollection,
  normalizeLimit,
  normalizeQuery,
  normalizeRow,
  normalizeTerms,
  storeError,
  storeLimits,
} from './rules.ts'
import type { Collection, Lease, Store } from './store.ts'

export { type ChangeLogOptions, createChangeLog } from './change-log.ts'
export { resultsInStore } from './long-results.ts'
export { type OnceOptions, once } from './once.ts'
export type { PostgresStore, SqliteStore, StoreOptions } from './options.ts'
export type { Collection, NewRow, Row, Store } from './store.ts'
export type {
  FoundPart,
  NewText,
  PartQuery,
  TextEntry,
  TextFilter,
  TextSet,
  Texts,
  WeightedTerm,
} from './texts.ts'

/**
 * Opens a store. If the engine does not answer, opening succeeds, and requests fail with `unavailable` until it answers.
 *
 * @throws ResourceError `invalid` for a fault that an operator must correct: a file that is a link or belongs to another program, tables
 *   of a newer version, a malformed connection string.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const log = options.log ?? (() => {})
  if ('sqlite' in options) {
    const { openSqlite } = await import('./sqlite.ts')
    return storeOver(await openSqlite(options.sqlite, log))
  }
  const { openPostgres } = await import('./postgres.ts')
  return storeOver(await openPostgres(options.postgres, log))
}

function storeOver(engine: Engine): Store {
  const releases = new Set<() => Promise<void>>()
  let closed: Promise<void> | undefined

  const open = () => {
    if (closed !== undefined) throw storeError('gone', 'closed')
  }

  return {
    collection: (name) => {
      checkCollection(name)
      return collectionOf(engine, name, open)
    },
    texts: (name) => {
      checkCollection(name)
      return createEngineTexts(engine, name, open)
    },
    lease: async (name, ttlMs) => {
      open()
      checkLease(name, ttlMs)
      const lease = await holdLease(engine, name, ttlMs)
      if (lease === undefined) return undefined
      releases.add(lease.release)
      const forget = () => void releases.delete(lease.release)
      lease.signal.addEventListener('abort', forget, { once: true })
      return { signal: lease.signal, release: () => lease.release().finally(forget) }
    },
    watch: async (collection, signal) => {
      open()
      if (collection !== leasesCollection) checkCollection(collection)
      return engine.watch(collection, signal)
    },
    close: () => {
      closed ??= Promise.allSettled([...releases].map((release) => release())).then(() => engine.close())
      return closed
    },
  }
}

/** Maximum number of steps of one eviction, so that it ends even if rows are written meanwhile. */
const mostParts = 100_000

function collectionOf(engine: Engine, name: string, open: () => void): Collection {
  return {
    get: async (key) => {
      open()
      checkKey(key)
      return engine.get(name, key)
    },
    put: async (row, condition) => {
      open()
      return engine.put(name, normalizeRow(row), condition)
    },
    delete: async (key, condition) => {
      open()
      checkKey(key)
      return engine.delete(name, key, condition)
    },
    list: async (query) => {
      open()
      return engine.list(name, normalizeQuery(query))
    },
    similar: async (terms, limit) => {
      open()
      const queryTerms = normalizeTerms(terms).slice(0, storeLimits.similarTerms)
      return queryTerms.length === 0 ? [] : engine.similar(name, queryTerms, normalizeLimit(limit))
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

/**
 * Takes a lease and renews it at a third of its time. A monotonic clock measures the time since the start of the last successful request,
 * so this process gives the lease up before the store frees it.
 */
async function holdLease(engine: Engine, name: string, ttlMs: number): Promise<Lease | undefined> {
  const holder = randomUUID()
  let renewed = performance.now()
  if (!(await engine.takeLease(name, holder, ttlMs))) return undefined
  const lossController = new AbortController()
  let isEnded = false
  let timer: NodeJS.Timeout | undefined
  let end: NodeJS.Timeout | undefined

  const stop = () => {
    isEnded = true
    clearTimeout(timer)
    clearTimeout(end)
  }
  const lose = () => {
    if (isEnded) return
    stop()
    lossController.abort()
    // The last request may still have renewed the lease at the store.
    engine.dropLease(name, holder).catch(() => {})
  }
  const wait = (ms: number) => {
    timer = setTimeout(renew, ms)
    timer.unref()
  }
  const expect = () => {
    clearTimeout(end)
    end = setTimeout(lose, renewed + ttlMs - performance.now())
    end.unref()
  }
  const renew = async () => {
    const start = performance.now()
    const isHeld = await engine.renewLease(name, holder, ttlMs).catch(() => undefined)
    if (isEnded) return
    if (isHeld === false) return lose()
    if (isHeld === true) {
      renewed = start
      expect()
    }
    wait(isHeld === true ? ttlMs / 3 : Math.min(ttlMs / 10, 1000))
  }
  expect()
  wait(ttlMs / 3)

  return {
    signal: lossController.signal,
    release: async () => {
      if (isEnded) return
      stop()
      await engine.dropLease(name, holder)
    },
  }
}
