import type { Engine } from './engine.ts'
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
} from './rules.ts'
import type { Collection, Store } from './store.ts'
import { textsOf } from './texts-rules.ts'

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

/** How many parts an eviction has at most: what is written meanwhile as fast as it is removed is left to the next one. */
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
