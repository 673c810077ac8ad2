import {
  type JSONRPCMessage,
  type JSONRPCNotification,
  PerRequestHTTPServerTransport,
  type Server,
  type TransportSendOptions,
} from '@modelcontextprotocol/server'
import type { Log } from '../core/log.ts'
import type { View } from '../core/view.ts'
import { type ClientName, clientIn } from './clients.ts'
import type { Egress } from './egress.ts'
import { codes, notFoundMessage, type WireError } from './errors.ts'
import type { Pass } from './gate.ts'
import { failure, isObject, type Notification, type Request, type Response } from './messages.ts'
import { isRevision, modern, type Revision, since } from './revisions.ts'

export interface ExchangeOptions {
  /** Its abort cancels the request; it then ends without an answer. */
  readonly signal?: AbortSignal
  /** Takes what the server says about this request before it answers (progress). */
  readonly onNotification?: (message: JSONRPCNotification) => void
  /** What it was let in with. */
  readonly pass?: Pass
}

/**
 * One SDK server, spoken to in exchanges: a request goes in, its answer comes out. Ids of different clients never meet,
 * since each exchange has one of its own inside; so one server serves any number of requests and connections at once.
 */
export interface Channel {
  /** The answer; `undefined` when the request was cancelled. */
  request(message: Request, options?: ExchangeOptions): Promise<Response | undefined>
  /** A notification of the client's. Cancelling is not among them: it is the signal of the exchange. */
  notify(message: Notification): void
  /** What is served on it. */
  readonly view: View
  /** Cleans an answer that was not made on the channel, as all of its own are. */
  readonly egress: Egress
  /** What `initialize` agreed on; the modern revision where it is the channel's. */
  readonly revision: Revision | undefined
  /** Tells the client of everything that it listens to: it may have missed something. */
  retell(): void
  close(): Promise<void>
}

export interface ChannelOptions {
  readonly view: View
  readonly log: Log
  readonly egress: Egress
  /** How long a request may take, in milliseconds, progress or not: a source that hangs keeps no place for ever. */
  readonly timeout: number
  /** What each request was let in with, as long as it is in flight. */
  readonly passes?: Map<unknown, Pass>
  /** Called when the channel closes. */
  readonly onClose?: () => void
  readonly retell?: () => void
  /** Why a request is not even handed to the server. */
  readonly faultOf?: (message: Request, client: ClientName | undefined) => WireError | undefined
}

interface Exchange {
  readonly request: Request
  readonly onNotification: ((message: JSONRPCNotification) => void) | undefined
  readonly settle: (response: Response | undefined) => void
}

/**
 * The transport that a server is connected to. It extends the SDK's own transport of a single exchange because that is
 * the public way to bind a server to the stateless revision; nothing of its behaviour is kept.
 */
class ChannelTransport extends PerRequestHTTPServerTransport {
  readonly exchanges = new Map<number, Exchange>()

  constructor(era: 'modern' | 'legacy') {
    super({ classification: era === 'modern' ? { era, revision: modern } : { era } })
  }

  override async start(): Promise<void> {}

  override async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if ('method' in message) {
      const exchange = this.exchanges.get(Number(options?.relatedRequestId))
      if (exchange !== undefined && !('id' in message)) exchange.onNotification?.(message)
      return
    }
    const exchange = this.exchanges.get(Number(message.id))
    if (exchange === undefined) return
    const id = exchange.request.id
    if ('error' in message) exchange.settle(failure(id, wireErrorOf(message.error)))
    else exchange.settle({ jsonrpc: '2.0', id, result: message.result })
  }

  override async close(): Promise<void> {
    for (const exchange of this.exchanges.values()) exchange.settle(undefined)
    this.onclose?.()
  }
}

