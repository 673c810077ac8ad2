import type { RemoteView } from '../../client/index.ts'
import { isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { foreignUriOf, pathOfForeign } from '../../core/foreign.ts'
import { followAbortFor, untilAborted } from '../../core/kit/abort.ts'
import { createSlices, sortInSlices } from '../../core/kit/event-loop-yield.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { firstIndex, pairedItems } from '../../core/kit/sorted.ts'
import type { Log } from '../../core/log.ts'
import { comparePaths } from '../../core/path.ts'
import type { Entry, ListQuery } from '../../core/provider.ts'
import { directoryMimeType, type Resource } from '../../core/view.ts'
import { type RemoteEntry, toRemoteEntry } from './entries.ts'
import { toListError } from './session.ts'

export interface ServerSnapshot {
  /** In path order. */
  readonly known: readonly RemoteEntry[]
  readonly taken: number
  /** Whether the server relays resources of this server. Then a change of one of them comes back to this server. */
  readonly circular: boolean
}

const maxPages = 20_000
/** Maximum total length of a cached listing, in characters. */
const maxLength = 256 * 1024 * 1024

/**
 * Lists a server completely.
 *
 * @param maxTime Time-out of the whole listing, in milliseconds.
 * @throws ResourceError `too-large` for a listing that does not end within the bounds; errors of the view.
 */
export async function takeSnapshot(
  view: RemoteView,
  { mark, log, signal }: { readonly mark: string; readonly log: Log; readonly signal: AbortSignal },
  maxResources: number,
  maxTime: number,
): Promise<ServerSnapshot> {
  const time = Date.now()
  const start = performance.now()
  const entries = new Map<string, RemoteEntry>()
  const slices = createSlices()
  let length = 0
  let count = 0
  let back = 0
  let pages = 0
  for await (const { items, nextCursor } of iteratePages((query) => view.list(query, { signal }), {
    maxPages: maxPages + 1,
  })) {
    signal.throwIfAborted()
    count += items.length
    if (count > maxResources) throw endless(`it has over ${maxResources} resources`, 'maxResources')
    for (const resource of items) {
      const entry = toRemoteEntry(resource, mark)
      if (entry === undefined) back++
      else if (!entries.has(entry.entry.path)) {
        entries.set(entry.entry.path, entry)
        length += lengthOf(entry)
      }
      if (slices.due()) await slices.rest()
    }
    if (length > maxLength) throw endless(`it is longer than ${maxLength} characters`)
    if (nextCursor === undefined) break
    if (++pages > maxPages) throw endless(`it has over ${maxPages} pages`)
    if (performance.now() - start > maxTime) throw endless(`it took over ${maxTime} ms`)
  }
  if (back > 0) log('warn', 'the server lists resources of this server: they are left out', { resources: back })
  const sortedEntries = await sortInSlices(
    [...entries.values()],
    (a, b) => comparePaths(a.entry.path, b.entry.path),
    slices,
  )
  return { known: sortedEntries, taken: time, circular: back > 0 }
}

function endless(what: string, option?: string): ResourceError {
  const advice = option === undefined ? '' : ` Raise "${option}" to list more.`
  return new ResourceError('too-large', `The listing is cut off: ${what}.${advice}`)
}

function lengthOf({ uri, entry }: RemoteEntry): number {
  const icons = entry.icons?.reduce((sum, { src }) => sum + src.length, 0) ?? 0
  return (
    2 * uri.length + (entry.name?.length ?? 0) + (entry.title?.length ?? 0) + (entry.description?.length ?? 0) + icons
  )
}

export function* entriesIn({ known }: ServerSnapshot, { prefix = '', after }: ListQuery): Generator<RemoteEntry> {
  const isBehind = after !== undefined && comparePaths(after, prefix) >= 0
  for (let at = isBehind ? firstAfter(known, after) : firstFrom(known, prefix); ; at++) {
    const next = known[at]
    if (next === undefined || !next.entry.path.startsWith(prefix)) return
    yield next
  }
}

export function entryAt({ known }: ServerSnapshot, path: string): RemoteEntry | undefined {
  const entry = known[firstFrom(known, path)]
  return entry?.entry.path === path ? entry : undefined
}

function firstFrom(entries: readonly RemoteEntry[], path: string): number {
  return firstIndex(0, entries.length, (index) => comparePaths(entries[index]?.entry.path ?? '', path) >= 0)
}

function firstAfter(entries: readonly RemoteEntry[], path: string): number {
  return firstIndex(0, entries.length, (index) => comparePaths(entries[index]?.entry.path ?? '', path) > 0)
}

export async function* diffServerSnapshots(before: ServerSnapshot, now: ServerSnapshot): AsyncGenerator<string> {
  const slices = createSlices()
  for (const { path, old, fresh } of pairedItems(before.known, now.known, ({ entry }) => entry.path)) {
    if (old === undefined || fresh === undefined || JSON.stringify(old.entry) !== JSON.stringify(fresh.entry))
      yield path
    if (slices.due()) await slices.rest()
  }
}

/** Number of children of a directory from which on no further page is read. */
const maxChildren = 100_000

/**
 * Returns the direct children of a directory as the server reads it, in path order: some servers have more entries than they
 * list. Empty when the server does not read directories, or lists all their entries.
 */
export async function readServerChildren(
  view: RemoteView,
  prefix: string,
  { mark, signal }: { readonly mark: string; readonly signal: AbortSignal },
): Promise<readonly Entry[]> {
  const uri = view.readsDirectories === false || view.isOurs ? undefined : foreignUriOf(prefix)
  if (uri === undefined) return []
  // Try without and with the final slash: servers name directories in both forms.
  for (const spelled of [uri.replace(/([^/])\/$/, '$1'), uri]) {
    try {
      return await readDirectory(view, spelled, prefix, { mark, signal })
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'not-found') && !isResourceError(error, 'invalid')) throw error
    }
  }
  return []
}

