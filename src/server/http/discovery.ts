import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Principal } from '../../core/provider.ts'
import type { Scrubber } from '../../core/scrub.ts'
import { canonicalResource } from '../auth/metadata.ts'
import { refuseMethod, replyFile, replyText } from '../exchange.ts'
import { revisions } from '../messages/messages.ts'
import type { Audit } from '../telemetry/audit.ts'
import { matchesTag } from './content/serve.ts'
import type { Entrance } from './entrance.ts'

/** Name and description of a server, for the public server card and catalog. */
export interface DiscoveryOptions {
  /** Unique name: a domain in reverse and a name in it, such as `org.example/context`. */
  readonly name: string
  /** URL of the MCP endpoint, as clients reach it. */
  readonly url: string
  /** Description, of 100 characters at most. */
  readonly description: string
  /** Name for people. */
  readonly title?: string
  /** URL of a page about the server. */
  readonly websiteUrl?: string
}

/** Path of the catalog of a domain (AI Catalog 1.0). */
export const catalogPath = '/.well-known/ai-catalog.json'

/** Names in a server card: a namespace, a slash, and a name in it. */
const cardName = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/

const cardType = 'application/mcp-server-card+json'

/** Both documents are public. */
const open = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET',
  'Access-Control-Allow-Headers': 'Content-Type, If-None-Match',
  'Access-Control-Expose-Headers': 'ETag',
}

interface PublicDocument {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Returns a function that answers requests for the server card, at `<path>/server-card`, and for the catalog that names it. It returns
 * false for any other request.
 *
 * @param path Path of the MCP endpoint in this server: a proxy in front of it may use another one.
 * @throws ResourceError `invalid` for a name, a URL or a description that no card may have.
 */
export function createDiscovery(discoveryOptions: DiscoveryOptions, version: string, path: string) {
  const { name, description, title, websiteUrl } = discoveryOptions
  if (!cardName.test(name) || name.length > 200)
    throw invalid(
      `${JSON.stringify(name)} is not the name of a public server. Write one such as "org.example/context".`,
      'configuration',
    )
  if (description.length === 0 || description.length > 100)
    throw invalid('The description of a public server must have 1 to 100 characters.', 'configuration')
  const url = canonicalResource(discoveryOptions.url)
  const card = {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name,
    version,
    description,
    ...defined({ title, websiteUrl }),
    remotes: [{ type: 'streamable-http', url, supportedProtocolVersions: revisions.filter(isOverHttp) }],
  }
  const [namespace = '', local = ''] = name.split('/')
  const publisher = namespace.split('.').reverse().join('.')
  const entry = { identifier: `urn:air:${publisher}:mcp:${local}`, type: cardType, url: `${url}/server-card` }
  const documents = new Map<string, PublicDocument>([
    [`${path === '/' ? '' : path}/server-card`, createPublicDocument(card, cardType)],
    [catalogPath, createPublicDocument({ specVersion: '1.0', entries: [entry] }, 'application/ai-catalog+json')],
  ])

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const document = documents.get(request.url ?? '')
    if (document === undefined) return false
    const { method, headers } = request
    if (method === 'OPTIONS') replyFile(response, 204, Buffer.alloc(0), open)
    else if (method !== 'GET' && method !== 'HEAD') refuseMethod(response, 'GET, HEAD, OPTIONS')
    else if (matchesTag(headers['if-none-match'], document.headers.ETag))
      replyFile(response, 304, Buffer.alloc(0), document.headers)
    else replyFile(response, 200, document.body, document.headers)
    return true
  }
}

/** Revisions that Streamable HTTP serves: those before 2025-03-26 have another transport. */
const isOverHttp = (revision: string) => revision >= '2025-03-26'

function createPublicDocument(document: object, type: string): PublicDocument {
  const body = Buffer.from(JSON.stringify(document))
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { body, headers: { ...open, 'Content-Type': type, 'Cache-Control': 'public, max-age=3600', ETag: `"${tag}"` } }
}

/** Path of the description of a server for models (llmstxt.org). */
export const llmsPath = '/llms.txt'

/** Writes the description for a principal. `endpoint`: URL of the MCP endpoint, or its path where the URL is unknown. */
export type WriteLlms = (principal: Principal, endpoint: string) => Promise<string>

/**
 * Serves `/llms.txt` to callers that may list resources.
 *
 * @param endpointOf Returns the URL of the MCP endpoint for a request.
 */
export function createLlms(
  write: WriteLlms,
  entrance: Entrance,
  endpointOf: (request: IncomingMessage) => string,
  { scrubber, audit }: { readonly scrubber?: Scrubber | undefined; readonly audit?: Audit | undefined },
) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const caller = await entrance.callerOf(request, response)
    if (caller === undefined) return
    if (!entrance.permits(caller, { jsonrpc: '2.0', id: 0, method: 'resources/list' }, response)) return
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuseMethod(response, 'GET, HEAD')
    const start = performance.now()
    const text = await write(caller.principal, endpointOf(request))
    audit?.({
      time: new Date().toISOString(),
      principal: caller.principal.id,
      transport: 'http',
      verb: 'list',
      uri: llmsPath,
      outcome: 'ok',
      ms: Math.round((performance.now() - start) * 10) / 10,
    })
    replyText(response, scrubber?.scrub(text) ?? text, 'text/plain; charset=utf-8')
  }
}
