import { invalid, notFound, type ResourceError, unavailable } from '../../core/errors.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'
import type { Context, Entry, Provider, Template } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { untilAbort } from '../files/place.ts'
import { type Endpoint, invalidAnswerMessage, parseEndpoint } from './endpoint.ts'
import { createObjectLister, objectEntry } from './list.ts'
import { createObjectReader } from './read.ts'
import { createInvalidKeyRecorder, ObjectFault, type ObjectStore } from './store.ts'

interface ObjectsOptions {
  /** Prefix of all served keys, which paths do not contain. Empty, or ending in `/`. */
  readonly prefix: string
  readonly maxBytes: number
  readonly linkSeconds: number | undefined
  /** Time-out of one answer of the store including retries, in milliseconds. */
  readonly timeoutMs: number
  readonly log: Log
}

const template: Template = {
  template: '{+path}',
  name: 'Objects',
  title: 'An object by its key',
  description: 'The content of one object. The path is its key, as in the listing.',
}

export function createObjectsProvider(store: ObjectStore, options: ObjectsOptions): Provider {
  const { prefix, maxBytes, linkSeconds, timeoutMs, log } = options
  const odd = createInvalidKeyRecorder(prefix, log)
  const objectStore = timed(store, timeoutMs)
  const list = createObjectLister(objectStore, prefix, odd)
  const readObject = createObjectReader(objectStore, maxBytes, linkSeconds)
  const closing = new AbortController()

  const signalOf = ({ signal }: Context): AbortSignal => {
    signal.throwIfAborted()
    if (closing.signal.aborted) throw unavailable('The provider is closed.')
    return AbortSignal.any([signal, closing.signal])
  }

  /** @throws ResourceError `not-found` for an invalid path. */
  const keyOf = (path: string): string => {
    if (path === '' || path.endsWith('/') || !isPath(path)) throw notFound('no key can have this path')
    const key = prefix + path
    if (Buffer.byteLength(key) > 1024) throw notFound('no key is that long')
    return key
  }

  /** Returns the entry of a directory, which exists while any key is below it, even one that no path can hold. */
  const statDirectory = async (path: string, signal: AbortSignal): Promise<Entry> => {
    const key = prefix + path
    if (!isPath(path) || Buffer.byteLength(key) > 1024) throw notFound('no directory can have this path')
    const { objects } = await objectStore.page({ prefix: key, limit: 1 }, signal)
    if (objects.length === 0) throw notFound()
    return { path, mimeType: directoryMimeType }
  }

  return {
    list: async function* (query, context) {
      yield* list(query, signalOf(context))
    },
    stat: async (path, context) => {
      const signal = signalOf(context)
      if (path.endsWith('/')) return statDirectory(path, signal)
      return objectEntry(path, await objectStore.head(keyOf(path), signal))
    },
    read: async ({ path, range }, context) => {
      const signal = signalOf(context)
      return [await readObject(keyOf(path), path, range, { ...context, signal })]
    },
    templates: async (context) => {
      signalOf(context)
      return [template]
    },
    close: async () => {
      closing.abort()
      store.close()
    },
  }
}

/** Limits the time of each answer of a store, in milliseconds. A call that takes longer is aborted, and throws `unavailable`. */
function timed(store: ObjectStore, ms: number): ObjectStore {
  return {
    ...store,
    page: (query, signal) => once(ms, signal, (own) => store.page(query, own)),
    head: (key, signal) => once(ms, signal, (own) => store.head(key, own)),
    link: (details, seconds, signal) => once(ms, signal, (own) => store.link(details, seconds, own)),
    get: async (query, signal) => {
      const limit = createTimeLimit(ms, signal)
      try {
        const body = await limit.run((own) => store.get(query, own))
        return {
          ...body,
          bytes: () => limit.run(() => body.bytes()).finally(limit.end),
          discard: () => {
            limit.end()
            body.discard()
          },
        }
      } catch (error) {
        limit.end()
        throw error
      }
    },
  }
}

