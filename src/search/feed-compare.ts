import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Entry } from '../core/provider.ts'
import { createBatchWriter, isVersionOf, newestFirst, type ReadingSettings, readDocument } from './feed-documents.ts'
import type { FeedCounts, GapTracker } from './feed-progress.ts'
import {
  countIndexed,
  countIndexedBelow,
  createNameIndexer,
  type createTasks,
  documentWithParts,
  feedParts,
  indexedVersionsBelow,
  mapConcurrently,
} from './feed-steps.ts'
import type { SearchDocument, SearchIndex } from './search-index.ts'

/** The mount that is indexed, the index, and the state of its feed. */
export interface FeedParts extends Pick<ReadingSettings, 'mount' | 'way' | 'scrubber' | 'maxBytes'> {
  readonly index: SearchIndex
  readonly maxParts: number
  /** Maximum number of pending documents. */
  readonly window: number
  readonly log: Log
  readonly tasks: ReturnType<typeof createTasks>
  readonly counts: FeedCounts
  readonly gaps: GapTracker
}

/** Number of documents indexed at once; number of these read at once; number of documents removed at once, or listed without a pause. */
const batchSize = 16
const concurrent = 2
const pageSize = 1000
/** Number of consecutive failures of documents after which the source itself counts as unavailable. */
const mostFailures = 20

function createIndexWriter({ mount, index, log, counts, gaps }: FeedParts) {
  const write = async (documents: readonly SearchDocument[]): Promise<number> => {
    try {
      if (documents.length > 0) await index.put(documents)
      return documents.length
    } catch (error) {
      if (!isResourceError(error, 'invalid')) throw error
      // A document that cannot be written does not affect the others.
      let count = 0
      if (documents.length > 1) for (const document of documents) count += await write([document])
      else log('warn', 'a document cannot be indexed', { mount: mount.address, error: error.message })
      return count
    }
  }
  return {
    write,
    put: async (documents: readonly SearchDocument[]): Promise<void> => {
      const count = await write(documents)
      for (const document of documents) gaps.noteText(document)
      counts.addIndexed(count)
    },
    remove: async (uris: readonly string[]): Promise<void> => {
      if (uris.length === 0) return
      await index.remove(uris)
      for (const uri of uris) gaps.forget(uri)
    },
  }
}

type IndexWriter = ReturnType<typeof createIndexWriter>

/** Reads documents of a mount and indexes them again. */
function createRenewal(feed: FeedParts, writer: IndexWriter) {
  const { mount, index, tasks, counts, gaps } = feed
  const onRead = (path: string, isPart: boolean) => gaps.noteFirstPage(mount.uriOf(path), isPart)
  const reading = { ...feed, ...(mount.parts === undefined ? {} : { onRead }), lineCounts: new Map() }
  let failures = 0

  /** Reads a document. `undefined`: it no longer exists. `later`: it cannot be read now. */
  const readEntry = async (entry: Entry, signal: AbortSignal): Promise<SearchDocument | 'later' | undefined> => {
    try {
      const document = await readDocument(entry, { ...reading, signal })
      failures = 0
      return document
    } catch (error) {
      if (signal.aborted || !isResourceError(error, 'unavailable') || ++failures > mostFailures) throw error
      tasks.later(entry.path)
      return 'later'
    }
  }

  const renew = async (paths: readonly string[], signal: AbortSignal): Promise<void> => {
    const goneUris: string[] = []
    const uris = counts.isTotalKnown() ? paths.filter((path) => !counts.isCompared(path)).map(mount.uriOf) : []
    const renewing = mapConcurrently(paths, concurrent, async (path) => {
      const entry = await mount.find(path, signal)
      if (entry !== undefined && (await mount.parts?.(path, signal)) !== undefined) {
        tasks.hear([{ path: `${path}/` }])
        return documentWithParts(entry, feed)
      }
      const document = entry === undefined || entry.path.endsWith('/') ? undefined : await readEntry(entry, signal)
      // A directory may have become a document, or may no longer exist.
      if (document === undefined) goneUris.push(mount.uriOf(path))
      if (document !== 'later') goneUris.push(`${mount.uriOf(path)}/`)
      return document
    })
    const [searchDocuments, before] = await Promise.all([renewing, countIndexed(index, uris)])
    await writer.remove(goneUris)
    const documents = searchDocuments.filter((one) => one !== undefined && one !== 'later')
    await writer.put(documents)
    // A document that cannot be read now may or may not be in the index.
    const isKnown = !searchDocuments.includes('later')
    const after = isKnown ? documents.filter(({ uri }) => uris.includes(uri)).length : await countIndexed(index, uris)
    counts.addToTotal(after - before)
  }

  return {
    read: readEntry,
    /** Forgets earlier failures, before the source is tried again. */
    forgetFailures: (): void => {
      failures = 0
    },
    /** Indexes the parts of an entry. `false`: it has no parts. @param versions The indexed versions, without those of existing parts afterwards. */
    renewParts: async (path: string, versions: Map<string, string>, signal: AbortSignal): Promise<boolean> => {
      const parts = await mount.parts?.(path, signal)
      gaps.noteParts(path, false)
      if (parts === undefined) return false
      const fed = await feedParts(parts, versions, { ...feed, keep: writer.write }, signal)
      counts.addLooked(fed.looked)
      counts.addIndexed(fed.indexed)
      gaps.noteParts(path, fed.isCut)
      return true
    },
    /**
     * Indexes the documents again whose change was reported.
     *
     * @param touched Gets their URIs.
     * @param before Called before documents are indexed again.
     */
    renewHeard: async (signal: AbortSignal, touched?: Set<string>, before?: () => Promise<void>): Promise<void> => {
      for (let paths = tasks.take(batchSize); paths.length > 0; paths = tasks.take(batchSize)) {
        signal.throwIfAborted()
        await before?.()
        for (const path of paths) touched?.add(mount.uriOf(path))
        await renew(paths, signal)
        tasks.done(paths)
      }
    },
  }
}

