import { hash } from 'node:crypto'
import type { Soon } from '../../core/kit/chain.ts'
import type { Arrival, Principal } from '../../core/provider.ts'

/** The rights of a valid token. */
export interface Grant {
  readonly principal: Principal
  /** Time of expiry, in milliseconds since 1970. */
  readonly expires: number
}

/** The result of checking a token. A fault goes only to the log: the client learns only that its token is invalid. */
export type Verdict = { readonly grant: Grant } | { readonly fault: string }

/** Verifies the tokens of one kind. */
export interface Verifier {
  takes(token: string): boolean
  /**
   * @param digest The digest of the token, if it is known.
   * @param arrival The arrival of the request.
   * @throws ResourceError `unavailable` when the token cannot be checked at the moment: at once, or as a rejection.
   */
  verify(token: string, digest?: string, arrival?: Arrival): Soon<Verdict>
  /** Calls `end` when a valid token may have become invalid before its expiry. Returns a function that cancels this. */
  watch?(token: string, grant: Grant, end: () => void): () => void
}

/** Returns the digest of a token. It may be stored and compared; its first characters may be logged. */
export function digestOf(token: string): string {
  return hash('sha256', token)
}
