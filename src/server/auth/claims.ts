import type { ServiceNetwork } from '../../core/address-guard.ts'
import { defined, isObject } from '../../core/kit/object.ts'
import type { TokenVerdict } from './caller.ts'

export type Claims = Readonly<Record<string, unknown>>

const maxSubject = 1024

/**
 * Checks the claims of a token whose issuer is already verified. Returns the principal and the expiry, or the fault. `implies`: the
 * narrower scopes that a scope implies.
 */
export function judgeClaims(
  claims: Claims,
  issuer: Issuer,
  implies: Readonly<Record<string, readonly string[]>>,
): TokenVerdict {
  const fault = timeFault(claims, issuer) ?? bindingFault(claims) ?? clientFault(claims, issuer)
  if (fault !== undefined) return { fault }
  const id = principalId(claims, issuer)
  if (id === undefined) return { fault: 'it names no valid subject or client' }
  const roles = [...new Set((issuer.roles ?? []).flatMap((rule) => rolesBy(rule, claims)))].sort()
  const principal = { id, roles, scopes: withImpliedScopes(scopesIn(claims), implies) }
  const exp = claims.exp === undefined ? Number.POSITIVE_INFINITY : Number(claims.exp) * 1000
  // A token that is accepted because of the leeway expires at the end of the leeway.
  return { grant: { principal, expires: exp > Date.now() ? exp : exp + leewayMs } }
}

function timeFault({ exp, nbf, iat }: Claims, { maxAge }: Issuer): string | undefined {
  const now = Date.now()
  for (const [name, time] of Object.entries({ exp, nbf, iat }))
    if (time !== undefined && !(Number.isSafeInteger(time) && Number(time) >= 0)) return `its ${name} is not a time`
  if (exp !== undefined && Number(exp) * 1000 + leewayMs <= now) return 'it has expired'
  if (nbf !== undefined && Number(nbf) * 1000 - leewayMs > now) return 'it is not valid yet'
  if (iat !== undefined && Number(iat) * 1000 - leewayMs > now) return 'it was issued in the future'
  if (maxAge !== undefined && !(Number(iat) * 1000 + maxAge + leewayMs > now))
    return 'it was issued too long ago, or does not say when'
  return undefined
}

/** Returns the fault of a token that is no bearer token. One that is bound to a key (RFC 9449, RFC 8705) needs a proof, which is not supported. */
function bindingFault({ cnf, token_type: type }: Claims): string | undefined {
  if (cnf !== undefined) return 'it is bound to a key'
  if (type !== undefined && !/^bearer$/i.test(String(type))) return 'it is not a bearer token'
  return undefined
}

function clientFault({ client_id: client, azp }: Claims, { clients }: Issuer): string | undefined {
  if (clients === undefined) return undefined
  const clientNames = [client, azp].filter((one) => one !== undefined)
  const isTaken = clientNames.length > 0 && clientNames.every((one) => typeof one === 'string' && clients.includes(one))
  return isTaken ? undefined : 'it is for no client that is accepted here'
}

/** Returns an id that is unique over all issuers: two of them may give the same subject to two people. */
function principalId({ sub, client_id: client }: Claims, { issuer }: Issuer): string | undefined {
  const name = sub ?? client
  if (typeof name !== 'string' || name === '' || name.length > maxSubject || !name.isWellFormed()) return undefined
  return JSON.stringify(sub === undefined ? [issuer, 'client', name] : [issuer, name])
}

/** Reads `scope` (RFC 9068) or `scp`: a text separated by spaces, or an array. */
function scopesIn({ scope, scp }: Claims): readonly string[] {
  const scopeClaim = scope ?? scp
  return claimWords(scopeClaim).filter((word) => word !== '')
}

