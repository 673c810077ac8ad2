import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { base64Length, blobStreamKey, type StreamedMessage, streamedMessage, tooLongError } from './messages/json.ts'
import type { ContentLink, LinkFor } from './messages/messages.ts'
import {
  errorAnswer,
  formatMessage,
  isStreamed,
  type Request,
  unwritableAnswerError,
  wireErrorCodes,
} from './messages/messages.ts'

/** The end of a request target that does not matter for the endpoint: a final slash of the path, and the query. */
export const ignoredTargetEnd = /\/?(?:\?.*)?$/

/** Returns the values of a header: Node joins or drops repeated headers. `name` is in lower case. */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '')
  return values
}

/** Headers of an answer, unless its own headers replace them. */
const common = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

/** Maximum length of an answer, in bytes, and maximum time in which its client must read it, in milliseconds. */
export interface AnswerLimits {
  readonly answer: number
  readonly slow: number
}

const noLimits: AnswerLimits = { answer: Number.POSITIVE_INFINITY, slow: 60_000 }

/** Symbols under which facts about an answer are kept on the response itself. */
export const limitsKey = Symbol('limits')
const linkKey = Symbol('link')
export type HttpResponse = ServerResponse & { [limitsKey]?: AnswerLimits; [linkKey]?: () => ContentLink | undefined }

/** Puts a link to the whole content into the error that replaces an answer longer than the limit. */
export function offerLink(
  response: ServerResponse,
  { method, params }: Pick<Request, 'method' | 'params'>,
  linkFor: LinkFor | undefined,
): void {
  const uri = method === 'resources/read' ? params?.uri : undefined
  if (linkFor !== undefined && typeof uri === 'string' && !uri.includes('?'))
    (response as HttpResponse)[linkKey] = () => linkFor(uri)
}

/** Resolves when the system has taken a whole answer for the client, or the client is gone. Never rejects. */
export function waitUntilSent(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.destroyed) return resolve()
    response.once('finish', resolve).once('close', resolve)
  })
}

export function replyJson(response: HttpResponse, status: number, body: unknown, headers?: Headers): void {
  if (response.headersSent || response.destroyed) return
  const { answer } = response[limitsKey] ?? noLimits
  const bytes = Buffer.from(formatMessage(body, answer, response[linkKey]))
  response.writeHead(status, {
    ...common,
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    ...headers,
  })
  response.end(bytes)
  cutWhenSlow(response)
}

/** Sends JSON. Resolves when it is written, also for a content that is read while it is sent. */
export async function replyLong(
  response: HttpResponse,
  status: number,
  body: unknown,
  headers?: Headers,
): Promise<void> {
  if (isStreamed(body)) return replyStreamed(response, status, body, headers)
  replyJson(response, status, body, headers)
}

async function replyStreamed(response: HttpResponse, status: number, body: unknown, headers?: Headers): Promise<void> {
  const { answer } = response[limitsKey] ?? noLimits
  const refuse = (error: Error) =>
    replyJson(response, status, unwritableAnswerError(body, error, response[linkKey]), headers)
  await writeStreamed(
    response,
    streamedMessage(body),
    { ...common, 'Content-Type': 'application/json', ...headers },
    answer,
    refuse,
  )
}

/** Number of bytes that are encoded at once: base64 of a multiple of three has no padding. */
const groupBytes = 48 * 1024

/**
 * Sends a message whose one content is a stream, in base64, as fast as the client takes it. The answer has no Content-Length: if the source
 * fails, the connection is cut before the last chunk.
 *
 * @param refuse Answers with an error, for a message that would be longer than `limit` bytes.
 */
export async function writeStreamed(
  response: ServerResponse,
  { head, blob, tail }: StreamedMessage,
  headers: Readonly<Record<string, string>>,
  limit: number,
  refuse: (error: Error) => void,
): Promise<void> {
  try {
    const around = Buffer.byteLength(head) + Buffer.byteLength(tail)
    const isTooLong = around + base64Length(blob.length) > limit
    if (isTooLong || response.headersSent || response.destroyed) {
      if (isTooLong) refuse(tooLongError(limit))
      // The source may hold a connection open until its stream ends.
      await blob[blobStreamKey][Symbol.asyncIterator]().return?.()
      return
    }
    response.writeHead(200, headers)
    if (blob.isInMemory === true) cutWhenSlow(response, blob.length)
    response.write(head)
    let length = around
    /** The last bytes of the pieces so far, which are fewer than three. */
    let rest: Uint8Array = Buffer.alloc(0)
    for await (const piece of blob[blobStreamKey]) {
      const bytes =
        rest.length === 0 ? Buffer.from(piece.buffer, piece.byteOffset, piece.length) : Buffer.concat([rest, piece])
      const whole = bytes.length - (bytes.length % 3)
      for (let from = 0; from < whole; from += groupBytes) {
        const text = bytes.toString('base64', from, Math.min(whole, from + groupBytes))
        length += text.length
        // Redaction can make the content longer, and so the answer longer than the limit.
        if (length > limit) response.destroy()
        else if (!response.write(text, 'latin1')) await drained(response)
        if (response.destroyed) return
      }
      rest = bytes.subarray(whole)
      // A socket that takes all bytes at once never makes this loop wait, so other requests get a turn.
      await nextTurn()
    }
    response.end(`${Buffer.from(rest).toString('base64')}${tail}`)
  } catch {
    response.destroy()
  }
}

