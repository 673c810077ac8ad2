import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../../core/provider.ts'
import { traceContextIn } from '../../core/trace.ts'
import type { View } from '../../core/view.ts'
import type { Gate, NoSlotReason, TaskHandle } from '../admission/gate.ts'
import { countOverload, overloadAnswer, statusOfOverload } from '../admission/overload.ts'
import { type Caller, lifetimeSignal } from '../auth/caller.ts'
import {
  type EventStream,
  offerLink,
  openEventStream,
  replyEmpty,
  replyJson,
  replyLong,
  waitUntilSent,
} from '../exchange.ts'
import {
  classifyMessage,
  errorAnswer,
  isStreamed,
  type Request,
  type RequestId,
  type Response,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { Channel } from '../protocol/channel.ts'
import { claimedRevision, envelopeFault, immediateMethods } from '../protocol/envelope.ts'
import { type StreamMethod, streamMethods } from '../protocol/streams.ts'
import { openViewChannel, type ServedOptions } from '../serve.ts'
import type { Meter } from '../telemetry/meter.ts'
import { paramHeadersFault, requestFault } from './guard.ts'

/** Maximum number of principals whose channels are cached. */
const maxChannels = 1000

/** HTTP for 2026-07-28, without sessions. */
export function createModernHttp(options: ServedOptions, gate: Gate, meter: Meter) {
  const channels = createChannels(options)
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)

  /** Answers a request with one answer, after its notifications, or with a stream if its method has one. */
  const answer = async (
    message: Request,
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
  ): Promise<void> => {
    // A disconnect cancels the request (2026-07-28, basic/patterns/cancellation).
    const closeController = new AbortController()
    response.on('close', () => {
      if (!response.writableFinished) closeController.abort()
    })
    const { signal } = closeController
    const channel = await channels.of(caller.principal)
    const serve = streamMethods.get(message.method)
    if (serve !== undefined)
      return answerStreaming(serve, message, response, caller, { channel, signal, closing, options })
    // An answer becomes a stream of events when a notification precedes it.
    let events = undefined as EventStream | undefined
    /** Sends the answer, or returns it when its content is still to be read. */
    const reply = async (pass?: TaskHandle): Promise<Response | undefined> => {
      offerLink(response, message, caller.linkFor)
      const answered = await channel.request(message, {
        pass,
        sending: () => ({ signal, gate, share: caller.share, timeoutMs: options.timeoutMs ?? 120_000 }),
        linkFor: caller.linkFor,
        headersFault: (inputSchema, args) => paramHeadersFault(request, inputSchema, args),
        trace: traceContextIn(request.headers),
        caller,
        cancel: closeController,
        onNotification: (notification) => {
          events ??= openEventStream(response)
          events.send(notification)
        },
      })
      if (answered === undefined || isStreamed(answered)) return answered
      if (events !== undefined) endWith(events, answered)
      else {
        const { status, headers } = 'error' in answered ? headOf(answered) : ok
        replyJson(response, status, answered, headers)
      }
      return undefined
    }
    const ran = immediateMethods.has(message.method)
      ? { value: await reply() }
      : await gate.run(reply, caller.share, () => waitUntilSent(response))
    if ('refused' in ran) return refuseBusy(message, response, caller, ran.refused)
    // The parts of the content take slots of their own, so a slow reader occupies none meanwhile.
    if (ran.value !== undefined) await sendStreamed(response, ran.value, events)
  }

  const refuseBusy = (message: Request, response: ServerResponse, { principal }: Caller, reason: NoSlotReason) => {
    const answer = overloadAnswer(message.id, reason)
    countOverload(answer, meter, options.onRefused, principal, message)
    const { status, headers } = headOf(answer)
    return replyJson(response, status, answer, headers)
  }

  return {
    post: async (request: IncomingMessage, response: ServerResponse, caller: Caller, body: unknown): Promise<void> => {
      const reject = (id: RequestId | null, error: WireError) => replyJson(response, 400, errorAnswer(id, error))
      if (Array.isArray(body))
        return reject(null, {
          code: wireErrorCodes.invalidRequest,
          message: 'This protocol revision has no batches. Send each message by itself.',
        })
      const inbound = classifyMessage(body)
      switch (inbound.kind) {
        case 'faulty':
          return replyJson(response, 400, inbound.answer)
        case 'response':
          return reject(null, {
            code: wireErrorCodes.invalidRequest,
            message: 'The message is a response, but the server has sent no request.',
          })
        case 'notification': {
          const fault = claimedRevision(inbound.message) === undefined ? undefined : envelopeFault(inbound.message)
          // A client must learn that its revision is not served. No other notification is answered.
          return fault?.code === wireErrorCodes.unsupportedVersion ? reject(null, fault) : replyEmpty(response, 202)
        }
        case 'dropped':
          return replyEmpty(response, 202)
        case 'request': {
          const { message } = inbound
          const fault = requestFault(request, message)
          return fault === undefined ? answer(message, request, response, caller) : reject(message.id, fault)
        }
      }
    },
    drain: () => closing.abort(),
    /** Returns the view of a principal, as its requests see it. */
    viewOf: async (principal: Principal): Promise<View> => (await channels.of(principal)).view,
    close: channels.close,
  }
}

