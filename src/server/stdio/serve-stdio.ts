import type { Readable, Writable } from 'node:stream'
import { requireKeys } from '../../core/kit/required.ts'
import { createGate } from '../admission/gate.ts'
import { createConnection } from '../protocol/connection.ts'
import { codes } from '../protocol/errors.ts'
import { JsonError, parseJson } from '../protocol/json.ts'
import { failure, formatMessage } from '../protocol/messages.ts'
import { localPrincipal, openView, type ServeOptions } from '../serve.ts'

export interface StdioOptions extends ServeOptions {
  readonly input?: Readable
  readonly output?: Writable
  /** Ends the service when it aborts: requests in flight are still answered, within the grace period. */
  readonly signal?: AbortSignal
  /** Maximum length of a message, in bytes. Default 4 MiB. */
  readonly maxInput?: number
  /** How long requests in flight may take after the input has ended, in milliseconds. Default 4000. */
  readonly grace?: number
  /** Called once, after the first answer is written. */
  readonly onFirstAnswer?: () => void
}

/** Both official TypeScript clients close the connection at a longer message. */
const maxOutputBytes = 10 * 1024 * 1024
/** Maximum number of requests that run at once, and of further ones that are read before the client has to wait. */
const maxConcurrent = 16
const maxWaiting = 1000

/**
 * Serves one client over a pair of pipes, one JSON message per line. Answers are written whole and one after the other, as fast
 * as the client reads. Ends after the input has ended and all requests are answered.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  requireKeys('serveStdio({ name, version, view })', options, { name: 'a text', version: 'a text', view: 'a function' })
  const input = options.input ?? process.stdin
  const writer = createWriter(options.output ?? process.stdout)
  const stop = new AbortController()
  let { onFirstAnswer } = options
  const send = async (message: object): Promise<void> => {
    await writer.write(() => `${formatMessage(message, maxOutputBytes)}\n`)
    onFirstAnswer?.()
    onFirstAnswer = undefined
  }
  const connection = createConnection(
    // A client that would miss notifications learns it from the end of the pipe.
    (era) => openView(options, options.principal ?? localPrincipal, era, { write: send, onLost: () => stop.abort() }),
    createGate(maxConcurrent, Number.POSITIVE_INFINITY),
    options,
  )
  const answering = new Set<Promise<void>>()
  let wake = () => {}
  stop.signal.addEventListener('abort', () => wake())

  const answer = async (line: Uint8Array): Promise<void> => {
    let value: unknown
    try {
      value = parseJson(line)
    } catch (error) {
      const message = error instanceof JsonError ? error.message : 'The message could not be read.'
      return send(failure(null, { code: codes.parse, message }))
    }
    const response = await connection.receive(value, {
      onNotification: (message) => void send({ ...message }).catch(() => {}),
      deliver: send,
      raw: true,
      write: send,
    })
    if (response !== undefined) await send(response)
  }

  const signals = options.signal === undefined ? [stop.signal] : [stop.signal, options.signal]
  writer.failed.then(() => stop.abort())
  for await (const line of readLines(input, options.maxInput ?? 4 * 1024 * 1024, AbortSignal.any(signals))) {
    if (line === 'too-long') {
      await send(failure(null, { code: codes.parse, message: 'The message is longer than the limit.' })).catch(() => {})
      continue
    }
    const task = answer(line)
      .catch((error) => options.log('debug', 'an answer could not be written', { error }))
      .finally(() => {
        answering.delete(task)
        wake()
      })
    answering.add(task)
    // Back-pressure: a client that sends faster than it reads is not read, so the pipe fills, and the client waits.
    while (answering.size - connection.listening > maxWaiting && !stop.signal.aborted)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  connection.drain()
  // Reads in flight are answered before the end, but neither a hanging read nor a client that does not read keeps the process
  // alive.
  const grace = options.grace ?? 4000
  const timer = setTimeout(() => void connection.close(), grace)
  writer.hurry(grace)
  if (stop.signal.aborted) await connection.close()
  await Promise.allSettled(answering)
  clearTimeout(timer)
  await connection.close()
  await writer.end()
}

/** Writes texts to a stream one after the other, with back-pressure. */
interface Writer {
  /** Calls `make` when its turn comes, so that a waiting text is not held twice. Rejects when the reader is gone. */
  write(make: () => string): Promise<void>
  /** Resolves when the reader is gone. */
  readonly failed: Promise<void>
  /** From now on, a reader that takes nothing for `patience` milliseconds counts as gone. */
  hurry(patience: number): void
  /** Resolves when everything was handed to the reader, or the reader is gone. */
  end(): Promise<void>
}

