import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../core/provider.ts'
import type { Channel } from './channel.ts'
import { claimedRevision, envelopeFault } from './envelope.ts'
import { codes, type WireError } from './errors.ts'
import type { Gate } from './gate.ts'
import { headerFault, versionMismatch } from './headers.ts'
import { listen } from './listen.ts'
import { classify, failure, isObject, type Request, type RequestId } from './messages.ts'
import { type EventStream, openEventStream, replyEmpty, replyJson } from './reply.ts'
import { modern } from './revisions.ts'
import { openView, type ServeOptions } from './serve.ts'

/** HTTP as 2026-07-28 has it: every POST stands alone. */
export interface ModernHttp {
  /** Whether a request is of this revision: its body says so, or only its header does (and it is at fault then). */
  isModern(request: IncomingMessage, body: unknown): boolean
  post(request: IncomingMessage, response: ServerResponse, principal: Principal, body: unknown): Promise<void>
  /** Ends what is listened to, each with its result. */
  drain(): void
  close(): Promise<void>
}

/** So many principals have a channel that waits for their next request. */
const maxChannels = 1000

export function createModernHttp(options: ServeOptions, gate: Gate): ModernHttp {
  const channels = new Map<string, Promise<Channel>>()
  const closing = new AbortController()

  const channelOf = (principal: Principal): Promise<Channel> => {
    const key = JSON.stringify([principal.id, ...principal.roles])
    let channel = channels.get(key)
    if (channel === undefined) {
      if (channels.size >= maxChannels) evictOldest(channels)
      channel = openView(options, principal, 'modern')
    }
    // Used last, thrown out last.
    channels.delete(key)
    channels.set(key, channel)
    return channel
  }

  const answer = async (message: Request, response: ServerResponse, principal: Principal): Promise<void> => {
    // Whoever hangs up cancels (2026-07-28, basic/patterns/cancellation).
    const controller = new AbortController()
    response.on('close', () => controller.abort())
    let stream: EventStream | undefined
    const channel = await channelOf(principal)
    if (message.method === 'subscriptions/listen') {
      const answered = await listen(message, {
        view: channel.view,
        server: { name: options.name, version: options.version },
        write: async (notification) => {
          stream ??= openEventStream(response)
          stream.send(notification)
          await stream.ready()
        },
        signal: controller.signal,
        closing: closing.signal,
        log: options.log,
      })
      if (answered === undefined) response.destroy()
      else if (stream === undefined) replyJson(response, 200, answered)
      else {
        ;(stream as EventStream).send(answered)
        ;(stream as EventStream).end()
      }
      return
    }
    const ran = await gate.run(() =>
      channel.request(message, {
        signal: controller.signal,
        // An answer becomes a stream only when there is something to say before it.
        onNotification: (notification) => {
          stream ??= openEventStream(response)
          stream.send(notification)
        },
      }),
    )
    if (ran === undefined) return replyBusy(response, message.id)
    if (ran.value === undefined) return
    if (stream === undefined) {
      const error = 'error' in ran.value ? ran.value.error : undefined
      replyJson(response, error === undefined ? 200 : statusOf(error.code), ran.value)
    } else {
      stream.send(ran.value)
      stream.end()
    }
  }

  return {
    isModern: (request, body) => {
      if (isObject(body) && isObject(body.params) && isObject(body.params._meta)) {
        if ('io.modelcontextprotocol/protocolVersion' in body.params._meta) return true
      }
      return request.headers['mcp-protocol-version'] === modern
    },
    post: async (request, response, principal, body) => {
      const reject = (id: RequestId | null, error: WireError, status = 400) =>
        replyJson(response, status, failure(id, error))
      if (Array.isArray(body))
        return reject(null, { code: codes.invalidRequest, message: 'There are no batches in this protocol revision.' })
      const inbound = classify(body)
      switch (inbound.kind) {
        case 'faulty':
          return replyJson(response, 400, inbound.answer)
        case 'response':
          return reject(null, { code: codes.invalidRequest, message: 'The server has asked nothing.' })
        case 'notification': {
          const fault = claimedRevision(inbound.message) === undefined ? undefined : envelopeFault(inbound.message)
          return fault === undefined ? replyEmpty(response, 202) : reject(null, fault)
        }
        case 'request': {
          const { message } = inbound
          // The version is judged first: whoever speaks another one is told so, whatever else is wrong.
          const mismatch = versionMismatch(request, claimedRevision(message))
          const fault = mismatch ?? envelopeFault(message) ?? headerFault(request, message)
          return fault === undefined ? answer(message, response, principal) : reject(message.id, fault)
        }
      }
    },
    drain: () => closing.abort(),
    close: async () => {
      await Promise.allSettled([...channels.values()].map(async (channel) => (await channel).close()))
      channels.clear()
    },
  }
}

function evictOldest(channels: Map<string, Promise<Channel>>): void {
  for (const [key, channel] of channels) {
    channels.delete(key)
    // What is in flight on it ends without an answer only if it outlives the next thousand principals.
    setTimeout(() => void channel.then((open) => open.close()), 60_000).unref()
    return
  }
}

/** The status of an error (2026-07-28, basic/transports): what a method answers is 200, errors included. */
function statusOf(code: number): number {
  switch (code) {
    case codes.methodNotFound:
      return 404
    case codes.invalidRequest:
    case codes.missingCapability:
    case codes.unsupportedVersion:
    case codes.headerMismatch:
      return 400
    default:
      return 200
  }
}

export function replyBusy(response: ServerResponse, id: RequestId | null): void {
  const error = {
    code: codes.internal,
    message: 'Too many requests are in flight. Try again later.',
    data: { reason: 'busy' },
  }
  replyJson(response, 503, failure(id, error), { 'Retry-After': '1' })
}
