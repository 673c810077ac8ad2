import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { DegradedMount } from '../core/changes.ts'
import { invalid } from '../core/errors.ts'
import { isLoopback } from '../core/host.ts'
import { alwaysCaller, type Caller } from './authorize/caller.ts'
import { type Authorizer, createAuthorizer } from './authorize/index.ts'
import type { AuthorizationOptions } from './authorize/options.ts'
import { readBody } from './body.ts'
import { codes } from './errors.ts'
import { createGate } from './gate.ts'
import { createGuard, type Guard, valuesOf } from './guard.ts'
import { JsonError, parseJson } from './json.ts'
import { createLegacyHttp, type LegacyHttp } from './legacy.ts'
import { completeLimits, type GivenLimits } from './limits.ts'
import { createLiveness } from './liveness.ts'
import { failure } from './messages.ts'
import { createMeter, type Meter } from './meter.ts'
import { createModernHttp } from './modern.ts'
import { statusOfOverload } from './overload.ts'
import { inTurn } from './pipeline.ts'
import { limitAnswer, refuse, replyEmpty, replyJson } from './reply.ts'
import { modern } from './revisions.ts'
import { localPrincipal, type ServeOptions } from './serve.ts'
import { createTurnstile } from './turnstile.ts'

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
  readonly limits?: GivenLimits
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
  const limits = completeLimits(options.limits, options.auth !== undefined)
  const path = options.path ?? '/mcp'
  const gate = createGate(limits.concurrent, limits.waiting, limits.perPrincipal)
  const meter = createMeter()
  const turnstile = createTurnstile(limits, meter)
  const looks = 2
  const liveness = createLiveness({ interval: limits.stalled / (looks + 1), looks })
  const served = { timeout: limits.timeout, ...options, transport: 'http' as const }
  const modernHttp = createModernHttp(served, gate, meter)
  const legacyHttp = createLegacyHttp(served, gate, limits, meter)
  const everybody = alwaysCaller(options.principal ?? localPrincipal)
  const routes = new Set([path, ...(options.sse ? ['/sse', '/messages'] : [])])
  let authorizer: Authorizer | undefined
  let guard: Guard = () => ({ status: 403, message: 'Not ready' })
  let draining = false

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if ((request.url ?? '').length > limits.path) {
      meter.count('refusedUri')
      return refuse(response, 414, `The path is longer than ${limits.path} bytes.`, { Connection: 'close' })
    }
    // Probes come from wherever the operator's tools are; the answer tells nothing else.
    if (request.url === '/healthz') return replyHealth(request, response, 200, { status: 'ok' })
    if (request.url === '/readyz')
      return draining
        ? replyHealth(request, response, 503, { status: 'draining' })
        : replyHealth(request, response, 200, { status: 'ready', ...countDegraded(options.degraded?.()) })
    // What is for everybody, whichever page asks.
    if (authorizer?.serveMetadata(request, response)) return
    const refused = guard(request)
    if (refused !== undefined) return refuse(response, refused.status, refused.message)
    const [place = ''] = (request.url ?? '').split('?', 1)
    if (!routes.has(place)) return refuse(response, 404, 'Nothing is here.')
    const caller = await callerOf(request, response)
    if (caller === undefined) return
    const route = options.sse ? place : request.url
    if (route === path) return serveMcp(request, response, caller)
    if (options.sse && route === '/sse') return legacyHttp.openSse(request, response, caller)
    if (options.sse && route === '/messages') {
      const message = await readPermitted(request, response, caller)
      return message === undefined ? undefined : legacyHttp.postSse(request, response, caller.principal, message.value)
    }
    return refuse(response, 404, 'Nothing is here.')
  }

  /** Who asks. `undefined`: they were turned away. */
  const callerOf = async (request: IncomingMessage, response: ServerResponse): Promise<Caller | undefined> => {
    const caller = authorizer === undefined ? everybody : await authorizer.authenticate(request)
    if ('status' in caller) return void refuse(response, caller.status, caller.message, caller.headers)
    const share = turnstile.shareOf(caller.principal, request)
    const over = turnstile.take(share, request)
    if (over === undefined) return { ...caller, share }
    const later = statusOfOverload(over)
    // Of what comes behind it, nothing is read.
    return void replyJson(response, later?.status ?? 429, over, { ...later?.headers, Connection: 'close' })
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
    const refused = authorizer?.refusalOf(caller, undefined)
    if (refused !== undefined) return refuse(response, refused.status, refused.message, refused.headers)
    const sessions = request.headers['mcp-protocol-version'] !== modern
    if (request.method === 'GET' && sessions) return legacy.openStream(request, response, caller)
    if (request.method === 'DELETE' && sessions) return legacy.end(request, response, caller.principal)
    return refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
  }

  /** The message of a request, where the caller may send it. `undefined`: it was answered already. */
  const readPermitted = async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
    const message = await readMessage(request, response)
    const refused = message === undefined ? undefined : authorizer?.refusalOf(caller, message.value)
    if (refused === undefined) return message
    return void refuse(response, refused.status, refused.message, refused.headers)
  }

  const readMessage = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST')
      return void refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
    const media = mediaFault(request)
    if (media !== undefined) return void refuse(response, 415, media)
    const body = await readBody(request, limits.body)
    if ('fault' in body) {
      if (body.fault === 'too-large') meter.count('refusedBody')
      if (body.fault === 'too-large')
        refuse(response, 413, `The body is longer than ${limits.body} bytes.`, { Connection: 'close' })
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
  const take = inTurn(handleSafely, () => meter.count('cutPipelines'))

  /** The latest answer on each connection. */
  const answering = new WeakMap<Duplex, ServerResponse>()
  const server = createServer(
    {
      maxHeaderSize: limits.headers,
      headersTimeout: limits.headersTime,
      requestTimeout: limits.requestTime,
      // Node looks for what takes too long only so often: by itself every 30 seconds.
      connectionsCheckingInterval: Math.min(5000, limits.headersTime),
      keepAliveTimeout: 10_000,
    },
    (request, response) => {
      response.on('error', () => {})
      meter.count('requests')
      limitAnswer(response, limits)
      answering.set(request.socket, response)
      liveness.watch(request.socket)
      take(request, response)
    },
  )
  server.maxConnections = limits.connections
  server.on('drop', () => meter.count('refusedConnections'))
  meter.gauge('connections', () => liveness.size)
  meter.gauge('inFlight', () => gate.running)
  meter.gauge('waiting', () => gate.waiting)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket)
    if (error.code === 'HPE_HEADER_OVERFLOW') meter.count('refusedHeaders')
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') meter.count('late')
    // In the midst of an answer, a status would be read as a part of it.
    if (response?.headersSent && !response.writableFinished) socket.destroy()
    else hangUp(socket, clientErrors.get(error.code) ?? '400 Bad Request')
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const closeIdle = (): void => {
    server.closeIdleConnections()
    // Node does not count those on which nothing was ever sent.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }
  server.on('upgrade', (_request, socket) => hangUp(socket, '400 Bad Request'))
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
      closeIdle()
      modernHttp.drain()
      legacyHttp.drain()
      const timer = setTimeout(() => server.closeAllConnections(), limits.drain)
      // Connections that become idle while it drains are not waited for.
      const idle = setInterval(closeIdle, 50)
      await closed
      clearTimeout(timer)
      clearInterval(idle)
      liveness.close()
      await Promise.allSettled([modernHttp.close(), legacyHttp.close()])
    },
  }
}

