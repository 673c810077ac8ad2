import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { isResourceError } from '../core/errors.ts'
import { followAbortFor, sleep } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { MountReader } from '../core/mount-reader.ts'
import { defaultIndexedBytes } from '../core/search-answer.ts'
import type { FeedStatus, MountProgress } from '../core/tool.ts'
import type { Lease, Store } from '../store/store.ts'
import { isInMount, shortDigest } from './feed-documents.ts'
import { createMountFeed, type MountFeed, type MountFeedOptions } from './feed-mount.ts'

export interface IndexedMount {
  readonly mount: MountReader
  readonly way: string
}

interface FeedOptions
  extends Pick<MountFeedOptions, 'index' | 'window' | 'scrubber' | 'log'>,
    Partial<Pick<MountFeedOptions, 'maxBytes' | 'intervalMs' | 'maxParts'>> {
  readonly mounts: readonly IndexedMount[]
  /** Store of the index. One of the processes that share it feeds the index. */
  readonly store: Store
  /** Name of the index within the store. */
  readonly name: string
  /** Time after which another process takes over from one that died, in milliseconds. Default 5,000. */
  readonly leaseMs?: number
}

const progressIntervalMs = 1000
const staleTells = 10
const firstWaitMs = 1000
/** Maximum number of abort listeners of the feed of one mount. */
const listenersPerMount = 10
const maxWaitMs = 30_000

/** Reads the progress of the feed of an index from its store. Undefined: no process has written it lately. */
export async function readFeedStatus(store: Store, name: string): Promise<FeedStatus | undefined> {
  const row = await store.collection(collectionName).get(name)
  if (row === undefined) return undefined
  const status = JSON.parse(Buffer.from(row.value).toString()) as FeedStatus
  return Date.now() - row.modified > progressIntervalMs * staleTells ? undefined : status
}

const collectionName = 'search-feeds'

/**
 * Returns the time at which the whole index was last current, in milliseconds since 1970, and the progress of each mount at that time.
 * `undefined`: the index has never been current, or the mounts or their settings have changed since.
 */
export async function readLastCurrent(
  store: Store,
  name: string,
  mounts: readonly IndexedMount[],
): Promise<LastCurrent | undefined> {
  const row = await store.collection(currentName).get(name)
  if (row === undefined) return undefined
  const { ways, ...last } = JSON.parse(Buffer.from(row.value).toString()) as CurrentRow
  return ways === waysOf(mounts) ? last : undefined
}

interface LastCurrent {
  readonly at: number
  readonly mounts: readonly MountProgress[]
}

interface CurrentRow extends LastCurrent {
  readonly ways: string
}

const currentName = 'search-current'

/** The collection of the questions by which a process asks the feeding one to catch up. */
const asksName = 'search-asks'
/** Interval at which the asking process looks for the answer, in milliseconds. */
const askIntervalMs = 20
/** Maximum age of a question, and maximum time of the work on it, in milliseconds. */
const askMs = 30_000

/** Asks the process that feeds an index to catch up. Resolves to whether every change before the call is indexed; `false` if no process feeds. */
export async function askToCatchUp(
  store: Store,
  name: string,
  addresses: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const asks = store.collection(asksName)
  const key = `${name}/${randomUUID()}`
  try {
    if ((await readFeedStatus(store, name)) === undefined) return false
    const value = Buffer.from(JSON.stringify({ addresses }))
    await asks.put({ key, value, expires: Date.now() + askMs })
    while (!signal.aborted) {
      const row = await asks.get(key)
      const { isDone } = row === undefined ? { isDone: false } : (JSON.parse(Buffer.from(row.value).toString()) as Ask)
      if (isDone !== undefined) return isDone
      await sleep(askIntervalMs, signal)
    }
    return false
  } catch (error) {
    if (isResourceError(error)) return false
    throw error
  } finally {
    await asks.delete(key).catch(() => {})
  }
}

interface Ask {
  readonly addresses?: readonly string[]
  /** The answer: whether every change before the question is indexed. Undefined: not answered yet. */
  readonly isDone?: boolean
}

