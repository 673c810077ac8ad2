import { setMaxListeners } from 'node:events'
import { sleep } from '../core/kit/abort.ts'
import { defined } from '../core/kit/defined.ts'
import type { Log } from '../core/log.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Scrubber } from '../core/scrub.ts'
import type { Lease, Store } from '../store/store.ts'
import { digestOf, isOf } from './feed-document.ts'
import { createFeedMount, type FeedMount } from './feed-mount.ts'
import type { FeedStatus, MountProgress } from './feed-status.ts'
import type { SearchIndex } from './search-index.ts'

export interface FedMount {
  readonly mount: MountReader
  /** Changes whenever the same source is to be read in another way. */
  readonly way: string
}

export interface FeedOptions {
  readonly index: SearchIndex
  readonly mounts: readonly FedMount[]
  /** Store of the index. Of the processes that share it, one feeds the index and writes its progress for the others. */
  readonly store: Store
  /** Name of the index within the store. */
  readonly name: string
  /** Maximum length of the indexed beginning of a text, in bytes. Default 1 MiB. */
  readonly maxBytes?: number
  /** How many documents of a mount are read at once. Default 2. */
  readonly concurrent?: number
  /** Maximum number of indexed parts of one entry, such as rows of a table. Default 10,000. */
  readonly maxParts?: number
  /** How often a mount is compared that cannot tell of changes, in milliseconds. Default 60,000. */
  readonly interval?: number
  /** How many documents of a mount that are to be read are remembered, before they are read. Default 50,000. */
  readonly window?: number
  /** How long it takes until another process takes over from one that died, in milliseconds. Default 5,000. */
  readonly leaseMs?: number
  readonly scrubber?: Scrubber
  readonly log: Log
}

/** Keeps an index up to date with its sources. */
export interface Feed {
  /** How far this process is; of another that feeds, what it told last. `undefined`: nobody feeds. */
  status(): Promise<FeedStatus | undefined>
  /** Whether what is indexed of a mount is what its source has, as far as this process knows. */
  isCurrent(address: string): boolean
  close(): Promise<void>
}

/** Interval of writing the progress, in milliseconds, and number of intervals after which its process counts as dead. */
const tellMs = 1000
const staleTells = 10
const firstWait = 1000
/** Maximum number of abort listeners of the feed of one mount: its readings, watches and timers. */
const listenersPerMount = 10
const longestWait = 30_000

/** Reads how far the feed of an index is, from the store that it is in. */
export async function readFeedStatus(store: Store, name: string): Promise<FeedStatus | undefined> {
  const row = await store.collection(collectionName).get(name)
  if (row === undefined) return undefined
  const status = JSON.parse(Buffer.from(row.value).toString()) as FeedStatus
  return Date.now() - row.modified > tellMs * staleTells ? undefined : status
}

const collectionName = 'search-feeds'

/**
 * When everything that is to be indexed was last found to be, in milliseconds since 1970, and how far each mount was then. `undefined`:
 * never, or what is to be indexed, or the way that it is read, has changed since.
 */
export async function readCurrent(
  store: Store,
  name: string,
  mounts: readonly FedMount[],
): Promise<LastCurrent | undefined> {
  const row = await store.collection(currentName).get(name)
  if (row === undefined) return undefined
  const { ways, ...last } = JSON.parse(Buffer.from(row.value).toString()) as CurrentRow
  return ways === waysOf(mounts) ? last : undefined
}

export interface LastCurrent {
  readonly at: number
  readonly mounts: readonly MountProgress[]
}

/** When an index was last current, as it is kept in the store. */
interface CurrentRow extends LastCurrent {
  readonly ways: string
}

const currentName = 'search-current'

/** Changes whenever other mounts are indexed, or one of them is read in another way. */
function waysOf(mounts: readonly FedMount[]): string {
  return digestOf(JSON.stringify(mounts.map(({ mount, way }) => [mount.address, way]).sort()))
}

/** Until when what is indexed of a mount is known to be what its source has; `undefined`: it is not. */
function currentUntil({ state, changes, degraded, since }: MountProgress): number | undefined {
  if (state !== 'current' || degraded !== undefined) return undefined
  return changes === 'watched' ? Date.now() : since
}

