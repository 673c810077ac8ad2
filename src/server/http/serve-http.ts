import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { DegradedMount } from '../../core/changes.ts'
import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/object.ts'
import { isLoopback } from '../../core/uri.ts'
import { createConnectionLimit, createLiveness, listenOnPort, watchSockets } from '../admission/connections.ts'
import { deadlinesOf } from '../admission/limits.ts'
import type { Caller } from '../auth/caller.ts'
import { createAuthorizer } from '../auth/index.ts'
import { ignoredTargetEnd, refuse, replyFile } from '../exchange.ts'
import { createAnswerScrubber } from '../protocol/answer-scrubber.ts'
import { waitUntilOpen } from '../protocol/envelope.ts'
import { auditedPostEndpoint } from '../telemetry/audit.ts'
import type { Meter } from '../telemetry/meter.ts'
import { type ContentLinkOptions, contentPath, createContentLinks } from './content/links.ts'
import { createContentServer } from './content/serve.ts'
import { createDiscovery, createLlms, type DiscoveryOptions, llmsPath, type WriteLlms } from './discovery.ts'
import { createEndpoint, type Endpoint, type EndpointOptions } from './endpoint.ts'
import { createGuard, type Guard } from './guard.ts'
import {
  createMetricsEndpoint,
  healthPath,
  metricsPath,
  notFoundMessage,
  type PostEndpoints,
  readyPath,
  serveHealth,
  servePost,
} from './other-routes.ts'
import { handleInTurn } from './pipeline.ts'

export interface HttpOptions extends EndpointOptions {
  readonly host: string
  readonly port: number
  /** Path of the MCP endpoint. Default `/mcp`. */
  readonly path?: string
  /** Whether the server may listen beyond the loopback without authentication. */
  readonly insecure?: boolean
  /** Whether to also serve the HTTP+SSE transport of 2024-11-05, at `/sse` and `/messages`. Default false. */
  readonly sse?: boolean
  /** Returns the mounts whose notifications of changes are degraded: `/readyz` returns their number by reason. */
  readonly degraded?: () => readonly DegradedMount[]
  /** Endpoints besides MCP that accept posts. Default none. */
  readonly postings?: PostEndpoints
  /** Signed links to contents that are too large for an answer, below `/content/`. False: no links. Default: links of 5 minutes. */
  readonly contentLinks?: ContentLinkOptions | false
  /** Pages for people, besides MCP: called for requests that pass the guard, before authentication. */
  readonly pages?: Pages
  /** Writes `/llms.txt` for a principal, served with the access of the MCP endpoint. Default: there is none. */
  readonly llms?: WriteLlms
  /** Public facts of the server, in a server card and a catalog that anyone may read. Default: there are none. */
  readonly public?: DiscoveryOptions
  /**
   * Whether to serve `measurements` at `/metrics`: without authentication to requests from this machine, otherwise to all callers
   * or those with one of these roles. Default false.
   */
  readonly metrics?: boolean | { readonly roles?: readonly string[] | undefined }
}

export interface HttpService {
  /** URL of the MCP endpoint, such as `http://127.0.0.1:8787/mcp`. */
  readonly url: string
  readonly meter: Meter
  /** Accepts no new requests, answers those in flight within the limit `drain`, and ends. */
  close(): Promise<void>
}

/**
 * Serves many clients over HTTP: 2026-07-28 without sessions, 2025-03-26 to 2025-11-25 with them, and 2024-11-05 if enabled.
 *
 * @throws ResourceError `invalid` when it must not, or cannot, listen on the address.
 */
