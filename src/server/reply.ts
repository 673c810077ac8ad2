import type { ServerResponse } from 'node:http'
import { codes } from './errors.ts'
import { encodeMessage, failure, formatMessage } from './messages.ts'

/** What every answer carries: nobody in between keeps it, and no browser takes it for something else. */
const common = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

/** How long an answer may be, in bytes, and how long its client may take to read it, in milliseconds. */
export interface AnswerLimits {
  readonly answer: number
  readonly slow: number
}

const limits = new WeakMap<ServerResponse, AnswerLimits>()
const noLimits: AnswerLimits = { answer: Number.POSITIVE_INFINITY, slow: 60_000 }

/** Says what holds for an answer, before it is given. */
export function limitAnswer(response: ServerResponse, own: AnswerLimits): void {
  limits.set(response, own)
}

/** Resolves when an answer is given and its reader has taken it, or cannot any more. Never rejects. */
export function taken(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.destroyed) return resolve()
    response.once('finish', resolve).once('close', resolve)
  })
}

const limitsOf = (response: ServerResponse) => limits.get(response) ?? noLimits

export function replyJson(response: ServerResponse, status: number, body: unknown, headers: Headers = {}): void {
  replyBytes(response, status, Buffer.from(formatMessage(body, limitsOf(response).answer)), headers)
}

/**
 * The same, of what may be long. Resolves when it is written.
 *
 * @param breath Resolves in the turn of the event loop for the next piece of it.
 */
export async function replyLong(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Headers = {},
  breath?: () => Promise<void>,
): Promise<void> {
  replyBytes(response, status, await encodeMessage(body, limitsOf(response).answer, breath), headers)
}

type Headers = Readonly<Record<string, string>>

function replyBytes(response: ServerResponse, status: number, bytes: Buffer, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, {
    ...common,
    'Content-Type': 'application/json',
    'Content-Length': bytes.length,
    ...headers,
  })
  response.end(bytes)
  cutWhenSlow(response)
}

/** A file of a page: it says itself how long it may be kept. For HEAD, Node leaves it out. */
export function replyFile(response: ServerResponse, status: number, bytes: Uint8Array, headers: Headers): void {
  if (response.headersSent || response.destroyed) return
  // Without a body, a length would be told of the one that is not sent.
  const length = status === 304 || status === 204 ? {} : { 'Content-Length': bytes.length }
  response.writeHead(status, { ...common, ...length, ...headers })
  response.end(bytes)
  cutWhenSlow(response)
}

/** A text that is no message. For HEAD, Node leaves it out. */
export function replyText(response: ServerResponse, text: string, type: string): void {
  if (response.headersSent || response.destroyed) return
  const bytes = Buffer.from(text)
  response.writeHead(200, { ...common, 'Content-Type': type, 'Content-Length': bytes.length })
  response.end(bytes)
  cutWhenSlow(response)
}

export function replyEmpty(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { ...common, 'Content-Length': 0, ...headers })
  response.end()
}

/** A refusal below the level of any one request: it has no id to answer to. */
export function refuse(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  replyJson(response, status, failure(null, { code: codes.invalidRequest, message }), headers)
}

/** A stream of server-sent events. Each message is one event; comments keep the connection from looking idle. */
export interface EventStream {
  /** Writes a message, with an id where one is given. `false`: the reader is gone, or too slow. */
  send(message: unknown, event?: string, id?: string): boolean
  /** Resolves when the reader has taken what was written. Rejects when it is gone. */
  ready(): Promise<void>
  end(): void
}

/** So much may wait for a slow reader, in bytes, before its stream is cut. */
const maxWaiting = 16 * 1024 * 1024
const heartbeat = 15_000

export function openEventStream(response: ServerResponse, headers: Readonly<Record<string, string>> = {}): EventStream {
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
    if (response.writableLength > maxWaiting) {
      response.destroy()
      return false
    }
    response.write(text)
    return true
  }
  const timer = setInterval(() => write(': still here\n\n'), heartbeat)
  response.on('close', () => clearInterval(timer))
  return {
    // JSON has no raw line breaks, so one line of data holds all of it.
    send: (message, event = 'message', id) => {
      const data = typeof message === 'string' ? message : formatMessage(message, limitsOf(response).answer)
      return write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`)
    },
    ready: async () => {
      if (response.writableNeedDrain && !response.destroyed)
        await new Promise<void>((resolve) => {
          const done = () => {
            response.off('drain', done).off('close', done)
            resolve()
          }
          response.on('drain', done).on('close', done)
        })
      if (response.destroyed || response.writableEnded) throw new Error('the reader of the stream is gone')
    },
    end: () => {
      clearInterval(timer)
      response.end()
      cutWhenSlow(response)
    },
  }
}

/** How much may wait for slow readers in all, in bytes. Beyond it, whoever has taken longest is cut. */
const maxUnread = 256 * 1024 * 1024
/** What is written whole and not yet taken, oldest first: each with what makes it forgotten. */
const unread = new Map<ServerResponse, () => void>()
let unreadBytes = 0

function cutWhenSlow(response: ServerResponse): void {
  if (response.writableFinished) return
  const bytes = response.writableLength
  const timer = setTimeout(() => response.destroy(), limitsOf(response).slow)
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
    if (unreadBytes <= maxUnread || oldest === response) break
    forgetIt()
    oldest.destroy()
  }
}
