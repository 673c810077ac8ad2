import type { ByteRange } from '../../core/provider.ts'

/** What a store says of one object. */
export interface ObjectFacts {
  /** The whole key, as the store has it. */
  readonly key: string
  /** In bytes, as they are stored. */
  readonly size: number
  /** Milliseconds since 1970, whole seconds: not every answer of a store has more. */
  readonly modified?: number
  /** Names this content of the object, and no other: an ETag, a generation. */
  readonly version: string
  /** As it was stored, where a listing has it. */
  readonly mimeType?: string
}

/** What a store says of one object when it is asked for that alone. All of it was written by whoever stored the object. */
export interface ObjectDetails extends ObjectFacts {
  /** A stored `Content-Encoding`: the bytes are served as they are. */
  readonly encoding?: string
  readonly storageClass?: string
  readonly versionId?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** A page of a listing, in the order of the bytes of the keys. */
export interface ObjectPage {
  readonly objects: readonly ObjectFacts[]
  /** What is common, up to a slash, to the keys that were not listed one by one. */
  readonly prefixes?: readonly string[]
  /** Whether there may be more behind the last one. */
  readonly more: boolean
}

export interface PageQuery {
  /** Only keys that begin with this. */
  readonly prefix: string
  /** Only keys strictly behind this one. */
  readonly after?: string
  /** At most so many, up to 1000. */
  readonly limit: number
  /** Whether keys with a slash behind the prefix are only told by what is common to them, each once. */
  readonly shallow?: boolean
}

export interface GetQuery {
  readonly key: string
  /** Which bytes; `end` is not among them. Never empty. Without it, all. */
  readonly range?: ByteRange
  /** Only this version: another one is {@link replaced}. */
  readonly version?: string
}

/** An answer whose bytes have not been fetched yet: exactly one of `bytes` and `discard` is called. */
export interface ObjectBody {
  readonly details: ObjectDetails
  /** Where in the object the bytes begin, and behind which they end. */
  readonly start: number
  readonly end: number
  /** Fetches them all, or throws {@link torn}: never fewer, never more, and never others than the store has a sum of. */
  bytes(): Promise<Buffer>
  discard(): void
}

/**
 * A store of objects, asked over the network.
 *
 * Every method throws ResourceError: `not-found` for what is not there or may not be read, `invalid` (reason `archived` or
 * `encrypted`) for what is there and cannot be read as it is, `unavailable` for all that has to do with the store, the way to it
 * and the credentials. The messages say what to do, and hold nothing that the store said. An abort rejects with anything.
 */
export interface ObjectStore {
  page(query: PageQuery, signal: AbortSignal): Promise<ObjectPage>
  head(key: string, signal: AbortSignal): Promise<ObjectDetails>
  /** Throws {@link replaced}, {@link unsatisfiable} and {@link torn} besides. */
  get(query: GetQuery, signal: AbortSignal): Promise<ObjectBody>
  /** A URL that whoever has it can fetch this version of an object at, for so many seconds. */
  link(details: ObjectDetails, seconds: number, signal: AbortSignal): Promise<string>
  close(): void
}

/** What was asked for in one version has another one by now. */
export const replaced = Symbol('replaced')
/** The range begins behind the end of the object. */
export const unsatisfiable = Symbol('unsatisfiable')
/** The answer ended before its end, or is not what was stored. */
export const torn = Symbol('torn')
