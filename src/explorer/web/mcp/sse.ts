import { type ByteStream, eventsOf } from '../../../client/events.ts'
import type { Wire } from '../../../client/wire.ts'
import { ResourceError } from '../../../core/errors.ts'

/** The longest event that is taken, in characters: a server that never ends one does not fill the memory of the page. */
const maxLength = 128 * 1024 * 1024

/**
 * The messages of an event stream (HTML, server-sent events), in order, until it ends.
 *
 * @param onSign Called with every piece that arrives, comments too: the server is still there.
 * @throws ResourceError `unavailable` where the stream breaks off, or holds what is not JSON.
 */
export async function* messagesOf(body: ByteStream, onSign: () => void = () => {}): AsyncGenerator<Wire> {
  for await (const data of eventsOf(body, { onPiece: onSign, maxLength })) if (data !== '') yield messageOf(data)
}

function messageOf(data: string): Wire {
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