async function readDirectory(
  view: RemoteView,
  uri: string,
  prefix: string,
  { mark, signal }: { readonly mark: string; readonly signal: AbortSignal },
): Promise<readonly Entry[]> {
  const entries = new Map<string, Entry>()
  const slices = createSlices()
  for await (const { items } of iteratePages((query) => view.directory({ uri, ...query }, { signal }))) {
    for (const resource of items) {
      const entry = toSnapshotEntry(resource, mark)
      if (entry !== undefined && isIn(prefix, entry.path)) entries.set(entry.path, entry)
      if (slices.due()) await slices.rest()
    }
    if (entries.size >= maxChildren) break
  }
  return sortInSlices([...entries.values()], (a, b) => comparePaths(a.path, b.path), slices)
}

function toSnapshotEntry(resource: Resource, mark: string): Entry | undefined {
  if (resource.mimeType !== directoryMimeType) return toRemoteEntry(resource, mark)?.entry
  return { path: `${pathOfForeign(resource.uri.replace(/\/$/, ''))}/`, mimeType: directoryMimeType }
}

function isIn(prefix: string, path: string): boolean {
  const rest = path.slice(prefix.length)
  return path.startsWith(prefix) && rest !== '' && !rest.slice(0, -1).includes('/')
}

/** Merges two sorted listings; of a duplicate, the first is taken. */
export function* mergeEntries(resources: Iterable<RemoteEntry>, more: readonly Entry[]): Generator<Entry> {
  let at = 0
  for (const { entry } of resources) {
    for (let next = more[at]; next !== undefined; next = more[++at]) {
      const order = comparePaths(next.path, entry.path)
      if (order > 0) break
      if (order < 0) yield next
    }
    yield entry
  }
  yield* more.slice(at)
}

export type SnapshotKeeper<T> = ReturnType<typeof createSnapshotKeeper<T>>

/**
 * Cache of a value that takes long to fetch from a server.
 *
 * @param refreshMs How long a fetched value is valid, in milliseconds.
 * @param waitTimeoutMs Time-out of a waiting caller, in milliseconds. It also ends a deadlock with a server that waits for this one.
 */
export function createSnapshotKeeper<T>(fetch: () => Promise<T>, refreshMs: number, waitTimeoutMs: number) {
  let last: { readonly value: T; readonly from: number } | undefined
  let fetching: Promise<T> | undefined
  let missed = false

  const begin = (): Promise<T> => {
    const from = performance.now()
    const own = fetch().then((value) => {
      last = { value, from }
      return value
    })
    fetching = own
    const end = () => {
      if (fetching === own) fetching = undefined
    }
    own.then(end, end)
    return own
  }

  const waitFor = async (work: Promise<T>, signal: AbortSignal, answerBy = Number.POSITIVE_INFINITY): Promise<T> => {
    const leftMs = last === undefined ? Math.max(0, answerBy - performance.now()) : waitTimeoutMs
    const own = followAbortFor(signal, Math.min(waitTimeoutMs, leftMs))
    try {
      return await untilAborted(work, own.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (isResourceError(error) || !own.signal.aborted) throw error
      if (last !== undefined) return last.value
      missed = true
      throw unavailable('The resources of the server are still being listed. Try again later.', { retryAfter: 2 })
    } finally {
      own.release()
    }
  }

  const keeper = {
    /** Whether changes are notified, so that the cached value stays valid without a check. */
    told: false,
    /** Value of the last fetch, however old; undefined before the first. */
    get last(): T | undefined {
      return last?.value
    },
    /** Returns whether, since the last call of this function, a caller got an error because there was no value yet. */
    takeMissed: (): boolean => {
      const was = missed
      missed = false
      return was
    },
    /**
     * Returns the current value. Concurrent callers share one fetch, and a caller that aborts does not end it.
     *
     * @param answerBy Time until which to wait for the first value, on the clock of `performance.now()`.
     *
     * @throws ResourceError the error of the fetch; `unavailable` if it takes longer than the time-out, and no older value is there.
     */
    current: async (signal: AbortSignal, answerBy?: number): Promise<T> => {
      signal.throwIfAborted()
      if (last !== undefined && (keeper.told || performance.now() - last.from < refreshMs)) return last.value
      return waitFor(fetching ?? begin(), signal, answerBy)
    },
    renew: async (signal: AbortSignal) => {
      // A fetch in progress may have read the data before the change.
      await fetching?.catch(() => {})
      signal.throwIfAborted()
      const before = last?.value
      return { before, now: await untilAborted(fetching ?? begin(), signal) }
    },
  }
  return keeper
}

/** @throws ResourceError `unavailable` if the server cannot be listed. */
export async function currentOf<T>(keeper: SnapshotKeeper<T>, signal: AbortSignal, answerBy?: number): Promise<T> {
  try {
    return await keeper.current(signal, answerBy)
  } catch (error) {
    signal.throwIfAborted()
    throw toListError(error)
  }
}
