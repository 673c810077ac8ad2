import { createHash } from 'node:crypto'
import type { Principal } from '../../core/provider.ts'

/** What a token stands for. */
export interface Grant {
  readonly principal: Principal
  /** When it ends, in milliseconds since 1970. */
  readonly expires: number
}

/** What a token is worth. A fault is for the log alone: whoever sent the token is told that it is not good, and no more. */
export type Verdict = { readonly grant: Grant } | { readonly fault: string }

/** Judges the tokens of one kind. */
export interface Verifier {
  takes(token: string): boolean
  /** @throws ResourceError `unavailable` when that cannot be said just now. */
  verify(token: string): Promise<Verdict>
  /** Calls `end` when a token that was good may have stopped to be, before it expires. Answers what gives that up. */
  watch?(token: string, grant: Grant, end: () => void): () => void
}

/** A token as it may be remembered, compared and, its first characters, logged. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
