import type { IncomingMessage, ServerResponse } from 'node:http'
import { chain, type Soon } from '../../core/kit/chain.ts'
import type { Measurements } from '../../core/log.ts'
import { createAddresses } from '../admission/connections.ts'
import { createEntrance } from '../admission/entrance.ts'
import { createGate } from '../admission/gate.ts'
import { completeLimits, createRefusalAudit, type GivenLimits } from '../admission/limits.ts'
import { alwaysCaller, type Caller } from '../auth/caller.ts'
import type { AuthorizationOptions } from '../auth/claims.ts'
import type { Authorizer } from '../auth/index.ts'
import { JsonError, parseJson } from '../protocol/json.ts'
import { codes, failure } from '../protocol/messages.ts'
import { modern } from '../protocol/revisions.ts'
import { localPrincipal, type ServeOptions } from '../serve.ts'
import { createMeter, measureMeter } from '../telemetry/meter.ts'
import { accepts, mediaFault, setArrival } from './guard.ts'
import { createLegacyHttp } from './legacy.ts'
import { createModernHttp } from './modern.ts'
import { limitAnswer, refuse, replyJson } from './reply.ts'

/** Options of MCP over HTTP, for any server that accepts the requests. */
export interface EndpointOptions extends ServeOptions {
  /** Hosts that requests may name besides those of the loopback, as `name` or `name:port`, exactly. */
  readonly allowedHosts?: readonly string[]
  /** Origins of web pages that may send requests besides those of the loopback, as `scheme://host[:port]`, exactly. */
  readonly allowedOrigins?: readonly string[]
  /** Authentication of clients. Default none: everyone is the one `principal`. */
  readonly auth?: AuthorizationOptions
  /** Returns the OAuth scopes that a token needs for a URI, whether a resource exists or not. Default none. */
  readonly scopesOf?: (uri: string) => readonly string[]
  readonly limits?: GivenLimits
  /** Metrics of this process: this service adds its own. */
  readonly measurements?: Measurements
}

/** MCP over HTTP, for any server that accepts the requests. */
export type Endpoint = ReturnType<typeof createEndpoint>