/** Answers the questions of other processes until the signal aborts. */
async function answerAsks(
  store: Store,
  name: string,
  catchUp: (addresses: readonly string[] | undefined, signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const asks = store.collection(asksName)
  const begun = new Set<string>()
  const answer = async (key: string, { addresses }: Ask): Promise<void> => {
    const time = followAbortFor(signal, askMs)
    const isDone = await catchUp(addresses, time.signal).finally(time.release)
    await asks.put({ key, value: Buffer.from(JSON.stringify({ isDone })), expires: Date.now() + askMs })
  }
  const news = await store.watch(asksName, signal)
  const lookAt = async (): Promise<void> => {
    const rows = await asks.list({ prefix: `${name}/`, limit: mostAsks, values: true })
    for (const { key, value } of rows) {
      const ask = JSON.parse(Buffer.from(value).toString()) as Ask
      if (ask.isDone !== undefined || begun.has(key)) continue
      begun.add(key)
      answer(key, ask)
        .catch(() => {})
        .finally(() => begun.delete(key))
    }
  }
  await lookAt()
  for await (const _ of news) await lookAt()
}

/** Maximum number of questions that are read at once. */
const mostAsks = 100

/** Returns a digest that changes whenever the indexed mounts or their settings do. */
function waysOf(mounts: readonly IndexedMount[]): string {
  return shortDigest(JSON.stringify(mounts.map(({ mount, way }) => [mount.address, way]).sort()))
}

function currentUntil({ state, changes, degraded, since }: MountProgress): number | undefined {
  if (state !== 'current' || degraded !== undefined) return undefined
  return changes === 'watched' ? Date.now() : since
}

/** Keeps an index up to date with its sources. If another process feeds it, it begins when that one ends. */
export function startFeed(options: FeedOptions) {
  const { index, store, name, log, leaseMs = 5000 } = options
  const endController = new AbortController()
  let feeding: readonly MountFeed[] | undefined
  /** Progress written by another process, which feeds the index. */
  let others: FeedStatus | undefined
  /** Whether the process that feeds the index has not been decided yet. */
  let isStarting = true

  const feed = async (lease: Lease): Promise<void> => {
    const signal = AbortSignal.any([endController.signal, lease.signal])
    // Each mount adds a listener, and Node warns above ten.
    setMaxListeners(listenersPerMount * (options.mounts.length + 1), signal)
    let last: readonly MountProgress[] = []
    // The progress is noted at the abort, while the state of the mounts is known.
    const note = () => {
      last = (feeding ?? []).map((mount) => mount.progress())
    }
    signal.addEventListener('abort', note, { once: true })
    try {
      await removeOthers(index, options.mounts, signal)
      const rest = { maxBytes: defaultIndexedBytes, intervalMs: 60_000, maxParts: 10_000, ...options }
      feeding = options.mounts.map(({ mount, way }) => createMountFeed({ ...rest, mount, way }))
      isStarting = false
      await Promise.all([
        ...feeding.map((mount) => mount.run(signal)),
        storeProgress({ store, name }, feeding, signal),
        answerAsks(store, name, catchUpHere, signal),
      ])
    } finally {
      await storeCurrent(options, last).catch(() => {})
      feeding = undefined
      // The stored progress is not valid after this process has stopped feeding.
      await store
        .collection(collectionName)
        .delete(name)
        .catch(() => {})
      await lease.release().catch(() => {})
    }
  }

  const run = async (): Promise<void> => {
    let waitMs = firstWaitMs
    while (!endController.signal.aborted) {
      try {
        const lease = await store.lease(`search/${name}`, leaseMs)
        if (lease !== undefined) {
          others = undefined
          await feed(lease)
        }
        others = await readFeedStatus(store, name)
        isStarting = false
        waitMs = firstWaitMs
        await sleep(firstWaitMs, endController.signal)
      } catch (error) {
        if (endController.signal.aborted) return
        others = undefined
        isStarting = false
        log('warn', 'an index cannot be updated now', { index: name, error })
        await sleep(waitMs, endController.signal)
        waitMs = Math.min(waitMs * 2, maxWaitMs)
      }
    }
  }
  const running = run()

  const catchUpHere = async (addresses: readonly string[] | undefined, signal: AbortSignal): Promise<boolean> => {
    const all = feeding?.filter(({ address }) => addresses?.includes(address) !== false) ?? []
    const caughtUp = await Promise.all(all.map((mount) => mount.catchUp(signal)))
    return caughtUp.every((isDone) => isDone)
  }

  return {
    /**
     * The progress of this process; if another process feeds the index, its last written progress. `undefined`: no process feeds the index.
     */
    status: async (): Promise<FeedStatus | undefined> => {
      const status = feeding === undefined ? await readFeedStatus(store, name) : undefined
      if (feeding !== undefined) return statusOf(feeding)
      return status ?? (isStarting ? waitingStatus(options.mounts) : undefined)
    },
    /**
     * How far the index of a mount is behind its source, by the changes of paths that count. Undefined if this process does not feed it.
     */
    freshnessOf: (address: string, isCounted?: (path: string) => boolean) =>
      feeding?.find((mount) => mount.address === address)?.freshnessOf(isCounted),
    catchUp: async (addresses: readonly string[] | undefined, signal: AbortSignal): Promise<boolean> => {
      while (isStarting && !signal.aborted) await sleep(askIntervalMs, signal)
      return feeding === undefined ? askToCatchUp(store, name, addresses, signal) : catchUpHere(addresses, signal)
    },
    /** Whether the index of a mount equals its source, as far as this process knows. */
    isCurrent: (address: string): boolean =>
      (feeding?.map((mount) => mount.progress()) ?? others?.mounts ?? []).some(
        ({ address: at, state, changes, degraded }) =>
          at === address && state === 'current' && changes === 'watched' && degraded === undefined,
      ),
    close: async (): Promise<void> => {
      endController.abort()
      await running
    },
  }
}

function statusOf(mounts: readonly MountFeed[]): FeedStatus {
  return { told: Date.now(), mounts: mounts.map((mount) => mount.progress()) }
}

function waitingStatus(mounts: readonly IndexedMount[]): FeedStatus {
  return {
    told: Date.now(),
    mounts: mounts.map(({ mount }) => ({
      address: mount.address,
      state: 'waiting',
      since: Date.now(),
      looked: 0,
      indexed: 0,
      changes: mount.watch === undefined ? 'compared' : 'watched',
    })),
  }
}

/** Removes documents of mounts that are no longer indexed. */
async function removeOthers(
  index: FeedOptions['index'],
  mounts: readonly IndexedMount[],
  signal: AbortSignal,
): Promise<void> {
  const addresses = mounts.map(({ mount }) => mount.address)
  let after: string | undefined
  for (;;) {
    signal.throwIfAborted()
    const page = await index.documents({ limit: 200, ...defined({ after }) })
    const others: string[] = []
    let last = page.at(-1)?.uri
    for (const { uri } of page) {
      const address = addresses.find((one) => isInMount(uri, one))
      if (address === undefined) others.push(uri)
      else if (uri !== address) {
        // All URIs from here to the end of the mount's range belong to the mount.
        last = `${address}/\u{10ffff}`
        break
      }
    }
    if (others.length > 0) await index.remove(others)
    if (last === undefined) return
    after = last
  }
}

/** Stores the progress for other processes until the signal aborts. */
async function storeProgress(
  { store, name }: Pick<FeedOptions, 'store' | 'name'>,
  mounts: readonly MountFeed[],
  signal: AbortSignal,
): Promise<void> {
  const collection = store.collection(collectionName)
  let before = ''
  let last = 0
  while (!signal.aborted) {
    const status = statusOf(mounts)
    const states = status.mounts.map(({ state }) => state).join()
    const age = performance.now() - last
    // A changed state is written at once, and other changes after the interval.
    if (states !== before || age >= progressIntervalMs) {
      const row = { key: name, value: Buffer.from(JSON.stringify(status)) }
      const isTold = await collection.put(row).then(
        () => true,
        () => false,
      )
      before = isTold ? states : ''
      last = performance.now()
    }
    await sleep(progressIntervalMs / 10, signal)
  }
}

/** Stores the time until which the index was current. */
async function storeCurrent(
  { store, name, mounts: indexed }: Pick<FeedOptions, 'store' | 'name' | 'mounts'>,
  mounts: readonly MountProgress[],
): Promise<void> {
  const times = mounts.map(currentUntil)
  if (times.length === 0 || !times.every((time) => time !== undefined)) return
  const row: CurrentRow = { at: Math.min(...times), mounts, ways: waysOf(indexed) }
  await store.collection(currentName).put({ key: name, value: Buffer.from(JSON.stringify(row)) })
}

export type IndexFeed = ReturnType<typeof startFeed>
