import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid, isResourceError, ResourceError } from '../../core/errors.ts'
import { isObject } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import { createGate } from '../admission/gate.ts'
import { headerValues } from '../exchange.ts'
import { type Caller, callAt, hashToken, type RestoredToken, type TokenVerdict, type TokenVerifier } from './caller.ts'
import {
  type AuthorizationOptions,
  type Claims,
  createScopeRequirements,
  type Issuer,
  issuerNetwork,
  judgeClaims,
} from './claims.ts'
import { fetchJson } from './fetch.ts'
import { createJwtVerifier, createMemo, issuerOf, type JwtIssuer } from './jwt.ts'
import { type AuthRefusal, canonicalResource, createAuthRefusals, createMetadata } from './metadata.ts'
import { createTokenVerifier } from './tokens.ts'

interface AuthorizerOptions extends AuthorizationOptions {
  /** URL of the server, if all clients reach it there: on the loopback. */
  readonly url?: string
  readonly path: string
  readonly log: Log
  readonly scopesOf?: (uri: string) => readonly string[]
}

/** Maximum length of a token, in characters. */
const maxToken = 16 * 1024

/**
 * Creates the authentication of callers, as a resource server of OAuth 2.1 (section 5) with the rules of MCP (basic/authorization).
 *
 * @throws ResourceError `invalid` for options with which tokens cannot be checked, such as an issuer without keys.
 */
export async function createAuthorizer(options: AuthorizerOptions) {
  const { issuers = [], log } = options
  const resource = tokenAudience(options)
  const scopeRequirements = createScopeRequirements(options.scopes ?? [], options.scopesOf ?? (() => []))
  const names = issuers.map(({ issuer }) => issuer)
  const metadata =
    names.length === 0 ? undefined : createMetadata(resource, options.path, names, scopeRequirements.always)
  const challenges = createAuthRefusals(metadata?.url, scopeRequirements.always)
  const verifiers = await createVerifiers(options, resource)
  const logRefusal = createRefusalLog(log)

  const callerOf = (digest: string, { grant, watch }: RestoredToken, isRestorable: boolean): Caller => ({
    principal: grant.principal,
    credential: digest,
    isRestorable,
    expires: grant.expires,
    untilEnd: (end) => {
      const forget = [callAt(grant.expires, end), watch(end)]
      return () => {
        for (const give of forget) give()
      }
    },
  })

  return {
    serveMetadata: (request: IncomingMessage, response: ServerResponse): boolean =>
      metadata?.serve(request, response) ?? false,
    /** Returns the caller of a request, by its headers alone, or why it is refused. */
    authenticate: async (request: IncomingMessage): Promise<Caller | AuthRefusal> => {
      const credentials = credentialsOf(request)
      if (typeof credentials === 'string') return challenges[credentials === 'none' ? 'missing' : 'malformed']
      const { token } = credentials
      const digest = hashToken(token)
      const refuse = (why: string) => {
        logRefusal(digest.slice(0, 8), why)
        return challenges.invalid
      }
      if (token.length > maxToken) return refuse('it is too long')
      const verifier = verifiers.find((one) => one.takes(token))
      if (verifier === undefined) return refuse('its kind or its issuer is not accepted')
      try {
        const verdict = await verifier.verify(token, digest)
        if (!('grant' in verdict)) return refuse(verdict.fault)
        const { grant } = verdict
        const watch: RestoredToken['watch'] = (end) => verifier.watch?.(token, grant, end) ?? (() => {})
        return callerOf(digest, { grant, watch }, verifier.restore !== undefined)
      } catch (error) {
        if (!isResourceError(error)) throw error
        logRefusal(digest.slice(0, 8), error.message)
        return challenges.unavailable
      }
    },
    /**
     * Returns the caller with some credentials, by their digest. Undefined when they are not valid any more.
     *
     * @throws ResourceError `unavailable` when they cannot be checked at the moment.
     */
    restore: async (digest: string): Promise<Caller | undefined> => {
      for (const verifier of verifiers) {
        const restored = await verifier.restore?.(digest)
        if (restored !== undefined) return callerOf(digest, restored, true)
      }
      return undefined
    },
    /** Returns the refusal of a body for which the caller lacks a scope; undefined when it is allowed. */
    refusalOf: ({ principal: { scopes } }: Caller, body: unknown): AuthRefusal | undefined => {
      if (scopes === undefined) return undefined
      const requiredScopes = scopeRequirements.of(body)
      return requiredScopes.every((scope) => scopes.includes(scope))
        ? undefined
        : challenges.insufficient(requiredScopes)
    },
  }
}

export type Authorizer = Awaited<ReturnType<typeof createAuthorizer>>

const refuse = (why: string) => invalid(why, 'configuration')

/** Returns the resource for which the issuers' tokens must be. Empty without issuers: tokens of this server's own file have no audience. */
function tokenAudience({ issuers = [], resource, url }: AuthorizerOptions): string {
  const resourceUrl = resource ?? url
  if (resourceUrl !== undefined) return canonicalResource(resourceUrl)
  if (issuers.length === 0) return ''
  throw refuse(
    'The audience of tokens is not known. Set http.auth.resource to the URL at which clients reach this server.',
  )
}

