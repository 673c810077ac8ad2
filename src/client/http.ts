import { SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ResourceError } from '../core/errors.ts'
import { streamEnded } from './errors.ts'

/** An MCP server behind a URL. The headers go with every request, and never to another origin. */
export interface UrlTarget {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Hears of an answer that was cut off because it is too large. */
export type OnTooLarge = (error: ResourceError) => void

/** Streamable HTTP: every revision from 2025-03-26 on. */
export function streamableTransport(
  url: URL,
  headers: Readonly<Record<string, string>>,
  maxBytes: number,
  onTooLarge: OnTooLarge,
): StreamableHTTPClientTransport {
  const bounded = boundedFetch(maxBytes, onTooLarge)
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: async (input, init) => {
      // The standing stream brings notifications, which a view has no use for: as if the server did not offer it.
      const isStanding = init?.method === 'GET' && !new Headers(init.headers).has('last-event-id')
      return isStanding ? new Response(null, { status: 405 }) : bounded(input, init)
    },
  })
  // The SDK leaves a request waiting for its timeout when the stream of the answer ends without the answer.
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if (!('method' in message) || !('id' in message)) return send(message, options)
    const { id } = message
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.()
      const error = { code: streamEnded, message: 'the stream ended' }
      transport.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return send(message, { ...options, onRequestStreamEnd })
  }
  return transport
}

/** HTTP with server-sent events: revision 2024-11-05. */
export function sseTransport(
  url: URL,
  headers: Readonly<Record<string, string>>,
  maxBytes: number,
  onTooLarge: OnTooLarge,
): SSEClientTransport {
  return new SSEClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: boundedFetch(maxBytes, onTooLarge),
  })
}

/** A fetch whose answers have at most `maxBytes`; of an event stream, this holds for each event. */
function boundedFetch(maxBytes: number, onTooLarge: OnTooLarge): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null || (response.status >= 300 && response.status < 400)) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const body = response.body.pipeThrough(bound(maxBytes, isStream, onTooLarge))
    const { status, statusText, headers } = response
    return new Response(body, { status, statusText, headers })
  }
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

/** An answer that is longer than this client takes. */
export function tooLarge(limit: number): ResourceError {
  return new ResourceError('too-large', `The server's answer is longer than ${limit} bytes.`, {
    reason: 'too-large',
    limit,
  })
}
