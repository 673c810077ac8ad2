import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { defined } from '../core/kit/object.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Change, Entry, EntryPart } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { documentWithoutText, nameOnlyVersion, type ReadingSettings, shortDigest } from './feed-documents.ts'
import type { SearchDocument, SearchIndex } from './search-index.ts'

interface PartsOptions extends Pick<ReadingSettings, 'mount' | 'way' | 'scrubber'> {
  /** Maximum number of indexed parts of one entry. */
  readonly maxParts: number
  /** Writes documents into the index. Returns how many were written. */
  readonly keep: (documents: readonly SearchDocument[]) => Promise<number>
}

interface PartsFed {
  readonly looked: number
  readonly indexed: number
  /** Whether there are more parts than indexed ones. */
  readonly isCut: boolean
}

const batchSize = 200

/**
 * Indexes the parts of an entry that are new or have changed.
 *
 * @param versions The indexed versions, by URI. Existing parts are removed from it.
 */
export async function feedParts(
  parts: AsyncIterable<EntryPart>,
  versions: Map<string, string>,
  options: PartsOptions,
  signal: AbortSignal,
): Promise<PartsFed> {
  let [looked, indexed] = [0, 0]
  let batch: SearchDocument[] = []
  for await (const part of parts) {
    signal.throwIfAborted()
    if (looked >= options.maxParts) return { looked, indexed: indexed + (await options.keep(batch)), isCut: true }
    looked++
    const document = partDocument(part, options)
    const version = versions.get(document.uri)
    versions.delete(document.uri)
    if (version === document.version) continue
    batch.push(document)
    if (batch.length < batchSize) continue
    indexed += await options.keep(batch)
    batch = []
  }
  return { looked, indexed: indexed + (await options.keep(batch)), isCut: false }
}

function partDocument(
  { path, title, mimeType, text }: EntryPart,
  { mount, way, scrubber }: PartsOptions,
): SearchDocument {
  const clean = (text: string) => scrubber?.scrub(text) ?? text
  return {
    uri: mount.uriOf(path),
    mount: mount.address,
    text: clean(text),
    version: shortDigest(JSON.stringify([way, title, clean(text)])),
    ...(title === undefined ? {} : { title: clean(title) }),
    ...defined({ mimeType }),
  }
}

/** An entry whose parts are indexed. Only its name is indexed. */
export function documentWithParts(
  entry: Entry,
  options: Pick<PartsOptions, 'mount' | 'way' | 'scrubber'>,
): SearchDocument {
  const document = documentWithoutText(entry, options)
  return { ...document, version: shortDigest(JSON.stringify([options.way, 'parts', document.title])) }
}

/** Number of versions requested at once. */
const pageSize = 1000

/** Returns how many of the documents at these URIs are indexed. */
export async function countIndexed(index: SearchIndex, uris: readonly string[]): Promise<number> {
  const isKnown = async (uri: string): Promise<boolean> => {
    // No URI with this prefix comes before the prefix itself.
    const [first] = await index.documents({ prefix: uri, limit: 1 })
    return first?.uri === uri
  }
  return (await Promise.all(uris.map(isKnown))).filter((one) => one).length
}

/** Yields the indexed documents at a URI and below it, in pages. */
async function* documentsBelow(index: SearchIndex, base: string, signal: AbortSignal) {
  // No URI with this prefix comes before the prefix itself.
  const first = await index.documents({ prefix: base, limit: 1 })
  yield first.filter(({ uri }) => uri === base && !base.endsWith('/'))
  const prefix = base.endsWith('/') ? base : `${base}/`
  let after: string | undefined
  for (;;) {
    signal.throwIfAborted()
    const page = await index.documents({ prefix, limit: pageSize, ...defined({ after }) })
    yield page
    after = page.at(-1)?.uri
    if (page.length < pageSize) return
  }
}

/** The indexed versions at a URI and below it. */
export async function indexedVersionsBelow(
  index: SearchIndex,
  base: string,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const versions = new Map<string, string>()
  for await (const page of documentsBelow(index, base, signal))
    for (const { uri, version } of page) versions.set(uri, version)
  return versions
}

/** The number of indexed documents at a URI and below it. */
export async function countIndexedBelow(index: SearchIndex, base: string, signal: AbortSignal): Promise<number> {
  let count = 0
  for await (const page of documentsBelow(index, base, signal)) count += page.length
  return count
}

const nameBatchSize = 500

/**
 * Indexes names, so that documents can be found by path and title before their texts are read.
 *
 * @param keep Writes documents into the index.
 */