function rolesBy(rule: RoleRule, claims: Claims): readonly string[] {
  if ('roles' in rule) return rule.roles
  let value: unknown = claims
  for (const name of rule.claim) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  const isScope = rule.claim.length === 1 && ['scope', 'scp'].includes(rule.claim[0] ?? '')
  const values = isScope ? claimWords(value) : [value].flat().filter((one) => typeof one === 'string')
  const { map } = rule
  return map === undefined ? values : values.flatMap((one) => (Object.hasOwn(map, one) ? (map[one] ?? []) : []))
}

function claimWords(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split(' ')
  return Array.isArray(value) ? value.filter((word) => typeof word === 'string') : []
}

/** Returns all granted scopes: the given ones, and all that they imply, directly or indirectly. */
export function withImpliedScopes(
  granted: Iterable<string>,
  implies: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  const all = new Set(granted)
  // The loop also visits scopes that are added during it.
  for (const scope of all)
    if (Object.hasOwn(implies, scope)) for (const narrower of implies[scope] ?? []) all.add(narrower)
  return [...all].sort()
}

/**
 * The scopes that operations require.
 *
 * @param scopesOf Returns the scopes that a URI requires, by its mount. Whether a resource exists makes no difference.
 */
export function createScopeRequirements(rules: readonly ScopeRule[], scopesOf: (uri: string) => readonly string[]) {
  const always = [...new Set(rules.flatMap(({ scopes, methods }) => (methods === undefined ? scopes : [])))]
  const byMethod = (method: unknown) =>
    rules.flatMap(({ scopes, methods }) => (typeof method === 'string' && methods?.includes(method) ? scopes : []))
  const ofMessage = (message: unknown): readonly string[] => {
    if (!isObject(message)) return []
    return [...byMethod(message.method), ...[...urisOf(message.params)].flatMap(scopesOf)]
  }
  return {
    /** Scopes that every request requires. */
    always,
    /** Returns the scopes that a body (a message or a batch) requires: by its methods, and by the mounts of the URIs in it. */
    of: (body: unknown) => [...new Set([...always, ...[body].flat().flatMap(ofMessage)])],
  }
}

function urisOf(params: unknown): ReadonlySet<string> {
  const scopes = new Set<string>()
  const add = (value: unknown) => typeof value === 'string' && scopes.add(value)
  if (!isObject(params)) return scopes
  add(params.uri)
  if (isObject(params.ref)) add(params.ref.uri)
  if (isObject(params.notifications)) [params.notifications.resourceSubscriptions].flat().forEach(add)
  return scopes
}

/** Authentication of clients over HTTP: by access tokens of authorization servers, or by tokens of this server's own file. */
export interface AuthorizationOptions {
  /** The canonical URL of the MCP endpoint, as clients reach it (RFC 8707, section 2). Default: the address on which the server listens. */
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

/** An authorization server. Requests for its keys and introspection go through the address guard. */
export interface Issuer extends ServiceNetwork {
  /** Identifier of the issuer, exactly as in `iss`. */
  readonly issuer: string
  /** Accepted values of `aud`, exactly. Default: the resource. */
  readonly audiences?: readonly string[]
  /** URL of the issuer's keys, for tokens that are JWTs. */
  readonly jwks?: string
  /** URL of the issuer's introspection of opaque tokens (RFC 7662), and the credentials for it. */
  readonly introspection?: { readonly url: string; readonly clientId: string; readonly clientSecret: string }
  /** Accepted signature algorithms. Default: any asymmetric one. */
  readonly algorithms?: readonly string[]
  /** Accepted types of the issuer's JWTs. `JWT` also accepts those without a type. Default `at+jwt` (RFC 9068). */
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
      readonly claim: readonly string[]
      /** The roles for each value. Without it, the value itself is the name of a role. */
      readonly map?: Readonly<Record<string, readonly string[]>>
    }

/** Tolerated difference between clocks, in milliseconds. */
export const leewayMs = 30_000

export function issuerNetwork({ allowAddresses, resolve }: Issuer): ServiceNetwork {
  return { ...defined({ allowAddresses, resolve }) }
}
