import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Principal } from '../../core/provider.ts'
import type { LinkFor } from '../messages/messages.ts'

/** An authenticated caller. */
export interface Caller {
  readonly principal: Principal
  /** Key of the share of the concurrency limits that the caller uses. */
  readonly share?: string
  /** Digest of the credentials. Undefined without authentication. */
  readonly credential?: string
  /** Whether the credentials can be checked again by their digest alone ({@link TokenVerifier.restore}). */
  readonly isRestorable?: boolean
  /** Time at which the credentials expire, in milliseconds since 1970; `Infinity`: never. Undefined without authentication. */
  readonly expires?: number
  /** Creates links to contents that are too large for an answer. Undefined when there are none. */
  readonly linkFor?: LinkFor | undefined
  /** Calls `end` when the credentials are no longer valid. Returns a function that cancels this. */
  untilEnd(end: () => void): () => void
}

/** Creates a caller without authentication. */
export function unauthenticatedCaller(principal: Principal): Caller {
  return { principal, untilEnd: () => () => {} }
}

/** The reason of a signal that aborts because the credentials of a caller are no longer valid. */
export const credentialsEnded = Symbol('credentials ended')

/** Returns a signal that aborts when a caller's credentials end (with {@link credentialsEnded}), or when another signal does. */
export function lifetimeSignal(caller: Caller, other: AbortSignal) {
  const controller = new AbortController()
  const signal: AbortSignal = controller.signal
  const end = () => controller.abort()
  const forget = caller.untilEnd(() => controller.abort(credentialsEnded))
  // Each stream adds a listener, and Node warns above ten.
  setMaxListeners(0, other)
  other.addEventListener('abort', end)
  if (other.aborted) end()
  return {
    signal,
    release: () => {
      forget()
      other.removeEventListener('abort', end)
    },
  }
}

const maxTimerMs = 2 ** 31 - 1

/** Calls a function at a time, in milliseconds since 1970, however far away; `Infinity`: never. Returns a function that cancels the call. */
export function callAt(time: number, call: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const wait = () => {
    const remainingMs = time - Date.now()
    timer = remainingMs > 0 ? setTimeout(wait, Math.min(remainingMs, maxTimerMs)) : setTimeout(call, 0)
  }
  if (time !== Number.POSITIVE_INFINITY) wait()
  return () => clearTimeout(timer)
}

/** The owner of a session: always the same principal, with the rights of the latest token. */
export interface SessionOwner extends Principal {
  renew(latest: Principal): void
}

/** Creates an owner with the rights of the latest token, because a session outlives tokens. */
export function createSessionOwner(first: Principal): SessionOwner {
  let { roles, scopes } = first
  return {
    id: first.id,
    get roles() {
      return roles
    },
    get scopes() {
      return scopes
    },
    renew: (latest) => {
      ;({ roles, scopes } = latest)
    },
  }
}

/** The rights of a valid token. */
export interface Grant {
  readonly principal: Principal
  /** Time of expiry, in milliseconds since 1970; `Infinity`: never. */
  readonly expires: number
}

/** A valid token of which only the digest is known. */
export interface RestoredToken {
  readonly grant: Grant
  /** Calls `end` when the token may have become invalid before its expiry. Returns a function that cancels this. */
  watch(end: () => void): () => void
}

/** The result of checking a token. A fault goes to the log; the client learns only that its token is invalid. */
export type TokenVerdict = { readonly grant: Grant } | { readonly fault: string }

export interface TokenVerifier {
  /** Whether a token is of this kind, valid or not. */
  takes(token: string): boolean
  /**
   * @param digest The digest of the token, if it is known.
   * @throws ResourceError `unavailable` when the token cannot be checked at the moment.
   */
  verify(token: string, digest?: string): Promise<TokenVerdict>
  /**
   * Checks a token again by its digest. Undefined: it is not valid any more.
   *
   * @throws ResourceError `unavailable` when it cannot be checked at the moment.
   */
  restore?(digest: string): Promise<RestoredToken | undefined>
  /** Calls `end` when a valid token may have become invalid before its expiry. Returns a function that cancels this. */
  watch?(token: string, grant: Grant, end: () => void): () => void
}

/** Returns the SHA-256 of a token, in hexadecimal. Its first characters may be logged. */
export function hashToken(token: string): string {
  return hash('sha256', token)
}
