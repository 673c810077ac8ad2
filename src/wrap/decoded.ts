import { isUtf8 } from 'node:buffer'
import { isResourceError, type ResourceError, tooLarge } from '../core/errors.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { wholeCharacters } from '../core/kit/utf8.ts'
import { metaKeys } from '../core/meta.ts'
import type { Content, ContentMetadata, Context, Provider, ReadRequest } from '../core/provider.ts'
import { decodeBytes, hasZeros, isDamagedUtf8, repairUtf8 } from '../text/encoding/decode.ts'
import {
  createEncodingDetector,
  detectionSampleBytes,
  type EncodingRule,
  languagesOf,
} from '../text/encoding/detect.ts'
import { readContentBytes, readWhole, withoutPayload, withoutPosition, withoutTail } from './part.ts'

export interface DecodedOptions {
  /** Encodings of files, which take precedence over detection, but not over valid UTF-8. */
  readonly rules?: readonly EncodingRule[]
  /** Language of most texts, as one or more language tags (`ja`, `zh-TW`, `ko`, `de`). It decides when the bytes are ambiguous. */
  readonly language?: string | readonly string[]
  /** The largest text in another encoding than UTF-8 that is decoded, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
}

/** The key in `_meta` of the stored encoding of a text, if it is not plain UTF-8. */
export const encodingKey = metaKeys.encoding

interface DetectedEncoding {
  readonly label: string | undefined
  readonly ascii: boolean
}

/** Maximum length of the cached texts, in characters. */
const keptCharacters = 32 * 1024 * 1024

/**
 * Serves text in other encodings than UTF-8 as text, with the encoding in `meta` ({@link encodingKey}). Bytes without a certain encoding
 * stay bytes. The size of an entry is that of the stored bytes; the size and the ranges of a content are those of its text in UTF-8. For a
 * range of a text in another encoding, the whole text is decoded: beyond `maxBytes` the range is `too-large`. In UTF-8, a byte outside of
 * any character is shown as `?`.
 *
 * @throws ResourceError `invalid` for a rule with a malformed glob or an unknown encoding.
 */
export function decoded(provider: Provider, options: DecodedOptions = {}): Provider {
  const judge = createEncodingDetector(options.rules ?? [], languagesOf(options.language))
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024
  const verdictOn = createVerdicts(provider, judge)
  const texts = createLruCache<Content & { readonly text: string }>(keptCharacters, ({ text }) => text.length)

  const textFrom = async (bytes: Uint8Array, label: string, facts: ContentMetadata, path: string, context: Context) => {
    const text =
      label === 'utf-8'
        ? repairUtf8(bytes)
            .toString()
            .replace(/^\ufeff/, '')
        : (decodeBytes(bytes, label) ?? '')
    const mimeType = await findTextMimeType(provider, path, facts.mimeType, context)
    return { ...facts, mimeType, meta: { ...facts.meta, [encodingKey]: label }, text }
  }

  const decodeWhole = async (content: Content, request: ReadRequest, context: Context): Promise<Content> => {
    if (hasPlainText(content)) return marked(content)
    if ('stream' in content && content.length > maxBytes) return content
    const path = content.path ?? request.path
    const bytes = await readContentBytes(content)
    const label = judge(bytes, path, content.mimeType)
    const facts = withoutPayload(content)
    // The encoding is that of a sample. The bytes after it may contain NUL.
    const isText = label !== undefined && (hasZeros(label) || !bytes.includes(0))
    if (!isText) return 'stream' in content ? { ...facts, bytes } : content
    if (label === 'utf-8' && 'text' in content) return content
    const decoded = await textFrom(bytes, label, facts, path, context)
    return { ...decoded, size: Buffer.byteLength(decoded.text) }
  }

  const decodeAll = async (
    part: ContentMetadata,
    request: ReadRequest,
    context: Context,
  ): Promise<Content | undefined> => {
    const key = versionCacheKey(part, request, context)
    const cachedText = key === undefined ? undefined : texts.get(key)
    if (cachedText !== undefined) return cachedText
    const { bytes, facts } = await readWhole(provider, request, maxBytes, tooLargeFor(maxBytes), context)
    const whole = await decodeWhole({ ...facts, bytes }, request, context)
    if (!('text' in whole)) return undefined
    const cacheKey = versionCacheKey(whole, request, context)
    if (cacheKey !== undefined) texts.set(cacheKey, whole)
    return whole
  }

  const decodeRange = async (part: Content, request: ReadRequest, context: Context): Promise<Content> => {
    const { label, ascii } = await verdictOn(part, request, context)
    if (label === undefined) return part
    if (label !== 'utf-8') return (await decodeAll(part, request, context)) ?? part
    if ('text' in part) return part
    const repaired = repairPart(await readContentBytes(part), withoutPayload(part), !ascii)
    if (repaired !== undefined)
      return { ...repaired, mimeType: await findTextMimeType(provider, request.path, part.mimeType, context) }
    // Most encodings can begin with ASCII text, so the whole text is needed.
    return (ascii ? await decodeAll(part, request, context) : undefined) ?? part
  }

  const decodeEnd = async (part: Content, request: ReadRequest, context: Context): Promise<Content> => {
    if ('text' in part && !part.text.includes('\x1b$')) return part
    const bytes = await readContentBytes(part)
    const verdict = await verdictOn(part, request, context)
    const label = verdict.ascii ? judge(bytes, request.path, part.mimeType) : verdict.label
    if (label === undefined) return part
    if (label !== 'utf-8') return textFrom(bytes, label, withoutPosition(withoutPayload(part)), request.path, context)
    if ('text' in part) return part
    const repaired = repairPart(bytes, withoutPayload(part), true)
    return repaired === undefined
      ? part
      : { ...repaired, mimeType: await findTextMimeType(provider, request.path, part.mimeType, context) }
  }

  const readRange = async (request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    try {
      const contents = await provider.read(request, context)
      const [part, other] = contents
      if (part === undefined || other !== undefined) return contents
      const decode = part.range === undefined ? decodeWhole : decodeRange
      return [await decode(part, request, context)]
    } catch (error) {
      if (!isResourceError(error, 'invalid') || error.detail.reason !== 'range') throw error
      // In UTF-8 a text can be longer than its stored bytes.
      const { range: _, ...whole } = request
      const [head] = await provider.read({ ...whole, range: { start: 0, end: detectionSampleBytes } }, context)
      const label = head?.range === undefined ? undefined : (await verdictOn(head, request, context)).label
      const all =
        head === undefined || label === undefined || label === 'utf-8'
          ? undefined
          : await decodeAll(head, whole, context)
      if (all === undefined) throw error
      return [all]
    }
  }

  return {
    ...provider,
    read: async (request, context) => {
      if (request.range !== undefined) return readRange(request, context)
      const contents = await provider.read(request, context)
      const decode = async (content: Content) => {
        if (content.range !== undefined) return decodeEnd(content, request, context)
        return hasPlainText(content) ? marked(content) : decodeWhole(content, request, context)
      }
      return Promise.all(contents.map(decode))
    },
  }
}

/** Whether a content is text, and not in ISO-2022-JP, whose bytes are ASCII: `ESC $` begins its Japanese characters. */
function hasPlainText(content: Content): boolean {
  return 'text' in content && !content.text.includes('\x1b$')
}

function versionCacheKey(
  { version }: ContentMetadata,
  request: ReadRequest,
  { principal }: Context,
): string | undefined {
  const { path, params } = withoutTail(request)
  return version === undefined ? undefined : JSON.stringify([principal.id, path, [...params], version])
}

/** Adds the encoding to a text that is three bytes shorter than its file, which begins with a byte order mark. */
function marked(content: Content): Content {
  if (!('text' in content)) return content
  const { size, range, text, meta } = content
  if (size === undefined || range !== undefined || size !== Buffer.byteLength(text) + 3) return content
  return { ...content, meta: { ...meta, [encodingKey]: 'utf-8' } }
}

/** Returns a part of a text in UTF-8, with `?` for damaged bytes; undefined if it is not in UTF-8. `sure`: the encoding is known. */
function repairPart(
  bytes: Buffer,
  facts: ContentMetadata,
  sure: boolean,
): (Content & { readonly text: string }) | undefined {
  const { from, to } = wholeCharacters(bytes)
  const part = bytes.subarray(from, to)
  const isUtf8Part = sure || isUtf8(part) || isDamagedUtf8(part)
  if (part.includes(0) || !isUtf8Part) return undefined
  const start = facts.range?.start ?? 0
  const mark = start === 0 && part[0] === 0xef && part[1] === 0xbb && part[2] === 0xbf ? 3 : 0
  const text = repairUtf8(part).toString('utf8', mark)
  return { ...facts, range: { start: start + from + mark, end: start + to }, text }
}

function tooLargeFor(limit: number): (size: number | undefined) => ResourceError {
  return (size) =>
    tooLarge(
      `The text is not in UTF-8, and at most ${limit} bytes of such a text are decoded. ` +
        'Read its end with ?tail=200, or convert it to UTF-8.',
      { limit, ...defined({ size }) },
    )
}

function createVerdicts(provider: Provider, judge: ReturnType<typeof createEncodingDetector>) {
  const verdicts = createLruCache<DetectedEncoding>(5000)

  return async (part: Content, request: ReadRequest, context: Context): Promise<DetectedEncoding> => {
    const key = versionCacheKey(part, request, context)
    const encoding = key === undefined ? undefined : verdicts.get(key)
    if (encoding !== undefined) return encoding
    const { range } = part
    const head =
      range?.start === 0 && range.end >= Math.min(detectionSampleBytes, part.size ?? detectionSampleBytes)
        ? part
        : (await provider.read({ ...withoutTail(request), range: { start: 0, end: detectionSampleBytes } }, context))[0]
    if (head === undefined) return { label: undefined, ascii: false }
    const bytes = (await readContentBytes(head)).subarray(0, detectionSampleBytes)
    const label = judge(bytes, request.path, head.mimeType)
    const verdict = { label, ascii: label === 'utf-8' && bytes.every((byte) => byte < 0x80) }
    if (key !== undefined && head.version === part.version) verdicts.set(key, verdict)
    return verdict
  }
}

async function findTextMimeType(
  provider: Provider,
  path: string,
  statedType: string | undefined,
  context: Context,
): Promise<string> {
  if (statedType !== undefined && statedType !== 'application/octet-stream') return statedType
  try {
    const mimeType = (await provider.stat?.(path, context))?.mimeType
    return mimeType === undefined || mimeType === 'application/octet-stream' ? 'text/plain' : mimeType
  } catch (error) {
    if (!isResourceError(error)) throw error
    return 'text/plain'
  }
}
