import type { Log } from '../core/log.ts'
import { codes, type WireError, wireError } from './errors.ts'
import { createGate, type Gate, type Pass } from './gate.ts'
import { formatJson } from './json.ts'
import { listen } from './listen.ts'
import { classify, failure, idKey, type Notification, type Request, type RequestId, type Response } from './messages.ts'
import { passesGate, type ServedOpening } from './opening.ts'
import { overloaded } from './overload.ts'
import type { Channel } from './protocol/channel.ts'
import { claimedRevision, envelopeFault } from './protocol/envelope.ts'
import { assumed, hasBatches, modern, type Revision } from './revisions.ts'

/** So many messages may be in one batch. */
const maxBatch = 50
/** How long the answers to one batch may be together, in bytes. What does not fit is answered with an error. */
const maxBatchBytes = 8 * 1024 * 1024

export interface ReceiveOptions {
  readonly signal?: AbortSignal
  readonly onNotification?: (message: Notification) => void
  /** Writes what a `subscriptions/listen` tells; resolves when there is room for more. */
  readonly write?: (message: Notification) => Promise<void>
  /** Takes the answer of a single request, or of a batch, which then keeps its place in the gate until it is written. */
  readonly deliver?: ((answer: Response | readonly Response[]) => Promise<void>) | undefined
  /** Resolves when the reader has taken the answer, where that is known. */
  readonly taken?: Promise<unknown>
}

const tooLong: WireError = {
  code: codes.invalidParams,
  message: `The answers to the batch are longer than ${maxBatchBytes} bytes together. Ask for this one alone.`,
  data: { reason: 'too-large', limit: maxBatchBytes },
}

const unwritable: WireError = { code: codes.internal, message: 'Internal error' }

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
  /** How many of them are streams of changes, which are not answered before they end. */
  readonly listening: number
  /** Cancels what is not answered. */
  close(): Promise<void>
}

/**
 * @param open Opens the channel of an era; it is asked once for each that is needed.
 * @param server What the result of a `subscriptions/listen` says of the server, whose share of the gate it takes, what is still
 * being opened, and which revisions the transport serves (by default all).
 */
export function createConnection(
  open: (era: 'modern' | 'legacy') => Promise<Channel>,
  gate: Gate,
  server: {
    readonly name: string
    readonly version: string
    readonly log: Log
    readonly share?: string
    readonly opening?: ServedOpening
    readonly offered?: readonly Revision[]
  },
): Connection {
  const closing = new AbortController()
  // One batch at a time: each holds many answers.
  const batches = createGate(1, Number.POSITIVE_INFINITY)
  const channels = new Map<string, Promise<Channel>>()
  const inFlight = new Map<string, AbortController>()
  let listening = 0
  // Not a closure that is made where requests are answered: it would keep the last of them.
  let legacy: Channel | undefined

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
    const fault = claims ? envelopeFault(request, server.offered) : undefined
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
      if (!claims) legacy = channel
      if (claims && request.method === 'subscriptions/listen') {
        const { name, version, log } = server
        const write = options.write ?? (async () => {})
        const identity = { name, version }
        listening++
        const response = await listen(request, {
          ...{ view: channel.view, server: identity, write, signal, closing: closing.signal, log },
        }).finally(() => listening--)
        if (response === undefined) return signal.aborted ? undefined : failure(request.id, tooSlow)
        const answered = channel.egress(response, request)
        if ('error' in response || deliver === undefined) return answered
        await deliver(answered)
        // By the page on cancelling, a pipe is told that the stream is over so, too; before the result, a client would take it
        // for the loss of the stream.
        const params = { requestId: request.id }
        await write({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
        return undefined
      }
      const ask = async (pass?: Pass) => {
        const own = { signal, ...(pass && { pass }), ...(onNotification && { onNotification }) }
        const response = await channel.request(request, own)
        if (response === undefined || deliver === undefined) return response
        await deliver(response)
        return undefined
      }
      if (passesGate(server.opening, request.method)) return await ask()
      const ran = await gate.run(async (pass) => {
        if (options.taken !== undefined) pass.until(options.taken)
        return ask(pass)
      }, server.share)
      return 'refused' in ran ? overloaded(request.id, ran.refused) : ran.value
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
    const agreed = legacy?.revision
    if (agreed === undefined || !hasBatches(agreed)) return refused('There are no batches in this protocol revision.')
    if (values.length === 0) return refused('The batch is empty.')
    if (values.length > maxBatch) return refused(`The batch has more than ${maxBatch} messages.`)
    const { deliver, taken: _, ...rest } = options
    const ran = await batches.run(async () => {
      const responses: Response[] = []
      let left = maxBatchBytes
      const answerOne = async (value: unknown) => {
        const response = await receiveOne(value, rest)
        if (response === undefined) return
        const size = 'error' in response ? 0 : sizeOf(response)
        if (size === undefined) return void responses.push(failure(response.id, unwritable))
        responses.push(size <= left ? response : failure(response.id, tooLong))
        if (size <= left) left -= size
      }
      await Promise.all(values.map(answerOne))
      if (responses.length === 0 || deliver === undefined) return responses
      await deliver(responses)
      return []
    })
    return 'refused' in ran || ran.value.length === 0 ? undefined : ran.value
  }

  return {
    receive: async (value, options = {}) =>
      Array.isArray(value) ? receiveBatch(value, options) : receiveOne(value, options),
    drain: () => closing.abort(),
    retell: () => {
      for (const channel of channels.values()) void channel.then((open) => open.retell())
    },
    get revision() {
      return legacy?.revision
    },
    get pending() {
      return inFlight.size
    },
    get listening() {
      return listening
    },
    close: async () => {
      for (const controller of inFlight.values()) controller.abort()
      await Promise.allSettled([...channels.values()].map(async (channel) => (await channel).close()))
    },
  }
}

/** How long an answer is, in bytes. `undefined`: it cannot be written, since something in it is nested too deep. */
function sizeOf(answer: Response): number | undefined {
  try {
    return Buffer.byteLength(formatJson(answer))
  } catch {
    return undefined
  }
}
