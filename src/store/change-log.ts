import { randomUUID } from 'node:crypto'
import { sleep } from '../core/kit/sleep.ts'
import type { Log } from '../core/log.ts'
import type { Change } from '../core/provider.ts'
import type { SharedChanges } from '../core/shared-changes.ts'
import { createOutgoing } from './change-log-outgoing.ts'
import { createReader } from './change-log-reader.ts'
import type { Store } from './store.ts'

/** The collection of the log. Each row holds the changes that one process told at one time. */
const collection = 'changes'

export interface ChangeLogOptions {
  readonly store: Store
  readonly log?: Log
  /** How long a row is kept, in milliseconds. A process that was away for half of it learns that everything may have changed. Default 120,000. */
  readonly keepMs?: number
  /** Interval at which the log is read without a notification, in milliseconds. Default 15,000. */
  readonly beatMs?: number
  /** Time after which the lease of a process that died is free, in milliseconds. Default 6,000. */
  readonly leaseMs?: number
}

type Hear = (changes: readonly Change[]) => void

/**
 * A log of changes in the store, by which processes tell each other. The table is the truth: a notification of the store only
 * causes it to be read. The store serializes the writes to a collection, so rows become visible in the order of their
 * revisions and a reader that reads from its last revision on misses none.
 */
export function createChangeLog(options: ChangeLogOptions): SharedChanges {
  const { store, log = () => {}, keepMs = 120_000, beatMs = 15_000, leaseMs = 6000 } = options
  const rows = store.collection(collection)
  const origin = randomUUID()
  const followers = new Map<string, Set<Hear>>()
  const closing = new AbortController()
  const outgoing = createOutgoing({ rows, origin, log, signal: closing.signal })
  /** Whether the log could not be opened. */
  let unopened = false
  let started: Promise<void> | undefined

  const tell = (source: string, changes: readonly Change[]) => {
    for (const hear of followers.get(source) ?? []) hear(changes)
  }
  const tellAll = () => {
    for (const source of followers.keys()) tell(source, [{}])
  }

  const reader = createReader({ rows, origin, keepMs, log, signal: closing.signal, tell, tellAll })

  const start = async (): Promise<void> => {
    const { signal } = closing
    const news = await store.watch(collection, signal)
    unopened = false
    const followNews = async () => {
      for await (const _ of news) await reader.readUntilDone(signal)
    }
    const beat = async () => {
      for (let beats = 0; !signal.aborted; beats++) {
        await sleep(beatMs * (0.9 + Math.random() * 0.2), signal)
        if (signal.aborted) return
        await reader.readUntilDone(signal)
        if (beats % 4 === 0) await rows.evict({ age: keepMs }).catch(() => {})
      }
    }
    const first = reader.read().catch(() => void reader.readUntilDone(signal))
    const fail = (error: unknown) =>
      log('error', 'the changes of the other replicas are not followed any more', { error })
    followNews().catch(fail)
    beat().catch(fail)
    await first
  }
  const begin = (): Promise<void> => {
    started ??= start().catch((error: unknown) => {
      started = undefined
      unopened = true
      throw error
    })
    return started
  }

  return {
    publish: outgoing.publish,
    follow: async (source, hear) => {
      const heard = followers.get(source) ?? new Set()
      followers.set(source, heard.add(hear))
      const stop = () => {
        heard.delete(hear)
        if (heard.size === 0 && followers.get(source) === heard) followers.delete(source)
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