/** Returns the two ways to bring the index of a mount up to date: by reported changes, and by comparing a directory. */
export function createComparer(feed: FeedParts) {
  const { mount, index, counts, gaps, window } = feed
  const writer = createIndexWriter(feed)
  const { read, renewParts, renewHeard, forgetFailures } = createRenewal(feed, writer)
  const nameIndexer = createNameIndexer(mount, feed.scrubber, writer.write)

  const readAll = async (entries: readonly Entry[], touched: Set<string>, signal: AbortSignal): Promise<void> => {
    const batches = createBatchWriter(writer.put)
    try {
      for (let at = 0; at < entries.length; at += batchSize) {
        signal.throwIfAborted()
        const batch = entries.slice(at, at + batchSize)
        const documents = await mapConcurrently(batch, concurrent, (entry) => read(entry, signal))
        const goneEntries = batch.filter((_, index) => documents[index] === undefined)
        await writer.remove(goneEntries.map(({ path }) => mount.uriOf(path)))
        await batches.add(documents.filter((one) => one !== undefined && one !== 'later'))
        counts.addLooked(batch.length)
        // Yield first, so that requests to the server do not wait.
        await yieldToEventLoop()
        // A text that was read before a change must not be written after it.
        await renewHeard(signal, touched, batches.flush)
      }
      await batches.flush()
    } finally {
      await batches.settled()
    }
  }

  return {
    renewHeard,
    forgetFailures,
    /** Compares a directory (`''`: everything) with its indexed documents, and indexes what differs. */
    compare: async (directory: string, signal: AbortSignal): Promise<void> => {
      const indexedVersions = await indexedVersionsBelow(index, mount.uriOf(directory), signal)
      const comparison = counts.begin(directory, indexedVersions.size)
      const touched = new Set<string>()
      let entries: Entry[] = []
      let fresh: Entry[] = []
      const readChanged = async () => {
        if (fresh.length > batchSize) await nameIndexer.put(fresh, signal)
        await readAll(newestFirst(entries), touched, signal)
        entries = []
        fresh = []
      }
      let entryCount = 0
      let isNamedAhead = false
      let isChanged = false
      for await (const entry of mount.list({ prefix: directory }, signal)) {
        signal.throwIfAborted()
        entryCount++
        const uri = mount.uriOf(entry.path)
        const version = indexedVersions.get(uri)
        indexedVersions.delete(uri)
        if (mount.parts !== undefined && (await renewParts(entry.path, indexedVersions, signal))) {
          const document = documentWithParts(entry, feed)
          if (version !== document.version) await writer.put([document])
          comparison.looked++
          isChanged = true
          continue
        }
        if (version !== undefined && isVersionOf(version, entry, feed)) {
          gaps.noteText({ uri, version })
          comparison.looked++
        } else {
          entries.push(entry)
          isChanged = true
        }
        if (version === undefined) fresh.push(entry)
        if (entryCount % pageSize === 0) await renewHeard(signal, touched)
        if (entries.length < window) continue
        if (!isNamedAhead) {
          await nameIndexer.put(fresh, signal)
          fresh = []
          await nameIndexer.putBehind(directory, entry.path, indexedVersions, signal)
          isNamedAhead = true
        }
        await readChanged()
      }
      // Nothing is listed below an entry, so indexed documents there are its parts.
      if (entryCount === 0 && directory.endsWith('/')) await renewParts(directory.slice(0, -1), indexedVersions, signal)
      comparison.of = comparison.looked + entries.length
      const goneUris = [...indexedVersions.keys()].filter((uri) => !touched.has(uri))
      for (let at = 0; at < goneUris.length; at += pageSize) await writer.remove(goneUris.slice(at, at + pageSize))
      await readChanged()
      // Documents may have come and gone since they were listed.
      const isSame = !isChanged && entryCount > 0 && goneUris.length + touched.size === 0
      const now = isSame ? comparison.known : await countIndexedBelow(index, mount.uriOf(directory), signal)
      counts.end(comparison, now)
    },
  }
}
