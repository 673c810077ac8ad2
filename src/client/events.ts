import { ResourceError } from '../core/errors.ts'

/** A stream of bytes, as browsers and Node have it. */
export interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(): Promise<void>
  }
}

interface EventOptions {
  /** Called with every piece that arrives, comments too: the server is still there. */
  readonly onPiece?: () => void
  /** Maximum length of an event, in characters. Default: no limit. */
  readonly maxLength?: number
}

/**
 * Yields the data of each event of a stream (HTML, server-sent events) until the stream ends. An event that the end cuts off is dropped.
 *
 * @throws ResourceError `unavailable` for an event that is too long; otherwise as the stream does.
 */
export async function* eventsOf(
  body: ByteStream,
  { onPiece = () => {}, maxLength = Number.POSITIVE_INFINITY }: EventOptions = {},
): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  /** The pieces of the line that is not whole yet. They are joined once it is: not with every piece. */
  let line: string[] = []
  let data: string[] = []
  let length = 0
  let endedInCr = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onPiece()
      let text = decoder.decode(value, { stream: true })
      if (text === '') continue
      // The LF of a CRLF that two pieces share.
      if (endedInCr && text.startsWith('\n')) text = text.slice(1)
      endedInCr = text.endsWith('\r')
      length += text.length
      if (length > maxLength) throw new ResourceError('unavailable', 'The server sends an event that does not end.')
      const lines = text.split(/\r\n|\n|\r/)
      const rest = lines.pop() ?? ''
      for (const end of lines) {
        const whole = line.length === 0 ? end : `${line.join('')}${end}`
        line = []
        if (whole.startsWith('data:')) data.push(whole.slice(whole[5] === ' ' ? 6 : 5))
        if (whole !== '') continue
        if (data.length > 0) yield data.join('\n')
        data = []
        length = rest.length
      }
      if (rest !== '') line.push(rest)
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
