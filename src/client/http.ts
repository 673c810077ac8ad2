import { parseJSONRPCMessage, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { ResourceError } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import { jsonIn, memberOf } from '../core/kit/object.ts'
import { traceContext } from '../core/trace.ts'
import { httpFaultMessage, streamEndedCode, tooLargeError, toResourceError } from './errors.ts'
import { type ByteStream, eventsOf } from './events.ts'
import { type FloodLimit, paceEvents } from './flood.ts'
import { parseLarge, partLength } from './large-json.ts'
import { normalizeMessage } from './messages.ts'

export type OnTooLarge = (error: ResourceError) => void

/** Maximum size of one message on a {@link ServerStream}, in bytes: such a stream carries no answers. */
const maxNotificationBytes = 1024 * 1024

/** Streamable HTTP: every revision from 2025-03-26 on. */
export function streamableHttp(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
  onTooLarge: OnTooLarge,
  flood: FloodLimit,
) {
  const hear: Hear = (answer) => transport.onmessage?.(parseJSONRPCMessage(answer))
  const bounded = boundedFetch(maxBytes, onTooLarge, flood, hear)
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      // `openStanding` opens the standing stream when a listener needs it. The SDK must not: let it believe that the server has none.
      const isStanding = init?.method === 'GET' && !new Headers(init.headers).has('last-event-id')
      return isStanding ? new Response(null, { status: 405 }) : bounded(input, init)
    },
  })
  // When the stream of an answer ends without the answer, the SDK leaves the request waiting for its time-out. Here it fails at once.
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if (!('method' in message) || !('id' in message) || message.method === 'subscriptions/listen')
      return send(message, options)
    const { id } = message
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.()
      const error = { code: streamEndedCode, message: 'the stream ended' }
      transport.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return send(message, { ...options, onRequestStreamEnd })
  }
  const small = boundedFetch(Math.min(maxBytes, maxNotificationBytes), () => {}, flood)
  return { transport, openStanding: () => openStanding(transport, small, url, headers, timeoutMs) }
}

/** HTTP with server-sent events: revision 2024-11-05. */
export function sseTransport(
  url: URL,
  headers: Readonly<Record<string, string>>,
  maxBytes: number,
  onTooLarge: OnTooLarge,
  flood: FloodLimit,
): SSEClientTransport {
  const bounded = boundedFetch(maxBytes, onTooLarge, flood)
  let hasBegun = false
  const transport: SSEClientTransport = new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      if (!isEventSource(init)) return bounded(input, init)
      // A reconnected stream is a new session, which was never initialized: end the connection instead.
      if (hasBegun) {
        void transport.close()
        return new Response(null, { status: 204 })
      }
      const response = await bounded(input, init)
      hasBegun = response.ok
      return response
    },
  })
  return transport
}

function isEventSource(init: RequestInit | undefined): boolean {
  return (init?.method ?? 'GET') === 'GET' && new Headers(init?.headers).get('accept') === 'text/event-stream'
}

/** Receives an answer that is too long for the SDK, which would parse it in one go. */
type Hear = (answer: unknown) => void

/** Returns a fetch whose answers have at most `maxBytes`; in an event stream, the limit holds for each event. */
function boundedFetch(maxBytes: number, onTooLarge: OnTooLarge, flood: FloodLimit, hear?: Hear): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, withTrace(init))
    if (response.body === null || (response.status >= 300 && response.status < 400)) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const whole = response.body.pipeThrough(bound(maxBytes, isStream, onTooLarge))
    const requestId = requestIdIn(init)
    const body = isStream ? whole.pipeThrough(readableEvents(requestId, hear)).pipeThrough(paceEvents(flood)) : whole
    const { status, statusText, headers } = response
    const answer = new Response(body, { status, statusText, headers })
    if (isStream || !response.ok) return answer
    return Object.assign(answer, {
      json: async () => normalizeMessage(await parseLarge(await answer.text()), requestId),
    })
  }
}

function requestIdIn(init: RequestInit | undefined): string | number | undefined {
  const id = typeof init?.body === 'string' ? memberOf(jsonIn(init.body), 'id') : undefined
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}

/**
 * Brings the messages of an event stream into the form that the SDK accepts. A long answer to the request `asked` goes to `hear` instead.
 */