/** @param asked Whether callers are authenticated: otherwise their shares cannot be told apart. */
export function createEndpoint(options: EndpointOptions, asked: boolean) {
  const limits = completeLimits(options.limits, asked)
  const gate = createGate(limits.concurrent, limits.waiting, limits.perPrincipal)
  const meter = createMeter()
  const addresses = createAddresses(limits)
  const refusals = createRefusalAudit(options.audit)
  const onRefused = refusals.add
  const served = { timeout: limits.timeout, ...options, transport: 'http' as const, onRefused }
  const modernHttp = createModernHttp(served, gate, meter)
  const legacyHttp = createLegacyHttp(served, gate, limits, meter)
  const everybody = alwaysCaller(options.principal ?? localPrincipal)
  let authorizer: Authorizer | undefined
  const entrance = createEntrance({ authorizer: () => authorizer, everybody, limits, addresses, meter, onRefused })
  const forget = options.measurements?.add(() => measureMeter(meter))
  meter.gauge('inFlight', () => gate.running)
  meter.gauge('waiting', () => gate.waiting)

  /** @param given The body, if it was read already. */
  const serveMcp = (
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    given?: Uint8Array,
  ): Soon<void> => {
    if (request.method !== 'POST') return serveSessionMethod(request, response, caller)
    if (!accepts(request)) return refuse(response, 406, 'The Accept header allows neither JSON nor an event stream.')
    return chain(readPermitted(request, response, caller, given), (message) => {
      if (message === undefined) return
      if (modernHttp.isModern(request, message.value)) return modernHttp.post(request, response, caller, message.value)
      return legacyHttp.post(request, response, caller, message.value)
    })
  }

  const serveSessionMethod = async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
    if (!entrance.permits(caller, undefined, response)) return
    const sessions = request.headers['mcp-protocol-version'] !== modern
    if (request.method === 'GET' && sessions) return legacyHttp.openStream(request, response, caller)
    if (request.method === 'DELETE' && sessions) return legacyHttp.end(request, response, caller.principal)
    return refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
  }

  /** Reads the message of a request if the caller may send it. Undefined when the request was answered already. */
  const readPermitted = (
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    given?: Uint8Array,
  ): Soon<Message | undefined> => {
    if (request.method !== 'POST')
      return void refuse(response, 405, 'The method is not allowed here.', { Allow: 'POST' })
    const media = mediaFault(request)
    if (media !== undefined) return void refuse(response, 415, media)
    const whole = given ?? bodyAtHand(request, limits.body)
    const isLarge = whole !== undefined && whole.length > limits.body
    const atHand: Body | undefined = isLarge ? { fault: 'too-large', read: whole.length } : whole && { bytes: whole }
    if (atHand === undefined) setArrival(request, undefined)
    const body = atHand ?? readBody(request, limits.body)
    return chain(body, (read) => {
      const message = parseBody(read, request, response, caller)
      return message === undefined || entrance.permits(caller, message.value, response) ? message : undefined
    })
  }

  const parseBody = (
    body: Body,
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
  ): Message | undefined => {
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

  return {
    limits,
    gate,
    meter,
    addresses,
    entrance,
    onRefused,
    legacyHttp,
    serveMcp,
    readPermitted,
    /** Sets the authorizer. Until then every caller is admitted. */
    authorize: (own: Authorizer) => {
      authorizer = own
    },
    /** Answers a request for the metadata of the resource. Returns false for any other request. */
    serveMetadata: (request: IncomingMessage, response: ServerResponse) =>
      authorizer?.serveMetadata(request, response) ?? false,
    /** Whether the path is within its limit. When false, the request was answered. */
    takesPath: (request: IncomingMessage, response: ServerResponse): boolean => {
      if ((request.url ?? '').length <= limits.path) return true
      meter.count('refusedUri')
      onRefused({ outcome: 'too-large', status: 414, address: addresses.of(request.socket) })
      refuse(response, 414, `The path is longer than ${limits.path} bytes.`, { Connection: 'close' })
      return false
    },
    /** Handles a request. Never rejects: errors are logged and answered. */
    safely: async (response: ServerResponse, handle: () => Soon<void>): Promise<void> => {
      response.on('error', ignoreError)
      limitAnswer(response, limits)
      try {
        await handle()
      } catch (error) {
        options.log('error', 'an HTTP request failed', { error })
        if (response.headersSent) response.destroy()
        else replyJson(response, 500, failure(null, { code: codes.internal, message: 'Internal error' }))
      }
    },
    /** Ends the streams, which would never end by themselves. */
    drain: () => {
      modernHttp.drain()
      legacyHttp.drain()
    },
    close: async () => {
      forget?.()
      refusals.close()
      await Promise.allSettled([modernHttp.close(), legacyHttp.close()])
    },
  }
}

function ignoreError(): void {}

/** A message of a client, as a JSON value. */
interface Message {
  readonly value: unknown
}

/** The body of a request, or a fault. `read`: number of bytes read until the body was known to be too large. */
type Body =
  | { readonly bytes: Uint8Array }
  | { readonly fault: 'too-large'; readonly read: number }
  | { readonly fault: 'aborted' }

/**
 * Returns the body of a request that has arrived as a whole, as most small ones have by now; undefined for every other. It saves the
 * iterator of {@link readBody}.
 */
function bodyAtHand(request: IncomingMessage, limit: number): Uint8Array | undefined {
  if (request.destroyed || request.readableDidRead) return undefined
  const { readableLength: length } = request
  if (length === 0 || length > limit) return undefined
  // Promises continue before the parser reports the end of the body, so its announced length tells.
  if (!request.complete && Number(request.headers['content-length']) !== length) return undefined
  const bytes: unknown = request.read()
  return bytes instanceof Uint8Array ? bytes : undefined
}

/** Reads the body of a request, up to `limit` bytes. It reads nothing after the limit. */
async function readBody(request: IncomingMessage, limit: number): Promise<Body> {
  const announced = Number(request.headers['content-length'])
  if (announced > limit) return { fault: 'too-large', read: 0 }
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > limit) return { fault: 'too-large', read: length }
      chunks.push(chunk)
    }
  } catch {
    return { fault: 'aborted' }
  }
  return { bytes: chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks) }
}
