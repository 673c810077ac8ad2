import type { ErrorReason } from '../../core/errors.ts'
import { untilAborted } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import { runInSpan, type TraceContext, telemetry, traceContextIn } from '../../core/trace.ts'
import type { View } from '../../core/view.ts'
import type { TaskHandle } from '../admission/gate.ts'
import type { Caller } from '../auth/caller.ts'
import type { LinkFor } from '../messages/messages.ts'
import {
  assumedRevision,
  errorAnswer,
  errorToWire,
  isObject,
  modernRevision,
  type Notification,
  ProtocolError,
  protocolErrorToWire,
  type Request,
  type Response,
  type Revision,
  type WireError,
  wantsLog,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { AnswerScrubber } from './answer-scrubber.ts'
import {
  type ClientName,
  clientIn,
  discoverResult,
  type Handshake,
  handshakeFault,
  type Introduction,
  initializeResult,
  type MethodResult,
  negotiateHandshake,
  type OpeningCatalog,
  untilReadyFor,
  withRequiredMembers,
} from './envelope.ts'
import type { EventOptions } from './event-options.ts'
import type { AnswerSender } from './large.ts'
import { type HeadersFault, type Method, type MethodCall, withProgress } from './method.ts'

/** The two kinds of protocol revisions: every request is independent (2026-07-28), or `initialize` comes first. */
export type Era = 'modern' | 'legacy'

export interface RequestOptions {
  /** Aborting it cancels the request, which then has no answer. */
  readonly cancel?: AbortController
  /** Receives the notifications of this request (progress, logs) before its answer. */
  readonly onNotification?: ((notification: Notification) => void) | undefined
  /** The request's admission from the gate. Default: no waiting. */
  readonly pass?: TaskHandle | undefined
  /** Trace context of the transport. The request belongs to its trace, unless its `_meta` has one. */
  readonly trace?: TraceContext | undefined
  /** Returns how the transport sends a content that is read meanwhile. The caller then writes the answer with `replyLong`. */
  readonly sending?: (() => AnswerSender) | undefined
  /** Creates links to contents that are too large for an answer. */
  readonly linkFor?: LinkFor | undefined
  /** Compares the headers of the request with the arguments of a tool. */
  readonly headersFault?: HeadersFault | undefined
  /** The authenticated caller. Undefined when the transport does not authenticate. */
  readonly caller?: Caller | undefined
}

/** The protocol for one principal, or for one long-lived client: it turns each request into its answer, with the same id. */
export interface Channel {
  /** Answers a request; undefined when it was cancelled. It never rejects. */
  request(message: Request, options?: RequestOptions): Promise<Response | undefined>
  /** Handles a notification of the client, except `notifications/cancelled`, which aborts the request's signal instead. */
  notify(message: Notification): void
  readonly view: View
  readonly events: EventOptions
  /** Removes known secrets from an answer that was made elsewhere. */
  readonly scrubAnswer: AnswerScrubber
  /** The revision that `initialize` negotiated; 2026-07-28 on a modern channel. */
  readonly revision: Revision | undefined
  /** Notifies the client that everything it listens to may have changed, since it may have missed notifications. */
  retell(): void
  /** Ends the subscription, and cancels the requests in flight. */
  close(): Promise<void>
}

export interface ServedMethods extends Introduction {
  readonly events?: EventOptions
  readonly methods: ReadonlyMap<string, Method>
  /** Called when the client has sent `notifications/initialized`. Before that it must get no notifications. */
  readonly onInitialized?: () => void
}

interface ChannelOptions {
  readonly era: Era
  readonly view: View
  /** Returns the view for a client, by its declared name. Default `view`. */
  readonly viewOf?: ((client: ClientName | undefined) => View) | undefined
  /** Returns the text after the instructions, by the declared name of the client. */
  readonly noteOf?: ((client: ClientName | undefined) => string | undefined) | undefined
  readonly log: Log
  readonly scrubAnswer: AnswerScrubber
  /** Time-out of a request, in milliseconds, with or without progress. */
  readonly timeoutMs: number
  /** The catalog that is still opening: requests that need the mounts wait for it, within their time-out. Undefined: it is open. */
  readonly opening?: OpeningCatalog | undefined
  readonly onClose?: () => void
  readonly retell?: () => void
}

const lengthy = new Set([
  ...['resources/list', 'resources/read', 'resources/directory/read'],
  ...['skills/list', 'skills/get', 'prompts/get', 'tools/call'],
])

/** Methods that 2026-07-28 has removed. */
const legacyOnly = new Set(['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel'])

/** Methods of the Events extension, which only 2026-07-28 has. */
const modernOnly = new Set(['events/list', 'events/poll', 'events/subscribe', 'events/unsubscribe'])

const freePass: TaskHandle = { room: async () => {}, turn: async () => {} }

const timedOut: WireError = {
  code: wireErrorCodes.internal,
  message: 'The request took too long. Try again later, or ask for less.',
  data: { reason: 'timeout' satisfies ErrorReason },
}

/** Opens the channel of one principal, or of one long-lived client. */
export function openChannel(servedMethods: ServedMethods, options: ChannelOptions): Channel {
  const { era, view, viewOf, log, scrubAnswer, timeoutMs, opening, onClose, retell } = options
  let handshake: Handshake | undefined
  let revision: Revision | undefined = era === 'modern' ? modernRevision : undefined
  let initialized = false
  const inFlight = new Set<AbortController>()

  const initialize = (params: MethodCall['params']) => {
    const fault = handshakeFault(params)
    if (fault !== undefined) throw new ProtocolError(fault.code, fault.message)
    handshake = negotiateHandshake(params)
    revision = handshake.revision
    return initializeResult(handshake, introduce(servedMethods, options.noteOf, handshake.client))
  }

  const own: readonly (readonly [string, Method])[] =
    era === 'modern'
      ? [['server/discover', async ({ client }) => discoverResult(introduce(servedMethods, options.noteOf, client))]]
      : [
          ['initialize', async ({ params }) => initialize(params)],
          ['ping', async () => ({})],
        ]
  const methods = new Map([...own, ...servedMethods.methods])
  for (const name of era === 'modern' ? legacyOnly : modernOnly) methods.delete(name)

  /** Runs the method of a request. An error that it throws becomes the answer. */
  const run = async (
    message: Request,
    signal: AbortSignal,
    notify: MethodCall['notify'],
    { pass = freePass, sending, linkFor, headersFault, trace, caller }: RequestOptions,
  ): Promise<Response> => {
    const { id, method: name, params = {} } = message
    const meta = isObject(params._meta) ? params._meta : {}
    const plain = methods.get(name)
    if (plain === undefined)
      return errorAnswer(id, { code: wireErrorCodes.methodNotFound, message: 'Method not found' })
    const token = meta.progressToken ?? undefined
    if (token !== undefined && !isProgressToken(token))
      return errorAnswer(id, {
        code: wireErrorCodes.invalidParams,
        message: 'The progressToken in the _meta of the params is neither a string nor an integer.',
      })
    const method = token !== undefined && lengthy.has(name) ? withProgress(plain) : plain
    const spoken = revision ?? assumedRevision
    const client = era === 'modern' ? clientIn(meta) : handshake?.client
    const sendLog: MethodCall['log'] = (level, data) => {
      if (era === 'modern' && wantsLog(meta, level))
        notify({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data } })
    }
    try {
      if (opening !== undefined) await untilReadyFor(opening, name)
      signal.throwIfAborted()
      const base = { params, revision: spoken, client, view: viewOf === undefined ? view : viewOf(client) }
      const call: MethodCall = { ...base, signal, pass, sending, linkFor, headersFault, caller, notify, log: sendLog }
      const parent = traceContextIn(meta) ?? trace
      const isTraced = telemetry !== undefined || parent !== undefined
      const result = isTraced ? await tracedRequest(message, method, call, parent) : await method(call)
      return { jsonrpc: '2.0', id, result: withRequiredMembers(name, result, spoken, servedMethods.server) }
    } catch (error) {
      if (signal.aborted) {
        // The request was cancelled or has timed out, so nobody gets this answer.
        log('debug', 'a cancelled request ended with an error', { error })
        return errorAnswer(id, timedOut)
      }
      if (error instanceof ProtocolError) return errorAnswer(id, protocolErrorToWire(error))
      const uri = typeof params.uri === 'string' ? params.uri : undefined
      return errorAnswer(id, errorToWire(error, spoken, uri, log))
    }
  }

  const request: Channel['request'] = async (message, options = {}) => {
    const { cancel = new AbortController(), onNotification } = options
    const { signal } = cancel
    if (signal.aborted) return undefined
    let isTimedOut = false
    let hasEnded = false
    const notify = (notification: Notification) => {
      if (!hasEnded) onNotification?.(scrubNotification(scrubAnswer, notification, message))
    }
    const timer = setTimeout(() => {
      log('warn', 'a request took too long', { method: message.method, timeout: timeoutMs })
      isTimedOut = true
      cancel.abort()
    }, timeoutMs)
    inFlight.add(cancel)
    try {
      return scrubAnswer(await untilAborted(run(message, signal, notify, options), signal), message)
    } catch (error) {
      if (!signal.aborted) throw error
      return isTimedOut ? scrubAnswer(errorAnswer(message.id, timedOut), message) : undefined
    } finally {
      hasEnded = true
      clearTimeout(timer)
      inFlight.delete(cancel)
    }
  }

  return {
    request,
    notify: ({ method }) => {
      if (method !== 'notifications/initialized' || era === 'modern' || initialized) return
      initialized = true
      servedMethods.onInitialized?.()
    },
    get revision() {
      return revision
    },
    view,
    events: servedMethods.events ?? {},
    scrubAnswer,
    retell: () => retell?.(),
    close: async () => {
      onClose?.()
      for (const request of inFlight) request.abort()
    },
  }
}

