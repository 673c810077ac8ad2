import type { Readable, Writable } from 'node:stream'
import { createAutoResetEvent, withResolvers } from '../../core/kit/abort.ts'

/**
 * Notification from a process between a client and this server: the process has repeated the client's subscriptions, because an earlier
 * server has ended.
 */
export const resumedMethod = 'notifications/dev.hikidashi/resumed'

/** Maximum number of bytes that are written at once. */
const pieceBytes = 256 * 1024

/** Writes texts to a stream one after the other, with back-pressure. */
export function createStreamWriter(output: Writable) {
  /** Resolves when the texts so far are written. */
  let tail: Promise<void> = Promise.resolve()
  let gone = output.destroyed
  let timer: NodeJS.Timeout | undefined
  const { promise: failure, resolve: announce } = withResolvers<void>()
  let goOn = () => {}
  const fail = () => {
    gone = true
    announce()
    goOn()
  }
  // Keep the listener: a write that fails late must not end the process.
  output
    .on('error', fail)
    .on('close', fail)
    .on('drain', () => goOn())
  if (gone) announce()

  const requireReader = () => {
    if (gone || output.destroyed) throw new Error('the reader of the output is gone')
  }

  const writeNow = async (text: string | Uint8Array): Promise<void> => {
    requireReader()
    // In pieces, so that a slow reader of a long text is not taken for one that has stopped.
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    for (let start = 0; start < bytes.length; start += pieceBytes) {
      timer?.refresh()
      if (output.write(bytes.subarray(start, start + pieceBytes))) continue
      // Do not use `Promise.race` with `failed`: a pending promise keeps a reaction to each race in memory.
      await new Promise<void>((resolve) => {
        goOn = resolve
        if (gone || !output.writableNeedDrain) resolve()
      })
      requireReader()
    }
  }

  return {
    failed: failure,
    /** Calls `make` and writes its text when the texts before it are written. Rejects when the reader is gone. */
    write: (make: () => string | Uint8Array): Promise<void> => {
      const writing = tail.then(() => writeNow(make()))
      tail = writing.catch(() => {})
      return writing
    },
    /** From now on, a reader that takes nothing for `graceMs` milliseconds counts as gone. */
    hurry: (graceMs: number) => {
      timer ??= setTimeout(() => (output.writableLength > 0 ? fail() : timer?.refresh()), graceMs)
      output.on('drain', () => timer?.refresh())
    },
    /** Resolves when everything was handed to the reader, or the reader is gone. */
    end: async () => {
      await tail
      if (!gone && output.writableLength > 0)
        await Promise.race([failure, new Promise<void>((resolve) => output.write('', () => resolve()))])
      clearTimeout(timer)
    },
  }
}

const newline = 0x0a

/**
 * Yields the lines of a byte stream, those of each chunk together, without their ends (LF or CRLF) and without empty ones. A line longer
 * than `limit` bytes is discarded as it arrives, and `too-long` is yielded in its place. A last line without an end counts. Ends with the
 * stream, or with the signal.
 */
export async function* readLines(
  input: Readable,
  limit: number,
  signal: AbortSignal,
): AsyncGenerator<readonly (Uint8Array | 'too-long')[]> {
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
    const lines: (Uint8Array | 'too-long')[] = []
    let start = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, start)) {
      const line = take(chunk.subarray(start, at))
      start = at + 1
      if (line !== undefined) lines.push(line)
    }
    const rest = chunk.subarray(start)
    length += rest.length
    if (length > limit) {
      discarding = true
      parts = []
    } else if (rest.length > 0) parts.push(rest)
    if (lines.length > 0) yield lines
  }
  const last = take(Buffer.alloc(0))
  if (last !== undefined && !signal.aborted) yield [last]
}

/** Yields the chunks of a stream until it ends, fails or the signal aborts. It does not destroy the stream. */
async function* chunksOf(input: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  const chunks: Buffer[] = []
  let hasEnded = input.readableEnded || input.destroyed
  const news = createAutoResetEvent()
  const onData = (chunk: Buffer | string) => {
    chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    input.pause()
    news.set()
  }
  const onEnd = () => {
    hasEnded = true
    news.set()
  }
  input.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
  signal.addEventListener('abort', news.set)
  try {
    for (;;) {
      if (signal.aborted) return
      const chunk = chunks.shift()
      if (chunk !== undefined) {
        yield chunk
        continue
      }
      if (hasEnded) return
      input.resume()
      await news.wait()
    }
  } finally {
    signal.removeEventListener('abort', news.set)
    input.off('data', onData).off('end', onEnd).off('close', onEnd)
    input.pause()
  }
}
