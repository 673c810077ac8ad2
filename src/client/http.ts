import { SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ResourceError } from '../core/errors.ts'
import { traceContext } from '../core/trace.ts'
import { streamEnded } from './errors.ts'
import { type Flood, pacedEvents } from './flood.ts'
import { openStanding, type Standing } from './standing.ts'

/** Called when an answer was cut off because it is too large. */
export type OnTooLarge = (error: ResourceError) => void

/** Maximum size of one message on the standing stream, in bytes. It carries only notifications. */
const maxNotificationBytes = 1024 * 1024

/** Streamable HTTP: every revision from 2025-03-26 on. */
export interface StreamableHttp {
  readonly transport: StreamableHTTPClientTransport
  openStanding(): Promise<Standing | undefined>
}

export function streamableHttp(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
  onTooLarge: OnTooLarge,
  flood: Flood,
): StreamableHttp {
  const bounded = boundedFetch(maxBytes, onTooLarge, flood)
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      // `openStanding` opens the standing stream when a listener needs it. The SDK must not: let it believe that the server has none.
      const isStanding = init?.method === 'GET' && !new Headers(init.headers).has('last-event-id')
      return isStanding ? new Response(null, { status: 405 }) : bounded(input, init)
    },
  })
  // When the stream of an answer ends without the answer, the SDK leaves the request waiting for its time-out. Fail it at once. The SDK handles the
  // end of `subscriptions/listen` itself.
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if (!('method' in message) || !('id' in message) || message.method === 'subscriptions/listen')
      return send(message, options)
    const { id } = message
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.()
      const error = { code: streamEnded, message: 'the stream ended' }
      transport.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return send(message, { ...options, onRequestStreamEnd })
  }
  const small = boundedFetch(Math.min(maxBytes, maxNotificationBytes), () => {}, flood)
  return { transport, openStanding: () => openStanding(transport, { url, headers, fetch: small, timeoutMs }) }
}

/** HTTP with server-sent events: revision 2024-11-05. */
export function sseTransport(
  url: URL,
  headers: Readonly<Record<string, string>>,
  maxBytes: number,
  onTooLarge: OnTooLarge,
  flood: Flood,
): SSEClientTransport {
  const bounded = boundedFetch(maxBytes, onTooLarge, flood)
  let begun = false
  const transport: SSEClientTransport = new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      if (!isEventSource(init)) return bounded(input, init)
      // A reconnected stream is a new session, which was never initialized: end the connection instead.
      if (begun) {
        void transport.close()
        return new Response(null, { status: 204 })
      }
      const response = await bounded(input, init)
      begun = response.ok
      return response
    },
  })
  return transport
}

function isEventSource(init: RequestInit | undefined): boolean {
  return (init?.method ?? 'GET') === 'GET' && new Headers(init?.headers).get('accept') === 'text/event-stream'
}

/** Returns a fetch whose answers have at most `maxBytes`; in an event stream, the limit holds for each event. */
function boundedFetch(maxBytes: number, onTooLarge: OnTooLarge, flood: Flood): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, withTrace(init))
    if (response.body === null || (response.status >= 300 && response.status < 400)) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const whole = response.body.pipeThrough(bound(maxBytes, isStream, onTooLarge))
    const body = isStream ? whole.pipeThrough(pacedEvents(flood)) : whole
    const { status, statusText, headers } = response
    return new Response(body, { status, statusText, headers })
  }
}

/** Adds the trace context to the headers of a request. */
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
        const seen = Buffer.concat([tail, chunk])
        const end = Math.max(seen.lastIndexOf('\n\n'), seen.lastIndexOf('\r\n\r\n'), seen.lastIndexOf('\r\r'))
        if (end !== -1) length = seen.length - end
        tail = seen.subarray(-3)
      }
      if (length <= maxBytes) return controller.enqueue(chunk)
      const error = tooLarge(maxBytes)
      onTooLarge(error)
      controller.error(error)
    },
  })
}

/** Returns the error of an answer that exceeds this client's limit. */
export function tooLarge(limit: number): ResourceError {
  return new ResourceError('too-large', `The server's answer is longer than ${limit} bytes.`, {
    reason: 'too-large',
    limit,
  })
}
