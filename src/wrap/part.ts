import { contentLength } from '../core/entry.ts'
import { invalid, isResourceError, ResourceError, unavailable } from '../core/errors.ts'
import { isText, wholeCharacters } from '../core/kit/utf8.ts'
import { metaKeys } from '../core/meta.ts'
import type { Content, ContentMetadata, Context, Params, Provider, ReadRequest } from '../core/provider.ts'

export interface PartRequest {
  readonly unit: 'lines' | 'bytes'
  /** Lines are counted from 1, bytes from 0. */
  readonly first: number
  /** Included in the part. Undefined: the part extends to the end of the resource. */
  readonly last: number | undefined
}

/** Facts about a part in its `_meta`. */
export interface PartFacts {
  readonly unit: 'lines' | 'bytes'
  readonly first: number
  readonly last: number
  /** Size of the whole resource, in bytes, if it is known. */
  readonly size?: number
  /** Number of lines of the whole resource, if its end was reached. */
  readonly lines?: number
  /** The query of the URI of the next part, if there is one. */
  readonly next?: string
}

export const partKey = metaKeys.part

export function formatPart(unit: 'lines' | 'bytes', first: number, count: number | undefined): string {
  return `${unit}=${first}-${count === undefined ? '' : first + count - 1}`
}

export function invalidRangeError(message: string, detail: Readonly<Record<string, number>> = {}): ResourceError {
  return invalid(message, 'range', detail)
}

/** Facts about the end of a text in its `_meta`. */
export interface TailFacts {
  /** Number of lines: less than requested if there are no more, or if an answer can hold no more. */
  readonly lines: number
  /** Whether there are lines before these. */
  readonly earlier: boolean
  /**
   * Set if the last line does not end in a newline. `left-out`: the file was written to just now, so the line may be incomplete, and is
   * not shown.
   */
  readonly unfinished?: 'left-out' | 'shown'
}

export const tailKey = 'dev.hikidashi/tail'

const name = 'tail'

export const maxTailLines = 100_000

/**
 * Returns the number of last lines that the parameters request; undefined without `tail`.
 *
 * @throws ResourceError `invalid` (reason `parameter`) for a malformed number.
 */
export function tailIn(params: Params): number | undefined {
  const text = params.get(name)
  if (text === undefined) return undefined
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > maxTailLines)
    throw invalidTailError(`?tail must be a number of lines from 1 to ${maxTailLines}, such as ?tail=200.`)
  return count
}

export function invalidTailError(message: string): ResourceError {
  return invalid(message, 'parameter', { parameter: name })
}

/** Returns the request for the whole resource, instead of a part or the end of it. */
export function withoutTail({ path, params }: ReadRequest): ReadRequest {
  if (!params.has(name)) return { path, params }
  return { path, params: new Map([...params].filter(([key]) => key !== name)) }
}

/** Returns facts without byte offsets and sizes. */
export function withoutPosition({ range, size, meta, ...facts }: ContentMetadata): ContentMetadata {
  const otherFacts = Object.entries(meta ?? {}).filter(([key]) => key !== partKey)
  return { ...facts, meta: Object.fromEntries(otherFacts) }
}

export interface Chunk {
  readonly bytes: Buffer
  /** Byte offset of the chunk in the resource. */
  readonly start: number
  readonly final: boolean
  readonly facts: ContentMetadata
}

export class ChangedError extends Error {
  constructor() {
    super('The resource changed while it was read. Try again.')
    this.name = 'ChangedError'
  }
}

/**
 * Reads a resource in order from about `start`, in chunks of about `length` bytes, by ranges, as a stream, or as a whole. The first chunk
 * begins at 0 where the provider knows no ranges.
 *
 * @throws {@link ChangedError} when the resource is replaced meanwhile. ResourceError `invalid` (reason `range`) for one that has several
 *   contents.
 */
export async function* chunksOf(
  provider: Provider,
  request: ReadRequest,
  { start, length }: { readonly start: number; readonly length: number },
  context: Context,
): AsyncGenerator<Chunk> {
  let version: string | undefined
  let step = length
  for (let at = start; ; ) {
    context.signal.throwIfAborted()
    let content: Content
    try {
      content = await readOne(provider, { ...request, range: { start: at, end: at + step } }, context)
    } catch (error) {
      const behind = isResourceError(error, 'invalid') && error.detail.reason === 'range'
      // The resource has become shorter, or it is empty and has no ranges.
      if (behind && at > start) throw new ChangedError()
      if (behind && at === 0) return yield* wholeContentChunks(await readOne(provider, request, context))
      // A provider may have a smaller limit, which its error names.
      const limit = isResourceError(error, 'too-large') ? Number(error.detail.limit) : Number.NaN
      if (!(limit > 0 && limit < step)) throw error
      step = limit
      continue
    }
    if (at > start && content.version !== version) throw new ChangedError()
    version = content.version
    if (content.range === undefined) return yield* wholeContentChunks(content)
    const bytes = await readContentBytes(content)
    const { end } = content.range
    // Text may be up to three bytes shorter than the range, because characters are not cut.
    const short = end - at < step - ('text' in content ? 3 : 0)
    const final = content.size === undefined ? short || bytes.length === 0 : end >= content.size
    yield { bytes, start: content.range.start, final, facts: wholeFactsOf(content) }
    if (final) return
    if (end <= at)
      throw new ResourceError('internal', 'a provider returned nothing for a range before the end of the content')
    at = end
  }
}

