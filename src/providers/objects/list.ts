import { ResourceError } from '../../core/errors.ts'
import { afterSubtree, baseName, comparePaths } from '../../core/path.ts'
import type { Entry, ListQuery } from '../../core/provider.ts'
import { wholeCharacters } from '../../core/utf8.ts'
import { directoryMimeType } from '../../core/view.ts'
import { mimeTypeOf } from '../files/media.ts'
import { untilAbort } from '../files/pool.ts'
import { storedType } from './media.ts'
import type { OddKeys } from './odd-keys.ts'
import type { Remainders } from './remainders.ts'
import type { ObjectFacts, ObjectPage, ObjectStore, PageQuery } from './store.ts'

/** How many keys one answer has at most. */
const wholePage = 1000
/** How many are asked for where a caller seeks behind a directory: it may only want to know what comes next. */
const firstLook = 64
/** The longest key that there can be, in bytes: no store takes a longer one to begin behind. */
const maxKeyBytes = 1024

export interface ListerParts {
  readonly store: ObjectStore
  /** Of the mount: empty, or ends in `/`. */
  readonly prefix: string
  readonly odd: OddKeys
  readonly remainders: Remainders
  readonly now?: () => number
}

/** A page, the key that it lies directly behind, and when it was fetched. */
interface FetchedPage extends ObjectPage {
  readonly after: string
  readonly at: number
}

/** The entry of an object. Its type is that of its name, else the one that it was stored with. */
export function entryOf(path: string, { size, modified, version, mimeType: stored }: ObjectFacts): Entry {
  const mimeType = mimeTypeOf(baseName(path)) ?? storedType(stored)
  return {
    path,
    ...(mimeType === undefined ? {} : { mimeType }),
    size,
    ...(modified === undefined ? {} : { modified }),
    version,
  }
}

/**
 * Lists objects page by page. Each page begins behind the last key of the one before, whatever that was, and never by a token of
 * the store: so a listing always moves on, and can be resumed at any key.
 *
 * What was fetched and not taken is kept for a second: a client whose page ends amid one of the store goes on from there. While
 * one page is taken the next is fetched.
 */
