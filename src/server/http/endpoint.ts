import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MetricsRegistry } from '../../core/log.ts'
import { createAddressRateLimits } from '../admission/connections.ts'
import { createGate } from '../admission/gate.ts'
import { completeLimits, createRefusalAudit, type GivenLimits } from '../admission/limits.ts'
import { type Caller, unauthenticatedCaller } from '../auth/caller.ts'
import type { AuthorizationOptions } from '../auth/claims.ts'
import type { Authorizer } from '../auth/index.ts'
import { type HttpResponse, limitsKey, refuse, refuseMethod, replyJson } from '../exchange.ts'
import { JsonError, parseJson } from '../messages/json.ts'
import { errorAnswer, isObject, modernRevision, wireErrorCodes } from '../messages/messages.ts'
import { claimedRevision } from '../protocol/envelope.ts'
import type { SubscriptionService } from '../protocol/event-options.ts'
import { localPrincipal, type ServeOptions } from '../serve.ts'
import { createMeter, metricsOfMeter } from '../telemetry/meter.ts'
import { createCors } from './cors.ts'
import { createEntrance } from './entrance.ts'
import { acceptsAnswers, mediaFault, replaceAbsoluteTarget } from './guard.ts'
import { createLegacyHttp } from './legacy.ts'
import { createModernHttp } from './modern.ts'

export interface EndpointOptions extends ServeOptions {
  /** Hosts that requests may name besides those of the loopback, as `name` or `name:port`, exactly. */
  readonly allowedHosts?: readonly string[]
  /** Origins of web pages that may send requests besides those of the loopback, as `scheme://host[:port]`, exactly. */
  readonly allowedOrigins?: readonly string[]
  /** Authentication of clients. Default none: every caller is the one `principal`. */
  readonly auth?: AuthorizationOptions
  /** Returns the OAuth scopes that a token needs for a URI, whether a resource exists or not. Default none. */
  readonly scopesOf?: (uri: string) => readonly string[]
  readonly limits?: GivenLimits
  /** Metrics of this process: this service adds its own. */
  readonly measurements?: MetricsRegistry
}

type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>

export type Endpoint = ReturnType<typeof createEndpoint>

