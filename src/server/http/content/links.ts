import { randomBytes } from 'node:crypto'
import { valueOr } from '../../../core/errors.ts'
import { createCursorSeal } from '../../../core/paging.ts'
import type { Principal } from '../../../core/provider.ts'
import type { Caller } from '../../auth/caller.ts'
import type { LinkFor } from '../../messages/messages.ts'

export type ContentLinks = ReturnType<typeof createContentLinks>

export interface ContentLinkOptions {
  /** How long a link is valid, in milliseconds. Default 300,000 (5 minutes). */
  readonly lifetimeMs?: number
  /** Secret that signs and encrypts links. Default: random, so links end with the process. */
  readonly secret?: Uint8Array
  /** Secrets of earlier links, which remain valid. */
  readonly earlierSecrets?: readonly Uint8Array[]
}

export const contentPath = '/content/'

/** Purpose in the signature: a link is not valid as a cursor, nor a cursor as a link. */
const scope = ['content-link', '1']
/** Expiry times are rounded up to this, so that repeated requests get the same link. */
const stepMs = 10_000
/** Maximum number of credentials with links. Beyond it the oldest ones lose theirs. */
const maxGrants = 10_000

/** The grant of all links of one caller's credentials: these links are revoked together. */
interface Grant {
  readonly id: string
  expires: number
  readonly forget: () => void
}

/**
 * Creates signed links. A link holds its URI, its principal and its expiry, encrypted and authenticated (see `createCursorSeal`). Access
 * rules apply when it is used, to the rights that the principal had when it was created. It ends early with the caller's credentials.
 *
 * @param maxLength Maximum length of the path of a request, in characters: no longer link is created.
 * @param now Returns the current time, in milliseconds since 1970.
 */
export function createContentLinks(
  { lifetimeMs = 300_000, secret = randomBytes(32), earlierSecrets = [] }: ContentLinkOptions,
  maxLength: number,
  now: () => number = Date.now,
) {
  const seal = createCursorSeal(secret, earlierSecrets)
  const grants = new Map<string, Grant>()
  const granted = new Set<string>()

  const revoke = (credential: string): void => {
    const grant = grants.get(credential)
    if (grant === undefined) return
    grants.delete(credential)
    granted.delete(grant.id)
    grant.forget()
  }

  const removeOld = (): void => {
    for (const [credential, { expires }] of grants) {
      if (expires > now() && grants.size <= maxGrants) return
      revoke(credential)
    }
  }

  const grantOf = (caller: Caller, credential: string, expires: number): string => {
    const cachedGrant = grants.get(credential)
    const grant = cachedGrant ?? {
      id: randomBytes(12).toString('base64url'),
      expires,
      forget: caller.untilEnd(() => revoke(credential)),
    }
    grant.expires = Math.max(grant.expires, expires)
    grants.delete(credential)
    grants.set(credential, grant)
    granted.add(grant.id)
    removeOld()
    return grant.id
  }

  return {
    /** Creates links for a caller. `base`: the URL at which the caller reaches the server, without a final slash. */
    linkFor:
      (caller: Caller, base: string): LinkFor =>
      (uri) => {
        const expires = Math.ceil((now() + lifetimeMs) / stepMs) * stepMs
        const { id, roles, scopes } = caller.principal
        const grant = caller.credential === undefined ? undefined : grantOf(caller, caller.credential, expires)
        const path = `${contentPath}${seal.seal(scope, JSON.stringify({ uri, expires, id, roles, scopes, grant }))}`
        if (path.length > maxLength) return undefined
        return { href: `${base}${path}`, expires: new Date(expires).toISOString() }
      },
    /** Returns the target of a link; undefined when it is forged or expired, or its caller's credentials have ended. */
    open: (path: string): { readonly uri: string; readonly principal: Principal } | undefined => {
      const target = openSealed(path.slice(contentPath.length))
      if (target === undefined || target.expires <= now()) return undefined
      if (target.grant !== undefined && !granted.has(target.grant)) return undefined
      const { uri, id, roles, scopes } = target
      return { uri, principal: { id, roles, scopes } }
    },
    close: () => {
      for (const credential of [...grants.keys()]) revoke(credential)
    },
  }

  function openSealed(text: string): Sealed | undefined {
    return valueOr(() => JSON.parse(seal.open(scope, text)) as Sealed, undefined, 'invalid')
  }
}

/** Contents of a link. `grant` is missing when callers are not authenticated. */
interface Sealed extends Principal {
  readonly uri: string
  readonly expires: number
  readonly grant?: string
}
