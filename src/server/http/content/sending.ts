import { openBody, type ReadFor } from '../../../core/body.ts'
import { isResourceError, ResourceError } from '../../../core/errors.ts'
import { followFor } from '../../../core/kit/abort.ts'
import { metaKeys } from '../../../core/meta.ts'
import type { PartOptions, ReadResult, ResourceContent } from '../../../core/view.ts'
import type { Gate } from '../../admission/gate.ts'

/** How a transport sends an answer that is read while it is sent. */
export interface Sending {
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
  readonly gate: Gate
  readonly share: string | undefined
  /** Time-out of the reading of one part, in milliseconds. */
  readonly timeoutMs: number
}

/** Size from which a content of bytes is read in parts while it is sent, in bytes. A smaller one is read at once, which takes less CPU. */
const streamedBytes = 8 * 1024 * 1024

/**
 * Opens a large content as a stream of its parts, of up to 1 MiB each: a part is read when the client has taken the one before, as every read is. Access,
 * version and length are checked for each part. A piece of the stream holds its bytes until the next one is asked for.
 *
 * @returns Undefined for a text, for a source without parts, and for a smaller content: they are read as a whole.
 */
export async function openLarge(
  uri: string,
  size: number,
  read: (uri: string, options: PartOptions) => Promise<ReadResult>,
  { signal, gate, share, timeoutMs }: Sending,
): Promise<ReadResult | undefined> {
  if (size < streamedBytes || uri.includes('?')) return undefined
  let first: { readonly result: ReadResult; readonly content: ResourceContent } | undefined
  const part: ReadFor = async (of, { into }) => {
    const waiting = followFor(signal, timeoutMs)
    try {
      if (first !== undefined) {
        const ran = await gate.run(() => read(of, { signal: waiting.signal, into }), share)
        if ('refused' in ran) throw new ResourceError('unavailable', 'Too many requests are in flight.')
        return ran.value
      }
      // The request has its slot already.
      const result = await read(of, { signal: waiting.signal, into })
      const [content] = result.contents
      if (content !== undefined) first = { result, content }
      return result
    } finally {
      waiting.release()
    }
  }
  try {
    const body = await openBody(part, uri, { inOneMemory: true }, withoutParts)
    if (first === undefined || body.length !== size) return undefined
    const { range: _, meta, ...content } = first.content as ResourceContent & { readonly bytes: Uint8Array }
    const { [metaKeys.part]: __, ...others } = meta ?? {}
    const { bytes: ___, ...facts } = content
    const streamed: ResourceContent = {
      ...facts,
      uri,
      ...(Object.keys(others).length === 0 ? {} : { meta: others }),
      stream: exactly(body.bytes(), size),
      length: size,
    }
    return { ...first.result, contents: [streamed] }
  } catch (error) {
    // The whole may be readable though its parts are not.
    if (!isResourceError(error, 'invalid') && error !== withoutParts) throw error
    return undefined
  }
}

const withoutParts = new ResourceError('too-large', 'The source has no parts.', { reason: 'too-large' })

async function* exactly(pieces: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    sent += piece.length
    if (sent > length) break
    yield piece
  }
  if (sent !== length) throw new ResourceError('unavailable', 'The content is not as long as it was said to be.')
}
