import { type ByteStream, eventsOf } from '../../../client/events.ts'
import { malformedAnswer, type WireObject } from '../../../client/wire.ts'
import { type ErrorDetail, type ErrorKind, ResourceError } from '../../../core/errors.ts'
import { untilAborted } from '../../../core/kit/abort.ts'
import { isObject, jsonIn, objectOf } from '../../../core/kit/object.ts'

/** The only revision of MCP that the page speaks, because its server is always hikidashi. */
const revision = '2026-07-28'

/** Identity of the page. By this name, the server offers its tools to the page also if they are off for other clients. */
const clientInfo = { name: 'hikidashi-explorer', version: '1' } as const

export interface Endpoint {
  readonly url: string | URL
  /** Whether the page has its own session, which no other client can use. */
  readonly isPrivate?: boolean
  /** The access token to send. It is kept only in memory. */
  token(): string | undefined
  /**
   * Called when the server refuses the token, or demands one. Resolves when there is another token to try; rejects if nobody
   * provides one.
   *
   * @param challenge The scheme that the server names in `WWW-Authenticate`: `Bearer`, or `Session` if the page must be opened by
   *   an address of its own.
   * @param error The reason, if the server gives one: `reused` means that two browsers have used that address.
   */
  renew(challenge: string, error?: string): Promise<void>
}

/** Maximum number of retries of a request that was refused because the server was busy. */
const retries = 3

let lastId = 0

/**
 * Sends one request and returns the answer.
 *
 * @param onProgress Called with the progress of a long tool call.
 * @throws ResourceError as the server answered; `unavailable` without an answer, or with an invalid one. After an abort, the reason of
 *   the signal.
 */
export async function request(
  endpoint: Endpoint,
  method: string,
  params: WireObject,
  signal?: AbortSignal,
  onProgress?: (progress: WireObject) => void,
): Promise<WireObject> {
  const { id, response } = await post(endpoint, method, params, signal, onProgress !== undefined)
  try {
    const messages = streamOf(response)
    if (messages === undefined) return resultOf(await readJsonObject(response), response.status)
    for await (const message of messages) {
      if (message.id === id) return resultOf(message, response.status)
      if (message.method === 'notifications/progress') onProgress?.(objectOf(message.params))
    }
  } catch (error) {
    throw asOurs(error, signal)
  }
  throw new ResourceError('unavailable', 'The server ended the connection before its answer was complete. Try again.')
}

/**
 * Sends one request whose answer is a stream, and yields the messages on it. The last message is the answer itself.
 *
 * @param onSign Called for each chunk that arrives, as a sign that the server is alive.
 */
export async function* requestStream(
  endpoint: Endpoint,
  method: string,
  params: WireObject,
  signal: AbortSignal,
  onSign: () => void = () => {},
): AsyncGenerator<WireObject> {
  const { response } = await post(endpoint, method, params, signal)
  try {
    const messages = streamOf(response, onSign)
    if (messages === undefined) yield { result: resultOf(await readJsonObject(response), response.status) }
    else yield* messages
  } catch (error) {
    throw asOurs(error, signal)
  }
}

async function post(
  endpoint: Endpoint,
  method: string,
  params: WireObject,
  signal: AbortSignal | undefined,
  hasProgress = false,
) {
  const id = ++lastId
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': revision,
        'io.modelcontextprotocol/clientInfo': clientInfo,
        'io.modelcontextprotocol/clientCapabilities': {},
        ...(hasProgress ? { progressToken: id } : {}),
      },
    },
  })
  for (let tries = 0; ; tries++) {
    const token = endpoint.token()
    const response = await fetch(endpoint.url, {
      method: 'POST',
      body,
      signal: signal ?? null,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': revision,
        'mcp-method': method,
        ...nameHeader(method, params),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    }).catch((error: unknown) => {
      throw asOurs(error, signal)
    })
    const isFull = response.status === 429 || response.status === 503
    if (isFull && tries < retries) {
      void response.body?.cancel()
      const pauseMs = 1000 * secondsOf(response.headers.get('retry-after'))
      await untilAborted(new Promise((resolve) => setTimeout(resolve, pauseMs)), signal)
      continue
    }
    if (response.status !== 401) return { id, response }
    void response.body?.cancel()
    // Another request may have renewed the token in the meantime.
    if (endpoint.token() === token) await endpoint.renew(...challengeOf(response.headers.get('www-authenticate') ?? ''))
    signal?.throwIfAborted()
  }
}

/** The scheme of a challenge, and its error, if there is one (RFC 9110, section 11.6.1). */
function challengeOf(header: string): readonly [scheme: string, error?: string] {
  const [, error] = /[\s,]error="(\w+)"/.exec(header) ?? []
  const scheme = /^\w+/.exec(header)?.[0] ?? 'Bearer'
  return error === undefined ? [scheme] : [scheme, error]
}

