import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid } from '../../core/errors.ts'
import { parseUri } from '../../core/uri.ts'
import { ignoredTargetEnd, refuseMethod, replyEmpty, replyJson } from '../exchange.ts'

const wellKnown = '/.well-known/oauth-protected-resource'

export function createMetadata(resource: string, path: string, issuers: readonly string[], scopes: readonly string[]) {
  const [, origin = '', resourcePath = ''] = /^([a-z]+:\/\/[^/]+)(.*)$/.exec(resource) ?? []
  const document = {
    resource,
    authorization_servers: issuers,
    ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
  }
  const paths = new Set(['', path, resourcePath].map((path) => (wellKnown + path).replace(ignoredTargetEnd, '')))
  return {
    url: `${origin}${wellKnown}${resourcePath}`,
    serve: (request: IncomingMessage, response: ServerResponse): boolean => {
      if (!paths.has((request.url ?? '').replace(ignoredTargetEnd, ''))) return false
      // Web pages of other origins may read the metadata, which are public.
      const open = { 'Access-Control-Allow-Origin': '*' }
      if (request.method === 'GET') replyJson(response, 200, document, open)
      else if (request.method === 'HEAD') replyEmpty(response, 200, open)
      else if (request.method === 'OPTIONS') replyEmpty(response, 204, { ...open, ...preflight })
      else refuseMethod(response, 'GET, HEAD, OPTIONS')
      return true
    },
  }
}

/** Official clients send the revision in a header, which makes a browser send a preflight request. */
const preflight = { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': 'MCP-Protocol-Version' }

/**
 * Returns the canonical form of a resource's URL: without a final slash.
 *
 * @throws ResourceError `invalid` for anything but an http or https URL without a query.
 */
export function canonicalResource(resource: string): string {
  const { scheme, query } = parseUri(resource)
  if (!/^https?$/.test(scheme) || query !== undefined)
    throw invalid(
      `The resource ${resource} is not an http or https URL without a query. Write one such as https://context.example.org/mcp.`,
      'configuration',
    )
  return resource.replace(/\/$/, '')
}

export interface AuthRefusal {
  /** Reason of the refusal, as the audit log names it. */
  readonly reason: 'no-token' | 'malformed-token' | 'bad-token' | 'unjudged-token' | 'scope'
  readonly status: 400 | 401 | 403 | 503
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/** Seconds after which a client may retry when its token could not be checked. */
const retryAfterSeconds = 5

/** The refusals of a resource server (RFC 6750, section 3, and RFC 9728, section 5.1), for one resource. */
export function createAuthRefusals(metadataUrl: string | undefined, scopes: readonly string[]) {
  const refusal = (
    reason: AuthRefusal['reason'],
    status: 400 | 401 | 403,
    message: string,
    error: string | undefined,
    scopes: readonly string[],
  ): AuthRefusal => {
    const params = [
      ...(error === undefined
        ? []
        : [
            ['error', error],
            ['error_description', message],
          ]),
      ...(scopes.length === 0 ? [] : [['scope', scopes.join(' ')]]),
      ...(metadataUrl === undefined ? [] : [['resource_metadata', metadataUrl]]),
    ]
    // A scheme always has a parameter (RFC 6750, section 3).
    const parameters = params.length === 0 ? [['realm', 'hikidashi']] : params
    const challenge = `Bearer ${parameters.map(([name, value]) => `${name}="${value}"`).join(', ')}`
    return { reason, status, message, headers: { 'WWW-Authenticate': challenge } }
  }
  return {
    missing: refusal('no-token', 401, 'A bearer token is required.', undefined, scopes),
    malformed: refusal(
      'malformed-token',
      400,
      'The request must have exactly one bearer token, in the Authorization header.',
      'invalid_request',
      [],
    ),
    invalid: refusal(
      'bad-token',
      401,
      'The token is not valid for this server, or has expired.',
      'invalid_token',
      scopes,
    ),
    /** @param scopes All scopes that the operation requires, including those that the token has. */
    insufficient: (scopes: readonly string[]): AuthRefusal =>
      refusal('scope', 403, 'The token lacks a required scope.', 'insufficient_scope', scopes),
    unavailable: {
      reason: 'unjudged-token',
      status: 503,
      message: 'The token cannot be checked now. Try again later.',
      headers: { 'Retry-After': String(retryAfterSeconds) },
    } satisfies AuthRefusal,
  }
}
