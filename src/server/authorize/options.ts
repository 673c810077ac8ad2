import type { ServiceNetwork } from '../../core/address-guard.ts'

/** How clients say who they are over HTTP: with access tokens of authorization servers, or tokens of our own. */
export interface AuthorizationOptions {
  /**
   * The canonical URL of the MCP endpoint, as clients reach it (RFC 8707, section 2). By default where the server listens,
   * which serves clients on the same machine alone.
   */
  readonly resource?: string
  /** The authorization servers whose tokens are taken. At most one of them is asked by introspection. */
  readonly issuers?: readonly Issuer[]
  /** What tokens of the issuers need: for every request, or for some methods. What mounts need besides, they say. */
  readonly scopes?: readonly ScopeRule[]
  /** The narrower scopes that a broader one stands for. */
  readonly implies?: Readonly<Record<string, readonly string[]>>
  /** The file of our own tokens, as `hikidashi token` writes it. */
  readonly tokens?: string
}

export interface ScopeRule {
  readonly scopes: readonly string[]
  /** By default every method. */
  readonly methods?: readonly string[]
}

/** An authorization server. Keys and introspection are where this says: nothing in a token or a document moves them. Both are asked under the guard of addresses. */
export interface Issuer extends ServiceNetwork {
  /** Its identifier, exactly as it stands in `iss`. */
  readonly issuer: string
  /** What `aud` may name, exactly. By default the resource. */
  readonly audiences?: readonly string[]
  /** Where its keys are, for tokens that are JWTs. */
  readonly jwks?: string
  /** Where it is asked about opaque tokens (RFC 7662), and as which client. */
  readonly introspection?: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  /** With which algorithms it signs. By default any asymmetric one. */
  readonly algorithms?: readonly string[]
  /** Which types its JWTs say they are. `JWT` takes those that say nothing, too. By default `at+jwt` (RFC 9068). */
  readonly types?: readonly string[]
  /** The only clients (`client_id`, `azp`) whose tokens are taken. By default all. */
  readonly clients?: readonly string[]
  /** How long ago a token may have been issued, in milliseconds. By default as long as it lasts. */
  readonly maxAge?: number
  readonly roles?: readonly RoleRule[]
}

/** Roles for whoever has a token of the issuer, or for the values of a claim. */
export type RoleRule =
  | { readonly roles: readonly string[] }
  | {
      /** The name of a claim, or the names that lead to one within others. */
      readonly claim: readonly string[]
      /** The roles for each value. Without it, a value is the name of a role. */
      readonly map?: Readonly<Record<string, readonly string[]>>
    }

/** By how much clocks may differ, in milliseconds. */
export const leeway = 30_000

/** Where the requests to an issuer may go. */
export function networkOf({ allowAddresses, resolve }: Issuer): ServiceNetwork {
  return { ...(allowAddresses === undefined ? {} : { allowAddresses }), ...(resolve === undefined ? {} : { resolve }) }
}
