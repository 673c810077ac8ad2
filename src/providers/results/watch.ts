import type { Change } from '../../core/provider.ts'
import { type Collection, type Row, rowsIn, type Store } from '../../store/store.ts'
import { recordPath, resultFolders, tagPath } from './paths.ts'
import { tagsIn } from './row.ts'

interface WatchedResult {
  readonly revision: number
  readonly tags: readonly string[]
  readonly expires: number
}

const pageSize = 1000
/** Window, in milliseconds, in which expirations are reported together. */
const togetherMs = 100
/** Maximum delay of a timer, in milliseconds, because somebody may set the clock meanwhile. */
const maxWaitMs = 60_000
/** Maximum number of changed results reported one by one. Above it, "everything changed" is reported. */
const maxReported = 1000

/**
 * Watches the results: written and removed ones, by any process, and expired ones, by the clock. Resolves when the watch has
 * begun.
 */
export async function watchResults(
  store: Store,
  name: string,
  records: Collection,
  signal: AbortSignal,
): Promise<AsyncIterable<Change>> {
  const news = await store.watch(name, signal)
  // The subscription is active from here on, so the scan misses no change.
  let watchedResults = await scan(records, signal)

  const tellOf = function* (id: string, after: WatchedResult | undefined): Generator<Change> {
    const before = watchedResults.get(id)
    if (after === undefined) watchedResults.delete(id)
    else watchedResults.set(id, after)
    yield { path: recordPath(id), listed: true }
    yield { path: `${recordPath(id)}/`, listed: true }
    // The tags of a result that was added and removed since the last report are unknown.
    if (before === undefined && after === undefined) yield { path: resultFolders.tags, listed: true }
    for (const tag of new Set([...(before?.tags ?? []), ...(after?.tags ?? [])]))
      yield { path: tagPath(tag), listed: true }
  }

  /** Yields the changes of the given results; without ids, of all results that differ from the known ones. */
  const tell = async function* (ids: readonly string[] | undefined): AsyncGenerator<Change> {
    const all = ids === undefined ? await scan(records, signal) : undefined
    const changedIds = all === undefined ? new Set(ids) : difference(watchedResults, all)
    if (changedIds.size > maxReported) {
      watchedResults = all ?? (await scan(records, signal))
      return yield {}
    }
    for (const id of changedIds) {
      const row = all === undefined ? await findRow(records, id) : undefined
      yield* tellOf(id, all === undefined ? row && toWatchedResult(row) : all.get(id))
    }
    if (changedIds.size > 0) yield* [{ path: 'recent' }, { path: 'lookup' }]
  }

  /** Returns the ids of the expired results that are gone from the store. Others may have been renewed, and clocks differ. */
  const expired = async (): Promise<readonly string[]> => {
    const now = Date.now()
    const over = [...watchedResults].flatMap(([id, { expires }]) => (expires <= now ? [id] : []))
    const missingIds: string[] = []
    for (const id of over) {
      const row = await findRow(records, id)
      if (row === undefined) missingIds.push(id)
      else watchedResults.set(id, toWatchedResult(row))
    }
    return missingIds
  }

  return (async function* () {
    const incoming = news[Symbol.asyncIterator]()
    let next = incoming.next()
    try {
      while (!signal.aborted) {
        const clock = waitUntil(earliest(watchedResults), signal)
        const result = await Promise.race([next, clock.over]).finally(clock.stop)
        if (signal.aborted) return
        if (result === undefined) yield* tell(await expired())
        else if (result.done) return
        else {
          yield* tell(result.value)
          next = incoming.next()
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      // No caller waits for the pending notification any more, so its failure is handled here.
      next.catch(() => {})
      void incoming.return?.()?.catch(() => {})
    }
  })()
}

function difference(
  before: ReadonlyMap<string, WatchedResult>,
  after: ReadonlyMap<string, WatchedResult>,
): ReadonlySet<string> {
  const changedIds = new Set<string>()
  for (const [id, { revision }] of after) if (before.get(id)?.revision !== revision) changedIds.add(id)
  for (const id of before.keys()) if (!after.has(id)) changedIds.add(id)
  return changedIds
}

function earliest(watchedResults: ReadonlyMap<string, WatchedResult>): number {
  let time = Number.POSITIVE_INFINITY
  for (const { expires } of watchedResults.values()) if (expires < time) time = expires
  return time
}

/** Waits until {@link togetherMs} after a time, at most for {@link maxWaitMs}, or until the signal aborts. */
function waitUntil(time: number, signal: AbortSignal) {
  let stop = () => {}
  const over = new Promise<undefined>((resolve) => {
    const waitMs = Math.min(Math.max(time - Date.now(), 0) + togetherMs, maxWaitMs)
    const end = () => resolve(undefined)
    const timer = setTimeout(end, waitMs)
    timer.unref()
    signal.addEventListener('abort', end)
    stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    }
  })
  return { over, stop }
}

async function scan(records: Collection, signal: AbortSignal): Promise<Map<string, WatchedResult>> {
  const watchedResults = new Map<string, WatchedResult>()
  for await (const row of rowsIn(records, { limit: pageSize }, signal))
    watchedResults.set(row.key, toWatchedResult(row))
  return watchedResults
}

/** Reads a row without its value. In a list of all keys that begin with an id, the id itself comes first. */
async function findRow(records: Collection, id: string): Promise<Row | undefined> {
  const [row] = await records.list({ prefix: id, limit: 1 })
  return row?.key === id ? row : undefined
}

function toWatchedResult({ revision, terms, expires = Number.POSITIVE_INFINITY }: Row): WatchedResult {
  return { revision, tags: tagsIn(terms), expires }
}