function createChannels(options: ServedOptions) {
  const channels = new Map<string, Promise<Channel>>()
  const close = async (channel: Promise<Channel>) => (await channel).close()
  return {
    of: (principal: Principal): Promise<Channel> => {
      const key = JSON.stringify([principal.id, principal.roles, principal.scopes])
      const channel = channels.get(key) ?? openViewChannel(options, principal, 'modern')
      // A failure is not cached.
      if (!channels.has(key)) channel.catch(() => channels.get(key) === channel && channels.delete(key))
      channels.delete(key)
      channels.set(key, channel)
      const [oldest] = channels
      if (channels.size > maxChannels && oldest !== undefined) {
        channels.delete(oldest[0])
        // Close the channel a minute later, for the requests that still run.
        setTimeout(() => void close(oldest[1]).catch(() => {}), 60_000).unref()
      }
      return channel
    },
    close: async (): Promise<void> => {
      await Promise.allSettled([...channels.values()].map(close))
      channels.clear()
    },
  }
}

interface Listening {
  readonly channel: Channel
  readonly signal: AbortSignal
  readonly closing: AbortController
  readonly options: ServedOptions
}

/** Answers with a stream of notifications. */
async function answerStreaming(
  serve: StreamMethod,
  message: Request,
  response: ServerResponse,
  caller: Caller,
  { channel, signal, closing, options }: Listening,
): Promise<void> {
  let stream: EventStream | undefined
  const lifetime = lifetimeSignal(caller, closing.signal)
  const unclean = await serve(message, {
    view: channel.view,
    events: channel.events,
    server: { name: options.name, version: options.version },
    write: async (notification) => {
      stream ??= openEventStream(response, {}, message.method !== 'events/stream')
      stream.send(notification)
      await stream.ready()
    },
    signal,
    closing: lifetime.signal,
    log: options.log,
  }).finally(lifetime.release)
  const answered = unclean === undefined ? undefined : channel.scrubAnswer(unclean, message)
  if (answered === undefined) response.destroy()
  else if (stream === undefined) replyUnopened(response, answered)
  else endWith(stream, answered)
}

interface Head {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const ok: Head = { status: 200 }

/** Returns the HTTP status and headers of an answer (2026-07-28, basic/transports). Errors that a method itself causes have 200. */
function headOf(answer: Response): Head {
  const overload = statusOfOverload(answer)
  if (overload !== undefined) return overload
  switch ('error' in answer ? answer.error.code : undefined) {
    case wireErrorCodes.methodNotFound:
      return { status: 404 }
    case wireErrorCodes.invalidRequest:
    case wireErrorCodes.missingCapability:
    case wireErrorCodes.unsupportedVersion:
    case wireErrorCodes.headerMismatch:
      return { status: 400 }
    default:
      return ok
  }
}

function replyUnopened(response: ServerResponse, answer: Response): void {
  const { reason, of } = ('error' in answer ? answer.error.data : undefined) ?? {}
  const later = reason === 'too-many' && of !== 'subscription'
  replyJson(response, later ? 429 : 200, answer, later ? { 'Retry-After': '5' } : {})
}

function endWith(stream: EventStream, answer: Response): void {
  stream.send(answer)
  stream.end()
}

/** Sends an answer whose content is a stream. After a notification, the answer is one event, which is made as a whole. */
export async function sendStreamed(
  response: ServerResponse,
  answer: Response,
  stream: EventStream | undefined,
): Promise<void> {
  if (stream === undefined) return replyLong(response, 200, answer)
  const { collectAnswer: collected } = await import('../protocol/large.ts')
  stream.send(await collected(answer))
  stream.end()
}
