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
