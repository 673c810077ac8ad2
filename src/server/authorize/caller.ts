import { setMaxListeners } from 'node:events'
import type { Principal } from '../../core/provider.ts'

/** Who asks, for as long as their credentials are good. */
export interface Caller {
  readonly principal: Principal
  /** Whose share of the places it takes. */
  readonly share?: string
  /** Calls `end` once the credentials are good no more. Answers what gives that up. */
  untilEnd(end: () => void): () => void
}

/** Somebody who need not say who they are. */
export function alwaysCaller(principal: Principal): Caller {
  return { principal, untilEnd: () => () => {} }
}

/** A signal that aborts when a caller's credentials end, or when another signal does. */
export interface Lifetime {
  readonly signal: AbortSignal
  /** Gives it up: neither is listened to any more. */
  release(): void
}

export function lifetimeOf(caller: Caller, other: AbortSignal): Lifetime {
  const controller = new AbortController()
  const end = () => controller.abort()
  const forget = caller.untilEnd(end)
  // Any number of streams may end with the service.
  setMaxListeners(0, other)
  other.addEventListener('abort', end)
  if (other.aborted) end()
  return {
    signal: controller.signal,
    release: () => {
      forget()
      other.removeEventListener('abort', end)
    },
  }
}

/** The longest that a timer of Node can wait, in milliseconds. */
const maxWait = 2 ** 31 - 1

/** Calls back at a time, in milliseconds since 1970, however far away. Answers what gives that up. */
export function callAt(time: number, call: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const wait = () => {
    const left = time - Date.now()
    timer = left > 0 ? setTimeout(wait, Math.min(left, maxWait)) : setTimeout(call, 0)
  }
  if (time !== Number.POSITIVE_INFINITY) wait()
  return () => clearTimeout(timer)
}

/** The owner of a session: always the same one, with the rights of the token that was shown last. */
export interface Owner extends Principal {
  renew(latest: Principal): void
}

/** Whoever reads its roles and scopes gets those of now: a session outlives the tokens that it is used with. */
export function ownerOf(first: Principal): Owner {
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
