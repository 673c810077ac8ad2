import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid } from '../../core/errors.ts'
import { parseUri } from '../../core/uri.ts'
import { refuse, replyEmpty, replyJson } from '../reply.ts'

const wellKnown = '/.well-known/oauth-protected-resource'

/** The metadata of a protected resource (RFC 9728): who gives out the tokens that are taken here. */
export interface Metadata {
  readonly url: string
  /** Answers a request for it. `false`: it is for something else. */
  serve(request: IncomingMessage, response: ServerResponse): boolean
}

/**
 * @param resource What it says is protected. Nothing of it is taken from a request.
 * @param path Where MCP is served: a proxy in front of the server may have put it elsewhere.
 */
export function createMetadata(
  resource: string,
  path: string,
  issuers: readonly string[],
  scopes: readonly string[],
): Metadata {
  const [, origin = '', resourcePath = ''] = /^([a-z]+:\/\/[^/]+)(.*)$/.exec(resource) ?? []
  const document = {
    resource,
    authorization_servers: issuers,
    ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
  }
  const places = new Set(['', path, resourcePath].map((place) => wellKnown + place))
  return {
    url: `${origin}${wellKnown}${resourcePath}`,
    serve: (request, response) => {
      if (!places.has(request.url ?? '')) return false
      // Any web page may read it: it says nothing that is not for everybody.
      const open = { 'Access-Control-Allow-Origin': '*' }
      if (request.method === 'GET') replyJson(response, 200, document, open)
      else if (request.method === 'HEAD') replyEmpty(response, 200, open)
      else if (request.method === 'OPTIONS') replyEmpty(response, 204, { ...open, ...preflight })
      else refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD, OPTIONS' })
      return true
    },
  }
}

/** Official clients send the revision along, for which a browser asks first. */
const preflight = { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': 'MCP-Protocol-Version' }

/**
 * The canonical form of the URL of a resource: as it is, without a slash at its end.
 *
 * @throws ResourceError `invalid` for what is not a URL of HTTP without a query.
 */
export function canonicalResource(resource: string): string {
  const { scheme, query } = parseUri(resource)
  if (!/^https?$/.test(scheme) || query !== undefined)
    throw invalid(`${resource} is not the URL of a resource, such as https://context.example.org/mcp.`, 'resource')
  return resource.replace(/\/$/, '')
}
