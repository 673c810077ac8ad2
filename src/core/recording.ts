import type { JsonObject } from './tool.ts'

/** A record as it is kept. */
export interface Stored {
  readonly id: string
  /** `unchanged`: the same was there already. */
  readonly status: 'created' | 'replaced' | 'unchanged'
  readonly created: string
  readonly expires?: string
}

/** Abilities of a provider that keeps records for its callers. */
export interface Recording {
  /**
   * Keeps a record. The same content put twice is kept once: nothing changes then. Of what is there under the id, everything is replaced.
   *
   * @throws ResourceError `invalid` (reason `record`, with `field`) for a malformed record, or one that has expired; `invalid` (reason
   * `too-large`) beyond the limit; `unavailable` when the store does not answer.
   */
  put(value: unknown): Promise<Stored>
  /** Judges a record as `put` does, without the store. */
  check(value: unknown): void
  /** JSON Schema (draft 2020-12) of a record. */
  readonly schema: JsonObject
}