export async function openChannel(
  server: Server,
  era: 'modern' | 'legacy',
  { view, log, egress, timeout, passes, onClose, retell, faultOf }: ChannelOptions,
): Promise<Channel> {
  const transport = new ChannelTransport(era)
  let delivering = false
  let taken = true
  server.onerror = (error) => {
    if (delivering) taken = false
    // Its text may repeat all of a message.
    else log('debug', 'the protocol layer reports', { error: error.message.slice(0, 200) })
  }
  await server.connect(transport)
  let next = 0

  /** Hands a message to the server. `false`: it is not one that the server takes, and there will be no answer to it. */
  const deliver = (message: JSONRPCMessage): boolean => {
    delivering = true
    taken = true
    try {
      transport.onmessage?.(message)
    } finally {
      delivering = false
    }
    return taken
  }

  const revision = () => {
    const version = server.getNegotiatedProtocolVersion()
    return isRevision(version) ? version : undefined
  }

  const request: Channel['request'] = async (message, options = {}) => {
    const initializing = era === 'legacy' && message.method === 'initialize'
    const fault = initializing ? initializeFault(message) : undefined
    if (fault !== undefined) return failure(message.id, { code: codes.invalidParams, message: fault })
    const client = era === 'modern' ? clientIn(message.params?._meta) : server.getClientVersion()
    const refused = faultOf?.(message, client)
    if (refused !== undefined) return failure(message.id, refused)
    if (options.signal?.aborted) return undefined
    const id = next++
    if (options.pass !== undefined) passes?.set(id, options.pass)
    const end = (response?: Response) => {
      transport.exchanges.get(id)?.settle(response)
      // The server aborts its handler and stays silent.
      deliver({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    }
    const cancel = () => end()
    const timer = setTimeout(() => {
      log('warn', 'a request took too long', { method: message.method, timeout })
      end(failure(message.id, tooLate))
    }, timeout)
    try {
      const response = await new Promise<Response | undefined>((settle) => {
        transport.exchanges.set(id, { request: message, onNotification: options.onNotification, settle })
        options.signal?.addEventListener('abort', cancel, { once: true })
        const { method } = message
        const params = initializing ? keptOf(message.params) : message.params
        if (!deliver({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }))
          settle(failure(message.id, { code: codes.invalidParams, message: 'The _meta of the params is malformed.' }))
      })
      return response === undefined ? undefined : egress(presentable(response, message, revision()), message)
    } finally {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', cancel)
      transport.exchanges.delete(id)
      passes?.delete(id)
    }
  }

  return {
    request,
    notify: ({ method, params }) => {
      if (method === 'notifications/cancelled') return
      deliver({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) })
    },
    get revision() {
      return revision()
    },
    view,
    egress,
    retell: () => retell?.(),
    close: async () => {
      onClose?.()
      await server.close()
    },
  }
}

const tooLate: WireError = {
  code: codes.internal,
  message: 'The request took too long. Try again later, or ask for less.',
  data: { reason: 'timeout' },
}

function wireErrorOf({ code, message, data }: { code: number; message: string; data?: unknown }): WireError {
  // The protocol layer writes some messages itself; they are for people, and short.
  const short = message.length > 500 ? `${message.slice(0, 500)}…` : message
  return { code, message: short, ...(isObject(data) ? { data } : {}) }
}

function initializeFault({ params = {} }: Request): string | undefined {
  const { protocolVersion, capabilities, clientInfo } = params
  if (typeof protocolVersion !== 'string') return 'The param protocolVersion is not a string.'
  if (!isObject(capabilities)) return 'The param capabilities is not an object.'
  if (!isObject(clientInfo) || typeof clientInfo.name !== 'string' || typeof clientInfo.version !== 'string')
    return 'The param clientInfo has no name or version.'
  return undefined
}

/**
 * What of `initialize` is worth keeping as long as the client stays. The server asks clients nothing, so it need not know
 * what they are capable of; a session must not keep a megabyte of it.
 */
function keptOf({ protocolVersion, clientInfo }: Request['params'] = {}): Readonly<Record<string, unknown>> {
  const cut = (value: unknown) => String(value).slice(0, 256)
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  const known = { name: cut(name), version: cut(version) }
  return { protocolVersion: cut(protocolVersion), capabilities: {}, clientInfo: known }
}

/** An answer as its revision wants it, where the SDK writes it the same for all. */
function presentable(response: Response, request: Request, revision: Revision | undefined): Response {
  if ('error' in response) {
    const { code, message } = response.error
    // The SDK turns the older code for "not found" into the newer one on every revision.
    const missing = code === codes.invalidParams && message === notFoundMessage
    if (missing && revision !== modern)
      return { ...response, error: { ...response.error, code: codes.resourceNotFound } }
    return response
  }
  if (request.method !== 'initialize') return response
  return { ...response, result: withoutNewer(response.result, revision) }
}

type Result = Readonly<Record<string, unknown>>

/** What `initialize` answers, without the members that came after the revision: the SDK sends them to all. */
function withoutNewer(result: Result, revision: Revision | undefined): Result {
  const { capabilities, serverInfo } = result
  if (revision === undefined || since(revision, '2025-06-18')) return result
  const { title: _, ...info } = isObject(serverInfo) ? serverInfo : {}
  if (since(revision, '2025-03-26')) return { ...result, serverInfo: info }
  const { completions: __, ...older } = isObject(capabilities) ? capabilities : {}
  return { ...result, serverInfo: info, capabilities: older }
}