export async function serveHttp(options: HttpOptions): Promise<HttpService> {
  requireKeys('serveHttp({ name, version, view, log, host, port })', options, {
    name: 'a string',
    version: 'a string',
    view: 'a function',
    log: 'a function',
    host: 'a string',
    port: 'a number',
  })
  const endpoint = createEndpoint(options, options.auth !== undefined)
  const { limits, meter, addresses, entrance, onRefused, legacyHttp } = endpoint
  const path = options.path ?? '/mcp'
  const looks = 2
  const liveness = createLiveness(limits.stalled / (looks + 1), looks)
  const mcpRoute = path.replace(ignoredTargetEnd, '')
  const routes = new Set([mcpRoute, ...(options.sse ? ['/sse', '/messages'] : [])])
  let guard: Guard = () => ({ status: 403, message: 'The server is not ready yet. Try again later.' })
  let draining = false
  const scrubAnswer = createAnswerScrubber(options.scrubber)
  const links = options.contentLinks === false ? undefined : createContentLinks(options.contentLinks ?? {}, limits.path)
  const serveContent = links === undefined ? undefined : createContentServer(links, endpoint, options)
  const { measurements, metrics } = options
  const serveDiscovery = options.public && createDiscovery(options.public, options.version, path)
  const exposed =
    measurements === undefined || metrics === undefined || metrics === false
      ? undefined
      : createMetricsEndpoint(
          measurements,
          options.auth === undefined ? undefined : entrance,
          metrics === true ? undefined : metrics.roles,
        )

  const handle = endpoint.safely(async (request, response) => {
    const { url = '' } = request
    if (url.length > limits.path) return endpoint.refusePath(request, response)
    if (url === healthPath || url === readyPath) return serveHealth(request, response, { ...options, draining })
    if (entrance.authorizer?.serveMetadata(request, response) || serveDiscovery?.(request, response)) return
    const refusal = guard(request)
    if (refusal !== undefined) {
      onRefused({ outcome: 'host', status: refusal.status, address: addresses.of(request.socket) })
      return refuse(response, refusal.status, refusal.message)
    }
    if (endpoint.answerPreflight?.(request, response)) return
    const pageAnswer = options.pages?.(request)
    const page = pageAnswer instanceof Promise ? await pageAnswer : pageAnswer
    if (page !== undefined) return servePage(page, response)
    if (url === llmsPath && serveLlms !== undefined) return serveLlms(request, response)
    if (url === metricsPath && exposed !== undefined) return exposed(request, response)
    if (serveContent !== undefined && url.startsWith(contentPath)) return serveContent(request, response)
    const route = url.replace(ignoredTargetEnd, '')
    const posted = options.postings !== undefined && url.startsWith(options.postings.under)
    if (!routes.has(route) && !posted) return refuse(response, 404, notFoundMessage)
    const identity = await entrance.callerOf(request, response)
    if (identity === undefined) return
    // Compute the base of links only when a link is created.
    const caller: Caller =
      links === undefined
        ? identity
        : Object.assign({}, identity, {
            linkFor: (uri: string) => links.linkFor(identity, baseUrl(request, resource, path))(uri),
          })
    if (route === mcpRoute) return endpoint.serveMcp(request, response, caller)
    if (posted) return servePosting(options, endpoint, { request, response, caller, scrubAnswer })
    if (route === '/sse') return legacyHttp.openSse(request, response, caller)
    const message = await endpoint.readPermitted(request, response, caller)
    if (message !== undefined) await legacyHttp.postSse(request, response, caller.principal, message.value)
  })

  /** The URL of the endpoint, as clients reach it; undefined when the configuration does not name it. */
  const resource = options.auth?.resource ?? options.public?.url
  const serveLlms =
    options.llms &&
    createLlms(options.llms, entrance, (request) => resource ?? `${baseUrl(request, resource, path)}${path}`, options)

  const room = createConnectionLimit(limits, addresses.of)
  const { take, answering } = handleInTurn(handle, meter, room.asked)

  const server = createServer({ maxHeaderSize: limits.headers, ...deadlinesOf(limits), keepAliveTimeout: 10_000 }, take)
  // The additional connections are those that are being refused.
  server.maxConnections = limits.connections + 128
  meter.gauge('connections', () => liveness.size)
  const closeIdle = watchSockets(server, { liveness, addresses, meter, onRefused, answering, room })
  requireSafeOptions(options)
  // Backlog for bursts of connections; the system drops connections beyond it.
  const address = await listenOnPort(server, options.host, options.port, Math.max(511, limits.connections * 2))
  const name = options.host.includes(':') ? `[${options.host}]` : options.host
  const url = `http://${name}:${address.port}${path}`
  if (options.auth !== undefined) {
    const at = isLoopback(options.host) ? { url } : {}
    const authorizer = createAuthorizer({ ...options, ...options.auth, ...at, path })
    entrance.authorizer = await authorizer.catch((error: unknown) => {
      server.close()
      throw error
    })
  }
  guard = createGuard({ ...options, port: address.port })
  endpoint.resume()

  return {
    url,
    meter,
    close: async () => {
      draining = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      closeIdle()
      endpoint.drain()
      const timer = setTimeout(() => server.closeAllConnections(), limits.drain)
      // Close connections that become idle while the server drains.
      const idle = setInterval(closeIdle, 50)
      await closed
      clearTimeout(timer)
      clearInterval(idle)
      liveness.close()
      links?.close()
      await endpoint.close()
    },
  }
}