/** Begins to feed an index, unless another process does: then as soon as that one ends. */
export function startFeed(options: FeedOptions): Feed {
  const { index, store, name, log, leaseMs = 5000 } = options
  const { maxBytes = 2 ** 20, concurrent = 2, interval = 60_000, maxParts = 10_000, scrubber } = options
  const ended = new AbortController()
  let feeding: readonly FeedMount[] | undefined
  /** Progress written by another process, which feeds the index. */
  let others: FeedStatus | undefined
  /** Whether it is still open who feeds. */
  let isStarting = true

  const statusNow = (mounts: readonly FeedMount[]): FeedStatus => ({
    told: Date.now(),
    mounts: mounts.map((mount) => mount.progress()),
  })

  const waiting = (): FeedStatus => ({
    told: Date.now(),
    mounts: options.mounts.map(({ mount }) => ({
      address: mount.address,
      state: 'waiting',
      since: Date.now(),
      looked: 0,
      indexed: 0,
      changes: mount.watch === undefined ? 'compared' : 'watched',
    })),
  })

  /** Removes what is indexed of mounts that are no longer among those to index. */
  const removeOthers = async (signal: AbortSignal): Promise<void> => {
    const addresses = options.mounts.map(({ mount }) => mount.address)
    let after: string | undefined
    for (;;) {
      signal.throwIfAborted()
      const page = await index.documents({ limit: 200, ...defined({ after }) })
      const others: string[] = []
      let last = page.at(-1)?.uri
      for (const { uri } of page) {
        const address = addresses.find((one) => isOf(uri, one))
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

  const tell = async (mounts: readonly FeedMount[], signal: AbortSignal): Promise<void> => {
    const told = store.collection(collectionName)
    let before = ''
    let last = 0
    while (!signal.aborted) {
      const status = statusNow(mounts)
      const states = status.mounts.map(({ state }) => state).join()
      const age = performance.now() - last
      // Another state is told at once, numbers now and then, and at the latest that it is still there.
      if (states !== before || age >= tellMs) {
        const row = { key: name, value: Buffer.from(JSON.stringify(status)) }
        const isTold = await told.put(row).then(
          () => true,
          () => false,
        )
        before = isTold ? states : ''
        last = performance.now()
      }
      await sleep(tellMs / 10, signal)
    }
  }

  /** Remembers until when the index was current, for who searches it next without a feed of its own. */
  const keepCurrent = async (mounts: readonly MountProgress[]): Promise<void> => {
    const times = mounts.map(currentUntil)
    if (times.length === 0 || !times.every((time) => time !== undefined)) return
    const row: CurrentRow = { at: Math.min(...times), mounts, ways: waysOf(options.mounts) }
    await store.collection(currentName).put({ key: name, value: Buffer.from(JSON.stringify(row)) })
  }

  /** Feeds for as long as the lease is held. */
  const feed = async (lease: Lease): Promise<void> => {
    const signal = AbortSignal.any([ended.signal, lease.signal])
    // Each mount listens to it, and Node warns of more than ten listeners; a leak would still go beyond this.
    setMaxListeners(listenersPerMount * (options.mounts.length + 1), signal)
    let last: readonly MountProgress[] = []
    // Once they have ended, they no longer know.
    const note = () => {
      last = (feeding ?? []).map((mount) => mount.progress())
    }
    signal.addEventListener('abort', note, { once: true })
    try {
      await removeOthers(signal)
      const { window } = options
      const limits = { maxBytes, maxParts, concurrent, interval, ...defined({ window }) }
      const rest = { index, ...limits, log, ...defined({ scrubber }) }
      feeding = options.mounts.map(({ mount, way }) => createFeedMount({ mount, way, ...rest }))
      isStarting = false
      await Promise.all([...feeding.map((mount) => mount.run(signal)), tell(feeding, signal)])
    } finally {
      await keepCurrent(last).catch(() => {})
      feeding = undefined
      // The progress of an ended process is removed.
      await store
        .collection(collectionName)
        .delete(name)
        .catch(() => {})
      await lease.release().catch(() => {})
    }
  }

  const run = async (): Promise<void> => {
    let wait = firstWait
    while (!ended.signal.aborted) {
      try {
        const lease = await store.lease(`search/${name}`, leaseMs)
        if (lease !== undefined) {
          others = undefined
          await feed(lease)
        }
        others = await readFeedStatus(store, name)
        isStarting = false
        wait = firstWait
        await sleep(firstWait, ended.signal)
      } catch (error) {
        if (ended.signal.aborted) return
        others = undefined
        isStarting = false
        log('warn', 'an index cannot be fed just now', { index: name, error })
        await sleep(wait, ended.signal)
        wait = Math.min(wait * 2, longestWait)
      }
    }
  }
  const running = run()

  return {
    status: async () => {
      const told = feeding === undefined ? await readFeedStatus(store, name) : undefined
      if (feeding !== undefined) return statusNow(feeding)
      return told ?? (isStarting ? waiting() : undefined)
    },
    isCurrent: (address) =>
      (feeding?.map((mount) => mount.progress()) ?? others?.mounts ?? []).some(
        ({ address: at, state, changes, degraded }) =>
          at === address && state === 'current' && changes === 'watched' && degraded === undefined,
      ),
    close: async () => {
      ended.abort()
      await running
    },
  }
}