type Headers = Readonly<Record<string, string>>

export function replyFile(response: ServerResponse, status: number, bytes: Uint8Array, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  // With these statuses no body is sent, so no length may be announced.
  const length = status === 304 || status === 204 ? {} : { 'Content-Length': bytes.length }
  response.writeHead(status, { ...common, ...length, ...headers })
  response.end(bytes)
  cutWhenSlow(response)
}

/** Sends a text other than JSON-RPC. For HEAD, Node leaves the body out. */
export function replyText(response: ServerResponse, text: string, type: string): void {
  replyFile(response, 200, Buffer.from(text), { 'Content-Type': type })
}

export function replyEmpty(response: ServerResponse, status: number, headers: Headers = {}): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...common, 'Content-Length': 0, ...headers })
  response.end()
}

/** Sends a JSON-RPC error without an id, because the refusal concerns no single message. */
export function refuse(response: ServerResponse, status: number, message: string, headers?: Headers): void {
  replyJson(response, status, errorAnswer(null, { code: wireErrorCodes.invalidRequest, message }), headers)
}

/** Refuses a method. `allowed`: the methods that are allowed, for the header `Allow`. */
export function refuseMethod(response: ServerResponse, allowed: string): void {
  refuse(response, 405, 'The HTTP method is not allowed at this path.', { Allow: allowed })
}

/** A stream of server-sent events, one for each message. */
export type EventStream = ReturnType<typeof openEventStream>

/** Maximum number of bytes that wait for a slow reader. Beyond it, its stream is cut. */
const maxWaitingBytes = 16 * 1024 * 1024
const heartbeatIntervalMs = 15_000

/** @param hasComments Whether comments are sent: not needed for a stream with heartbeats of its own. */
export function openEventStream(response: HttpResponse, headers: Headers = {}, hasComments = true) {
  response.writeHead(200, {
    ...common,
    'Cache-Control': 'no-store, no-transform',
    'Content-Type': 'text/event-stream',
    'X-Accel-Buffering': 'no',
    ...headers,
  })
  response.flushHeaders()
  const write = (text: string): boolean => {
    if (response.destroyed || response.writableEnded) return false
    if (response.writableLength > maxWaitingBytes) {
      response.destroy()
      return false
    }
    response.write(text)
    return true
  }
  const timer = hasComments ? setInterval(() => write(': still here\n\n'), heartbeatIntervalMs) : undefined
  response.on('close', () => clearInterval(timer))
  return {
    /** Writes a message as one line of data, since JSON has no raw line breaks. Returns false when the reader is gone, or too slow. */
    send: (message: unknown, event: string = 'message', id?: string): boolean => {
      const { answer } = response[limitsKey] ?? noLimits
      const data = typeof message === 'string' ? message : formatMessage(message, answer, response[linkKey])
      return write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`)
    },
    /** Resolves when there is room for another message. Rejects when the reader is gone. */
    ready: async () => {
      if (response.writableNeedDrain) await drained(response)
      if (response.destroyed || response.writableEnded) throw new Error('the reader of the stream is gone')
    },
    end: () => {
      clearInterval(timer)
      response.end()
      cutWhenSlow(response)
    },
  }
}

/** Maximum number of bytes that wait for all slow readers together. Beyond it, the reader that has taken longest is cut. */
const maxUnreadBytes = 256 * 1024 * 1024
/** Answers in memory that are not yet read, oldest first, each with the function that removes it. */
const unread = new Map<ServerResponse, () => void>()
let unreadBytes = 0

/** @param bytes Number of bytes that the answer holds in memory until it is read. Default: those that are written and not sent. */
function cutWhenSlow(response: HttpResponse, bytes = response.writableLength): void {
  if (response.writableFinished) return
  const { slow } = response[limitsKey] ?? noLimits
  const timer = setTimeout(() => response.destroy(), slow)
  timer.unref()
  const forget = () => {
    clearTimeout(timer)
    if (unread.delete(response)) unreadBytes -= bytes
  }
  unread.set(response, forget)
  unreadBytes += bytes
  response.once('close', forget)
  response.once('finish', forget)
  for (const [oldest, forgetIt] of unread) {
    if (unreadBytes <= maxUnreadBytes || oldest === response) break
    forgetIt()
    oldest.destroy()
  }
}

/** Resolves when there is room for more data, or the client has disconnected. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve()
    const finish = () => {
      response.off('drain', finish).off('close', finish)
      resolve()
    }
    response.on('drain', finish).on('close', finish)
  })
}
