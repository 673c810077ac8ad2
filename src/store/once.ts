import { createHash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { createAutoResetEvent, untilAborted } from '../core/kit/abort.ts'
import { storeError } from './rules.ts'
import type { Collection, Lease, NewRow, Row, Store } from './store.ts'

export interface OnceOptions {
  /** Time after which others may try if the holder has died, in milliseconds. By default 10,000. */
  readonly ttlMs?: number
  /** How long to wait for the computation of another caller, in milliseconds. By default 300,000. */
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

/** Value that is stored under the key. */
type OnceValue = Omit<NewRow, 'key'>

interface OnceOutcome {
  readonly value: Uint8Array
  /** The stored row. `undefined`: the value could not be stored, so the next caller computes it again. */
  readonly row: Row | undefined
  /** Whether this process has computed a value. If another process stored one first, `value` is nevertheless the stored one. */
  readonly computed: boolean
}

interface Shared {
  readonly outcome: Promise<OnceOutcome>
  readonly abort: AbortController
  callers: number
}

const shared = new WeakMap<Store, Map<string, Shared>>()

/**
 * Returns the row stored under a key, or computes it. Concurrent callers share one computation, across processes. If the computation fails,
 * the waiting callers of this process fail with the same error, and a caller in another process tries next. If the process dies, another
 * one tries once the lease has expired. When the store is unavailable, each process computes the value for itself.
 *
 * @param compute Receives a signal that aborts when no caller waits any more.
 * @throws The error of `compute`, the reason of the signal, or ResourceError `unavailable` when the wait was too long.
 */
export async function once(
  store: Store,
  collection: string,
  key: string,
  compute: (signal: AbortSignal) => Promise<OnceValue>,
  options: OnceOptions = {},
): Promise<OnceOutcome> {
  const { signal } = options
  signal?.throwIfAborted()
  const mine = shared.get(store) ?? new Map<string, Shared>()
  shared.set(store, mine)
  const { ttlMs = 10_000, waitMs = 300_000 } = options
  const name = leaseName(collection, key)
  const computation = { store, rows: store.collection(collection), key, compute, name, ttlMs, waitMs }
  const running = mine.get(name) ?? startComputation(mine, name, (abort) => settle(computation, abort))
  running.callers++
  try {
    return await untilAborted(running.outcome, signal)
  } finally {
    running.callers--
    if (running.callers === 0) running.abort.abort(signal?.reason)
  }
}

function startComputation(
  mine: Map<string, Shared>,
  name: string,
  run: (signal: AbortSignal) => Promise<OnceOutcome>,
): Shared {
  const abort = new AbortController()
  // A caller that arrives after all callers have left begins a new computation.
  const forget = () => mine.get(name) === sharedRun && mine.delete(name)
  const sharedRun: Shared = { outcome: run(abort.signal).finally(forget), abort, callers: 0 }
  sharedRun.outcome.catch(() => {})
  abort.signal.addEventListener('abort', forget, { once: true })
  mine.set(name, sharedRun)
  return sharedRun
}

/** The name is a digest, because names of leases have a maximum length. */
function leaseName(collection: string, key: string): string {
  return `once:${createHash('sha256')
    .update(JSON.stringify([collection, key]))
    .digest('base64url')}`
}

interface Computation {
  readonly store: Store
  readonly rows: Collection
  readonly key: string
  readonly compute: (signal: AbortSignal) => Promise<OnceValue>
  readonly name: string
  readonly ttlMs: number
  readonly waitMs: number
}

async function settle(computation: Computation, signal: AbortSignal): Promise<OnceOutcome> {
  const outcome = await lookUp(computation)
  if (outcome !== undefined) return outcome
  const end = performance.now() + computation.waitMs
  const leaving = new AbortController()
  let othersHaveEnded: ((ms: number) => Promise<void>) | undefined
  try {
    for (;;) {
      signal.throwIfAborted()
      const lease = await takeLease(computation)
      // Another process may have computed it, and released the lease, since the last look.
      const outcome = othersHaveEnded === undefined && lease === undefined ? undefined : await lookUp(computation)
      if (outcome !== undefined) {
        if (lease !== undefined && lease !== 'gone') await giveBack(lease)
        return outcome
      }
      if (lease !== undefined) return await computeHolding(computation, lease, signal)
      if (performance.now() > end) throw storeError('busy')
      // A release after this point is notified, so the next round does not miss it.
      if (othersHaveEnded === undefined)
        othersHaveEnded = await watchOthers(computation, AbortSignal.any([signal, leaving.signal]))
      else await othersHaveEnded(Math.min(computation.ttlMs, end - performance.now()))
    }
  } finally {
    leaving.abort()
  }
}

async function lookUp({ rows, key }: Computation): Promise<OnceOutcome | undefined> {
  try {
    const row = await rows.get(key)
    return row === undefined ? undefined : { value: row.value, row, computed: false }
  } catch (error) {
    if (isResourceError(error, 'invalid')) throw error
    return undefined
  }
}

/** Takes the lease of a computation. `undefined`: another process has it, or the store is busy. `gone`: the store cannot be used. */
async function takeLease({ store, name, ttlMs }: Computation): Promise<Lease | 'gone' | undefined> {
  try {
    return await store.lease(name, ttlMs)
  } catch (error) {
    if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'internal')) throw error
    return error.detail.fault === 'busy' ? undefined : 'gone'
  }
}

/** Computes the value under a lease. If the lease is lost meanwhile, a second computation may run, and the first result is kept. */
async function computeHolding(
  computation: Computation,
  lease: Lease | 'gone',
  signal: AbortSignal,
): Promise<OnceOutcome> {
  try {
    const computedValue = await computation.compute(signal)
    return (
      (await putIfAbsent(computation, computedValue)) ?? { value: computedValue.value, row: undefined, computed: true }
    )
  } finally {
    if (lease !== 'gone') await giveBack(lease)
  }
}

/** Stores a value unless there is one already, and returns the stored one. Undefined if the store cannot be used. */
async function putIfAbsent({ rows, key }: Computation, computedValue: OnceValue): Promise<OnceOutcome | undefined> {
  try {
    const newRow = await rows.put({ ...computedValue, key }, { absent: true })
    const row = newRow ?? (await rows.get(key))
    return row === undefined ? undefined : { value: row.value, row, computed: true }
  } catch (error) {
    // A computed value is returned even if it cannot be stored.
    if (isResourceError(error, 'invalid')) throw error
    return undefined
  }
}

async function giveBack(lease: Lease): Promise<void> {
  await lease.release().catch(() => {})
}

/** Returns a function that waits until the holder releases the lease, the time is over, or no caller waits any longer. */
async function watchOthers({ store, name }: Computation, signal: AbortSignal): Promise<(ms: number) => Promise<void>> {
  const news = await store.watch('leases', signal)
  const event = createAutoResetEvent()
  signal.addEventListener('abort', event.set, { once: true })
  const listen = async () => {
    for await (const names of news) if (names === undefined || names.includes(name)) event.set()
  }
  listen().catch(() => {})
  return async (ms) => {
    const timer = setTimeout(event.set, ms)
    await event.wait()
    clearTimeout(timer)
  }
}
