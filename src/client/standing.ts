import { type ReadableStream, TextDecoderStream } from 'node:stream/web'
import { parseJSONRPCMessage, type StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { untilAborted } from '../core/abort.ts'
import { ResourceError } from '../core/errors.ts'
import { httpFault, toResourceError } from './errors.ts'

/** The stream on which a server speaks unasked (Streamable HTTP, 2025-03-26 to 2025-11-25). */
export interface Standing {
  /** Resolves when the stream has ended, whoever ended it. */
  readonly ended: Promise<void>
  close(): void
}

export interface StandingOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof fetch
  /** How long the server may take to open it, in milliseconds. */
  readonly timeoutMs: number
}

/** So often a server may send the client elsewhere, within its origin. */
const maxHops = 3

/**
 * Opens the stream of a session, and hands what comes on it to the transport. Resolves to `undefined` where the server has
 * none. The SDK's own stream resumes by itself and tells nobody that it was gone, so that changes would be lost silently.
 *
 * @throws ResourceError `unavailable` where the stream cannot be opened just now.
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
    const ended = readEvents(body as ReadableStream<Uint8Array>, (data) => {
      try {
        transport.onmessage?.(parseJSONRPCMessage(JSON.parse(data)))
      } catch (error) {
        transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    })
    return { ended, close: () => controller.abort() }
  }
  controller.abort()
  // Without a session, a 404 says nothing of its end.
  const hasNone = [200, 202, 204, 400, 405, 406, 501].includes(status) || (status === 404 && sessionId === undefined)
  if (hasNone) return undefined
  throw new ResourceError('unavailable', httpFault(status), { status })
}

/** A fetch that is sent elsewhere only within the origin, as the SDK's are: the headers go to no other. */
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

/** Hands on the data of each event of an event stream (HTML, server-sent events), until it ends for any reason. */
export async function readEvents(body: ReadableStream<Uint8Array>, onData: (data: string) => void): Promise<void> {
  let rest = ''
  let data: string[] = []
  try {
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      // A CR at the end of what has come may be half of a line end.
      const lines = (rest + text).split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      for (const line of lines)
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
        else if (line === '') {
          if (data.length > 0) onData(data.join('\n'))
          data = []
        }
    }
  } catch {
    // Cut off, or too large: it has ended.
  }
}
