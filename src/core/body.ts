import { createHash } from 'node:crypto'
import { isResourceError, ResourceError, tooLarge, unavailable } from './errors.ts'
import { metaKeys } from './meta.ts'
import type { ReadOptions, ReadResult, ResourceContent } from './view.ts'

/** A resource as a stream of bytes, such as the body of an answer over HTTP. */
export interface ResourceBody {
  readonly mimeType: string | undefined
  readonly version: string | undefined
  /** Entity tag in quotes. Undefined when the source has no versions. */
  readonly etag: string | undefined
  /** Length of the whole resource, in bytes; undefined when it is not known beforehand. */
  readonly length: number | undefined
  /**
   * Yields the bytes from `start` up to, but not including, `end`. By default all bytes.
   * @throws ResourceError `unavailable` when a resource that is read in parts changes meanwhile.
   */
  bytes(start?: number, end?: number): AsyncIterable<Uint8Array>
  /** Releases the source of a body whose bytes are not needed. */
  release(): void
}

export type ReadAsCaller = (uri: string, options: ReadOptions) => Promise<ReadResult>

/**
 * Maximum number of bytes that are requested from a source at once: the largest multiple of three below 1 MiB, because
 * base64 encodes three bytes at a time.
 */
const maxPartBytes = 1024 * 1024 - 1
/** The first part is small, so that the reader gets data soon. The next ones double in size, up to the maximum. */
const firstPartBytes = 64 * 1024 - 1

/**
 * Opens a resource as a body. A resource that is too large for its source is read in parts of up to 1 MiB, each when
 * the one before has been consumed.
 * @param tooLarge The error of an earlier read of the whole resource, which is then not tried again.
 * @throws ResourceError as a read does, and `invalid` (reason `unreadable`) for a URI without exactly one content, such
 * as a directory.
 */
export async function openBody(
  readAsCaller: ReadAsCaller,
  uri: string,
  options: ReadOptions,
  tooLarge?: ResourceError,
): Promise<ResourceBody> {
  if (tooLarge !== undefined) return openParts(readAsCaller, uri, options, tooLarge)
  let whole: ReadResult
  try {
    whole = await readAsCaller(uri, options)
  } catch (error) {
    if (!isResourceError(error, 'too-large')) throw error
    return openParts(readAsCaller, uri, options, error)
  }
  const content = onlyContent(whole)
  const isTruncated = content.meta?.[metaKeys.truncated] === true
  return isTruncated ? openParts(readAsCaller, uri, options, truncated) : wholeBody(content)
}

const truncated = tooLarge('The resource is too large to be read whole, and its source has no parts of it.')

/** The value of `fault` in the data of the error for several contents. */
export const severalContentsFault = 'several-contents'

function onlyContent({ contents }: ReadResult): ResourceContent {
  const [content] = contents
  if (content === undefined || contents.length > 1)
    throw new ResourceError(
      'invalid',
      'The resource has no single content. Read or link one of its contents by a URI of its own.',
      { reason: 'unreadable', fault: severalContentsFault },
    )
  return content
}

function wholeBody(content: ResourceContent): ResourceBody {
  const facts = bodyMetadata(content)
  if ('stream' in content) {
    const { stream, length } = content
    return {
      ...facts,
      length,
      bytes: (start = 0, end = length) => sliceStream(stream, start, end),
      release: () => void stream[Symbol.asyncIterator]().return?.(),
    }
  }
  const bytes = 'text' in content ? Buffer.from(content.text) : content.bytes
  return {
    ...facts,
    length: bytes.length,
    bytes: async function* (start = 0, end = bytes.length) {
      yield bytes.subarray(start, end)
    },
    release: () => {},
  }
}

/** A text has no length beforehand, because redaction and decoding change it. */
async function openParts(
  readAsCaller: ReadAsCaller,
  uri: string,
  options: ReadOptions,
  error: Error,
): Promise<ResourceBody> {
  let step = firstPartBytes
  let maxStep = maxPartBytes
  /** @param searchedTo The byte offset up to which this call has already searched the source for secrets; -1: it has not. */
  const part = async (start: number, end = Number.POSITIVE_INFINITY, searchedTo = -1): Promise<ContentPart> => {
    const last = Math.min(end, start + step) - 1
    try {
      const contentPart = toContentPart(
        onlyContent(await readAsCaller(`${uri}${uri.includes('?') ? '&' : '?'}bytes=${start}-${last}`, options)),
        error,
      )
      step = Math.min(2 * step, maxStep)
      return contentPart
    } catch (failure) {
      // `place` is the byte offset up to which the text before this part must be searched for secrets. Read the part
      // there, then try again.
      const place = isResourceError(failure, 'too-large') ? Number(failure.detail.place) : Number.NaN
      if (place < start && place > searchedTo) {
        await part(place)
        return part(start, end, place)
      }
      // The source has reported a smaller limit.
      const limit = isResourceError(failure, 'too-large') ? Number(failure.detail.limit) : Number.NaN
      if (!(limit >= 1 && limit < step)) throw failure
      step = limit
      maxStep = limit
      return part(start, end, searchedTo)
    }
  }
  const first = await part(0)
  const bytes = async function* (start = 0, end?: number): AsyncGenerator<Uint8Array> {
    let at = start
    let piece = start === 0 && end === undefined ? first : await part(start, end)
    for (;;) {
      if (piece.content.version !== first.content.version || piece.first !== at)
        throw unavailable('The resource changed while it was read. Try again.')
      yield piece.bytes
      at = piece.last + 1
      if (piece.next === undefined || at >= (end ?? Number.POSITIVE_INFINITY)) return
      piece = await part(at, end)
    }
  }
  return {
    ...bodyMetadata(first.content),
    length: 'bytes' in first.content ? first.size : undefined,
    bytes,
    release: () => {},
  }
}

interface ContentPart {
  readonly content: ResourceContent
  readonly bytes: Uint8Array
  readonly first: number
  readonly last: number
  readonly next: string | undefined
  readonly size: number | undefined
}

/** @throws `error` if the content is no part, because its source has no parts. */
function toContentPart(content: ResourceContent, error: Error): ContentPart {
  const facts = content.meta?.[metaKeys.part]
  if ('stream' in content || typeof facts !== 'object' || facts === null) throw error
  const { first, last, next, size } = facts as { first?: unknown; last?: unknown; next?: unknown; size?: unknown }
  return {
    content,
    first: Number(first),
    bytes: 'text' in content ? Buffer.from(content.text) : content.bytes,
    last: Number(last),
    next: typeof next === 'string' ? next : undefined,
    size: typeof size === 'number' ? size : undefined,
  }
}

function bodyMetadata({ mimeType, version, uri }: ResourceContent) {
  return {
    mimeType,
    version,
    etag:
      version === undefined
        ? undefined
        : `"${createHash('sha256')
            .update(JSON.stringify([uri, version]))
            .digest('base64url')}"`,
  }
}

async function* sliceStream(stream: AsyncIterable<Uint8Array>, start: number, end: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const chunk of stream) {
    const piece = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at))
    at += chunk.length
    if (piece.length > 0) yield piece
    if (at >= end) return
  }
}
