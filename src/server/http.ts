import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { invalid } from '../core/errors.ts'
import { readBody } from './body.ts'
import { codes } from './errors.ts'
import { createGate } from './gate.ts'
import { createGuard, type Guard, valuesOf } from './guard.ts'
import { JsonError, parseJson } from './json.ts'
import { createLegacyHttp, type LegacyHttp } from './legacy.ts'
import { createLiveness } from './liveness.ts'
import { failure } from './messages.ts'
import { createModernHttp } from './modern.ts'
import { refuse, replyEmpty, replyJson } from './reply.ts'
import { modern } from './revisions.ts'
import { localPrincipal, type ServeOptions } from './serve.ts'

export interface HttpOptions extends ServeOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Where MCP is. By default `/mcp`. */
  readonly path?: string
  readonly allowedHosts?: readonly string[]
  readonly allowedOrigins?: readonly string[]
  /** Serves the HTTP+SSE transport of 2024-11-05 too, at `/sse` and `/messages`. By default not. */
  readonly sse?: boolean
  readonly limits?: Partial<HttpLimits>
}

export interface HttpLimits {
  /** The longest body of a request, in bytes. */
  readonly body: number
  /** Requests that are worked on at once, and ones that wait for that. */
  readonly concurrent: number
  readonly waiting: number
  readonly connections: number
  readonly sessions: number
  /** How long a session may be idle, in milliseconds. */
  readonly sessionIdle: number
  /** How long a client may take nothing of what is sent to it, in milliseconds, before its connection is cut (Linux). */
  readonly stalled: number
  /** How long requests in flight may take when the server closes, in milliseconds. */
  readonly drain: number
}

const defaults: HttpLimits = {
  body: 1024 * 1024,
  concurrent: 64,
  waiting: 1024,
  connections: 1024,
  sessions: 1000,
  sessionIdle: 30 * 60_000,
  stalled: 45_000,
  drain: 10_000,
}

export interface HttpService {
  /** Where MCP is, such as `http://127.0.0.1:8787/mcp`. */
  readonly url: string
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
  const limits = { ...defaults, ...options.limits }
  const path = options.path ?? '/mcp'
  const gate = createGate(limits.concurrent, limits.waiting)
  const looks = 2
  const liveness = createLiveness({ interval: limits.stalled / (looks + 1), looks })
  const modernHttp = createModernHttp(options, gate)
  const legacyHttp = createLegacyHttp(options, gate, limits)
  const principal = options.principal ?? localPrincipal
  let guard: Guard = () => ({ status: 403, message: 'Not ready' })
  let draining = false

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Probes come from wherever the operator's tools are; the answer tells nothing else.
    if (request.url === '/healthz') return replyHealth(request, response, 200, 'ok')
    if (request.url === '/readyz')
      return replyHealth(request, response, draining ? 503 : 200, draining ? 'draining' : 'ready')
    const refused = guard(request)
    if (refused !== undefined) return refuse(response, refused.status, refused.message)
    const [route] = options.sse ? (request.url ?? '').split('?', 1) : [request.url]
    if (route === path) return serveMcp(request, response)
    if (options.sse && route === '/sse') return legacyHttp.openSse(request, response, principal)
    if (options.sse && route === '/messages') {
      const message = await readMessage(request, response)
      return message === undefined ? undefined : legacyHttp.postSse(request, response, principal, message.value)
    }
    return refuse(response, 404, 'Nothing is here.')
  }

  const serveMcp = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return serveSessionMethod(request, response, legacyHttp)
    if (!accepts(request)) return refuse(response, 406, 'The Accept header allows neither JSON nor an event stream.')
    const message = await readMessage(request, response)
    if (message === undefined) return
    if (modernHttp.isModern(request, message.value)) return modernHttp.post(request, response, principal, message.value)
    return legacyHttp.post(request, response, principal, message.value)
  }

  const serveSessionMethod = async (request: IncomingMessage, response: ServerResponse, legacy: LegacyHttp) => {
    const sessions = request.headers['mcp-protocol-version'] !== modern
    if (request.method === 'GET' && sessions) return legacy.openStream(request, response, principal)
    if (request.method === 'DELETE' && sessions) return legacy.end(request, response, principal)
    return refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
  }

  const readMessage = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST')
      return void refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
    const media = mediaFault(request)
    if (media !== undefined) return void refuse(response, 415, media)
    const body = await readBody(request, limits.body)
    if ('fault' in body) {
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

  /** The latest answer on each connection. */
  const answering = new WeakMap<Duplex, ServerResponse>()
  const server = createServer(
    { maxHeaderSize: 32 * 1024, headersTimeout: 15_000, requestTimeout: 60_000, keepAliveTimeout: 10_000 },
    (request, response) => {
      response.on('error', () => {})
      answering.set(request.socket, response)
      liveness.watch(request.socket)
      handle(request, response).catch((error) => {
        options.log('error', 'an HTTP request failed', { error })
        if (response.headersSent) response.destroy()
        else replyJson(response, 500, failure(null, { code: codes.internal, message: 'Internal error' }))
      })
    },
  )
  server.maxConnections = limits.connections
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket)
    // In the midst of an answer, a status would be read as a part of it.
    if (response?.headersSent && !response.writableFinished) socket.destroy()
    else hangUp(socket, clientErrors.get(error.code) ?? '400 Bad Request')
  })
  server.on('upgrade', (_request, socket) => hangUp(socket, '400 Bad Request'))
  // The guard needs the port, which may be chosen by the system.
  createGuard({ ...options, port: options.port })
  const address = await listen(server, options.host, options.port)
  guard = createGuard({ ...options, port: address.port })
  const name = options.host.includes(':') ? `[${options.host}]` : options.host

  return {
    url: `http://${name}:${address.port}${path}`,
    close: async () => {
      draining = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      modernHttp.drain()
      legacyHttp.drain()
      const timer = setTimeout(() => server.closeAllConnections(), limits.drain)
      // Connections that become idle while it drains are not waited for.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
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

async function listen(server: ReturnType<typeof createServer>, host: string, port: number): Promise<AddressInfo> {
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
    server.listen(port, host, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw invalid('The server has no port.', 'listen')
  return address
}

function replyHealth(request: IncomingMessage, response: ServerResponse, status: number, text: string): void {
  if (request.method === 'GET') replyJson(response, status, { status: text })
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