async function once<T>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = createTimeLimit(ms, signal)
  try {
    return await limit.run(work)
  } catch (error) {
    // Only a read of content is repeated after an `ObjectFault`. Here it means an invalid answer.
    throw error instanceof ObjectFault ? unavailable(invalidAnswerMessage) : error
  } finally {
    limit.end()
  }
}

function createTimeLimit(ms: number, signal: AbortSignal) {
  const own = followAbortFor(signal, ms)
  return {
    run: async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
      try {
        return await untilAbort(work(own.signal), own.signal)
      } catch (error) {
        signal.throwIfAborted()
        throw own.signal.aborted ? tooLate(ms) : error
      }
    },
    end: own.release,
  }
}

function tooLate(ms: number): ResourceError {
  return unavailable(
    `The store did not answer within ${ms} ms. Check that it can be reached from here, or raise "timeout".`,
  )
}

export interface BucketOptions {
  readonly bucket: string
  /** Address of the store, if it is not that of the vendor: `https://storage.example.com`, `http://127.0.0.1:9000`. */
  readonly endpoint?: string
  /** Whether an endpoint beyond the loopback may be `http://`. Default false. */
  readonly insecure?: boolean
  /** Whether requests are unsigned: for public buckets. Default false. */
  readonly anonymous?: boolean
  /** Only keys below this prefix are served, without it in their paths: `tenant1/`. A final `/` is optional. */
  readonly prefix?: string
  /** Maximum size of an object, or of a range, that is read at once, in bytes. Default 16 MiB. */
  readonly maxBytes?: number
  /** Lifetime of links to larger objects, in milliseconds: from a second to an hour. Default: no links. */
  readonly linkMs?: number
  /** Time-out of one answer of the store, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  readonly log?: Log
}

interface BucketSettings extends ObjectsOptions {
  readonly bucket: string
  readonly endpoint: Endpoint | undefined
  readonly anonymous: boolean
}

/** @throws ResourceError `invalid` for an option out of bounds. */
export function completeBucketOptions(options: BucketOptions): BucketSettings {
  const { bucket, insecure = false, anonymous = false } = options
  const { maxBytes = 16 * 2 ** 20, linkMs, timeoutMs = 30_000, log = () => {} } = options
  // A name of this form cannot lead to another host, path or query.
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9]|[._-](?![.-])){1,253}$/.test(bucket) || /[._-]$/.test(bucket))
    throw invalid(
      '"bucket" is not the name of a bucket. Write only the name, without a scheme, a slash or a region.',
      'configuration',
    )
  const prefix = prefixOf(options.prefix ?? '')
  if (!(maxBytes >= 1 && maxBytes <= 256 * 2 ** 20))
    throw invalid('"maxBytes" must be from 1 byte to 256 MiB.', 'configuration')
  if (linkMs !== undefined && !(linkMs >= 1000 && linkMs <= 3_600_000))
    throw invalid('"links" must be from 1 second to 1 hour.', 'configuration')
  if (!(timeoutMs >= 100)) throw invalid('"timeout" must be at least 100 ms.', 'configuration')
  if (anonymous && linkMs !== undefined)
    throw invalid(
      '"links" needs credentials, which sign the links, and "anonymous" excludes them. Remove "links" or "anonymous".',
      'configuration',
    )
  const endpoint = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint, insecure)
  const linkSeconds = linkMs === undefined ? undefined : Math.floor(linkMs / 1000)
  return { bucket, endpoint, anonymous, prefix, maxBytes, linkSeconds, timeoutMs, log }
}

function prefixOf(prefix: string): string {
  const path = prefix.endsWith('/') ? prefix : `${prefix}/`
  if (prefix === '' || prefix === '/') return ''
  if (isPath(path) && Buffer.byteLength(path) < 1024) return path
  throw invalid(
    '"prefix" is not valid: no path can be below it. Write one such as "tenant1/reports/".',
    'configuration',
  )
}
