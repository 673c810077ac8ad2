import { toUnicodeEscape } from '../../core/entry.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import type { Log } from '../../core/log.ts'
import { isPath } from '../../core/path.ts'
import type { ByteRange } from '../../core/provider.ts'

export interface ObjectMetadata {
  /** The key in the store, including the prefix of the mount. */
  readonly key: string
  /** Stored size, in bytes. */
  readonly size: number
  /** Modification time in milliseconds since 1970, cut to seconds, because some answers of a store have no fractions. */
  readonly modified?: number
  /** Identifies the content of the object: an ETag or a generation. */
  readonly version: string
  /** The stored MIME type, if a listing contains it. */
  readonly mimeType?: string
}

/** Metadata of a single object. Untrusted: the owner of the object wrote it. */
export interface ObjectDetails extends ObjectMetadata {
  /** A stored `Content-Encoding`: the bytes are served as they are. */
  readonly encoding?: string
  readonly storageClass?: string
  readonly versionId?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** A page of a listing, in byte order of the keys. */
export interface ObjectPage {
  readonly objects: readonly ObjectMetadata[]
  /** Common prefixes, up to a slash, of the keys that are not listed one by one. */
  readonly prefixes?: readonly string[]
  readonly more: boolean
}

export interface PageQuery {
  readonly prefix: string
  /** Only keys strictly after this one. */
  readonly after?: string
  /** Maximum number of keys, up to 1000. */
  readonly limit: number
  /** Whether keys with a slash after the prefix are grouped by their common prefixes. */
  readonly shallow?: boolean
}

export interface GetQuery {
  readonly key: string
  /** Byte range; `end` is exclusive. Never empty. Undefined: the whole object. */
  readonly range?: ByteRange
  /** Only this version: throws {@link ObjectFault} `replaced` for another one. */
  readonly version?: string
}

/** An answer whose bytes were not read yet: the caller must call exactly one of `bytes` and `discard`. */
export interface ObjectBody {
  readonly details: ObjectDetails
  /** Offset of the first byte in the object. */
  readonly start: number
  /** Offset after the last byte. */
  readonly end: number
  /** Reads all bytes, or throws {@link ObjectFault} `torn` if their number or checksum is not that of the store. */
  bytes(): Promise<Buffer>
  discard(): void
}

/**
 * A remote object store.
 *
 * The requests throw ResourceError: `not-found` for an object that is missing or may not be read, `invalid` (reason `withheld`) for one
 * that is archived or encrypted, `unavailable` for problems of the store, the connection and the credentials. An abort may reject with any
 * error.
 */
export interface ObjectStore {
  page(query: PageQuery, signal: AbortSignal): Promise<ObjectPage>
  head(key: string, signal: AbortSignal): Promise<ObjectDetails>
  /** Requests the content of an object. Also throws {@link ObjectFault}. */
  get(query: GetQuery, signal: AbortSignal): Promise<ObjectBody>
  /** Returns a signed URL with which anyone can fetch the object, for some seconds. */
  link(details: ObjectDetails, seconds: number, signal: AbortSignal): Promise<string>
  close(): void
}

/**
 * Thrown when a read has to be repeated. `replaced`: the requested version is there no more; `unsatisfiable`: the range begins beyond
 * the end of the object; `torn`: the answer is incomplete, or is not the stored content.
 */
export class ObjectFault extends Error {
  readonly fault: 'replaced' | 'unsatisfiable' | 'torn'

  constructor(fault: ObjectFault['fault']) {
    super(`The object cannot be read as one complete version: ${fault}. Try again later.`)
    this.name = 'ObjectFault'
    this.fault = fault
  }
}

export function rangeHeader({ start, end }: ByteRange): string {
  return `bytes=${start}-${end === undefined || end >= Number.MAX_SAFE_INTEGER ? '' : end - 1}`
}

/** Minimum time between two equal messages, in milliseconds. */
const everyMs = 60_000

/** Log that drops repeated messages within a minute: a client may request a refused object again and again. */
export function createThrottledLog(log: Log): Log {
  const times = createLruCache<number>(1000)
  return (level, message, fields) => {
    const [last, now] = [times.get(message), performance.now()]
    if (last !== undefined && now - last < everyMs) return
    times.set(message, now)
    log(level, message, fields)
  }
}

export type InvalidKeyRecorder = ReturnType<typeof createInvalidKeyRecorder>

/** Maximum number of keys recorded of each kind (objects and folders), and of keys named in the log. */
const [most, shownCount] = [10_000, 5]

/**
 * Records keys that no path can hold: they are left out of listings, and reported to the operator.
 *
 * @param prefix Key prefix of the mount: empty, or ending in `/`.
 */
export function createInvalidKeyRecorder(prefix: string, log: Log) {
  const odd = new Set<string>()
  const folders = new Set<string>()
  let logCount = 0

  const note = (key: string) => {
    const kind = key.endsWith('/') ? folders : odd
    if (kind.size < most) kind.add(key)
  }

  return {
    /** Returns the path of a key below the prefix of the mount. Undefined: no path can hold the key, which is recorded. */
    pathOf: (key: string): string | undefined => {
      const path = key.slice(prefix.length)
      if (key.startsWith(prefix) && path !== '' && !path.endsWith('/') && isPath(path)) return path
      // The placeholder object of the mount's own folder is not a missing entry.
      if (path !== '') note(key)
      return undefined
    },
    /** Returns the path of a directory from its common prefix, which ends in `/`. Undefined: no path can hold the prefix, which is recorded. */
    directoryOf: (key: string): string | undefined => {
      const path = key.slice(prefix.length)
      if (key.startsWith(prefix) && path !== '' && isPath(path)) return path
      // A common prefix is not a key; the keys below it are unknown here.
      note(`${key}…`)
      return undefined
    },
    tell: (): void => {
      const count = odd.size + folders.size
      if (count === logCount) return
      logCount = count
      const keys = [...[...odd].slice(0, shownCount), ...[...folders].slice(0, shownCount)].slice(0, shownCount)
      log('warn', 'keys that are not valid paths are left out: give the objects other keys to serve them', {
        keys: odd.size,
        folders: folders.size,
        // Keys are untrusted: escape line ends and terminal control characters.
        examples: keys.map((key) => JSON.stringify(key).replace(/[^\x20-\x7e]/g, toUnicodeEscape)),
      })
    },
  }
}
