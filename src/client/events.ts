import { createParser } from 'eventsource-parser'
import { ResourceError } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'

/** The part of a `ReadableStream` of bytes that browsers and Node have in common. */
export interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(): Promise<void>
  }
}

interface EventOptions {
  /** Called for every chunk that arrives, even of comments, as a sign that the server is alive. */
  readonly onPiece?: () => void
  /** Maximum length of an event, in characters. Default: no limit. */
  readonly maxLength?: number | undefined
}

/**
 * Yields the data of each event of a stream (HTML, server-sent events) until the stream ends. An event that the end cuts off is dropped.
 *
 * @throws ResourceError `unavailable` for an event that is too long, or the error of the stream.
 */
export async function* eventsOf(
  body: ByteStream,
  { onPiece = () => {}, maxLength }: EventOptions = {},
): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const events: string[] = []
  let isTooLong = false
  const parser = createParser({
    onEvent: ({ data }) => events.push(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') isTooLong = true
    },
    ...defined({ maxBufferSize: maxLength }),
  })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onPiece()
      parser.feed(decoder.decode(value, { stream: true }))
      yield* events.splice(0)
      if (isTooLong)
        throw new ResourceError('unavailable', `The server sends an event of more than ${maxLength} characters.`)
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
