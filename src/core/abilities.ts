import type { JsonObject } from './tool.ts'

/** A record as it is kept. */
export interface Stored {
  readonly id: string
  /** `unchanged`: the same record was stored already. */
  readonly status: 'created' | 'replaced' | 'unchanged'
  readonly created: string
  readonly expires?: string
}

/** Abilities of a provider that keeps records for its callers. */
export interface Recording {
  /**
   * Stores a record, and replaces the whole record with the same id. If that has the same content, nothing changes.
   *
   * @throws ResourceError `invalid` (reason `record`, with `field`) for a malformed record, or one that has expired; `invalid`
   * (reason `too-large`) beyond the limit; `unavailable` when the store does not answer.
   */
  put(value: unknown): Promise<Stored>
  /** Validates a record as `put` does, without storing it. */
  check(value: unknown): void
  /** JSON Schema (draft 2020-12) of a record. */
  readonly schema: JsonObject
}

/**
 * Why notifications of changes are degraded, for the operator. `limited`: a part of the source cannot be watched, and is compared
 * periodically instead; `lost`: the watch has ended, and is being restarted; `unavailable`: the source itself does not answer.
 */
export type Degradation = 'limited' | 'lost' | 'unavailable'

/**
 * State of the index of a mount: `waiting` for its turn; `comparing` the listing with the index, and reading changes;
 * `current`: the index equals the listing; `unavailable`: the source or the store does not answer, and is asked again later.
 */
export type MountState = 'waiting' | 'comparing' | 'current' | 'unavailable'

export interface MountProgress {
  readonly address: string
  readonly state: MountState
  /** In milliseconds since 1970. */
  readonly since: number
  /** Number of examined documents; `of`: number of all, as far as it is known. */
  readonly looked: number
  readonly of?: number
  /** Number of documents that were read and indexed since this began. */
  readonly indexed: number
  /** How changes are noticed: by a watch, or by comparing everything at an interval. */
  readonly changes: 'watched' | 'compared'
  readonly degraded?: Degradation
  /** Number of entries (such as tables) of which only the first `limit` parts (such as rows) are indexed. */
  readonly partial?: { readonly entries: number; readonly limit: number }
  /** Number of entries of which only the first page is indexed, such as tables and views without a key. */
  readonly firstPages?: number
}

/** The progress of an index, as it is stored for all processes. */
export interface FeedStatus {
  /** When this was written. In milliseconds since 1970. */
  readonly told: number
  readonly mounts: readonly MountProgress[]
}

/** Abilities of a provider that searches other mounts by an index. */
export interface Feeding {
  /** Begins to keep the index as the sources are, unless another process does. Until then, it is only searched. */
  feed(): void
  /** Resolves to how far the index is; to undefined when no process keeps it. */
  feedStatus(): Promise<FeedStatus | undefined>
  /** Resolves to when the whole index was last known to be current, in milliseconds since 1970; to undefined when that is not known. */
  currentAt(): Promise<number | undefined>
}