/** Returns the introduction of the server, with the note for this client. */
function introduce(
  methods: ServedMethods,
  noteOf: ChannelOptions['noteOf'],
  client: ClientName | undefined,
): Introduction {
  const texts = [methods.instructions, noteOf?.(client)].filter((text) => text !== undefined && text !== '')
  return { ...methods, instructions: texts.length === 0 ? methods.instructions : texts.join('\n\n') }
}

/** Removes known secrets from texts that a source reports while it works. */
function scrubNotification(
  scrubAnswer: ChannelOptions['scrubAnswer'],
  notification: Notification,
  request: Request,
): Notification {
  const { method, params } = notification
  if (params === undefined || (method !== 'notifications/progress' && method !== 'notifications/message'))
    return notification
  const clean = scrubAnswer({ jsonrpc: '2.0', id: request.id, result: params }, request)
  return 'result' in clean ? { ...notification, params: clean.result } : notification
}

/** Names of tools and prompts that a span shows. */
const shownName = /^[\w./ -]{1,64}$/

function tracedRequest(
  { id, method, params = {} }: Request,
  answer: Method,
  call: MethodCall,
  parent: TraceContext | undefined,
): Promise<MethodResult> {
  const isNamed = method === 'tools/call' || method === 'prompts/get'
  const target = isNamed && typeof params.name === 'string' && shownName.test(params.name) ? params.name : undefined
  const attributes = { 'mcp.method.name': method, 'mcp.protocol.version': call.revision }
  const options = { kind: 'server', attributes, parent, duration: 'mcp.server.operation.duration' } as const
  return runInSpan(target === undefined ? method : `${method} ${target}`, options, async (span) => {
    span.set({ 'jsonrpc.request.id': String(id).slice(0, 64) })
    if (target !== undefined)
      span.set({ [method === 'tools/call' ? 'gen_ai.tool.name' : 'gen_ai.prompt.name']: target })
    const result = await answer(call)
    if (result.isError === true) span.fail('tool_error')
    return result
  })
}

function isProgressToken(token: unknown): boolean {
  return typeof token === 'string' || (typeof token === 'number' && Number.isInteger(token))
}
