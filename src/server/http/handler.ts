import { request as askOver, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Duplex, duplexPair, Readable } from 'node:stream'
import type { Catalog } from '../../core/catalog.ts'
import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { View } from '../../core/view.ts'
import { type Caller, unauthenticatedCaller } from '../auth/caller.ts'
import { createAuthorizer } from '../auth/index.ts'
import { refuse, waitUntilSent } from '../exchange.ts'
import type { Meter } from '../telemetry/meter.ts'
import { createEndpoint, type EndpointOptions } from './endpoint.ts'
import { createEmbeddedGuard } from './guard.ts'

/** Source of a handler: a catalog, one view for everyone, or a view for each principal. */
export type HandlerSource = Pick<Catalog, 'view'> | View | ((principal: Principal) => View)

export interface HandlerOptions extends Omit<EndpointOptions, 'view' | 'log'> {
  /** Default: no log. */
  readonly log?: Log
  /** Path of the MCP endpoint for clients, which the metadata of `auth` contains. Default `/mcp`. */
  readonly path?: string
  /**
   * `given`: each call names the principal that the application has authenticated; a call without one gets a 401. Default: with `auth`, the
   * token tells the principal; without it, every caller is the one `principal`.
   */
  readonly principals?: 'given'
  /** Whether to serve other machines without authentication. Default: only requests from this machine. */
  readonly insecure?: boolean
}

/** Facts about a request that the application provides. */
export interface HandlerCall {
  /** The caller, when `principals` is `given`. */
  readonly principal?: Principal | undefined
  /** The body, if the application has read it: its bytes or text, or the JSON parsed from them. */
  readonly body?: unknown
  /** Peer address, for `fetch`, which does not know the connection. */
  readonly peer?: string | undefined
}

/** Serves MCP inside an existing server. */
export interface Handler {
  /** Answers a request of Node's HTTP server, or of a framework based on it. Never rejects, and does not call `next`. */
  readonly node: (
    request: IncomingMessage,
    response: ServerResponse,
    call?: HandlerCall | ((error?: unknown) => void),
  ) => Promise<void>
  /** Answers a request of the Fetch standard. Aborting the request cancels its handling. */
  readonly fetch: (request: Request, call?: HandlerCall) => Promise<Response>
  readonly meter: Meter
  /** Accepts no new requests, ends the streams, and waits for the requests in flight, up to the limit `drain`. */
  readonly close: () => Promise<void>
}

/**
 * Creates a handler for an existing server: for Node's HTTP server and frameworks based on it, and for servers of the Fetch standard. The
 * limits on connections are up to the existing server.
 *
 * @throws ResourceError `invalid` when other machines could send requests without authentication.
 */
export async function createHandler(source: HandlerSource, options: HandlerOptions): Promise<Handler> {
  requireKeys('createHandler(source, { name, version })', options, { name: 'a string', version: 'a string' })
  const { auth, principals, insecure = false, allowedHosts = [], path = '/mcp', log = () => {} } = options
  if (auth !== undefined && principals !== undefined)
    throw invalid(
      'The options auth and principals exclude each other: either tokens identify the callers, or each call names its principal.',
      'configuration',
    )
  const identifiesCallers = auth !== undefined || principals === 'given'
  if (!identifiesCallers && !insecure && allowedHosts.length > 0)
    throw invalid(
      'With allowedHosts other machines can connect, but clients would not be authenticated. Set auth, or principals: "given".',
      'configuration',
      { option: 'insecure' },
    )
  const servedOptions = { ...options, log, view: viewsOf(source) }
  const endpoint = createEndpoint(servedOptions, identifiesCallers)
  const { limits, meter, addresses, onRefused, entrance } = endpoint
  const guard = createEmbeddedGuard(options)
  if (auth !== undefined) entrance.authorizer = await createAuthorizer({ ...options, ...auth, log, path })
  const calls = new WeakMap<IncomingMessage, HandlerCall>()
  if (principals === 'given')
    entrance.authorizer = {
      serveMetadata: () => false,
      authenticate: async (request) => {
        const principal = calls.get(request)?.principal
        return principal === undefined
          ? {
              reason: 'no-token',
              status: 401,
              message: 'The call has no principal, which principals: "given" requires.',
              headers: {},
            }
          : unauthenticatedCaller(principal)
      },
      refusalOf: () => undefined,
      restore: async () => undefined,
    }
  endpoint.resume()
  const inFlight = new Set<ServerResponse>()
  let closed = false

  const handle = endpoint.safely(async (request, response) => {
    if (closed) return refuse(response, 503, 'The server is shutting down. Try again later.', { Connection: 'close' })
    if ((request.url ?? '').length > limits.path) return endpoint.refusePath(request, response)
    if (entrance.authorizer?.serveMetadata(request, response)) return
    const call = calls.get(request) ?? {}
    const address = call.peer ?? request.socket.remoteAddress
    const refusal = guard(request) ?? (identifiesCallers || insecure || isOwn(address) ? undefined : notFromHere)
    if (refusal !== undefined) {
      onRefused({ outcome: 'host', status: refusal.status, address: addresses.of(request.socket) })
      return refuse(response, refusal.status, refusal.message)
    }
    if (endpoint.answerPreflight?.(request, response)) return
    const caller: Caller | undefined = await entrance.callerOf(request, response)
    if (caller === undefined) return
    return endpoint.serveMcp(request, response, caller, givenBody(request, call))
  })

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    meter.count('requests')
    inFlight.add(response)
    response.once('close', () => inFlight.delete(response))
    // Time-out for a body that arrives too slowly.
    const late = setTimeout(() => void (request.complete || request.destroy()), limits.requestTime).unref()
    await handle(request, response)
    clearTimeout(late)
    await waitUntilSent(response)
  }

  const inner = createServer({ maxHeaderSize: limits.headers }, (request, response) => {
    calls.set(request, bridge.callOf(request.socket))
    void take(request, response)
  })
  const bridge = createBridge<HandlerCall>(inner)

  return {
    node: async (request, response, call) => {
      // Frameworks pass their function `next` as the third argument.
      if (typeof call === 'object') calls.set(request, call)
      await take(request, response)
    },
    fetch: (request, call = {}) => bridge.fetch(request, call, call.peer),
    meter,
    close: async () => {
      closed = true
      endpoint.drain()
      const timer = setTimeout(() => {
        for (const response of inFlight) response.destroy()
      }, limits.drain)
      await Promise.all([...inFlight].map(waitUntilSent))
      clearTimeout(timer)
      await endpoint.close()
    },
  }
}

