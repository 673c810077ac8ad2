import { type ResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import { wholeCharacters } from '../../core/kit/utf8.ts'
import { afterSubtree, baseName, comparePaths } from '../../core/path.ts'
import type { Entry, ListQuery } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { mimeTypeByName } from '../files/options.ts'
import { untilAbort } from '../files/place.ts'
import { storedType } from './read.ts'
import type { InvalidKeyRecorder, ObjectMetadata, ObjectPage, ObjectStore, PageQuery } from './store.ts'

/** Maximum number of keys in one answer. */
const wholePage = 1000
/** Number of keys requested when a caller seeks past a directory: it may want only the next key. */
const firstLook = 64
/** Maximum length of a key, in bytes. */
const maxKeyBytes = 1024

interface FetchedPage extends ObjectPage {
  readonly after: string
  readonly at: number
}

/** The MIME type comes from the name, or else from the store. */
export function objectEntry(path: string, { size, modified, version, mimeType: plainType }: ObjectMetadata): Entry {
  const mimeType = mimeTypeByName(baseName(path)) ?? storedType(plainType)
  return { path, size, version, ...defined({ mimeType, modified }) }
}

/**
 * Lists objects with keyset pagination: each page starts after the last key of the page before, not at a token of the store. So a listing
 * can be resumed at any key.
 *
 * @param prefix Key prefix of the mount: empty, or ending in `/`.
 */
export function createObjectLister(store: ObjectStore, prefix: string, odd: InvalidKeyRecorder) {
  const remainders = createRemainders()

  /** Yields the entries of a page. Caches the rest if the caller stops early, because the next request continues there. */
  const takePage = async function* (
    page: FetchedPage,
    { below, after }: { readonly below: string; readonly after: string | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<Entry> {
    let at = 0
    try {
      for (; at < page.objects.length; at++) {
        signal.throwIfAborted()
        const object = page.objects[at]
        const path = object === undefined ? undefined : odd.pathOf(object.key)
        if (object === undefined || path === undefined) continue
        if (after === undefined || comparePaths(path, after) > 0) yield objectEntry(path, object)
      }
    } finally {
      // Keep the last yielded object too: it may not have fitted into the client's page.
      const before = page.objects[at - 1]?.key ?? page.after
      if (at < page.objects.length && !signal.aborted)
        remainders.keep({ ...page, prefix: below, after: before, objects: page.objects.slice(at) })
    }
  }

  const coming = new Map<string, Promise<void>>()
  const keyOf = (below: string, after: string) => JSON.stringify([below, after])

  const fetch = async (below: string, after: string, limit: number, signal: AbortSignal): Promise<FetchedPage> => {
    const at = performance.now()
    return { ...(await store.page(pageQuery(below, after, limit), signal)), after, at }
  }

  /** The signal of the caller that began the prefetch aborts it. */
  const fetchAhead = (below: string, after: string, signal: AbortSignal): void => {
    const key = keyOf(below, after)
    if (coming.has(key)) return
    const keeping = fetch(below, after, wholePage, signal).then((page) => remainders.keep({ ...page, prefix: below }))
    // Ignore a failure here: the caller that needs the page will fetch it again.
    coming.set(
      key,
      keeping.catch(() => {}).finally(() => coming.delete(key)),
    )
  }

  const fetchedAhead = async (below: string, after: string, signal: AbortSignal): Promise<FetchedPage | undefined> => {
    const arriving = coming.get(keyOf(below, after))
    if (arriving !== undefined) await untilAbort(arriving, signal)
    return remainders.take(below, after)
  }

  const deep = async function* (below: string, start: string, after: string | undefined, signal: AbortSignal) {
    const remainder = start === '' ? undefined : remainders.take(below, start)
    if (remainder !== undefined) yield* takePage(remainder, { below, after }, signal)
    if (remainder?.more === false) return
    let from = remainder?.objects.at(-1)?.key ?? start
    const isSeeking = after !== undefined && after === afterSubtree(after.slice(0, -4))
    let isFirst = remainder === undefined
    for (let limit = isSeeking ? firstLook : wholePage; ; limit = wholePage) {
      const fetchedPage = isFirst ? undefined : await fetchedAhead(below, from, signal)
      const page = fetchedPage ?? (await fetch(below, from, limit, signal))
      const last = lastOf(page.objects, below, from)
      if (page.more && last === from) throw outOfOrder()
      remainders.renew(from, page.more ? last : undefined)
      // A caller that needs only one page causes no prefetch.
      if (page.more && !isFirst) fetchAhead(below, last, signal)
      isFirst = false
      yield* takePage(page, { below, after }, signal)
      if (!page.more) return
      from = last
    }
  }

  const shallow = async function* (below: string, start: string, after: string | undefined, signal: AbortSignal) {
    for (let from = start; ; ) {
      const page = await store.page({ ...pageQuery(below, from, wholePage), shallow: true }, signal)
      const { objects, prefixes = [] } = page
      let last = lastOf(objects, below, from)
      for (const { key, object } of merged(objects, prefixes)) {
        signal.throwIfAborted()
        if (object === undefined && !(key.startsWith(below) && key.endsWith('/'))) throw outOfOrder()
        // A store may repeat the directory in which the page begins.
        const behind = object === undefined ? afterSubtree(key) : key
        if (comparePaths(behind, last) > 0) last = behind
        const path = object === undefined ? odd.directoryOf(key) : odd.pathOf(key)
        if (path === undefined || (after !== undefined && comparePaths(path, after) <= 0)) continue
        yield object === undefined ? { path, mimeType: directoryMimeType } : objectEntry(path, object)
      }
      if (!page.more) return
      if (comparePaths(last, from) <= 0) throw outOfOrder()
      from = last
    }
  }

  return async function* list({ prefix: directory = '', after, ...query }: ListQuery, signal: AbortSignal) {
    const below = prefix + directory
    if (after !== undefined && !after.startsWith(directory) && comparePaths(after, directory) > 0) return
    const start = after === undefined || comparePaths(after, directory) < 0 ? '' : cutKey(prefix + after)
    try {
      yield* (query.shallow === true ? shallow : deep)(below, start, after, signal)
    } finally {
      odd.tell()
    }
  }
}

function pageQuery(prefix: string, after: string, limit: number): PageQuery {
  return { prefix, limit, ...(after === '' ? {} : { after }) }
}

/** Returns the last key of a page. Throws unless the keys are in order and below the prefix. */
function lastOf(objects: readonly ObjectMetadata[], below: string, from: string): string {
  let last = from
  for (const { key } of objects) {
    if (!key.startsWith(below) || (last !== '' && comparePaths(key, last) <= 0)) throw outOfOrder()
    last = key
  }
  return last
}

function merged(objects: readonly ObjectMetadata[], prefixes: readonly string[]) {
  const keyedObjects = objects.map((object) => ({ key: object.key, object }))
  const grouped = prefixes.map((key) => ({ key, object: undefined }))
  return [...keyedObjects, ...grouped].sort((a, b) => comparePaths(a.key, b.key))
}

/** Cuts a start key to the maximum length; the result sorts before the key, or equals it. */
function cutKey(key: string): string {
  const bytes = Buffer.from(key).subarray(0, maxKeyBytes)
  return bytes.toString('utf8', 0, wholeCharacters(bytes).to)
}

function outOfOrder(): ResourceError {
  return unavailable(
    'The store does not list its keys in the order of their bytes, or its listing does not advance: it cannot be served. Name another endpoint.',
  )
}

/** Fetched but unused part of a listing, because a page of a store rarely ends where a page of a client does. */
interface Remainder {
  readonly prefix: string
  /** The key that the first object directly follows. */
  readonly after: string
  readonly objects: readonly ObjectMetadata[]
  readonly more: boolean
  /** Fetch time, in milliseconds of a monotonic clock. */
  readonly at: number
}

/** Maximum age of a remainder, in milliseconds. */
const maxAgeMs = 1000
/** Maximum number of remainders. */
const most = 32

function createRemainders() {
  const remainders = new Map<string, Remainder>()
  const keyOf = (prefix: string, after: string) => JSON.stringify([prefix, after])

  return {
    /** Removes and returns a fresh remainder that covers the keys after a key, possibly with some keys before it. */
    take: (prefix: string, after: string): Remainder | undefined => {
      for (const [key, remainder] of remainders) {
        const end = remainder.objects.at(-1)?.key ?? remainder.after
        if (remainder.prefix !== prefix || comparePaths(remainder.after, after) > 0 || comparePaths(end, after) <= 0)
          continue
        remainders.delete(key)
        if (performance.now() - remainder.at <= maxAgeMs) return remainder
      }
      return undefined
    },
    keep: (remainder: Remainder): void => {
      const [oldest] = remainders.keys()
      if (remainders.size >= most && oldest !== undefined) remainders.delete(oldest)
      remainders.set(keyOf(remainder.prefix, remainder.after), remainder)
    },
    /** Drops remainders that a newer answer covers: the keys after `after`, up to `last` (or to the end). */
    renew: (after: string, last: string | undefined): void => {
      for (const [key, { after: begin, objects }] of remainders) {
        const end = objects.at(-1)?.key ?? begin
        const overlaps = comparePaths(end, after) > 0 && (last === undefined || comparePaths(begin, last) < 0)
        if (overlaps) remainders.delete(key)
      }
    },
  }
}