async function createVerifiers(options: AuthorizerOptions, resource: string): Promise<readonly TokenVerifier[]> {
  const { implies = {}, log, tokens } = options
  const issuers = (options.issuers ?? []).map((issuer) => ({ ...issuer, audiences: issuer.audiences ?? [resource] }))
  if (issuers.length === 0 && tokens === undefined)
    throw refuse('Neither issuers nor a file of tokens is set. Set http.auth.issuers or http.auth.tokens.')
  if (new Set(issuers.map(({ issuer }) => issuer)).size < issuers.length)
    throw refuse('An issuer is listed twice. Remove one of the two.')
  for (const { issuer, audiences, jwks, introspection } of issuers) {
    if (audiences.length === 0 || audiences.includes(''))
      throw refuse(`The audiences of the issuer ${issuer} are empty. Set its "audiences", or remove the key.`)
    if (jwks === undefined && introspection === undefined)
      throw refuse(
        `The issuer ${issuer} has neither "jwks" nor "introspection", so its tokens cannot be checked. Add one.`,
      )
  }
  const signed = issuers.filter((issuer): issuer is JwtIssuer => issuer.jwks !== undefined)
  const opaqueIssuers = issuers.filter((issuer): issuer is AskedIssuer => issuer.introspection !== undefined)
  if (opaqueIssuers.length > 1)
    throw refuse(
      'Several issuers have "introspection". Leave one: an opaque token does not name its issuer, and no other server may see it.',
    )
  return [
    ...(tokens === undefined ? [] : [await createTokenVerifier(tokens, log)]),
    ...(signed.length === 0 ? [] : [await createJwtVerifier(signed, implies, log)]),
    ...opaqueIssuers.map((issuer) => createIntrospectionVerifier(issuer, implies)),
  ]
}

type Credentials = { readonly token: string } | 'none' | 'malformed'

/**
 * Returns the token in the header `Authorization`. A token in the query is ignored, because many logs have it by then. A request with a
 * token in both is malformed.
 */
function credentialsOf(request: IncomingMessage): Credentials {
  const values = headerValues(request, 'authorization')
  const [value = ''] = values
  if (values.length > 1) return 'malformed'
  const [, rest] = /^bearer(?:[ \t]+(.*))?$/i.exec(value) ?? []
  if (rest === undefined || rest === '') return 'none'
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(rest) || /[?&]access_token=/.test(request.url ?? '')) return 'malformed'
  return { token: rest }
}

const burstSize = 20
/** Interval after which one more entry is allowed, in milliseconds. */
const intervalMs = 3000

/** Creates the log of refused tokens, with a rate limit. An entry has the beginning of a token's digest, never the token itself. */
function createRefusalLog(log: Log) {
  let remaining = burstSize
  let since = performance.now()
  let untold = 0
  return (digest: string, why: string): void => {
    const now = performance.now()
    const gained = Math.floor((now - since) / intervalMs)
    since += gained * intervalMs
    remaining = Math.min(burstSize, remaining + gained)
    if (remaining === 0) return void untold++
    remaining--
    log('info', 'a token was refused', { token: digest, why, ...(untold > 0 ? { untold } : {}) })
    untold = 0
  }
}

/** How long an answer is cached. */
const cacheMs = 30_000
const maxCached = 2000
const maxConcurrent = 16
/** Maximum number of requests that wait for a slot. */
const maxWaiting = 256

type AskedIssuer = Issuer & {
  readonly introspection: NonNullable<Issuer['introspection']>
  readonly audiences: readonly string[]
}

/** Creates the verifier of opaque access tokens: it asks the issuer about each one (RFC 7662). */
export function createIntrospectionVerifier(
  issuer: AskedIssuer,
  implies: Readonly<Record<string, readonly string[]>>,
): TokenVerifier {
  const { url, clientId, clientSecret } = issuer.introspection
  const network = issuerNetwork(issuer)
  const authorization = `Basic ${Buffer.from([clientId, clientSecret].map(formEncode).join(':')).toString('base64')}`
  const gate = createGate(maxConcurrent, maxWaiting)
  const verdictOn = createMemo<TokenVerdict>(maxCached)

  const ask = async (token: string): Promise<TokenVerdict> => {
    const body = `token=${formEncode(token)}&token_type_hint=access_token`
    const answered = await gate.run(() => fetchJson(url, { ...network, body, authorization }))
    if ('refused' in answered)
      throw new ResourceError('unavailable', 'Too many tokens are introspected at once. Try again later.')
    const claims = answered.value.value
    if (!isObject(claims) || typeof claims.active !== 'boolean')
      throw new ResourceError('unavailable', `The answer of ${url} to an introspection is malformed.`)
    return claims.active ? judge(claims) : { fault: 'the issuer says that it is not active' }
  }

  const judge = (claims: Claims): TokenVerdict => {
    if (claims.iss !== undefined && claims.iss !== issuer.issuer) return { fault: 'it is of another issuer' }
    if (![claims.aud].flat().some((audience) => issuer.audiences.includes(String(audience))))
      return { fault: 'it is for another audience' }
    return judgeClaims(claims, issuer, implies)
  }

  const verify = (token: string): Promise<TokenVerdict> =>
    verdictOn(hashToken(token), async () => {
      const value = await ask(token)
      return { value, until: 'grant' in value ? Math.min(value.grant.expires, Date.now() + cacheMs) : 0 }
    })

  return {
    // A JWT names its issuer: no other server may see it.
    takes: (token) => [undefined, issuer.issuer].includes(issuerOf(token)),
    verify,
    watch: (token, grant, end) => {
      const look = async () => {
        const verdict = await verify(token).catch(() => undefined)
        const now = verdict !== undefined && 'grant' in verdict ? verdict.grant.principal : undefined
        if (JSON.stringify(now) !== JSON.stringify(grant.principal)) end()
      }
      const timer = setInterval(() => void look(), cacheMs)
      return () => clearInterval(timer)
    },
  }
}

/** Encodes as `application/x-www-form-urlencoded`, which client identifiers require too (RFC 6749, section 2.3.1). */
function formEncode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}