export function createNameIndexer(
  mount: MountReader,
  scrubber: Scrubber | undefined,
  keep: (documents: readonly SearchDocument[]) => Promise<unknown>,
) {
  const options = { mount, ...defined({ scrubber }) }
  const putNames = async (entries: readonly Entry[], signal: AbortSignal): Promise<void> => {
    for (let at = 0; at < entries.length; at += nameBatchSize) {
      signal.throwIfAborted()
      await keep(entries.slice(at, at + nameBatchSize).map((entry) => documentWithoutText(entry, options)))
      await yieldToEventLoop()
    }
  }
  return {
    put: putNames,
    /** Indexes the names of the new entries of a directory after a path. */
    putBehind: async (directory: string, path: string, versions: Map<string, string>, signal: AbortSignal) => {
      let fresh: Entry[] = []
      const putFresh = async () => {
        await putNames(fresh, signal)
        for (const entry of fresh) versions.set(mount.uriOf(entry.path), nameOnlyVersion)
        fresh = []
      }
      for await (const entry of mount.list({ prefix: directory, after: path }, signal)) {
        signal.throwIfAborted()
        if (!versions.has(mount.uriOf(entry.path))) fresh.push(entry)
        if (fresh.length >= nameBatchSize) await putFresh()
      }
      await putFresh()
    },
  }
}

/** Maximum number of pending documents. Beyond it, everything is compared. */
const mostPaths = 20_000

/** Pending work for a mount: documents to read again, and directories (`''`: everything) to compare, each with the time of its first change. */
export function createTasks() {
  const paths = new Map<string, number>()
  const directories = new Map<string, number>()
  /** Documents that could not be read, each with the time of its first failure. */
  const waitingPaths = new Map<string, number>()
  /** The work that was taken and is not done yet. */
  const currentWork = new Map<string, number>()
  let wake = () => {}
  const note = (work: Map<string, number>, path: string, time = Date.now()): void =>
    void work.set(path, Math.min(time, work.get(path) ?? time))

  return {
    hear: (changes: readonly Change[]): void => {
      for (const { path } of changes) {
        if (path === undefined || paths.size >= mostPaths) note(directories, '')
        else note(path.endsWith('/') ? directories : paths, path)
      }
      wake()
    },
    take: (most: number): readonly string[] => {
      const some = [...paths].slice(0, most)
      for (const [path, time] of some) {
        paths.delete(path)
        note(currentWork, path, time)
      }
      return some.map(([path]) => path)
    },
    /** Takes a directory; the highest one comes first, because it includes those below it. */
    nextDirectory: (): string | undefined => {
      const [next] = [...directories.keys()].sort((a, b) => a.length - b.length)
      if (next === undefined) return undefined
      for (const [directory, time] of directories) {
        if (!directory.startsWith(next)) continue
        directories.delete(directory)
        note(currentWork, next, time)
      }
      return next
    },
    done: (work: readonly string[]): void => {
      for (const path of work) currentWork.delete(path)
    },
    /** Puts back work that was taken and failed: then everything is compared again. */
    putBack: (): void => {
      note(directories, '', Math.min(Date.now(), ...currentWork.values()))
      currentWork.clear()
    },
    /** Puts back a document that could not be read. The next call of `due` makes it work again. */
    later: (path: string) => note(waitingPaths, path),
    hasLater: () => waitingPaths.size > 0,
    /** Whether there is no work except documents that wait for another attempt. */
    isIdle: () => paths.size === 0 && directories.size === 0,
    /** The documents that are not done, and the directories that are not compared, each with the time of its first change. */
    pending: (): readonly (readonly [path: string, since: number])[] =>
      [paths, waitingPaths, currentWork, directories].flatMap((work) => [...work]),
    /** Makes all delayed documents work again; with `everything`, also a comparison of everything. */
    due: (everything: boolean): void => {
      for (const [path, time] of waitingPaths) note(paths, path, time)
      waitingPaths.clear()
      if (everything) note(directories, '')
    },
    /** Resolves to `true` after `ms` milliseconds, and to `false` when there is work or the signal aborts. */
    wait: (signal: AbortSignal, ms: number | undefined) =>
      new Promise<boolean>((resolve) => {
        if (paths.size > 0 || directories.size > 0 || signal.aborted) return resolve(false)
        const settle = (isDue: boolean) => {
          clearTimeout(timer)
          signal.removeEventListener('abort', stop)
          wake = () => {}
          resolve(isDue)
        }
        const stop = () => settle(false)
        const timer = ms === undefined ? undefined : setTimeout(settle, ms, true)
        timer?.unref()
        signal.addEventListener('abort', stop)
        wake = stop
      }),
  }
}

/**
 * Maps items to results in their order, with at most `concurrent` calls at a time. The first failure is thrown when the running calls have
 * ended.
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  concurrent: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = []
  let next = 0
  const workThrough = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  const workers = Array.from({ length: Math.min(concurrent, items.length) }, workThrough)
  const outcomes = await Promise.allSettled(workers)
  for (const result of outcomes) if (result.status === 'rejected') throw result.reason
  return results
}
