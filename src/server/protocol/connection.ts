import type { ErrorReason } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createGate, type Gate, type TaskHandle } from '../admission/gate.ts'
import { overloadAnswer } from '../admission/overload.ts'
import { formatJson } from '../messages/json.ts'
import {
  assumedRevision,
  classifyMessage,
  errorAnswer,
  errorToWire,
  hasBatches,
  idKey,
  modernRevision,
  type Notification,
  type Request,
  type RequestId,
  type Response,
  type Revision,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { Channel, RequestOptions } from './channel.ts'
import { claimedRevision, envelopeFault, immediateMethods } from './envelope.ts'
import type { AnswerSender } from './large.ts'
import { type StreamMethod, streamMethods } from './streams.ts'

/** Maximum number of messages in one batch. */
const maxBatch = 50
/** Maximum size of all answers to one batch, in bytes. Answers beyond it become errors. */
const maxBatchBytes = 8 * 1024 * 1024

export interface ReceiveOptions extends Pick<RequestOptions, 'linkFor' | 'trace'> {
  readonly onNotification?: (message: Notification) => void
  /** Writes a notification of a stream; resolves when there is room for more. */
  readonly write?: (message: Notification) => Promise<void>
  /** Takes the answer of a single request, or of a batch, which then keeps its slot in the gate until it is written. */
  readonly deliver?: ((answer: Response | readonly Response[]) => Promise<void>) | undefined
  /** Resolves when the reader has taken the answer; undefined when that cannot be known. */
  readonly taken?: () => Promise<unknown>
  /** How the caller sends a content that is read meanwhile. It then writes the answer of a single request with `replyLong`. */
  readonly sending?: Pick<AnswerSender, 'signal' | 'timeoutMs'>
}

const tooLong: WireError = {
  code: wireErrorCodes.invalidParams,
  message: `The answers to the batch are longer than ${maxBatchBytes} bytes together. Send this request by itself.`,
  data: { reason: 'too-large', limit: maxBatchBytes },
}

const unwritable: WireError = { code: wireErrorCodes.internal, message: 'Internal error' }

const idInFlight: WireError = {
  code: wireErrorCodes.invalidRequest,
  message: 'A request with this id is still in flight.',
}

const tooSlow: WireError = {
  code: wireErrorCodes.internal,
  message:
    'The client reads its notifications too slowly, so some are lost. Subscribe again, and read the resources again.',
  data: { reason: 'too-slow' satisfies ErrorReason },
}

interface ServerFacts {
  readonly name: string
  readonly version: string
  readonly log: Log
  readonly share?: string
  /** The revisions that the transport serves. Default all. */
  readonly offered?: readonly Revision[]
}

/**
 * A long-lived client: a pipe, or a session. Each message shows by itself which kind of revision it belongs to, so a client may probe with
 * one kind and continue with the other.
 */
export type Connection = ReturnType<typeof createConnection>

export function createConnection(
  open: (era: 'modern' | 'legacy') => Promise<Channel>,
  gate: Gate,
  server: ServerFacts,
) {
  const closing = new AbortController()
  // A mutex: each batch holds many answers in memory.
  const batches = createGate(1, Number.POSITIVE_INFINITY)
  const channels = createChannels(open)
  const inFlight = new Map<string, AbortController>()
  let listening = 0
  // Do not move this variable into a closure that is made for each answer: that closure would keep the last answers in memory.
  let legacy: Channel | undefined

  const answer = async (request: Request, options: ReceiveOptions): Promise<Response | undefined> => {
    const claims = claimedRevision(request) !== undefined
    const fault = claims ? envelopeFault(request, server.offered) : undefined
    if (fault !== undefined) return errorAnswer(request.id, fault)
    const key = idKey(request.id)
    if (inFlight.has(key)) return errorAnswer(request.id, idInFlight)
    const own = new AbortController()
    inFlight.set(key, own)
    try {
      const channel = await channels
        .channelFor(claims ? 'modern' : 'legacy')
        .catch((error: unknown) =>
          errorAnswer(request.id, errorToWire(error, claims ? modernRevision : assumedRevision, undefined, server.log)),
        )
      if ('jsonrpc' in channel) return channel
      if (!claims) legacy = channel
      const serve = claims ? streamMethods.get(request.method) : undefined
      if (serve !== undefined) {
        listening++
        const stream = { channel, server, closing: closing.signal, signal: own.signal }
        return await answerStreaming(serve, stream, request, options).finally(() => listening--)
      }
      return await answerOn(channel, { gate, share: server.share, cancel: own }, request, options)
    } finally {
      inFlight.delete(key)
    }
  }

  const hear = async (notification: Notification): Promise<void> => {
    if (notification.method === 'notifications/cancelled') {
      const id = notification.params?.requestId
      if (typeof id === 'string' || typeof id === 'number') inFlight.get(idKey(id satisfies RequestId))?.abort()
      return
    }
    const claims = claimedRevision(notification) !== undefined
    if (claims && envelopeFault(notification, server.offered) !== undefined) return
    const channel = await channels.channelFor(claims ? 'modern' : 'legacy')
    channel.notify(notification)
  }

  const receiveOne = async (value: unknown, options: ReceiveOptions): Promise<Response | undefined> => {
    const inbound = classifyMessage(value)
    switch (inbound.kind) {
      case 'faulty':
        return inbound.answer
      case 'dropped':
      case 'response':
        // The server sends no requests to clients, so it expects no answers.
        return undefined
      case 'notification':
        await hear(inbound.message)
        return undefined
      case 'request':
        return answer(inbound.message, options)
    }
  }

  const receiveBatch = async (values: readonly unknown[], options: ReceiveOptions) => {
    const refuse = (message: string) => errorAnswer(null, { code: wireErrorCodes.invalidRequest, message })
    const agreed = legacy?.revision
    if (agreed === undefined || !hasBatches(agreed))
      return refuse('This protocol revision has no batches. Send each message by itself.')
    if (values.length === 0) return refuse('The batch is empty.')
    if (values.length > maxBatch) return refuse(`The batch has more than ${maxBatch} messages.`)
    const { deliver, taken: _, sending: __, ...rest } = options
    const ran = await batches.run(async () => {
      const responses = await answerBatch(values, (value) => receiveOne(value, rest))
      if (responses.length === 0 || deliver === undefined) return responses
      await deliver(responses)
      return []
    })
    return 'refused' in ran || ran.value.length === 0 ? undefined : ran.value
  }

  return {
    /** Answers one JSON value, a message or a batch. Resolves to undefined when there is no answer. */
    receive: async (
      value: unknown,
      options: ReceiveOptions = {},
    ): Promise<Response | readonly Response[] | undefined> =>
      Array.isArray(value) ? receiveBatch(value, options) : receiveOne(value, options),
    /** Ends the streams of changes, each with its result; other requests continue. */
    drain: () => closing.abort(),
    retell: () => {
      for (const channel of channels.all()) void channel.then((open) => open.retell())
    },
    /** The revision that `initialize` negotiated; undefined before. */
    get revision(): Revision | undefined {
      return legacy?.revision
    },
    /** Number of requests without an answer. */
    get pending(): number {
      return inFlight.size
    },
    get listening(): number {
      return listening
    },
    close: async () => {
      for (const request of inFlight.values()) request.abort()
      await Promise.allSettled(channels.all().map(async (channel) => (await channel).close()))
    },
  }
}

function createChannels(open: (era: 'modern' | 'legacy') => Promise<Channel>) {
  const channels = new Map<string, Promise<Channel>>()
  return {
    channelFor: (era: 'modern' | 'legacy'): Promise<Channel> => {
      let channel = channels.get(era)
      if (channel === undefined) {
        channel = open(era)
        channels.set(era, channel)
        // A failure is not cached.
        channel.catch(() => channels.delete(era))
      }
      return channel
    },
    all: () => [...channels.values()],
  }
}

async function answerOn(
  channel: Channel,
  {
    gate,
    share,
    cancel,
  }: { readonly gate: Gate; readonly share: string | undefined; readonly cancel: AbortController },
  request: Request,
  { onNotification, deliver, taken, linkFor, trace, sending }: ReceiveOptions,
): Promise<Response | undefined> {
  const sender = sending && (() => ({ ...sending, gate, share }))
  const ask = async (pass?: TaskHandle): Promise<Response | undefined> => {
    const response = await channel.request(request, { cancel, onNotification, pass, linkFor, trace, sending: sender })
    if (response === undefined || deliver === undefined) return response
    await deliver(response)
    return undefined
  }
  if (immediateMethods.has(request.method)) return ask()
  const ran = await gate.run(ask, share, taken)
  return 'refused' in ran ? overloadAnswer(request.id, ran.refused) : ran.value
}

interface StreamFacts {
  readonly channel: Channel
  readonly server: ServerFacts
  /** Aborts when the server drains. */
  readonly closing: AbortSignal
  /** Aborts when the request is cancelled. */
  readonly signal: AbortSignal
}

/** Answers a request whose method sends notifications until it ends. */
async function answerStreaming(
  serve: StreamMethod,
  { channel, server: { name, version, log }, closing, signal }: StreamFacts,
  request: Request,
  { deliver, write = async () => {} }: ReceiveOptions,
): Promise<Response | undefined> {
  const { view, events } = channel
  const response = await serve(request, { view, events, server: { name, version }, write, signal, closing, log })
  if (response === undefined) return signal.aborted ? undefined : errorAnswer(request.id, tooSlow)
  const answered = channel.scrubAnswer(response, request)
  if ('error' in response || deliver === undefined) return answered
  await deliver(answered)
  // A pipe also gets this notification at the end of a stream, after the result: before it, a client would take it for the loss of the
  // stream.
  const params = { requestId: request.id }
  await write({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
  return undefined
}

/** Answers the messages of a batch. Answers beyond the total length of a batch are replaced by errors. */
async function answerBatch(
  values: readonly unknown[],
  answerOne: (value: unknown) => Promise<Response | undefined>,
): Promise<readonly Response[]> {
  const responses: Response[] = []
  let remainingBytes = maxBatchBytes
  const add = async (value: unknown) => {
    const response = await answerOne(value)
    if (response === undefined) return
    const size = 'error' in response ? 0 : answerSize(response)
    if (size === undefined) return void responses.push(errorAnswer(response.id, unwritable))
    responses.push(size <= remainingBytes ? response : errorAnswer(response.id, tooLong))
    if (size <= remainingBytes) remainingBytes -= size
  }
  await Promise.all(values.map(add))
  return responses
}

/** Returns the size of an answer as JSON, in bytes; undefined when it cannot be written because it is nested too deeply. */
function answerSize(answer: Response): number | undefined {
  try {
    return Buffer.byteLength(formatJson(answer))
  } catch {
    return undefined
  }
}