function readableEvents(
  requestId: string | number | undefined,
  hear: Hear | undefined,
): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const arrived: (string | EventSourceMessage)[] = []
  const parser = createParser({
    onEvent: (event) => arrived.push(event),
    onRetry: (pauseMs) => arrived.push(`retry: ${pauseMs}\n\n`),
    onComment: () => arrived.push(':\n\n'),
  })
  const textOf = async ({ id, event, data }: EventSourceMessage): Promise<string> => {
    const message = await parseLarge(data).catch(() => undefined)
    let text = message === undefined ? data : ''
    if (message !== undefined) {
      const answer = normalizeMessage(message, requestId)
      const isLong = data.length >= partLength && requestId !== undefined && memberOf(answer, 'id') === requestId
      if (isLong) hear?.(answer)
      // The SDK still has to see that the request was answered.
      text = JSON.stringify(isLong && hear !== undefined ? { jsonrpc: '2.0', id: requestId, result: {} } : answer)
    }
    const lines = [
      ...(id === undefined ? [] : [`id: ${id}`]),
      ...(event === undefined ? [] : [`event: ${event}`]),
      ...text.split('\n').map((line) => `data: ${line}`),
    ]
    return `${lines.join('\n')}\n\n`
  }
  return new TransformStream({
    async transform(chunk, controller) {
      parser.feed(decoder.decode(chunk, { stream: true }))
      const texts: string[] = []
      for (const one of arrived.splice(0)) texts.push(typeof one === 'string' ? one : await textOf(one))
      if (texts.length > 0) controller.enqueue(encoder.encode(texts.join('')))
    },
  })
}

function withTrace(init: RequestInit | undefined): RequestInit | undefined {
  const trace = Object.entries(traceContext())
  if (trace.length === 0) return init
  const headers = new Headers(init?.headers)
  for (const [name, value] of trace) headers.set(name, value)
  return { ...init, headers }
}

function bound(maxBytes: number, isStream: boolean, onTooLarge: OnTooLarge): TransformStream<Uint8Array, Uint8Array> {
  let length = 0
  let tail: Uint8Array = new Uint8Array()
  return new TransformStream({
    transform(chunk, controller) {
      length += chunk.length
      if (isStream) {
        // An event ends at an empty line, which two chunks can share.
        const bytes = Buffer.concat([tail, chunk])
        const end = Math.max(bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\r\n\r\n'), bytes.lastIndexOf('\r\r'))
        if (end !== -1) length = bytes.length - end
        tail = bytes.subarray(-3)
      }
      if (length <= maxBytes) return controller.enqueue(chunk)
      const error = tooLargeError(maxBytes)
      onTooLarge(error)
      controller.error(error)
    },
  })
}

/** The stream on which a server sends messages of its own accord (Streamable HTTP, 2025-03-26 to 2025-11-25). */
export interface ServerStream {
  /** Resolves when the stream has ended, no matter which side ended it. */
  readonly ended: Promise<void>
  close(): void
}

/** Maximum number of redirects, all within the origin. */
const maxHops = 3

/**
 * Opens the standing stream of a session, and hands its messages to the transport. Resolves to `undefined` when the server has none. It
 * replaces the SDK's own stream, which resumes silently after a loss.
 *
 * @param timeoutMs Time-out of the opening, in milliseconds.
 * @throws ResourceError `unavailable` when the stream cannot be opened at the moment.
 */
async function openStanding(
  transport: StreamableHTTPClientTransport,
  fetching: typeof fetch,
  url: URL,
  extraHeaders: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<ServerStream | undefined> {
  const { sessionId, protocolVersion } = transport
  const controller = new AbortController()
  const headers = {
    ...extraHeaders,
    accept: 'text/event-stream',
    ...(sessionId === undefined ? {} : { 'mcp-session-id': sessionId }),
    ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion }),
  }
  const getting = get(fetching, url, { headers, redirect: 'manual', signal: controller.signal })
  let response: Response
  try {
    response = await untilAborted(getting, AbortSignal.timeout(timeoutMs))
  } catch (error) {
    controller.abort()
    getting.catch(() => {})
    throw toResourceError(error, 'the opening of the stream of changes')
  }
  const { status, body } = response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (status === 200 && isStream && body !== null) {
    const reading = readEvents(body, (data) => {
      try {
        transport.onmessage?.(parseJSONRPCMessage(JSON.parse(data)))
      } catch (error) {
        transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    })
    return { ended: reading, close: () => controller.abort() }
  }
  controller.abort()
  // In a session, 404 means that the session has ended; without one, that the server has no such stream.
  const hasNone = [200, 202, 204, 400, 405, 406, 501].includes(status) || (status === 404 && sessionId === undefined)
  if (hasNone) return undefined
  throw new ResourceError('unavailable', httpFaultMessage(status), { status })
}

/** Fetches a URL and follows redirects within its origin, so the headers reach no other origin. */
async function get(fetching: typeof fetch, first: URL, init: RequestInit): Promise<Response> {
  let url = first
  for (let hop = 0; ; hop++) {
    const response = await fetching(url, init)
    const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (location === null || hop >= maxHops || !URL.canParse(location, url.href)) return response
    const next = new URL(location, url)
    if (next.origin !== url.origin) return response
    await response.body?.cancel()
    url = next
  }
}

/** Calls `onData` for each event of an event stream (HTML, server-sent events). Resolves when the stream ends, for any reason. */
export async function readEvents(body: ByteStream, onData: (data: string) => void): Promise<void> {
  try {
    for await (const data of eventsOf(body)) onData(data)
  } catch {
    // The stream was cut off, or an event was too large: the stream ends here.
  }
}