/** @param identifiesCallers Whether callers are authenticated. */
export function createEndpoint(options: EndpointOptions, identifiesCallers: boolean) {
  const limits = completeLimits(options.limits, identifiesCallers)
  const gate = createGate(limits.concurrent, limits.waiting, limits.perPrincipal)
  const meter = createMeter()
  const addresses = createAddressRateLimits(limits)
  const refusals = createRefusalAudit(options.audit)
  const onRefused = refusals.add
  const servedOptions = { timeoutMs: limits.timeout, ...options, transport: 'http' as const, onRefused }
  const modernHttp = createModernHttp(servedOptions, gate, meter)
  const legacyHttp = createLegacyHttp(servedOptions, gate, limits, meter)
  const everybody = unauthenticatedCaller(options.principal ?? localPrincipal)
  const entrance = createEntrance({ everybody, limits, addresses, meter, onRefused })
  const { allowedOrigins = [] } = options
  const cors = allowedOrigins.length === 0 ? undefined : createCors(allowedOrigins)
  const forget = options.measurements?.add(() => metricsOfMeter(meter))
  meter.gauge('inFlight', () => gate.running)
  meter.gauge('waiting', () => gate.waiting)

  /** @param bodyBytes The body, if it was read already. */
  const serveMcp = async (
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    bodyBytes?: Uint8Array,
  ): Promise<void> => {
    if (request.method !== 'POST') return serveSessionMethod(request, response, caller)
    if (!acceptsAnswers(request))
      return refuse(response, 406, 'The Accept header allows neither JSON nor an event stream.')
    const message = await readPermitted(request, response, caller, bodyBytes)
    if (message === undefined) return
    const { value } = message
    // A message is of 2026-07-28 if its body declares a revision. If only the header names that revision, the request is invalid, and gets
    // the error of that revision.
    const claims = isObject(value) && claimedRevision(value) !== undefined
    const isModern = claims || request.headers['mcp-protocol-version'] === modernRevision
    await (isModern ? modernHttp : legacyHttp).post(request, response, caller, value)
  }

  const serveSessionMethod = async (request: IncomingMessage, response: ServerResponse, caller: Caller) => {
    if (!entrance.permits(caller, undefined, response)) return
    const sessions = request.headers['mcp-protocol-version'] !== modernRevision
    if (request.method === 'GET' && sessions) return legacyHttp.openStream(request, response, caller)
    if (request.method === 'DELETE' && sessions) return legacyHttp.end(request, response, caller.principal)
    return refuseMethod(response, 'POST')
  }

  /** Reads the message of a request if the caller may send it. Undefined when the request was answered already. */
  const readPermitted = async (
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    bodyBytes?: Uint8Array,
  ): Promise<Message | undefined> => {
    if (request.method !== 'POST') return void refuseMethod(response, 'POST')
    const media = mediaFault(request)
    if (media !== undefined) return void refuse(response, 415, media)
    const bytes = bodyBytes ?? (await readBody(request, limits.body))
    const body = typeof bytes === 'object' && bytes.length > limits.body ? 'too-long' : bytes
    if (body === 'aborted') return undefined
    if (body === 'too-long') return void entrance.refuseBody(caller, response)
    if ((request.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked')
      return void refuse(response, 415, 'A Transfer-Encoding other than chunked is not supported.')
    let value: unknown
    try {
      value = parseJson(body)
    } catch (error) {
      const text = error instanceof JsonError ? error.message : 'The message could not be read.'
      return void replyJson(response, 400, errorAnswer(null, { code: wireErrorCodes.parse, message: text }))
    }
    return entrance.permits(caller, value, response) ? { value } : undefined
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
    /** Undefined when no origin is allowed. */
    answerPreflight: cors?.answerPreflight,
    /** Refuses a request whose path is longer than the limit. */
    refusePath: (request: IncomingMessage, response: ServerResponse): void => {
      meter.count('refusedUri')
      onRefused({ outcome: 'too-large', status: 414, address: addresses.of(request.socket) })
      refuse(response, 414, `The path with its query is longer than ${limits.path} bytes.`, { Connection: 'close' })
    },
    /** Returns a function that handles requests and never rejects. */
    safely: (handle: Handle): Handle => {
      return async (request, response) => {
        response.on('error', ignoreError)
        ;(response as HttpResponse)[limitsKey] = limits
        if (request.url?.startsWith('/') !== true) replaceAbsoluteTarget(request)
        try {
          cors?.prepare(request, response)
          await handle(request, response)
        } catch (error) {
          options.log('error', 'an HTTP request failed', { error })
          if (response.headersSent) response.destroy()
          else replyJson(response, 500, errorAnswer(null, { code: wireErrorCodes.internal, message: 'Internal error' }))
        }
      }
    },
    /** Continues the subscriptions of webhooks of an earlier process. */
    resume: (): void => resumeWebhooks(options, entrance.authorizer, modernHttp.viewOf),
    /** Ends the streams. */
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

function resumeWebhooks(
  { events, log }: EndpointOptions,
  authorizer: Authorizer | undefined,
  viewOf: SubscriptionService['viewOf'],
): void {
  if (authorizer === undefined) return
  void events?.webhooks?.resume({ viewOf, callerOf: authorizer.restore }).catch((error: unknown) => {
    log('warn', 'the subscriptions of webhooks cannot be continued', { error })
  })
}

function ignoreError(): void {}

interface Message {
  readonly value: unknown
}

/** The body of a request, or why there is none. */
type Body = Uint8Array | 'too-long' | 'aborted'

/** Reads the body of a request, up to `limit` bytes. It reads nothing after the limit. */
async function readBody(request: IncomingMessage, limit: number): Promise<Body> {
  const announced = Number(request.headers['content-length'])
  if (announced > limit) return 'too-long'
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > limit) return 'too-long'
      chunks.push(chunk)
    }
  } catch {
    return 'aborted'
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
}
