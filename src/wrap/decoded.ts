import { invalid, isResourceError, ResourceError } from '../core/errors.ts'
import { compileGlobs } from '../core/glob.ts'
import type { Content, ContentFacts, Context, Provider, ReadRequest } from '../core/provider.ts'
import { wholeCharacters } from '../core/utf8.ts'
import { isBinary } from './encoding/binary.ts'
import { decodeBytes, labelOf } from './encoding/decode.ts'
import { detectEncoding, languageOf, sampleBytes } from './encoding/detect.ts'
import { isDamagedUtf8, repairUtf8 } from './encoding/utf8.ts'
import { partKey } from './part.ts'
import { createRecent } from './recent.ts'
import { readWhole } from './whole.ts'

/** Says which encoding texts are in. Of several rules for a path, the last one holds. */
export interface EncodingRule {
  /** One or more globs over paths. */
  readonly match: string | readonly string[]
  /** A label of the WHATWG Encoding Standard, such as `shift_jis`, or `cp932`; `binary` leaves bytes as they are. */
  readonly encoding: string
}

export interface DecodedOptions {
  /** What is in an encoding that is not found by itself. What is UTF-8 is read as that, whatever a rule says. */
  readonly rules?: readonly EncodingRule[]
  /** What most texts are written in, as a language tag (`ja`, `zh-TW`, `ko`, `de`): it decides where bytes leave it open. */
  readonly language?: string
  /** The largest text that is decoded, in bytes. Default 64 MiB. */
  readonly maxBytes?: number
}

/** The key in `_meta` of the encoding that a text is stored in, where it is not plain UTF-8. */
export const encodingKey = 'dev.hikidashi/encoding'

/** What is known of one version of a resource. `ascii`: nothing else was seen in its beginning. */
interface Verdict {
  readonly label: string | undefined
  readonly ascii: boolean
}

/**
 * Serves text in other encodings than UTF-8 as text, with the encoding in `meta` ({@link encodingKey}). Which it is tells
 * {@link detectEncoding}; where it cannot tell, and for what is no text, bytes stay bytes.
 *
 * The size of an entry is what the source stores; the size and range of a content in another encoding are those of the text
 * in UTF-8. Such a text is decoded as a whole, so a range of it is answered with all of it, and one larger than
 * `maxBytes` is `too-large`. What is in UTF-8 keeps its ranges, at any size; a byte in it that is part of no character is
 * shown as `?`.
 *
 * @throws ResourceError `invalid` for a rule with a malformed glob or an unknown encoding.
 */