/** Reads a resource of one content. `several` returns the error for a resource with several contents. */
export async function readOne(
  provider: Provider,
  request: ReadRequest,
  context: Context,
  several = () =>
    invalidRangeError(
      'The resource has several contents, so a part of it cannot be read. Leave out ?lines and ?bytes.',
    ),
): Promise<Content> {
  const [content, other] = await provider.read(request, context)
  if (content === undefined) throw new ResourceError('internal', 'a provider returned no content for a read')
  if (other !== undefined) throw several()
  return content
}

async function* wholeContentChunks(content: Content): AsyncGenerator<Chunk> {
  const facts = wholeFactsOf(content)
  if (!('stream' in content)) {
    yield { bytes: await readContentBytes(content), start: 0, final: true, facts }
    return
  }
  let start = 0
  for await (const piece of content.stream) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    yield { bytes, start, final: start + bytes.length >= content.length, facts }
    start += bytes.length
  }
  if (start < content.length || start === 0) yield { bytes: Buffer.alloc(0), start, final: true, facts }
}

/** A text is encoded as UTF-8. */
export async function readContentBytes(content: Content): Promise<Buffer> {
  if ('text' in content) return Buffer.from(content.text)
  if ('bytes' in content) return Buffer.from(content.bytes.buffer, content.bytes.byteOffset, content.bytes.byteLength)
  const pieces: Uint8Array[] = []
  for await (const piece of content.stream) pieces.push(piece)
  return Buffer.concat(pieces)
}

export function withoutPayload(content: Content): ContentMetadata {
  const { text, bytes, stream, length, ...facts } = content as ContentMetadata & Readonly<Record<Payload, unknown>>
  return facts
}

type Payload = 'text' | 'bytes' | 'stream' | 'length'

function wholeFactsOf(content: Content): ContentMetadata {
  const { range, ...facts } = withoutPayload(content)
  return { ...facts, ...(range === undefined && { size: content.size ?? contentLength(content) }) }
}

/** Whether bytes of a resource are text, by its type and the bytes. They may begin or end within a character. */
export function isTextPart(bytes: Uint8Array, { mimeType = '' }: ContentMetadata): boolean {
  if (/^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:octet-stream|zip|gzip|pdf)$)/.test(mimeType))
    return false
  const { from, to } = wholeCharacters(bytes)
  return isText(bytes.subarray(from, to))
}

const chunkBytes = 8 * 1024 * 1024

/**
 * Reads a whole resource into one buffer (a text in UTF-8), in several reads if it is larger than one answer of its provider.
 *
 * @param limit Maximum size, in bytes.
 * @param tooLarge Returns the error for a larger resource, by its size if that is known.
 * @throws ResourceError `unavailable` if the resource changes during each of several attempts.
 */
export async function readWhole(
  provider: Provider,
  request: ReadRequest,
  limit: number,
  tooLarge: (size: number | undefined) => ResourceError,
  context: Context,
) {
  const once = async () => {
    const pieces: Buffer[] = []
    let length = 0
    let facts: ContentMetadata = {}
    for await (const chunk of chunksOf(
      provider,
      request,
      { start: 0, length: Math.min(chunkBytes, limit + 1) },
      context,
    )) {
      facts = chunk.facts
      length += chunk.bytes.length
      if (length > limit || (facts.size ?? 0) > limit) throw tooLarge(facts.size)
      pieces.push(chunk.bytes)
    }
    return { bytes: pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces), facts }
  }
  return readOneVersion(once)
}

const attempts = 6

/**
 * Repeats a read that failed because the resource changed meanwhile.
 *
 * @throws ResourceError `unavailable` if the resource changes during each of several attempts.
 */
export async function readOneVersion<T>(
  readOnce: () => Promise<T>,
  isChange: (error: unknown) => boolean = (error) => error instanceof ChangedError,
): Promise<T> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      return await readOnce()
    } catch (error) {
      if (!isChange(error)) throw error
    }
  }
  throw unavailable('The resource changes faster than it can be read. Try again later.')
}
