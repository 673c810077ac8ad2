import type { ServiceNetwork } from '../../core/address-guard.ts'
import { defined } from '../../core/kit/defined.ts'

/** Authentication of clients over HTTP: by access tokens of authorization servers, or by tokens of this server's own file. */
export interface AuthorizationOptions {
  /**
   * The canonical URL of the MCP endpoint, as clients reach it (RFC 8707, section 2). Default: the address on which the server
   * listens, which is right only for clients on the same machine.
   */
  readonly resource?: string
  /** The authorization servers whose tokens are accepted. At most one of them has introspection. */
  readonly issuers?: readonly Issuer[]
  /** Scopes that tokens of the issuers must have, for every request or for some methods. Mounts may require further ones. */
  readonly scopes?: readonly ScopeRule[]
  /** The narrower scopes that a broader one implies. */
  readonly implies?: Readonly<Record<string, readonly string[]>>
  /** The file of this server's own tokens, as `hikidashi token` writes it. */
  readonly tokens?: string
}

export interface ScopeRule {
  readonly scopes: readonly string[]
  /** Methods that require the scopes. Default every method. */
  readonly methods?: readonly string[]
}

/**
 * An authorization server. The locations of its keys and introspection come only from here, never from a token or a document.
 * Requests to both go through the address guard.
 */
export interface Issuer extends ServiceNetwork {
  /** Its identifier, exactly as in `iss`. */
  readonly issuer: string
  /** Accepted values of `aud`, exactly. Default: the resource. */
  readonly audiences?: readonly string[]
  /** URL of its keys, for tokens that are JWTs. */
  readonly jwks?: string
  /** URL of its introspection for opaque tokens (RFC 7662), and the credentials for it. */
  readonly introspection?: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  /** Accepted signature algorithms. Default: any asymmetric one. */
  readonly algorithms?: readonly string[]
  /** Accepted types of its JWTs. `JWT` also accepts those without a type. Default `at+jwt` (RFC 9068). */
  readonly types?: readonly string[]
  /** The only clients (`client_id`, `azp`) whose tokens are accepted. Default all. */
  readonly clients?: readonly string[]
  /** Maximum age of a token since it was issued, in milliseconds. Default: until it expires. */
  readonly maxAge?: number
  readonly roles?: readonly RoleRule[]
}

/** Roles for all tokens of the issuer, or by the values of a claim. */
export type RoleRule =
  | { readonly roles: readonly string[] }
  | {
      /** The name of a claim, or the path of names to a nested one. */
      readonly claim: readonly string[]
      /** The roles for each value. Without it, the value itself is the name of a role. */
      readonly map?: Readonly<Record<string, readonly string[]>>
    }

/** Tolerated difference between clocks, in milliseconds. */
export const leeway = 30_000

/** Returns the network settings for requests to an issuer. */
export function networkOf({ allowAddresses, resolve }: Issuer): ServiceNetwork {
  return { ...defined({ allowAddresses, resolve }) }
}
