import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isResourceError } from '../core/errors.ts'
import { sleep } from '../core/kit/abort.ts'
import { defined } from '../core/kit/object.ts'
import type { Log } from '../core/log.ts'
import type { Entry } from '../core/provider.ts'
import type { Freshness, IndexGaps, MountIndexState, MountProgress } from '../core/tool.ts'
import {
  createBatchWriter,
  isCutVersion,
  isVersionOf,
  newestFirst,
  type ReadingSettings,
  readDocument,
  scanState,
} from './feed-documents.ts'
import {
  countIndexed,
  countIndexedBelow,
  createNameIndexer,
  createTasks,
  documentWithParts,
  feedParts,
  indexedVersionsBelow,
  mapConcurrently,
} from './feed-steps.ts'
import type { SearchDocument, SearchIndex } from './search-index.ts'

export interface MountFeedOptions extends Pick<ReadingSettings, 'mount' | 'way' | 'scrubber'> {
  readonly index: SearchIndex
  /** Maximum length of the indexed beginning of a text, in bytes. Default 8 MiB. */
  readonly maxBytes: number
  /** Interval of comparisons if the source cannot report changes, in milliseconds. Default 60,000. */
  readonly intervalMs: number
  /** Maximum number of indexed parts of one entry, such as rows of a table. Default 10,000. */
  readonly maxParts: number
  /** Maximum number of pending documents. Default 50,000. */
  readonly window?: number
  readonly log: Log
}

const firstWaitMs = 500
const maxWaitMs = 60_000
/** Number of documents indexed at once; number of these read at once; number of documents removed at once, or listed without a pause. */
const batchSize = 16
const concurrent = 2
const pageSize = 1000
const defaultWindow = 50_000
/** Number of consecutive failures of documents after which the source itself counts as unavailable. */
const mostFailures = 20

interface Comparison {
  readonly directory: string
  readonly known: number
  /** Number of documents that were compared, and number of all listed documents. The latter is unknown until the listing has ended. */
  looked: number
  of?: number
}

/**
 * Keeps the index of a mount equal to its source: compares the listing with the index, reads new and changed documents, and then
 * follows announced changes, which also go first during a comparison. Temporary failures are retried; nothing is removed from
 * the index because a source does not answer.
 */