/**
 * Returns the header `Mcp-Name`, which repeats the name or URI in the body. A value that a header cannot contain is sent as base64
 * (2026-07-28, basic/transports).
 */
function nameHeader(method: string, params: WireObject): Record<string, string> {
  const name =
    method === 'resources/read'
      ? params.uri
      : method === 'tools/call' || method === 'prompts/get'
        ? params.name
        : undefined
  if (typeof name !== 'string') return {}
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(name) && !name.startsWith('=?')) return { 'mcp-name': name }
  const bytes = new TextEncoder().encode(name)
  return { 'mcp-name': `=?base64?${btoa(String.fromCharCode(...bytes))}?=` }
}

function streamOf(response: Response, onSign?: () => void): AsyncGenerator<WireObject> | undefined {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  return isStream && response.body !== null ? messagesOf(response.body, onSign) : undefined
}

async function readJsonObject(response: Response): Promise<WireObject> {
  const value = jsonIn(await response.text())
  if (isObject(value)) return value
  throw new ResourceError('unavailable', `The server answered with status ${response.status} and no JSON.`)
}

function resultOf(message: WireObject, status: number): WireObject {
  const { result, error } = message
  if (isObject(result)) return result
  if (isObject(error)) throw errorOf(error.code, error.message, error.data, status)
  const text = typeof message.message === 'string' ? message.message : `The server answered with status ${status}.`
  throw new ResourceError('unavailable', text)
}

/** Converts an error of `fetch` or of a stream to a `ResourceError`; after an abort, to the reason of the signal. */
function asOurs(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason
  if (error instanceof ResourceError) return error
  return new ResourceError('unavailable', 'The server does not answer.', {}, { cause: error })
}

/** Parses `Retry-After`, a number of seconds or a date (RFC 9110), to 0.1 to 30 seconds. 1 if the header is missing or invalid. */
function secondsOf(header: string | null): number {
  if (header === null) return 1
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0.1), 30) : 1
}

/** Decodes base64 in a browser. Throws for any other text: `atob` alone would skip white space. */
export function bytesOfBase64(text: string): Uint8Array {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) throw malformedAnswer('a blob is not base64')
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** Maximum length of an event, in characters, so that an endless event does not fill the memory of the page. */
const maxLength = 128 * 1024 * 1024

/**
 * Yields the messages of an event stream (HTML, server-sent events), in order, until it ends.
 *
 * @param onSign Called for each chunk that arrives, also for comments.
 * @throws ResourceError `unavailable` if the stream breaks off, or contains a message that is not JSON.
 */
export async function* messagesOf(body: ByteStream, onSign: () => void = () => {}): AsyncGenerator<WireObject> {
  for await (const data of eventsOf(body, { onPiece: onSign, maxLength })) if (data !== '') yield messageOf(data)
}

function messageOf(data: string): WireObject {
  const message = jsonIn(data)
  if (isObject(message)) return message
  throw new ResourceError('unavailable', 'The server sent an event that is not a JSON-RPC message.')
}

/** The kinds of errors by the code of JSON-RPC or MCP. Any other code is `internal`. */
const kinds: Readonly<Record<number, ErrorKind>> = {
  [-32700]: 'invalid',
  [-32600]: 'invalid',
  [-32601]: 'invalid',
  [-32602]: 'invalid',
  [-32002]: 'not-found',
}

/**
 * Converts an error of the protocol. `-32602` with a URI and without a reason means "not found" (2026-07-28).
 *
 * @param data The data of the error, which becomes the `cause`.
 * @param status The HTTP status of the answer.
 */
export function errorOf(code: unknown, message: unknown, data: unknown, status = 200): ResourceError {
  const detail = detailOf(data)
  const text = typeof message === 'string' && message !== '' ? message : 'The server answered with an error.'
  return new ResourceError(errorKind(code, detail, status), text, detail, { cause: data })
}

function errorKind(code: unknown, detail: ErrorDetail, status: number): ErrorKind {
  if (code === -32602 && 'uri' in detail && detail.reason === undefined) return 'not-found'
  if (detail.reason === 'too-large') return 'too-large'
  if (detail.reason === 'unavailable' || detail.reason === 'ending') return 'unavailable'
  // Errors below the protocol: the server is overloaded, or a proxy is at fault.
  if (status === 429 || status >= 500) return 'unavailable'
  return kinds[Number(code)] ?? 'internal'
}

function detailOf(data: unknown): ErrorDetail {
  if (typeof data !== 'object' || data === null) return {}
  return Object.fromEntries(
    Object.entries(data).filter((entry): entry is [string, string | number] =>
      ['string', 'number'].includes(typeof entry[1]),
    ),
  )
}
