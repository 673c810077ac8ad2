import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid } from '../../core/errors.ts'
import { parseUri } from '../../core/uri.ts'
import { refuse, replyEmpty, replyJson } from '../http/reply.ts'

const wellKnown = '/.well-known/oauth-protected-resource'

/** The metadata of a protected resource (RFC 9728): the issuers whose tokens this server accepts. */
interface Metadata {
  readonly url: string
  /** Answers a request for it. Returns false for any other request. */
  serve(request: IncomingMessage, response: ServerResponse): boolean
}

/**
 * @param resource URL of the protected resource. It never comes from a request.
 * @param path Path of the MCP endpoint in this server: a proxy in front of it may use another one.
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
      // Any web page may read it: it contains only public facts.
      const open = { 'Access-Control-Allow-Origin': '*' }
      if (request.method === 'GET') replyJson(response, 200, document, open)
      else if (request.method === 'HEAD') replyEmpty(response, 200, open)
      else if (request.method === 'OPTIONS') replyEmpty(response, 204, { ...open, ...preflight })
      else refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD, OPTIONS' })
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
    throw invalid(`${resource} is not the URL of a resource, such as https://context.example.org/mcp.`, 'resource')
  return resource.replace(/\/$/, '')
}
