import type { JSONRPCNotification } from '@modelcontextprotocol/server'
import type { Log } from '../core/log.ts'
import type { Channel } from './channel.ts'
import { claimedRevision, envelopeFault } from './envelope.ts'
import { codes, type WireError, wireError } from './errors.ts'
import { createGate, type Gate } from './gate.ts'
import { formatJson } from './json.ts'
import { listen } from './listen.ts'
import { classify, failure, idKey, type Notification, type Request, type RequestId, type Response } from './messages.ts'
import { assumed, hasBatches, modern, type Revision } from './revisions.ts'

/** So many messages may be in one batch. */
const maxBatch = 50
/** How long the answers to one batch may be together, in bytes. What does not fit is answered with an error. */
const maxBatchBytes = 8 * 1024 * 1024

export interface ReceiveOptions {
  readonly signal?: AbortSignal
  readonly onNotification?: (message: JSONRPCNotification) => void
  /** Writes what a `subscriptions/listen` tells; resolves when there is room for more. */
  readonly write?: (message: Notification) => Promise<void>
  /** Takes the answer of a single request, or of a batch, which then keeps its place in the gate until it is written. */
  readonly deliver?: ((answer: Response | readonly Response[]) => Promise<void>) | undefined
}

const tooLong: WireError = {
  code: codes.invalidParams,
  message: `The answers to the batch are longer than ${maxBatchBytes} bytes together. Ask for this one alone.`,
  data: { reason: 'too-large', limit: maxBatchBytes },
}

const tooSlow: WireError = {
  code: codes.internal,
  message: 'The client takes what it is told too slowly. Read everything again, and listen anew.',
  data: { reason: 'too-slow' },
}

/**
 * One client that stays: a pipe, or a session. Each message says by itself which era it belongs to, so a client may
 * probe with one and go on with the other; nothing is remembered of the probe.
 */
export interface Connection {
  /** Answers one JSON value, a message or a batch. `undefined`: there is nothing to say. */
  receive(value: unknown, options?: ReceiveOptions): Promise<Response | readonly Response[] | undefined>
  /** Ends what is listened to, each with its result; other requests go on. */
  drain(): void
  /** Tells the client again of everything that it listens to. */
  retell(): void
  /** What `initialize` agreed on, if it was called. */
  readonly revision: Revision | undefined
  /** How many requests are not answered yet. */
  readonly pending: number
  /** Cancels what is not answered. */
  close(): Promise<void>
}

/**
 * @param open Opens the channel of an era; it is asked once for each that is needed.
 * @param server What the result of a `subscriptions/listen` says of the server.
 */
export function createConnection(
  open: (era: 'modern' | 'legacy') => Promise<Channel>,
  gate: Gate,
  server: { readonly name: string; readonly version: string; readonly log: Log },
): Connection {
  const closing = new AbortController()
  // One batch at a time: each holds many answers.
  const batches = createGate(1, Number.POSITIVE_INFINITY)
  const channels = new Map<string, Promise<Channel>>()
  const inFlight = new Map<string, AbortController>()
  let revision: () => Revision | undefined = () => undefined

  const channelFor = (era: 'modern' | 'legacy'): Promise<Channel> => {
    let channel = channels.get(era)
    if (channel === undefined) {
      channel = open(era)
      channels.set(era, channel)
    }
    return channel
  }

  const answer = async (request: Request, options: ReceiveOptions): Promise<Response | undefined> => {
    const claims = claimedRevision(request) !== undefined
    const fault = claims ? envelopeFault(request) : undefined
    if (fault !== undefined) return failure(request.id, fault)
    const key = idKey(request.id)
    if (inFlight.has(key))
      return failure(request.id, { code: codes.invalidRequest, message: 'A request with this id is still in flight.' })
    const controller = new AbortController()
    inFlight.set(key, controller)
    const signal =
      options.signal === undefined ? controller.signal : AbortSignal.any([controller.signal, options.signal])
    const { onNotification, deliver } = options
    try {
      let channel: Channel
      try {
        channel = await channelFor(claims ? 'modern' : 'legacy')
      } catch (error) {
        return failure(request.id, wireError(error, claims ? modern : assumed, undefined, server.log))
      }
      if (!claims) revision = () => channel.revision
      if (claims && request.method === 'subscriptions/listen') {
        const { name, version, log } = server
        const write = options.write ?? (async () => {})
        const identity = { name, version }
        const response = await listen(request, {
          ...{ view: channel.view, server: identity, write, signal, closing: closing.signal, log },
        })
        // A pipe is told twice that a stream is over: by the page on cancelling, and by the page on subscriptions.
        const cancelled = {
          jsonrpc: '2.0' as const,
          method: 'notifications/cancelled',
          params: { requestId: request.id },
        }
        if (response !== undefined && 'result' in response) await write(cancelled)
        return response ?? (signal.aborted ? undefined : failure(request.id, tooSlow))
      }
      const ran = await gate.run(async () => {
        const response = await channel.request(request, { signal, ...(onNotification ? { onNotification } : {}) })
        if (response === undefined || deliver === undefined) return response
        await deliver(response)
        return undefined
      })
      if (ran !== undefined) return ran.value
      return failure(request.id, {
        code: codes.internal,
        message: 'Too many requests are in flight. Try again later.',
        data: { reason: 'busy' },
      })
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
    const channel = await channelFor(claims ? 'modern' : 'legacy')
    channel.notify(notification)
  }

  const receiveOne = async (value: unknown, options: ReceiveOptions): Promise<Response | undefined> => {
    const inbound = classify(value)
    switch (inbound.kind) {
      case 'faulty':
        return inbound.answer
      case 'response':
        // The server asks clients nothing, so no answer is waited for.
        return undefined
      case 'notification':
        await hear(inbound.message)
        return undefined
      case 'request':
        return answer(inbound.message, options)
    }
  }

  const receiveBatch = async (values: readonly unknown[], options: ReceiveOptions) => {
    const refused = (message: string) => failure(null, { code: codes.invalidRequest, message })
    const agreed = revision()
    if (agreed === undefined || !hasBatches(agreed)) return refused('There are no batches in this protocol revision.')
    if (values.length === 0) return refused('The batch is empty.')
    if (values.length > maxBatch) return refused(`The batch has more than ${maxBatch} messages.`)
    const { deliver, ...rest } = options
    const ran = await batches.run(async () => {
      const responses: Response[] = []
      let left = maxBatchBytes
      const answerOne = async (value: unknown) => {
        const response = await receiveOne(value, rest)
        if (response === undefined) return
        const size = 'error' in response ? 0 : Buffer.byteLength(formatJson(response))
        responses.push(size <= left ? response : failure(response.id, tooLong))
        if (size <= left) left -= size
      }
      await Promise.all(values.map(answerOne))
      if (responses.length === 0 || deliver === undefined) return responses
      await deliver(responses)
      return []
    })
    return ran === undefined || ran.value.length === 0 ? undefined : ran.value
  }

  return {
    receive: async (value, options = {}) =>
      Array.isArray(value) ? receiveBatch(value, options) : receiveOne(value, options),
    drain: () => closing.abort(),
    retell: () => {
      for (const channel of channels.values()) void channel.then((open) => open.retell())
    },
    get revision() {
      return revision()
    },
    get pending() {
      return inFlight.size
    },
    close: async () => {
      for (const controller of inFlight.values()) controller.abort()
      await Promise.allSettled([...channels.values()].map(async (channel) => (await channel).close()))
    },
  }
}
