import { setMaxListeners } from 'node:events'
import { createAutoResetEvent } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import { credentialsEnded } from '../auth/caller.ts'
import {
  errorAnswer,
  errorToWire,
  modernRevision,
  ProtocolError,
  protocolErrorToWire,
  protocolKeys,
  type Request,
  type Response,
  type WireError,
  wireErrorCodes,
} from '../messages/messages.ts'
import type { EventReader } from './event-reader.ts'
import {
  eventError,
  occurrenceToWire,
  parseRequestedSubscription,
  type RequestedSubscription,
  toExhaustedError,
} from './events.ts'
import { closingError, type StreamOptions } from './listen.ts'

/** Time without an event after which a heartbeat is sent, in milliseconds. */
const heartbeatMs = 15_000
const limit = 100

type Send = (kind: 'active' | 'event' | 'heartbeat' | 'error' | 'terminated', params: object) => Promise<void>

/**
 * Serves one `events/stream` (SEP-3415) until it ends: first the confirmation with the position, then each event, and a heartbeat with the
 * position when there is none. An invalid subscription is answered by an error.
 */
export async function streamEvents(request: Request, options: StreamOptions): Promise<Response | undefined> {
  const { view, write, signal, closing, log, events } = options
  const { dialect = 'sep' } = events
  const meta = { _meta: { [protocolKeys.subscriptionId]: request.id } }
  const send: Send = (kind, params) =>
    write({ jsonrpc: '2.0', method: `notifications/events/${kind}`, params: { ...params, ...meta } })
  const over = new AbortController()
  const news = createAutoResetEvent()
  const end = () => {
    over.abort()
    news.set()
  }
  const wireOf = (error: unknown): WireError =>
    error instanceof ProtocolError ? protocolErrorToWire(error) : errorToWire(error, modernRevision, undefined, log)
  setMaxListeners(0, closing)
  for (const one of [signal, closing]) one.addEventListener('abort', end)
  if (signal.aborted || closing.aborted) end()
  let stop = () => {}
  let isOpen = false
  try {
    if (view.history === undefined)
      return errorAnswer(request.id, { code: wireErrorCodes.methodNotFound, message: 'Method not found' })
    const subscription = parseRequestedSubscription(request.params ?? {}, dialect)
    const reader = await subscription.type.open(view, subscription.given, { signal: over.signal })
    stop = reader.follow(news.set)
    const position = subscription.cursor ?? (await reader.now({ signal: over.signal }))
    await sendEvents({
      asked: subscription,
      reader,
      position,
      send,
      news,
      signal: over.signal,
      onOpen: () => (isOpen = true),
      wireOf,
    })
    if (!closing.aborted || signal.aborted) return undefined
    if (!isOpen) return errorAnswer(request.id, closingError)
    if (closing.reason === credentialsEnded)
      await send('terminated', {
        error: protocolErrorToWire(eventError(dialect, 'forbidden', { reason: 'credentials' })),
      })
    return { jsonrpc: '2.0', id: request.id, result: { resultType: 'complete', _meta: {} } }
  } catch (error) {
    if (over.signal.aborted) return undefined
    return isOpen ? undefined : errorAnswer(request.id, wireOf(toExhaustedError(error, dialect)))
  } finally {
    for (const one of [signal, closing]) one.removeEventListener('abort', end)
    stop()
  }
}

interface Sending {
  readonly asked: RequestedSubscription
  readonly reader: EventReader
  readonly position: string
  readonly send: Send
  /** Set when there may be more events. */
  readonly news: ReturnType<typeof createAutoResetEvent>
  readonly signal: AbortSignal
  readonly onOpen: () => void
  readonly wireOf: (error: unknown) => WireError
}

async function sendEvents({ asked, reader, position, send, news, signal, onOpen, wireOf }: Sending): Promise<void> {
  let cursor = position
  let isFirst = true
  let sentAt = performance.now()
  const tell: Send = (kind, params) => {
    sentAt = performance.now()
    return send(kind, params)
  }
  while (!signal.aborted) {
    // `maxAgeMs` concerns only events from before the stream, which the first read has.
    const page = { limit, ...defined({ maxAgeMs: isFirst ? asked.maxAgeMs : undefined }) }
    const eventPage = await reader.since(cursor, page, { signal }).catch(async (error: unknown) => {
      if (isFirst || signal.aborted) throw error
      await tell('error', { error: wireOf(error) })
      return undefined
    })
    if (eventPage !== undefined) {
      const { occurrences, position: after, gap, more } = eventPage
      // A client that stored the position after the events, and was cut before them, would lose them.
      if (isFirst || gap) await tell('active', { cursor: occurrences.length === 0 ? after : cursor, truncated: gap })
      if (isFirst) onOpen()
      isFirst = false
      for (const one of occurrences) {
        if (signal.aborted) return
        await tell('event', { ...occurrenceToWire(asked.type.name, one), cursor: one.position() })
      }
      cursor = after
      if (more) continue
    }
    // Changes that the client may not see wake the stream too, and must not put off a heartbeat.
    const timer = setTimeout(news.set, Math.max(0, sentAt + heartbeatMs - performance.now()))
    await news.wait()
    clearTimeout(timer)
    if (!signal.aborted && performance.now() >= sentAt + heartbeatMs - 1) await tell('heartbeat', { cursor })
  }
}
