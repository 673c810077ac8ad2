import { parseJSONRPCMessage, type StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ResourceError } from '../core/errors.ts'
import { untilAborted } from '../core/kit/abort.ts'
import { httpFault, toResourceError } from './errors.ts'
import { type ByteStream, eventsOf } from './events.ts'

/** The stream on which a server sends messages of its own accord (Streamable HTTP, 2025-03-26 to 2025-11-25). */
export interface Standing {
  /** Resolves when the stream has ended, no matter which side ended it. */
  readonly ended: Promise<void>
  close(): void
}

export interface StandingOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof fetch
  /** Time-out of the opening, in milliseconds. */
  readonly timeoutMs: number
}

/** Maximum number of redirects, all within the origin. */
const maxHops = 3

/**
 * Opens the standing stream of a session, and passes its messages to the transport. Resolves to `undefined` when the server has
 * none. The SDK's own stream resumes silently after a loss, so changes would be missed without notice.
 *
 * @throws ResourceError `unavailable` when the stream cannot be opened at the moment.
 */
export async function openStanding(
  transport: StreamableHTTPClientTransport,
  options: StandingOptions,
): Promise<Standing | undefined> {
  const { sessionId, protocolVersion } = transport
  const controller = new AbortController()
  const headers = {
    ...options.headers,
    accept: 'text/event-stream',
    ...(sessionId === undefined ? {} : { 'mcp-session-id': sessionId }),
    ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion }),
  }
  const getting = get(options, { headers, redirect: 'manual', signal: controller.signal })
  let response: Response
  try {
    response = await untilAborted(getting, AbortSignal.timeout(options.timeoutMs))
  } catch (error) {
    controller.abort()
    getting.catch(() => {})
    throw toResourceError(error, 'the opening of the stream of changes')
  }
  const { status, body } = response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (status === 200 && isStream && body !== null) {
    const ended = readEvents(body, (data) => {
      try {
        transport.onmessage?.(parseJSONRPCMessage(JSON.parse(data)))
      } catch (error) {
        transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    })
    return { ended, close: () => controller.abort() }
  }
  controller.abort()
  // Without a session, a 404 does not mean that one has ended.
  const hasNone = [200, 202, 204, 400, 405, 406, 501].includes(status) || (status === 404 && sessionId === undefined)
  if (hasNone) return undefined
  throw new ResourceError('unavailable', httpFault(status), { status })
}

/** Fetches a URL and follows redirects only within its origin, as the SDK does: the headers reach no other origin. */
async function get(options: StandingOptions, init: RequestInit): Promise<Response> {
  let { url } = options
  for (let hop = 0; ; hop++) {
    const response = await options.fetch(url, init)
    const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (location === null || hop >= maxHops || !URL.canParse(location, url.href)) return response
    const next = new URL(location, url)
    if (next.origin !== url.origin) return response
    await response.body?.cancel()
    url = next
  }
}

/** Passes on the data of each event of an event stream (HTML, server-sent events) until the stream ends for any reason. */
export async function readEvents(body: ByteStream, onData: (data: string) => void): Promise<void> {
  try {
    for await (const data of eventsOf(body)) onData(data)
  } catch {
    // The stream was cut off, or an event was too large: treat both as its end.
  }
}
