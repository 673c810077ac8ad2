import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Catalog } from '../../core/catalog.ts'
import { invalid } from '../../core/errors.ts'
import { requireKeys } from '../../core/kit/required.ts'
import type { Log } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import type { View } from '../../core/view.ts'
import { alwaysCaller, type Caller } from '../auth/caller.ts'
import { createAuthorizer } from '../auth/index.ts'
import type { Meter } from '../telemetry/meter.ts'
import { createBridge } from './bridge.ts'
import { createEndpoint, type EndpointOptions } from './endpoint.ts'
import { createMountedGuard } from './guard.ts'
import { refuse, taken } from './reply.ts'

/** Source of a handler: a catalog, one view for everyone, or a view for each principal. */
export type HandlerSource = Pick<Catalog, 'view'> | View | ((principal: Principal) => View)

export interface HandlerOptions extends Omit<EndpointOptions, 'view' | 'log'> {
  /** Default: no log. */
  readonly log?: Log
  /** Path of the MCP endpoint for clients, which the metadata of `auth` contains. Default `/mcp`. */
  readonly path?: string
  /**
   * `given`: each call names the principal that the application has authenticated; a call without one gets a 401. Default:
   * everyone is the one `principal`, or the one of `auth`.
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
  /** Counters of handled and refused requests. */
  readonly meter: Meter
  /** Accepts no new requests, ends the streams, and waits for the requests in flight. */
  readonly close: () => Promise<void>
}

/**
 * Creates a handler for an existing server: for Node's HTTP server and frameworks based on it, and for servers of the Fetch
 * standard. It makes the same checks of a request as `serveHttp`; the limits on connections are up to the existing server.
 *
 * @throws ResourceError `invalid` when other machines could send requests without authentication.
 */
export async function createHandler(source: HandlerSource, options: HandlerOptions): Promise<Handler> {
  requireKeys('createHandler(source, { name, version })', options, { name: 'a text', version: 'a text' })
  const { auth, principals, insecure = false, allowedHosts = [], path = '/mcp', log = () => {} } = options
  if (auth !== undefined && principals !== undefined)
    throw invalid('Either auth says who asks, or each call does (principals).', 'handler')
  const asked = auth !== undefined || principals === 'given'
  if (!asked && !insecure && allowedHosts.length > 0)
    throw invalid(
      'Other machines can ask by these allowedHosts, and nobody would be asked who they are. Set auth, or principals: "given".',
      'insecure',
    )
  const served = { ...options, log, view: viewsOf(source) }
  const endpoint = createEndpoint(served, asked)
  const { limits, meter, addresses, onRefused, entrance } = endpoint
  const guard = createMountedGuard(options)
  if (auth !== undefined) endpoint.authorize(await createAuthorizer({ ...options, ...auth, log, path }))
  /** Facts about the requests in flight. */
  const calls = new WeakMap<IncomingMessage, HandlerCall>()
  if (principals === 'given')
    endpoint.authorize({
      serveMetadata: () => false,
      authenticate: async (request) => {
        const principal = calls.get(request)?.principal
        return principal === undefined
          ? { reason: 'no-token', status: 401, message: 'Nobody has said who asks.', headers: {} }
          : alwaysCaller(principal)
      },
      refusalOf: () => undefined,
    })
  const inFlight = new Set<ServerResponse>()
  let closed = false

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (closed) return refuse(response, 503, 'The server is ending.', { Connection: 'close' })
    if (!endpoint.takesPath(request, response) || endpoint.serveMetadata(request, response)) return
    const call = calls.get(request) ?? {}
    const address = call.peer ?? request.socket.remoteAddress
    const refused = guard(request) ?? (asked || insecure || isOwn(address) ? undefined : notFromHere)
    if (refused !== undefined) {
      onRefused({ outcome: 'host', status: refused.status, address: addresses.of(request.socket) })
      return refuse(response, refused.status, refused.message)
    }
    const caller: Caller | undefined = await entrance.callerOf(request, response)
    if (caller === undefined) return
    return endpoint.serveMcp(request, response, caller, givenBody(request, call))
  }

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    meter.count('requests')
    inFlight.add(response)
    response.once('close', () => inFlight.delete(response))
    // Time-out for a body that arrives too slowly.
    const late = setTimeout(() => void (request.complete || request.destroy()), limits.requestTime).unref()
    await endpoint.safely(response, () => handle(request, response))
    clearTimeout(late)
    await taken(response)
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
      await Promise.all([...inFlight].map(taken))
      clearTimeout(timer)
      await endpoint.close()
    },
  }
}

const notFromHere = {
  status: 403 as const,
  message: 'Only this machine may ask here, since nobody is asked who they are.',
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
  throw invalid('createHandler needs a catalog, a view, or a function that gives a view to a principal.', 'handler')
}

/** Returns the body that the application has read already, as bytes: they are checked like any others. */
function givenBody(request: IncomingMessage & { readonly body?: unknown }, { body }: HandlerCall) {
  const given = body ?? (request.readableDidRead ? request.body : undefined)
  if (given === undefined) return undefined
  if (given instanceof Uint8Array) return given
  return Buffer.from(typeof given === 'string' ? given : JSON.stringify(given))
}