/** Refuses options that no guard accepts, and a host that other machines reach without authentication. */
function requireSafeOptions(options: HttpOptions): void {
  createGuard(options)
  if (!isLoopback(options.host) && options.auth === undefined && options.insecure !== true)
    throw invalid(
      `Other machines can reach ${options.host}, but clients would not be authenticated. Set http.auth.issuers or http.auth.tokens.`,
      'configuration',
      { option: 'insecure' },
    )
}

interface PostingCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: Caller
  readonly scrubAnswer: ReturnType<typeof createAnswerScrubber>
}

/** Stores what is posted to a mount that accepts it. */
async function servePosting(
  { opening, postings, audit, log }: HttpOptions,
  { limits, gate, readPermitted }: Endpoint,
  { request, response, caller, scrubAnswer }: PostingCall,
): Promise<void> {
  if (!(await waitUntilOpen(opening, response, limits.timeout))) return
  const { url = '' } = request
  const posting = postings?.at(url, caller.principal)
  if (posting === undefined) return refuse(response, 404, notFoundMessage)
  const message = await readPermitted(request, response, caller)
  if (message === undefined) return
  const facts = { principal: caller.principal, transport: 'http' as const, revision: () => undefined }
  const recorded = audit === undefined ? posting : auditedPostEndpoint(posting, url, audit, facts)
  await servePost(recorded, message.value, response, caller, { gate, scrubAnswer, log, timeoutMs: limits.timeout })
}

/**
 * Returns the URL at which the caller reaches this server, without a final slash: that of its tokens or of the server card (`resource`), or
 * else that of its request. Empty behind a proxy, whose scheme is unknown: then links are relative to the URL of the endpoint.
 *
 * @param path The path of the endpoint.
 */
function baseUrl({ headers: { host = '' } }: IncomingMessage, resource: string | undefined, path: string): string {
  if (resource === undefined) return isLoopback(host.replace(/:\d+$/, '')) ? `http://${host}` : ''
  // A proxy may serve everything below a path of its own.
  return resource.endsWith(path) ? resource.slice(0, -path.length) : resource.replace(/(?<=[^/])\/[^/]*$/, '')
}

type PageAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
} & ({ readonly body: Uint8Array } | { readonly message: string })

type Pages = (request: IncomingMessage) => PageAnswer | undefined | Promise<PageAnswer | undefined>

function servePage(page: PageAnswer, response: ServerResponse): void {
  const { Vary, ...headers } = page.headers
  // The answer may vary by other headers too.
  if (Vary !== undefined) response.appendHeader('Vary', Vary)
  if ('message' in page) refuse(response, page.status, page.message, headers)
  else replyFile(response, page.status, page.body, headers)
}
