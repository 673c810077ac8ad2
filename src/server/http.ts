import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { DegradedMount } from '../core/changes.ts'
import { invalid } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'
import type { Measurements } from '../core/measurements.ts'
import { requireKeys } from '../core/required.ts'
import { createAddresses } from './addresses.ts'
import { auditedPosting } from './audit.ts'
import { alwaysCaller, type Caller } from './authorize/caller.ts'
import { type Authorizer, createAuthorizer } from './authorize/index.ts'
import type { AuthorizationOptions } from './authorize/options.ts'
import { readBody } from './body.ts'
import { createEgress } from './egress.ts'
import { createEntrance } from './entrance.ts'
import { codes } from './errors.ts'
import { createExposed, metricsPath } from './exposed.ts'
import { createGate } from './gate.ts'
import { createGuard, type Guard } from './guard.ts'
import { serveHealth } from './health.ts'
import { JsonError, parseJson } from './json.ts'
import { createLegacyHttp, type LegacyHttp } from './legacy.ts'
import { completeLimits, deadlinesOf, type GivenLimits } from './limits.ts'
import { createLiveness } from './liveness.ts'
import { measureMeter } from './measured.ts'
import { failure } from './messages.ts'
import { createMeter, type Meter } from './meter.ts'
import { createModernHttp } from './modern.ts'
import { accepts, mediaFault } from './negotiation.ts'
import { waitUntilOpen } from './opening.ts'
import { type Pages, servePages } from './pages.ts'
import { inTurn } from './pipeline.ts'
import { nothingHere, type Postings, postedTo, servePosting } from './postings.ts'
import { createRefusalAudit } from './refused.ts'
import { limitAnswer, refuse, replyJson } from './reply.ts'
import { modern } from './revisions.ts'
import { createRoom } from './room.ts'
import { localPrincipal, type ServeOptions } from './serve.ts'
import { listen, watchSockets } from './sockets.ts'

export interface HttpOptions extends ServeOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Where MCP is. By default `/mcp`. */
  readonly path?: string
  readonly allowedHosts?: readonly string[]
  readonly allowedOrigins?: readonly string[]
  /** How clients say who they are. By default nobody is asked: everybody is the one `principal`. */
  readonly auth?: AuthorizationOptions
  /** Listens beyond the loopback without asking anybody who they are. */
  readonly insecure?: boolean
  /** The OAuth scopes that a token needs for what is at a URI, whether anything is there or not. By default none. */
  readonly scopesOf?: (uri: string) => readonly string[]
  /** Serves the HTTP+SSE transport of 2024-11-05 too, at `/sse` and `/messages`. By default not. */
  readonly sse?: boolean
  /** What tells less well of changes than it should, just now: `/readyz` says how many mounts, and why. */
  readonly degraded?: () => readonly DegradedMount[]
  /** The places beside MCP that take posts. By default there are none. */
  readonly postings?: Postings
  /** What is for people, beside MCP: asked about every request that the guard lets in, before anybody is asked who they are. */
  readonly pages?: Pages
  readonly limits?: GivenLimits
  /** What this process measures of itself: what this service does is added to it. */
  readonly measurements?: Measurements
  /**
   * Tells `measurements` at `/metrics`: where nobody is asked who they are, to who asks from this machine; else to who may ask
   * at all, or has one of these roles. By default to nobody.
   */
  readonly metrics?: boolean | { readonly roles?: readonly string[] | undefined }
}

export interface HttpService {
  /** Where MCP is, such as `http://127.0.0.1:8787/mcp`. */
  readonly url: string
  /** What it has done and refused. */
  readonly meter: Meter
  /** Accepts nothing more, answers what is in flight, and ends. */
  close(): Promise<void>
}

/**
 * Serves many clients over HTTP: 2026-07-28 without sessions, 2025-03-26 to 2025-11-25 with them, and 2024-11-05 where
 * it is switched on.
 *
 * @throws ResourceError `invalid` when it is to listen where it may not, or cannot.
 */