export function createWriter(output: Writable): Writer {
  let tail: Promise<void> = Promise.resolve()
  let gone = output.destroyed
  let announce = () => {}
  let timer: NodeJS.Timeout | undefined
  const failed = new Promise<void>((resolve) => {
    announce = resolve
  })
  const fail = () => {
    gone = true
    announce()
  }
  // Keep the listener: a write that fails late must not end the process.
  output.on('error', fail).on('close', fail)
  if (gone) announce()

  let corked = false
  const uncork = () => {
    if (corked) output.uncork()
    corked = false
  }

  const writeNow = async (make: () => string): Promise<void> => {
    if (gone) throw new Error('the reader of the output is gone')
    // Messages of the same turn of the event loop are written in one system call.
    if (!corked) {
      corked = true
      output.cork()
      process.nextTick(uncork)
    }
    if (output.write(make())) return
    uncork()
    await Promise.race([failed, new Promise<void>((resolve) => output.once('drain', resolve))])
    if (gone) throw new Error('the reader of the output is gone')
  }

  return {
    failed,
    write: (make) => {
      const written = tail.then(() => writeNow(make))
      tail = written.catch(() => {})
      return written
    },
    hurry: (patience) => {
      timer ??= setTimeout(fail, patience)
      output.on('drain', () => timer?.refresh())
    },
    end: async () => {
      await tail
      if (!gone && output.writableLength > 0)
        await Promise.race([failed, new Promise<void>((resolve) => output.write('', () => resolve()))])
      clearTimeout(timer)
    },
  }
}

const newline = 0x0a

/**
 * Yields the lines of a byte stream, without their ends (LF or CRLF) and without empty ones. A line longer than `limit` bytes is
 * discarded as it arrives, so it costs no memory, and `too-long` is yielded in its place. A last line without an end counts. Ends
 * with the stream, or with the signal.
 */
export async function* readLines(
  input: Readable,
  limit: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array | 'too-long'> {
  let parts: Buffer[] = []
  let length = 0
  let discarding = false
  const take = (end: Buffer): Uint8Array | 'too-long' | undefined => {
    const line = parts.length === 0 ? end : Buffer.concat([...parts, end])
    const tooLong = discarding || line.length > limit
    parts = []
    length = 0
    discarding = false
    if (tooLong) return 'too-long'
    const body = line.at(-1) === 0x0d ? line.subarray(0, -1) : line
    return body.length === 0 ? undefined : body
  }

  for await (const chunk of chunksOf(input, signal)) {
    let start = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, start)) {
      const line = take(chunk.subarray(start, at))
      start = at + 1
      if (line !== undefined) yield line
    }
    const rest = chunk.subarray(start)
    length += rest.length
    if (length > limit) {
      discarding = true
      parts = []
    } else if (rest.length > 0) parts.push(rest)
  }
  const last = take(Buffer.alloc(0))
  if (last !== undefined && !signal.aborted) yield last
}

/** Yields the chunks of a stream until it ends, fails or the signal aborts. It does not destroy the stream. */
async function* chunksOf(input: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  const chunks: Buffer[] = []
  let ended = input.readableEnded || input.destroyed
  let wake = () => {}
  const onData = (chunk: Buffer | string) => {
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    input.pause()
    wake()
  }
  const onEnd = () => {
    ended = true
    wake()
  }
  const onAbort = () => wake()
  input.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
  signal.addEventListener('abort', onAbort)
  try {
    for (;;) {
      if (signal.aborted) return
      const chunk = chunks.shift()
      if (chunk !== undefined) {
        yield chunk
        continue
      }
      if (ended) return
      input.resume()
      await new Promise<void>((resolve) => {
        wake = resolve
        if (chunks.length > 0 || ended || signal.aborted) resolve()
      })
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    input.off('data', onData).off('end', onEnd).off('close', onEnd)
    input.pause()
  }
}
