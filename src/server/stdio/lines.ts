import type { Readable } from 'node:stream'

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