export async function serveHttp(options: HttpOptions): Promise<HttpService> {
  requireKeys('serveHttp({ name, version, view, host, port })', options, {
    name: 'a text',
    version: 'a text',
    view: 'a function',
    host: 'a text',
    port: 'a number',
  })
  const limits = completeLimits(options.limits, options.auth !== undefined)
  const path = options.path ?? '/mcp'
  const gate = createGate(limits.concurrent, limits.waiting, limits.perPrincipal)
  const meter = createMeter()
  const addresses = createAddresses(limits)
  const refusals = createRefusalAudit(options.audit)
  const onRefused = refusals.add
  const looks = 2
  const liveness = createLiveness({ interval: limits.stalled / (looks + 1), looks })
  const served = { timeout: limits.timeout, ...options, transport: 'http' as const, onRefused }
  const modernHttp = createModernHttp(served, gate, meter)
  const legacyHttp = createLegacyHttp(served, gate, limits, meter)
  const everybody = alwaysCaller(options.principal ?? localPrincipal)
  const routes = new Set([path, ...(options.sse ? ['/sse', '/messages'] : [])])
  let authorizer: Authorizer | undefined
  let guard: Guard = () => ({ status: 403, message: 'Not ready' })
  let draining = false
  const egress = createEgress(options.scrubber)
  const entrance = createEntrance({ authorizer: () => authorizer, everybody, limits, addresses, meter, onRefused })

  const { measurements, metrics } = options
  const forget = measurements?.add(() => measureMeter(meter))
  const exposed =
    measurements === undefined || metrics === undefined || metrics === false
      ? undefined
      : createExposed({
          measurements,
          ...(metrics === true || metrics.roles === undefined ? {} : { roles: metrics.roles }),
          ...(options.auth === undefined ? {} : { entrance }),
        })

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if ((request.url ?? '').length > limits.path) {
      meter.count('refusedUri')
      onRefused({ outcome: 'too-large', status: 414, address: addresses.of(request.socket) })
      return refuse(response, 414, `The path is longer than ${limits.path} bytes.`, { Connection: 'close' })
    }
    if (serveHealth(request, response, { ...options, draining })) return
    // What is for everybody, whichever page asks.
    if (authorizer?.serveMetadata(request, response)) return
    const refused = guard(request)
    if (refused !== undefined) {
      onRefused({ outcome: 'host', status: refused.status, address: addresses.of(request.socket) })
      return refuse(response, refused.status, refused.message)
    }
    if (options.pages !== undefined && (await servePages(options.pages, request, response))) return
    if (request.url === metricsPath && exposed !== undefined) return exposed(request, response)
    const [place = ''] = (request.url ?? '').split('?', 1)
    const posted = postedTo(request, options.postings)
    if (!routes.has(place) && posted === undefined) return refuse(response, 404, nothingHere)
    const caller = await entrance.callerOf(request, response)
    if (caller === undefined) return
    const route = options.sse ? place : request.url
    if (route === path) return serveMcp(request, response, caller)
    if (posted !== undefined) return servePosts(request, response, caller, posted)
    if (options.sse && route === '/sse') return legacyHttp.openSse(request, response, caller)
    if (options.sse && route === '/messages') {
      const message = await readPermitted(request, response, caller)
      return message === undefined ? undefined : legacyHttp.postSse(request, response, caller.principal, message.value)
    }
    return refuse(response, 404, nothingHere)
  }

  const servePosts = async (request: IncomingMessage, response: ServerResponse, caller: Caller, at: string) => {
    if (!(await waitUntilOpen(options.opening, response, limits.timeout))) return
    const posting = options.postings?.at(at, caller.principal)
    if (posting === undefined) return refuse(response, 404, nothingHere)
    const message = await readPermitted(request, response, caller)
    if (message === undefined) return
    const { audit, log } = options
    const facts = { principal: caller.principal, transport: 'http' as const, revision: () => undefined }
    const recorded = audit === undefined ? posting : auditedPosting(posting, at, audit, facts)
    await servePosting(recorded, message.value, response, caller, { gate, egress, log, timeout: limits.timeout })
  }

  const serveMcp = async (request: IncomingMessage, response: ServerResponse, caller: Caller): Promise<void> => {
    if (request.method !== 'POST') return serveSessionMethod(request, response, legacyHttp, caller)
    if (!accepts(request)) return refuse(response, 406, 'The Accept header allows neither JSON nor an event stream.')
    const message = await readPermitted(request, response, caller)
    if (message === undefined) return
    if (modernHttp.isModern(request, message.value)) return modernHttp.post(request, response, caller, message.value)
    return legacyHttp.post(request, response, caller.principal, message.value)
  }

  const serveSessionMethod = async (
    request: IncomingMessage,
    response: ServerResponse,
    legacy: LegacyHttp,
    caller: Caller,
  ) => {
    if (!entrance.permits(caller, undefined, response)) return
    const sessions = request.headers['mcp-protocol-version'] !== modern
    if (request.method === 'GET' && sessions) return legacy.openStream(request, response, caller)
    if (request.method === 'DELETE' && sessions) return legacy.end(request, response, caller.principal)
    return refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
  }

  /** The message of a request, where the caller may send it. `undefined`: it was answered already. */
  const readPermitted = async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
    const message = await readMessage(request, response, caller)
    return message === undefined || entrance.permits(caller, message.value, response) ? message : undefined
  }

  const readMessage = async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
    if (request.method !== 'POST')
      return void refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
    const media = mediaFault(request)
    if (media !== undefined) return void refuse(response, 415, media)
    const body = await readBody(request, limits.body)
    if ('fault' in body) {
      if (body.fault === 'too-large') entrance.refuseBody(caller, response, body.read)
      return undefined
    }
    if ((request.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked')
      return void refuse(response, 415, 'A Transfer-Encoding other than chunked is not supported.')
    try {
      return { value: parseJson(body.bytes) }
    } catch (error) {
      const text = error instanceof JsonError ? error.message : 'The message could not be read.'
      return void replyJson(response, 400, failure(null, { code: codes.parse, message: text }))
    }
  }

  const handleSafely = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      await handle(request, response)
    } catch (error) {
      options.log('error', 'an HTTP request failed', { error })
      if (response.headersSent) response.destroy()
      else replyJson(response, 500, failure(null, { code: codes.internal, message: 'Internal error' }))
    }
  }
  const take = inTurn(
    (request, response) => {
      response.on('error', () => {})
      limitAnswer(response, limits)
      sockets.answering(response)
      return handleSafely(request, response)
    },
    {
      onPause: () => meter.count('pausedPipelines'),
      onCut: () => meter.count('cutPipelines'),
      onLeft: addresses.waste,
    },
  )

  const server = createServer(
    {
      maxHeaderSize: limits.headers,
      ...deadlinesOf(limits),
      keepAliveTimeout: 10_000,
    },
    (request, response) => {
      meter.count('requests')
      room.asked(request.socket)
      take(request, response)
    },
  )
  const room = createRoom(limits, addresses.of)
  // Beyond the room there is place only for those that are being turned away.
  server.maxConnections = limits.connections + 128
  meter.gauge('connections', () => liveness.size)
  meter.gauge('inFlight', () => gate.running)
  meter.gauge('waiting', () => gate.waiting)
  const sockets = watchSockets(server, { liveness, addresses, meter, onRefused, room })
  // The guard needs the port, which may be chosen by the system.
  createGuard({ ...options, port: options.port })
  if (!isLoopback(options.host) && options.auth === undefined && options.insecure !== true)
    throw invalid(
      `Other machines can ask at ${options.host}, and nobody would be asked who they are. Set http.auth: issuers of tokens, or a file of them.`,
      'insecure',
    )
  // Whoever comes in a burst waits for its connection to be taken; the system forgets what is more than this.
  const address = await listen(server, options.host, options.port, Math.max(511, limits.connections * 2))
  const name = options.host.includes(':') ? `[${options.host}]` : options.host
  const url = `http://${name}:${address.port}${path}`
  if (options.auth !== undefined)
    authorizer = await createAuthorizer({
      ...options,
      ...options.auth,
      ...(isLoopback(options.host) ? { url } : {}),
      path,
    }).catch((error: unknown) => {
      server.close()
      throw error
    })
  // From here on requests are let in.
  guard = createGuard({ ...options, port: address.port })

  return {
    url,
    meter,
    close: async () => {
      draining = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      sockets.closeIdle()
      modernHttp.drain()
      legacyHttp.drain()
      const timer = setTimeout(() => server.closeAllConnections(), limits.drain)
      // Connections that become idle while it drains are not waited for.
      const idle = setInterval(sockets.closeIdle, 50)
      await closed
      clearTimeout(timer)
      clearInterval(idle)
      liveness.close()
      forget?.()
      refusals.close()
      await Promise.allSettled([modernHttp.close(), legacyHttp.close()])
    },
  }
}