export function decoded(provider: Provider, options: DecodedOptions = {}): Provider {
  const ruleFor = compileRules(options.rules ?? [])
  const language = languageOf(options.language)
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024
  const verdicts = createRecent<Verdict>(5000)
  const texts = createRecent<Content & { readonly text: string }>(32 * 1024 * 1024, ({ text }) => text.length)

  const judge = (bytes: Uint8Array, rule: string | undefined): string | undefined => {
    const found = detectEncoding(bytes, language)
    // UTF-8 proves itself; anything else is a guess, which a rule outdoes.
    if (rule === undefined || (found === 'utf-8' && rule !== 'iso-2022-jp')) return found
    return rule
  }

  const verdictOn = (bytes: Uint8Array, facts: ContentFacts, path: string): Verdict => {
    const rule = ruleFor(path)
    const label = rule === 'binary' || isBinary(bytes, facts.mimeType) ? undefined : judge(bytes, rule)
    return { label, ascii: label === 'utf-8' && bytes.every((byte) => byte < 0x80) }
  }

  /** The verdict on a resource, by its beginning; remembered for as long as the resource has this version. */
  const verdictOf = async (content: Content, request: ReadRequest, context: Context): Promise<Verdict> => {
    const key = keyOf(content, request, context)
    const known = key === undefined ? undefined : verdicts.get(key)
    if (known !== undefined) return known
    const { range, ...whole } = request
    const isHead = content.range?.start === 0 && content.range.end >= Math.min(sampleBytes, content.size ?? sampleBytes)
    const [head = content] = isHead
      ? [content]
      : await provider.read({ ...whole, params: new Map(), range: { start: 0, end: sampleBytes } }, context)
    const verdict = verdictOn((await bytesOf(head)).subarray(0, sampleBytes), head, request.path)
    if (key !== undefined && head.version === content.version) verdicts.set(key, verdict)
    return verdict
  }

  /** The type that the listing says, since a provider that sees no text says that it is none. */
  const textType = async (path: string, said: string | undefined, context: Context): Promise<string> => {
    if (said !== undefined && said !== 'application/octet-stream') return said
    try {
      const listed = (await provider.stat?.(path, context))?.mimeType
      return listed === undefined || listed === 'application/octet-stream' ? 'text/plain' : listed
    } catch (error) {
      if (!isResourceError(error)) throw error
      return 'text/plain'
    }
  }

  const textFrom = async (bytes: Uint8Array, label: string, facts: ContentFacts, path: string, context: Context) => {
    const text = label === 'utf-8' ? withoutMark(repairUtf8(bytes).toString()) : (decodeBytes(bytes, label) ?? '')
    const mimeType = await textType(path, facts.mimeType, context)
    return { ...facts, mimeType, size: Buffer.byteLength(text), meta: { ...facts.meta, [encodingKey]: label }, text }
  }

  const decodeWhole = async (content: Content, request: ReadRequest, context: Context): Promise<Content> => {
    const path = content.path ?? request.path
    if ('text' in content) {
      if (!content.text.includes('\x1b')) return withMark(content)
      const bytes = Buffer.from(content.text)
      const { label } = verdictOn(bytes, content, path)
      return label === undefined || label === 'utf-8' ? content : textFrom(bytes, label, content, path, context)
    }
    if ('stream' in content && content.length > maxBytes) return content
    const bytes = await bytesOf(content)
    const { label } = verdictOn(bytes, content, path)
    const { path: at, title, version, immutable, meta, mimeType } = content
    const facts = defined({ path: at, title, version, immutable, meta, mimeType })
    // What no text has can come after its beginning, too.
    if (label === undefined || (bytes.includes(0) && !label.startsWith('utf-16')))
      return 'stream' in content ? { ...facts, size: bytes.length, bytes } : content
    return textFrom(bytes, label, facts, path, context)
  }

  /** The whole text, instead of a part of it. */
  const decodeAll = async (content: ContentFacts, request: ReadRequest, context: Context): Promise<Content | undefined> => {
    const key = keyOf(content, request, context)
    const kept = key === undefined ? undefined : texts.get(key)
    if (kept !== undefined) return kept
    const { path, params } = request
    const { bytes, facts } = await readWhole(provider, { path, params }, maxBytes, tooLarge(maxBytes), context)
    const whole = await decodeWhole({ ...facts, bytes }, request, context)
    if (!('text' in whole)) return undefined
    const found = keyOf(whole, request, context)
    if (found !== undefined) texts.set(found, whole)
    return whole
  }

  const decodeRange = async (content: Content, request: ReadRequest, context: Context): Promise<Content> => {
    if (content.range === undefined) return decodeWhole(content, request, context)
    const verdict = await verdictOf(content, request, context)
    if (verdict.label === undefined) return content
    if (verdict.label !== 'utf-8') return (await decodeAll(content, request, context)) ?? content
    if (!('bytes' in content)) return content
    const repaired = repairPart(content, content.range.start)
    if (repaired !== undefined) return { ...repaired, mimeType: await textType(request.path, content.mimeType, context) }
    // The beginning was in ASCII, as that of any text can be.
    return (verdict.ascii ? await decodeAll(content, request, context) : undefined) ?? content
  }

  /** A part that was not asked for as a range of bytes, such as the last lines. */
  const decodePart = async (content: Content, request: ReadRequest, context: Context): Promise<Content> => {
    if ('stream' in content || ('text' in content && !content.text.includes('\x1b$'))) return content
    const bytes = await bytesOf(content)
    const { label: first, ascii } = await verdictOf(content, request, context)
    const label = ascii ? verdictOn(bytes, content, request.path).label : first
    if (label === undefined) return content
    if (label === 'utf-8') return ('bytes' in content && repairPart(content, content.range?.start ?? 0)) || content
    const { range, bytes: _, text: __, ...facts } = content as ContentFacts & { readonly bytes?: unknown; readonly text?: unknown }
    const { size, ...text } = await textFrom(bytes, label, { ...facts, meta: withoutPlaces(facts.meta) }, request.path, context)
    return text
  }

  const readRange = async (request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    let contents: readonly Content[]
    try {
      contents = await provider.read(request, context)
    } catch (error) {
      // In UTF-8 a text can be longer than it is stored.
      if (!isResourceError(error, 'invalid') || error.detail.reason !== 'range') throw error
      const [head] = await provider.read({ ...request, range: { start: 0, end: sampleBytes } }, context)
      if (head === undefined || head.range === undefined) throw error
      const { label } = await verdictOf(head, request, context)
      const all = label === undefined || label === 'utf-8' ? undefined : await decodeAll(head, request, context)
      if (all === undefined) throw error
      return [all]
    }
    const [content, other] = contents
    return content === undefined || other !== undefined ? contents : [await decodeRange(content, request, context)]
  }

  return {
    ...provider,
    read: async (request, context) => {
      if (ruleFor(request.path) === 'binary') return provider.read(request, context)
      if (request.range !== undefined) return readRange(request, context)
      const contents = await provider.read(request, context)
      const decode = (content: Content) =>
        content.range === undefined ? decodeWhole(content, request, context) : decodePart(content, request, context)
      return Promise.all(contents.map(decode))
    },
  }
}