const notFromHere = {
  status: 403 as const,
  message: 'Only requests from this machine are served here, because clients are not authenticated.',
}

function isOwn(address: string | undefined): boolean {
  return address !== undefined && /^(?:::1|(?:::ffff:)?127\.\d+\.\d+\.\d+)$/i.test(address)
}

function viewsOf(source: HandlerSource): (principal: Principal) => View {
  if (typeof source === 'function') return source
  if (typeof source === 'object' && source !== null) {
    if ('read' in source) return () => source
    if (typeof source.view === 'function') return (principal) => source.view(principal)
  }
  throw invalid(
    'createHandler needs a catalog, a view, or a function that gives a view to a principal.',
    'configuration',
  )
}

/** Returns the body that the application has read already, as bytes. */
function givenBody(request: IncomingMessage & { readonly body?: unknown }, { body }: HandlerCall) {
  const parsedBody = body ?? (request.readableDidRead ? request.body : undefined)
  if (parsedBody === undefined) return undefined
  if (parsedBody instanceof Uint8Array) return parsedBody
  return Buffer.from(typeof parsedBody === 'string' ? parsedBody : JSON.stringify(parsedBody))
}

/** Headers that concern only one connection, not the message. */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection', 'te'])

/**
 * Creates a bridge, which passes requests of the Fetch standard to a Node server that listens on no port. Each request has its own
 * in-memory connection, with the limit on headers, back-pressure and disconnects.
 */
function createBridge<Note extends object>(server: Server) {
  const notes = new WeakMap<Duplex, Note>()
  return {
    callOf: (socket: Duplex): Note => notes.get(socket) ?? fail(),
    fetch: (request: Request, note: Note, address: string | undefined): Promise<Response> =>
      new Promise((resolve, reject) => {
        const [near, far] = duplexPair()
        Object.assign(far, { remoteAddress: address })
        notes.set(far, note)
        // When one end closes, the other one must too.
        near.once('close', () => far.destroy())
        far.once('close', () => near.destroy())
        for (const end of [near, far]) end.on('error', () => {})
        const { pathname, search, host } = splitUrl(request.url)
        const sent = askOver({
          createConnection: () => near,
          method: request.method,
          path: `${pathname}${search}`,
          headers: headersOf(request, host),
        })
        const abort = () => near.destroy()
        request.signal.addEventListener('abort', abort)
        if (request.signal.aborted) abort()
        near.once('close', () => request.signal.removeEventListener('abort', abort))
        sent.once('response', (answer) => resolve(responseOf(answer)))
        // After the answer, sending the rest of an unread body may fail.
        sent.on('error', reject)
        server.emit('connection', far)
        if (request.body === null) sent.end()
        else
          Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0])
            .on('error', (error) => sent.destroy(error))
            .pipe(sent)
      }),
  }
}

function fail(): never {
  throw new Error('a connection that this bridge has not made')
}

/** Returns the original path and the host of an absolute URL that the Fetch standard has parsed. */
function splitUrl(url: string) {
  const [, host = '', pathname = '/', search = ''] = /^[a-z]+:\/\/([^/?#]*)(\/[^?#]*)?(\?[^#]*)?/i.exec(url) ?? []
  return { host, pathname, search }
}

function headersOf(request: Request, host: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of request.headers) if (!ofConnection.has(name)) headers[name] = value
  headers.host ??= host
  return headers
}

function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers()
  const { rawHeaders, statusCode = 500 } = answer
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (!ofConnection.has(name.toLowerCase())) headers.append(name, rawHeaders[i + 1] ?? '')
  }
  const empty = [204, 205, 304].includes(statusCode)
  if (empty) answer.resume()
  const body = empty ? null : (Readable.toWeb(answer) as unknown as ReadableStream<Uint8Array>)
  return new Response(body, { status: statusCode, headers })
}
