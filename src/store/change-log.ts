import { randomUUID } from 'node:crypto'
import { sleep, withResolvers } from '../core/kit/abort.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { Log } from '../core/log.ts'
import type { Change } from '../core/provider.ts'
import type { SharedChanges } from '../core/shared.ts'
import { createChangeLogReader, type ReaderOptions, retryUntilDone, rowValueOf } from './change-log-reader.ts'
import type { NewRow, Store } from './store.ts'

/** The collection of the log. Each row contains the changes that one process wrote at one time. */
const collection = 'changes'

export interface ChangeLogOptions {
  readonly store: Store
  readonly log?: Log
  /** How long a row is kept, in milliseconds. A process that has not read the log for half of it gets a change of everything. Default 120,000. */
  readonly keepMs?: number
  /** Interval at which the log is read even without a notification, in milliseconds. Default 15,000. */
  readonly readIntervalMs?: number
  /** Time after which the lease of a process that died is free, in milliseconds. Default 6,000. */
  readonly leaseMs?: number
}

/**
 * A log of changes in the store, by which processes notify each other. The store serializes the writes to a collection, so rows become
 * visible in the order of their revisions, and a reader that continues from its last revision misses none.
 */
export function createChangeLog(options: ChangeLogOptions): SharedChanges {
  const { store, log = () => {}, keepMs = 120_000, readIntervalMs = 15_000, leaseMs = 6000 } = options
  const rows = store.collection(collection)
  const origin = randomUUID()
  const followers = new Map<string, Set<(changes: readonly Change[]) => void>>()
  const closing = new AbortController()
  const outgoing = createOutgoing({ rows, origin, log, signal: closing.signal })
  let unopened = false

  const tell = (source: string, changes: readonly Change[]) => {
    for (const hear of followers.get(source) ?? []) hear(changes)
  }
  const tellAll = () => {
    for (const source of followers.keys()) tell(source, [{}])
  }

  const reader = createChangeLogReader({ rows, origin, keepMs, log, signal: closing.signal, tell, tellAll })

  const begin = doneOnce(async (): Promise<void> => {
    const { signal } = closing
    const news = await store.watch(collection, signal).catch((error: unknown) => {
      unopened = true
      throw error
    })
    unopened = false
    const readUntilDone = () => retryUntilDone(reader.read, signal)
    const followNews = async () => {
      for await (const _ of news) await readUntilDone()
    }
    const beat = async () => {
      for (let beats = 0; !signal.aborted; beats++) {
        await sleep(readIntervalMs * (0.9 + Math.random() * 0.2), signal)
        if (signal.aborted) return
        await readUntilDone()
        if (beats % 4 === 0) await rows.evict({ age: keepMs }).catch(() => {})
      }
    }
    const first = reader.read().catch(() => void readUntilDone())
    const fail = (error: unknown) => log('error', 'the changes of the other replicas are no longer followed', { error })
    followNews().catch(fail)
    beat().catch(fail)
    await first
  })

  return {
    publish: outgoing.publish,
    follow: async (source, hear) => {
      const listeners = followers.get(source) ?? new Set()
      followers.set(source, listeners.add(hear))
      const stop = () => {
        listeners.delete(hear)
        if (listeners.size === 0 && followers.get(source) === listeners) followers.delete(source)
      }
      try {
        await begin()
        return stop
      } catch (error) {
        stop()
        throw error
      }
    },
    catchUp: async () => {
      await begin()
      await reader.read()
    },
    lease: (name) => store.lease(`changes/${name}`, leaseMs),
    get behind() {
      return unopened || reader.behind
    },
    close: async () => {
      await outgoing.close()
      closing.abort()
      followers.clear()
    },
  }
}

/** Minimum time between two rows, in milliseconds: changes in between go into one row (throttle). */
const spacingMs = 20
/** How long `publish` waits for a row, and `close` for the last one, in milliseconds. */
const patienceMs = 2000
/** Maximum number of waiting changes of a source. Beyond it, everything of the source counts as changed. */
const maxWaiting = 10_000

/** The changes that go into the next row, and a promise that resolves when it is written. */
const createBatch = () => ({ changes: new Map<string, readonly Change[]>(), ...withResolvers<void>() })

function createOutgoing({ rows, origin, log, signal }: Omit<ReaderOptions, 'keepMs' | 'tell' | 'tellAll'>) {
  let waiting: ReturnType<typeof createBatch> | undefined
  let last: Promise<void> = Promise.resolve()
  let count = 0
  let isWriting = false
  let failing = false

  const add = (source: string, changes: readonly Change[]): Promise<void> => {
    waiting ??= createBatch()
    const earlier = waiting.changes.get(source) ?? []
    const isEverything = earlier.length + changes.length > maxWaiting
    waiting.changes.set(source, isEverything ? [{}] : [...earlier, ...changes])
    last = waiting.promise
    return last
  }
  const putRow = async (row: NewRow): Promise<void> => {
    try {
      await rows.put(row)
      failing = false
    } catch (error) {
      if (!failing) log('warn', 'the other replicas cannot be notified of changes now', { error })
      failing = true
      throw error
    }
  }
  const write = async (): Promise<void> => {
    isWriting = true
    for (let batch = waiting; batch !== undefined && !signal.aborted; batch = waiting) {
      waiting = undefined
      const row = { key: `${origin}/${++count}`, value: rowValueOf(batch.changes) }
      await retryUntilDone(() => putRow(row), signal)
      batch.resolve()
      await sleep(spacingMs, signal)
    }
    isWriting = false
  }

  return {
    publish: async (source: string, changes: readonly Change[]): Promise<boolean> => {
      if (changes.length === 0) return true
      const writing = add(source, changes)
      if (!isWriting) void write()
      return Promise.race([writing.then(() => true), sleep(patienceMs).then(() => false)])
    },
    close: (): Promise<void> => Promise.race([last, sleep(patienceMs)]),
  }
}
