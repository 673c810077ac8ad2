import { ResourceError } from '../../../core/errors.ts'

/** Maximum length of an event, in characters, so that an endless event does not fill the memory of the page. */
const longest = 128 * 1024 * 1024

/**
 * Yields the messages of an event stream (HTML, server-sent events), in order, until it ends.
 *
 * @param onSign Called with every chunk that arrives, comments too, so the server is alive.
 * @throws ResourceError `unavailable` if the stream breaks off, or contains a message that is not JSON.
 */
export async function* messagesOf(
  body: ReadableStream<Uint8Array>,
  onSign: () => void = () => {},
): AsyncGenerator<Wire> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  /** The chunks of the incomplete event. They are joined only when it is complete. */
  let pieces: string[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onSign()
      const piece = decoder.decode(value, { stream: true })
      length += piece.length
      if (length > longest) throw new ResourceError('unavailable', 'The server sends an event that does not end.')
      pieces.push(piece)
      // A blank line may be split over two chunks.
      const joint = `${pieces.at(-2)?.slice(-3) ?? ''}${piece}`
      if (!/\r?\n\r?\n/.test(joint)) continue
      const events = pieces.join('').split(/\r?\n\r?\n/)
      const rest = events.pop() ?? ''
      pieces = rest === '' ? [] : [rest]
      length = rest.length
      for (const event of events) {
        const message = messageOf(event)
        if (message !== undefined) yield message
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function messageOf(event: string): Wire | undefined {
  const data = event
    .split(/\r?\n/)
    .flatMap((line) => (line.startsWith('data:') ? [line.slice(5).replace(/^ /, '')] : []))
    .join('\n')
  if (data === '') return undefined
  const message = parsed(data)
  if (typeof message === 'object' && message !== null && !Array.isArray(message)) return message as Wire
  throw new ResourceError('unavailable', 'The server sends events that are no messages.')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Wire = Readonly<Record<string, unknown>>