export function createMountFeed(options: MountFeedOptions) {
  const { mount, index, intervalMs, window = defaultWindow, log } = options
  const tasks = createTasks()
  let state: MountIndexState = 'waiting'
  let since = Date.now()
  let indexed = 0
  /** Number of documents in the index. Undefined until everything has been compared once. */
  let total: number | undefined
  /** The running comparison: of a directory (`''`: everything), with the number of its documents in the index when it began. */
  let comparison: Comparison | undefined
  let failures = 0
  /** Whether `run` waits for changes. */
  let isIdle = false
  /** The beginning of the last comparison of everything, in milliseconds since 1970. */
  let comparedAt: number | undefined
  /** The entries of which only some parts are indexed. */
  const cut = new Set<string>()
  /** URIs of the entries without parts of which only the first page is indexed: a table without a key cannot be paged through. */
  const firstPages = new Set<string>()
  const onRead = (path: string, isPart: boolean): void => {
    if (isPart) firstPages.add(mount.uriOf(path))
    else firstPages.delete(mount.uriOf(path))
  }

  /** URIs of the documents of which only the beginning is indexed. */
  const cutTexts = new Set<string>()
  /** URIs of the documents with pages that hold only pictures or unreadable text. */
  const scans = new Map<string, ReturnType<typeof scanState>>()
  const noteCut = ({ uri, version }: Pick<SearchDocument, 'uri' | 'version'>): void => {
    if (isCutVersion(version, options.maxBytes)) cutTexts.add(uri)
    else cutTexts.delete(uri)
    const scan = scanState(version)
    if (scan === undefined) scans.delete(uri)
    else scans.set(uri, scan)
  }

  const listening = { ...(mount.parts === undefined ? {} : { onRead }), lineCounts: new Map() }

  const enter = (next: MountIndexState): void => {
    if (state === next) return
    state = next
    since = Date.now()
  }

  /** Reads a document. `undefined`: it no longer exists. `later`: it cannot be read now. */
  const read = async (entry: Entry, signal: AbortSignal): Promise<SearchDocument | 'later' | undefined> => {
    try {
      const found = await readDocument(entry, { ...options, ...listening, signal })
      failures = 0
      return found
    } catch (error) {
      if (signal.aborted || !isResourceError(error, 'unavailable') || ++failures > mostFailures) throw error
      tasks.later(entry.path)
      return 'later'
    }
  }

  /** Writes documents into the index. Returns how many were written. */
  const keep = async (documents: readonly SearchDocument[]): Promise<number> => {
    try {
      if (documents.length > 0) await index.put(documents)
      return documents.length
    } catch (error) {
      if (!isResourceError(error, 'invalid')) throw error
      // A document that cannot be written does not affect the others.
      let kept = 0
      if (documents.length > 1) for (const document of documents) kept += await keep([document])
      else log('warn', 'a document cannot be indexed', { mount: mount.address, error: error.message })
      return kept
    }
  }

  const nameIndexer = createNameIndexer(mount, options.scrubber, keep)

  const put = async (documents: readonly SearchDocument[]): Promise<void> => {
    const kept = await keep(documents)
    for (const document of documents) noteCut(document)
    indexed += kept
  }

  /** Indexes the parts of an entry. `false`: it has no parts. */
  const renewParts = async (path: string, known: Map<string, string>, signal: AbortSignal): Promise<boolean> => {
    const parts = await mount.parts?.(path, signal)
    cut.delete(path)
    if (parts === undefined) return false
    const fed = await feedParts(parts, known, { ...options, keep }, signal)
    if (comparison !== undefined) comparison.looked += fed.looked
    indexed += fed.indexed
    if (fed.isCut) cut.add(path)
    return true
  }

  const remove = async (uris: readonly string[]): Promise<void> => {
    if (uris.length === 0) return
    await index.remove(uris)
    for (const uri of uris) {
      firstPages.delete(uri)
      cutTexts.delete(uri)
      scans.delete(uri)
      if (!uri.endsWith('/')) continue
      for (const below of cutTexts) if (below.startsWith(uri)) cutTexts.delete(below)
      for (const below of scans.keys()) if (below.startsWith(uri)) scans.delete(below)
    }
  }

  /** Indexes the current documents at these paths. */
  const renew = async (paths: readonly string[], signal: AbortSignal): Promise<void> => {
    const gone: string[] = []
    // Do not count documents in a directory that is being compared: the comparison counts them at its end.
    const counted = paths.filter((path) => comparison === undefined || !path.startsWith(comparison.directory))
    const uris = total === undefined ? [] : counted.map(mount.uriOf)
    const reading = mapConcurrently(paths, concurrent, async (path) => {
      const entry = await mount.find(path, signal)
      if (entry !== undefined && (await mount.parts?.(path, signal)) !== undefined) {
        tasks.hear([{ path: `${path}/` }])
        return documentWithParts(entry, options)
      }
      const document = entry === undefined || entry.path.endsWith('/') ? undefined : await read(entry, signal)
      // A directory may have become a document, or may no longer exist.
      if (document === undefined) gone.push(mount.uriOf(path))
      if (document !== 'later') gone.push(`${mount.uriOf(path)}/`)
      return document
    })
    const [found, before] = await Promise.all([reading, countIndexed(index, uris)])
    await remove(gone)
    const documents = found.filter((one) => one !== undefined && one !== 'later')
    await put(documents)
    // A document that cannot be read now may or may not be in the index, so these are counted there.
    const isKnown = !found.includes('later')
    const after = isKnown ? documents.filter(({ uri }) => uris.includes(uri)).length : await countIndexed(index, uris)
    if (total !== undefined) total += after - before
  }

  /** @param before Called before documents are indexed again. */
  const renewHeard = async (signal: AbortSignal, touched?: Set<string>, before?: () => Promise<void>) => {
    for (let paths = tasks.take(batchSize); paths.length > 0; paths = tasks.take(batchSize)) {
      signal.throwIfAborted()
      await before?.()
      for (const path of paths) touched?.add(mount.uriOf(path))
      await renew(paths, signal)
      tasks.done(paths)
    }
  }

  const readAll = async (entries: readonly Entry[], touched: Set<string>, signal: AbortSignal): Promise<void> => {
    const writer = createBatchWriter(put)
    try {
      for (let at = 0; at < entries.length; at += batchSize) {
        signal.throwIfAborted()
        const batch = entries.slice(at, at + batchSize)
        const found = await mapConcurrently(batch, concurrent, (entry) => read(entry, signal))
        const gone = batch.filter((_, index) => found[index] === undefined)
        await remove(gone.map(({ path }) => mount.uriOf(path)))
        await writer.add(found.filter((one) => one !== undefined && one !== 'later'))
        if (comparison !== undefined) comparison.looked += batch.length
        // Yield first, so that requests to the server do not wait.
        await yieldToEventLoop()
        // A text that was read before a change must not be written after it.
        await renewHeard(signal, touched, writer.flush)
      }
      await writer.flush()
    } finally {
      await writer.settled()
    }
  }

  /** Compares a directory (`''`: everything) with its indexed documents. */
  const compare = async (directory: string, signal: AbortSignal): Promise<void> => {
    const known = await indexedVersionsBelow(index, mount.uriOf(directory), signal)
    const current: Comparison = { directory, known: known.size, looked: 0 }
    comparison = current
    const touched = new Set<string>()
    let changed: Entry[] = []
    let fresh: Entry[] = []
    const readChanged = async () => {
      if (fresh.length > batchSize) await nameIndexer.put(fresh, signal)
      await readAll(newestFirst(changed), touched, signal)
      changed = []
      fresh = []
    }
    let listed = 0
    let isNamedAhead = false
    let isChanged = false
    for await (const entry of mount.list({ prefix: directory }, signal)) {
      signal.throwIfAborted()
      listed++
      const uri = mount.uriOf(entry.path)
      const version = known.get(uri)
      known.delete(uri)
      if (mount.parts !== undefined && (await renewParts(entry.path, known, signal))) {
        const document = documentWithParts(entry, options)
        if (version !== document.version) await put([document])
        current.looked++
        isChanged = true
        continue
      }
      if (version !== undefined && isVersionOf(version, entry, options)) {
        noteCut({ uri, version })
        current.looked++
      } else {
        changed.push(entry)
        isChanged = true
      }
      if (version === undefined) fresh.push(entry)
      if (listed % pageSize === 0) await renewHeard(signal, touched)
      if (changed.length < window) continue
      if (!isNamedAhead) {
        await nameIndexer.put(fresh, signal)
        fresh = []
        await nameIndexer.putBehind(directory, entry.path, known, signal)
        isNamedAhead = true
      }
      await readChanged()
    }
    // Nothing is listed below an entry, so indexed documents there are its parts.
    if (listed === 0 && directory.endsWith('/')) await renewParts(directory.slice(0, -1), known, signal)
    current.of = current.looked + changed.length
    const gone = [...known.keys()].filter((uri) => !touched.has(uri))
    for (let at = 0; at < gone.length; at += pageSize) await remove(gone.slice(at, at + pageSize))
    await readChanged()
    // Documents may have come and gone since they were listed: only the index knows how many there are.
    const isSame = !isChanged && listed > 0 && gone.length + touched.size === 0
    const now = isSame ? current.known : await countIndexedBelow(index, mount.uriOf(directory), signal)
    if (directory === '') total = now
    else if (total !== undefined) total += now - current.known
    comparison = undefined
  }

  /** Number of compared documents, and of all as far as it is known. Those outside of a compared directory count as compared. */
  const countsNow = (): { readonly looked: number; readonly of?: number } => {
    if (comparison === undefined) return total === undefined ? { looked: 0 } : { looked: total, of: total }
    const { directory, known, looked, of } = comparison
    if (directory === '' || total === undefined) return { looked, ...defined({ of }) }
    const others = total - known
    return { looked: others + looked, of: others + (of ?? Math.max(known, looked)) }
  }

  const work = async (signal: AbortSignal): Promise<void> => {
    await renewHeard(signal)
    for (let next = tasks.nextDirectory(); next !== undefined; next = tasks.nextDirectory()) {
      enter('comparing')
      const begun = Date.now()
      await compare(next, signal)
      tasks.done([next])
      if (next === '') comparedAt = begun
    }
    await renewHeard(signal)
  }

  /** Callers that wait until every change reported so far is indexed. */
  const waiting: ((isDone: boolean) => void)[] = []
  const settle = (isDone: boolean): void => {
    for (const resolve of waiting.splice(0)) resolve(isDone)
  }

  /** When the source last reported no fault of its watch, in milliseconds since 1970. */
  let heardAt = Date.now()
  const currentUntil = (): number | undefined => {
    const degraded = mount.degraded()
    if (degraded !== 'lost' && degraded !== 'unavailable') heardAt = Date.now()
    if (comparedAt === undefined) return undefined
    if (mount.watch === undefined) return comparedAt
    return mount.lookedAt() ?? heardAt
  }

  /** Works until the signal aborts. */
  const run = async (signal: AbortSignal): Promise<void> => {
    let waitMs = firstWaitMs
    tasks.hear([{}])
    enter('comparing')
    await mount.watch?.(tasks.hear, signal).catch(() => false)
    while (!signal.aborted) {
      try {
        await work(signal)
        enter('current')
        waitMs = firstWaitMs
        isIdle = tasks.isIdle()
        if (isIdle) settle(!tasks.hasLater())
        const untilNext = mount.watch === undefined ? intervalMs : undefined
        const isDue = await tasks.wait(signal, tasks.hasLater() ? firstWaitMs * 4 : untilNext)
        isIdle = false
        if (isDue) tasks.due(mount.watch === undefined)
      } catch (error) {
        isIdle = false
        settle(false)
        if (signal.aborted) break
        const kind = isResourceError(error) ? error.kind : 'internal'
        if (state !== 'unavailable') log('warn', 'a mount cannot be indexed now', { mount: mount.address, kind, error })
        enter('unavailable')
        failures = 0
        tasks.putBack()
        await sleep(waitMs, signal)
        waitMs = Math.min(waitMs * 2, maxWaitMs)
      }
    }
    isIdle = false
    settle(false)
    enter('waiting')
  }

  /**
   * Returns how far the index is behind the source.
   *
   * @param isCounted Whether a path counts. With this test, the number is unknown during a comparison. By default all paths count.
   */
  const freshnessOf = (isCounted?: (path: string) => boolean): Freshness => {
    const isDirectory = (path: string) => path === '' || path.endsWith('/')
    const pending = tasks.pending().filter(([path]) => isDirectory(path) || isCounted?.(path) !== false)
    const documents = pending.filter(([path]) => !isDirectory(path)).length
    const { looked, of = looked } = countsNow()
    const uncompared = state === 'comparing' ? of - looked : 0
    const known = currentUntil()
    const asOf = known && pending.reduce((least, [, since]) => Math.min(least, since), known)
    const isCountable = isCounted === undefined || state === 'current'
    return { ...(isCountable ? { pending: documents + uncompared } : {}), ...defined({ asOf }) }
  }

  return {
    address: mount.address,
    run,
    freshnessOf,
    /**
     * Indexes every change that was finished before the call, as far as the source promises to report it or lists it. Resolves to
     * whether that succeeded.
     */
    catchUp: async (signal: AbortSignal): Promise<boolean> => {
      tasks.due(false)
      try {
        const isReported = (await mount.catchUp?.(signal)) === true
        tasks.hear(isReported ? [] : [{}])
      } catch {
        return false
      }
      if (isIdle && tasks.isIdle()) return !tasks.hasLater()
      return new Promise((resolve) => {
        waiting.push(resolve)
        signal.addEventListener('abort', () => resolve(false), { once: true })
      })
    },
    progress: (): MountProgress => ({
      address: mount.address,
      state,
      since,
      ...countsNow(),
      indexed,
      ...freshnessOf(),
      changes: mount.watch === undefined ? 'compared' : 'watched',
      ...defined({ degraded: mount.degraded() }),
      ...(cut.size + cutTexts.size + scans.size === 0
        ? {}
        : {
            partial: {
              ...(cut.size === 0 ? {} : { entries: cut.size, limit: options.maxParts }),
              ...(cutTexts.size === 0 ? {} : { texts: cutTexts.size, maxBytes: options.maxBytes }),
              ...(scans.size === 0 ? {} : countScans(scans.values())),
            },
          }),
      ...(firstPages.size === 0 ? {} : { firstPages: firstPages.size }),
    }),
  }
}

function countScans(scans: Iterable<ReturnType<typeof scanState>>): IndexGaps {
  const all = [...scans]
  const waiting = all.filter((scan) => scan === 'waiting').length
  return { scans: all.length, ...(waiting === 0 ? {} : { waitingScans: waiting }) }
}

export type MountFeed = ReturnType<typeof createMountFeed>