const clientErrors: ReadonlyMap<string | undefined, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** Ends a connection with a last word. Whoever keeps the other half of it open does not keep ours. */
function hangUp(socket: Duplex, status: string): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy())
}

async function listen(
  server: ReturnType<typeof createServer>,
  host: string,
  port: number,
  backlog: number,
): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? 'the port is in use'
          : error.code === 'EACCES'
            ? 'it is not permitted'
            : error.code
      reject(invalid(`Cannot listen on ${host}:${port}: ${why}.`, 'listen'))
    })
    server.listen({ port, host, backlog }, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw invalid('The server has no port.', 'listen')
  return address
}

/** How many mounts are degraded, by the reason. Which ones, the log says: anybody may ask here. */
function countDegraded(mounts: readonly DegradedMount[] = []): {
  readonly degraded?: Readonly<Record<string, number>>
} {
  const degraded: Record<string, number> = {}
  for (const { degradation } of mounts) degraded[degradation] = (degraded[degradation] ?? 0) + 1
  return mounts.length === 0 ? {} : { degraded }
}

function replyHealth(request: IncomingMessage, response: ServerResponse, status: number, health: object): void {
  if (request.method === 'GET') replyJson(response, status, health)
  else if (request.method === 'HEAD') replyEmpty(response, status)
  else refuse(response, 405, 'The method is not allowed here.', { Allow: 'GET, HEAD' })
}

/** JSON in UTF-8, as it is. A form or plain text, which any web page may send, is refused. */
function mediaFault(request: IncomingMessage): string | undefined {
  const types = valuesOf(request, 'content-type')
  const [type = ''] = types
  if (types.length !== 1 || !/^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i.test(type))
    return 'The Content-Type is not application/json in UTF-8.'
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') return 'A Content-Encoding is not supported.'
  return undefined
}

/** Whether one of the two forms of an answer is welcome. No header: both are. */
function accepts(request: IncomingMessage): boolean {
  const accept = request.headers.accept
  if (accept === undefined) return true
  return accept.split(',').some((range) => {
    const [type = '', ...params] = range.split(';').map((part) => part.trim().toLowerCase())
    const refused = params.some((param) => /^q=0(?:\.0*)?$/.test(param))
    return !refused && /^(?:\*\/\*|application\/(?:json|\*)|text\/(?:event-stream|\*))$/.test(type)
  })
}