export function createLister({ store, prefix, odd, remainders, now = () => performance.now() }: ListerParts) {
  /** Yields what a page holds. What was not taken of it when the caller leaves is kept: it comes back for that. */
  const taken = async function* (
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
        if (after === undefined || comparePaths(path, after) > 0) yield entryOf(path, object)
      }
    } finally {
      // The last one that was yielded too: a client's page may have had no place for it any more.
      const before = page.objects[at - 1]?.key ?? page.after
      if (at < page.objects.length && !signal.aborted)
        remainders.keep({ ...page, prefix: below, after: before, objects: page.objects.slice(at) })
    }
  }

  /** Pages that are fetched ahead, by what they lie below and behind. */
  const coming = new Map<string, Promise<void>>()
  const placeOf = (below: string, after: string) => JSON.stringify([below, after])

  const fetch = async (below: string, after: string, limit: number, signal: AbortSignal): Promise<FetchedPage> => {
    const at = now()
    return { ...(await store.page(queryOf(below, after, limit), signal)), after, at }
  }

  /** Whoever comes for it finds it among what was fetched and not taken. It ends with the signal of who began it. */
  const fetchAhead = (below: string, after: string, signal: AbortSignal): void => {
    const place = placeOf(below, after)
    if (coming.has(place)) return
    const keeping = fetch(below, after, wholePage, signal).then((page) => remainders.keep({ ...page, prefix: below }))
    // Whether it fails is for whoever comes to find out.
    coming.set(
      place,
      keeping.catch(() => {}).finally(() => coming.delete(place)),
    )
  }

  const fetchedAhead = async (below: string, after: string, signal: AbortSignal): Promise<FetchedPage | undefined> => {
    const arriving = coming.get(placeOf(below, after))
    if (arriving !== undefined) await untilAbort(arriving, signal)
    return remainders.take(below, after)
  }

  const deep = async function* (below: string, start: string, after: string | undefined, signal: AbortSignal) {
    const kept = start === '' ? undefined : remainders.take(below, start)
    if (kept !== undefined) yield* taken(kept, { below, after }, signal)
    if (kept?.more === false) return
    let from = kept?.objects.at(-1)?.key ?? start
    const isSeeking = after !== undefined && after === afterSubtree(after.slice(0, -4))
    let isFirst = kept === undefined
    for (let limit = isSeeking ? firstLook : wholePage; ; limit = wholePage) {
      const known = isFirst ? undefined : await fetchedAhead(below, from, signal)
      const page = known ?? (await fetch(below, from, limit, signal))
      const last = lastOf(page.objects, below, from)
      if (page.more && last === from) throw outOfOrder()
      remainders.renew(from, page.more ? last : undefined)
      // For whom one page is enough, no other is fetched. Who takes a second one mostly takes them all: the next is under way
      // meanwhile.
      if (page.more && !isFirst) fetchAhead(below, last, signal)
      isFirst = false
      yield* taken(page, { below, after }, signal)
      if (!page.more) return
      from = last
    }
  }

  /** What lies directly below a prefix, directories as such: a thousand of them take one request. */
  const shallow = async function* (below: string, start: string, after: string | undefined, signal: AbortSignal) {
    for (let from = start; ; ) {
      const page = await store.page({ ...queryOf(below, from, wholePage), shallow: true }, signal)
      const { objects, prefixes = [] } = page
      let last = lastOf(objects, below, from)
      for (const { key, object } of merged(objects, prefixes)) {
        signal.throwIfAborted()
        if (object === undefined && !(key.startsWith(below) && key.endsWith('/'))) throw outOfOrder()
        // A store may tell once more of a directory that the page begins in.
        const behind = object === undefined ? afterSubtree(key) : key
        if (comparePaths(behind, last) > 0) last = behind
        const path = object === undefined ? odd.directoryOf(key) : odd.pathOf(key)
        if (path === undefined || (after !== undefined && comparePaths(path, after) <= 0)) continue
        yield object === undefined ? { path, mimeType: directoryMimeType } : entryOf(path, object)
      }
      if (!page.more) return
      if (comparePaths(last, from) <= 0) throw outOfOrder()
      from = last
    }
  }

  const list = async function* ({ prefix: directory = '', after, ...query }: ListQuery, signal: AbortSignal) {
    const below = prefix + directory
    if (after !== undefined && !after.startsWith(directory) && comparePaths(after, directory) > 0) return
    const start = after === undefined || comparePaths(after, directory) < 0 ? '' : cutKey(prefix + after)
    try {
      yield* (query.shallow === true ? shallow : deep)(below, start, after, signal)
    } finally {
      odd.tell()
    }
  }

  return { list }
}

function queryOf(prefix: string, after: string, limit: number): PageQuery {
  return { prefix, limit, ...(after === '' ? {} : { after }) }
}

/** The last key of a page. Each is behind the one before, and below the prefix; what is not is not passed on. */
function lastOf(objects: readonly ObjectFacts[], below: string, from: string): string {
  let last = from
  for (const { key } of objects) {
    if (!key.startsWith(below) || (last !== '' && comparePaths(key, last) <= 0)) throw outOfOrder()
    last = key
  }
  return last
}

/** Keys and what is common to keys, as one list in path order. */
function merged(objects: readonly ObjectFacts[], prefixes: readonly string[]): readonly Listed[] {
  const all: Listed[] = objects.map((object) => ({ key: object.key, object }))
  for (const key of prefixes) all.push({ key })
  return all.sort((a, b) => comparePaths(a.key, b.key))
}

/** An object, or what is common to several. */
interface Listed {
  readonly key: string
  readonly object?: ObjectFacts
}

/** A key to begin behind that a store takes: it sorts before the one that was meant, or is that. */
function cutKey(key: string): string {
  const bytes = Buffer.from(key).subarray(0, maxKeyBytes)
  return bytes.toString('utf8', 0, wholeCharacters(bytes).to)
}

function outOfOrder(): ResourceError {
  return new ResourceError(
    'unavailable',
    'The store does not list its keys in the order of their bytes, or stops moving on: it cannot be served. Name another endpoint.',
  )
}
