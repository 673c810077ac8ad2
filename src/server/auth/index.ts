import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid, isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { credentialsOf } from './bearer.ts'
import { type Caller, callAt } from './caller.ts'
import { createChallenges, type Refusal } from './challenge.ts'
import { type AskedIssuer, createIntrospection } from './introspection.ts'
import { createJwtVerifier, type JwtIssuer } from './jwt.ts'
import { canonicalResource, createMetadata } from './metadata.ts'
import type { AuthorizationOptions } from './options.ts'
import { createRefusals } from './refusals.ts'
import { createNeeds } from './scopes.ts'
import { createTokenVerifier } from './tokens.ts'
import { digestOf, type Grant, type Verifier } from './verdict.ts'

/** Authenticates callers: the resource server of OAuth 2.1 (section 5), with the rules of MCP for it (basic/authorization). */
export interface Authorizer {
  /** Answers a request for the metadata of the resource. Returns false for any other request. */
  serveMetadata(request: IncomingMessage, response: ServerResponse): boolean
  /** Returns the caller of a request, by its headers alone, or why it is refused. */
  authenticate(request: IncomingMessage): Promise<Caller | Refusal>
  /**
   * Returns the refusal of a body for which the caller lacks a scope; undefined when it is allowed. Whether a resource exists
   * makes no difference.
   */
  refusalOf(caller: Caller, body: unknown): Refusal | undefined
}

export interface AuthorizerOptions extends AuthorizationOptions {
  /** URL of the server, if all clients reach it there: on the loopback. */
  readonly url?: string
  readonly path: string
  readonly log: Log
  /** Returns the scopes that a URI requires. */
  readonly scopesOf?: (uri: string) => readonly string[]
}

/** Maximum length of a token, in characters. */
const maxToken = 16 * 1024

/** @throws ResourceError `invalid` for options that would admit nobody, or anybody. */
export async function createAuthorizer(options: AuthorizerOptions): Promise<Authorizer> {
  const { issuers = [], log } = options
  const resource = resourceOf(options)
  const needs = createNeeds(options.scopes ?? [], options.scopesOf ?? (() => []))
  const names = issuers.map(({ issuer }) => issuer)
  const metadata = names.length === 0 ? undefined : createMetadata(resource, options.path, names, needs.always)
  const challenges = createChallenges(metadata?.url, needs.always)
  const verifiers = await createVerifiers(options, resource)
  const refusals = createRefusals(log)

  const callerOf = (token: string, grant: Grant, verifier: Verifier): Caller => ({
    principal: grant.principal,
    credential: digestOf(token),
    untilEnd: (end) => {
      const forget = [callAt(grant.expires, end), verifier.watch?.(token, grant, end)]
      return () => {
        for (const give of forget) give?.()
      }
    },
  })

  return {
    serveMetadata: (request, response) => metadata?.serve(request, response) ?? false,
    authenticate: async (request) => {
      const credentials = credentialsOf(request)
      if (typeof credentials === 'string') return challenges[credentials === 'none' ? 'missing' : 'malformed']
      const { token } = credentials
      const refused = (why: string) => {
        refusals.add(digestOf(token).slice(0, 8), why)
        return challenges.invalid
      }
      if (token.length > maxToken) return refused('it is too long')
      const verifier = verifiers.find((one) => one.takes(token))
      if (verifier === undefined) return refused('it is of no kind that is taken')
      try {
        const verdict = await verifier.verify(token)
        return 'grant' in verdict ? callerOf(token, verdict.grant, verifier) : refused(verdict.fault)
      } catch (error) {
        if (!isResourceError(error)) throw error
        refusals.add(digestOf(token).slice(0, 8), error.message)
        return challenges.unavailable
      }
    },
    refusalOf: ({ principal: { scopes } }, body) => {
      if (scopes === undefined) return undefined
      const needed = needs.of(body)
      return needed.every((scope) => scopes.includes(scope)) ? undefined : challenges.insufficient(needed)
    },
  }
}

const refuse = (why: string) => invalid(why, 'authorization')

/** Returns the resource for which the issuers' tokens must be. Tokens of this server's own file have no audience. */
function resourceOf({ issuers = [], resource, url }: AuthorizerOptions): string {
  const named = resource ?? url
  if (named !== undefined) return canonicalResource(named)
  if (issuers.length === 0) return ''
  throw refuse(
    'Nothing says at which URL clients reach this server, which is what their tokens are for. Set http.auth.resource.',
  )
}

async function createVerifiers(options: AuthorizerOptions, resource: string): Promise<readonly Verifier[]> {
  const { implies = {}, log, tokens } = options
  const issuers = (options.issuers ?? []).map((issuer) => ({ ...issuer, audiences: issuer.audiences ?? [resource] }))
  if (issuers.length === 0 && tokens === undefined) throw refuse('Neither an issuer nor a file of tokens is named.')
  if (new Set(issuers.map(({ issuer }) => issuer)).size < issuers.length) throw refuse('An issuer is named twice.')
  for (const { issuer, audiences, jwks, introspection } of issuers) {
    if (audiences.length === 0 || audiences.includes(''))
      throw refuse(`Nothing says for whom tokens of ${issuer} must be.`)
    if (jwks === undefined && introspection === undefined)
      throw refuse(`Nothing says how tokens of ${issuer} are checked: jwks, or introspection.`)
  }
  const signed = issuers.filter((issuer): issuer is JwtIssuer => issuer.jwks !== undefined)
  const asked = issuers.filter((issuer): issuer is AskedIssuer => issuer.introspection !== undefined)
  if (asked.length > 1)
    throw refuse(
      'Two issuers have introspection: an opaque token does not say whose it is, and only its own may see it.',
    )
  return [
    ...(tokens === undefined ? [] : [await createTokenVerifier(tokens, log)]),
    ...(signed.length === 0 ? [] : [await createJwtVerifier(signed, implies, log)]),
    ...asked.map((issuer) => createIntrospection(issuer, implies)),
  ]
}
