import { openBody, type ReadAsCaller } from '../../core/body.ts'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import { followAbortFor } from '../../core/kit/abort.ts'
import { metaKeys } from '../../core/meta.ts'
import type { CallOptions, ReadResult, ResourceContent } from '../../core/view.ts'
import type { Gate } from '../admission/gate.ts'
import { blobStreamKey, isBlobStream } from '../messages/json.ts'
import type { LinkFor } from '../messages/messages.ts'
import { errorAnswer, ProtocolError, type Response, wireErrorCodes } from '../messages/messages.ts'

/** How a transport sends an answer that is read while it is sent. */
export interface AnswerSender {
  readonly signal: AbortSignal
  readonly gate: Gate
  readonly share: string | undefined
  /** Time-out of the reading of one part, in milliseconds. */
  readonly timeoutMs: number
}

/** Size from which a content of bytes is read in parts while it is sent, in bytes. A smaller one is read at once, which takes less CPU. */
const streamedBytes = 8 * 1024 * 1024

/**
 * Opens a large content as a stream of its parts, of up to 1 MiB each: a part is read when the client has taken the one before. Access,
 * version and length are checked for each part.
 *
 * @returns Undefined for a content that is read as a whole.
 */
export async function openLarge(
  uri: string,
  size: number,
  readUri: (uri: string, options: CallOptions) => Promise<ReadResult>,
  { signal, gate, share, timeoutMs }: AnswerSender,
): Promise<ReadResult | undefined> {
  if (size < streamedBytes || uri.includes('?')) return undefined
  let first: { readonly result: ReadResult; readonly content: ResourceContent } | undefined
  const part: ReadAsCaller = async (of) => {
    const waiting = followAbortFor(signal, timeoutMs)
    try {
      if (first !== undefined) {
        const ran = await gate.run(() => readUri(of, { signal: waiting.signal }), share)
        if ('refused' in ran)
          throw new ResourceError('unavailable', 'Too many requests are in flight. Try again later.')
        return ran.value
      }
      // The first part needs no slot of its own: the request itself has one.
      const result = await readUri(of, { signal: waiting.signal })
      const [content] = result.contents
      if (content !== undefined) first = { result, content }
      return result
    } finally {
      waiting.release()
    }
  }
  try {
    const body = await openBody(part, uri, {}, withoutParts)
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
    // A resource whose parts cannot be read may still be read as a whole.
    if (!isResourceError(error, 'invalid') && error !== withoutParts) throw error
    return undefined
  }
}

const withoutParts = new ResourceError('too-large', 'The source cannot return a part of this content.', {
  reason: 'too-large',
})

async function* exactly(pieces: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    sent += piece.length
    if (sent > length) break
    yield piece
  }
  if (sent !== length)
    throw new ResourceError('unavailable', 'The content has another length than the source announced.')
}

/** Returns the same answer with its content as a string. If the source fails, the answer is an error. */
export async function collectAnswer(answer: Response): Promise<Response> {
  if (!('result' in answer) || !Array.isArray(answer.result.contents)) return answer
  const contents: unknown[] = []
  try {
    for (const content of answer.result.contents as readonly Readonly<Record<string, unknown>>[]) {
      if (!isBlobStream(content.blob)) contents.push(content)
      else {
        const bytes: Uint8Array[] = []
        // A copy, because the memory of a piece is used for the next one.
        for await (const piece of content.blob[blobStreamKey]) bytes.push(Buffer.from(piece))
        contents.push({ ...content, blob: Buffer.concat(bytes).toString('base64') })
      }
    }
  } catch {
    return errorAnswer(answer.id, {
      code: wireErrorCodes.internal,
      message: 'The content could not be read to its end. Try again later.',
    })
  }
  return { ...answer, result: { ...answer.result, contents } }
}

/**
 * Returns the error of a read with a link to the whole content in its data (`link`), if the content is too large and its first part can be
 * read.
 */
export async function addLinkToError(
  error: unknown,
  uri: string,
  linkFor: LinkFor,
  readAsCaller: ReadAsCaller,
): Promise<unknown> {
  // Other reasons, such as what a service exports at most, hold for a link as well.
  if (!isResourceError(error, 'too-large') || error.detail.reason !== 'too-large' || uri.includes('?')) return error
  const link = linkFor(uri)
  if (link === undefined) return error
  // If the source has no parts, the error stays as it is: a request for the link would fail in the same way.
  const body = await openBody(readAsCaller, uri, {}, error).catch(() => undefined)
  if (body === undefined) return error
  body.release()
  return new ProtocolError(wireErrorCodes.invalidParams, error.message, { ...error.detail, link })
}

/**
 * Adds the link to the metadata of a content of which only the beginning was read. A link of the source itself stays. The answer then holds
 * for one principal alone.
 */
export function addLinkToResult(result: ReadResult, uri: string, linkFor: LinkFor): ReadResult {
  const [content, ...others] = result.contents
  if (content === undefined || content.meta?.[metaKeys.link] !== undefined || uri.includes('?')) return result
  const link = linkFor(uri)
  if (link === undefined) return result
  return {
    contents: [{ ...content, meta: { ...content.meta, [metaKeys.link]: link } }, ...others],
    cache: { ttlMs: 0, scope: 'private' },
  }
}
