import { isResourceError, type ResourceError, tooLarge } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import { wholeCharacters } from '../core/kit/utf8.ts'
import type { Content, ContentMetadata, Context, Provider, ReadRequest, Template } from '../core/provider.ts'
import { byteOrderMarkOf, isBinaryType } from '../text/encoding/decode.ts'
import {
  ChangedError,
  chunksOf,
  invalidTailError,
  isTextPart,
  type PartFacts,
  partKey,
  readContentBytes,
  readOne,
  readOneVersion,
  type TailFacts,
  tailIn,
  tailKey,
  withoutPayload,
  withoutTail,
} from './part.ts'

export interface TailedOptions {
  /** Maximum size of an answer, in bytes. Default 1 MiB. */
  readonly maxBytes?: number
  /** How long after its last change a resource counts as still being written, in milliseconds. Default 3000. */
  readonly settleMs?: number
}

const template: Template = {
  template: '{+path}{?tail}',
  free: ['tail'],
  name: 'End of a text',
  title: 'The last lines of a text',
  description:
    'tail=200 is the last 200 lines of a text, such as a log. A last line that is just being written is left out; ' +
    `\`_meta\` says so under "${tailKey}".`,
}

/**
 * Lets clients read the last lines of the texts of a provider: `?tail=200` is the last 200 lines. If the provider can read ranges, the end
 * is read backwards. A last line without a newline may be incomplete. It is left out if the resource changed within the last `settleMs`
 * and has other lines. `meta` has {@link TailFacts}. Lines are found in the bytes, in any encoding that contains ASCII, and
 * in UTF-16 and UTF-32 with a byte order mark, so put `decoded` around this wrapper. Reads throw ResourceError `invalid` (reason
 * `parameter`) for a malformed number, and for a resource that is not text.
 */
export function tailed(provider: Provider, options: TailedOptions = {}): Provider {
  const limit = options.maxBytes ?? 1024 * 1024
  const settleMs = options.settleMs ?? 3000

  const isBeingWritten = async (path: string, context: Context): Promise<boolean> => {
    const modified = (await provider.stat?.(path, context))?.modified
    return modified !== undefined && Date.now() - modified < settleMs
  }

  const readTail = async (count: number, request: ReadRequest, context: Context): Promise<Content> => {
    const ending = await readEnding(provider, request, { count, limit }, context)
    const { bytes, newline } = ending
    const finished = behindNewline(bytes, bytes.length, newline)
    const isUnfinished = finished < bytes.length
    const isLeftOut = isUnfinished && finished > 0 && (await isBeingWritten(request.path, context))
    const unfinished = isUnfinished ? ({ unfinished: isLeftOut ? 'left-out' : 'shown' } as const) : {}
    return createTailContent(ending, count, isLeftOut ? finished : bytes.length, unfinished)
  }

  const readAsked = async (request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const count = tailIn(request.params)
    if (count === undefined) return provider.read(request, context)
    if (request.range !== undefined)
      throw invalidTailError('Ask for the last lines or a part, not both: leave out ?tail, or ?lines and ?bytes.')
    return [await readTail(count, withoutTail(request), context)]
  }

  return {
    ...provider,
    read: async (request, context) =>
      request.params.size === 0 ? provider.read(request, context) : readAsked(request, context),
    templates: async (context) => [...((await provider.templates?.(context)) ?? []), template],
  }
}

/** Creates the content of the last `count` lines before the index `to`. */
function createTailContent(
  ending: Ending,
  count: number,
  to: number,
  unfinished: Pick<TailFacts, 'unfinished'>,
): Content {
  const { bytes, start, facts, text, first, newline } = ending
  let from = to
  let lines = 0
  while (lines < count && from > 0) {
    const behind = behindNewline(bytes, from - newline.length, newline)
    if (behind === 0 && start > first && lines > 0) break
    from = behind
    lines++
  }
  if (isBinaryType(facts.mimeType) || (newline.length === 1 && bytes.subarray(from, to).includes(0)))
    throw invalidTailError('The resource is not text, so it has no lines. Write ?bytes=0-4095.')
  let headEnd = from
  if (from === 0 && start > first) {
    // In other encodings the borders of characters within a line are unknown.
    if (!isTextPart(bytes, facts)) throw lineTooLong(bytes.length)
    headEnd = wholeCharacters(bytes).from
  }
  const range = { start: start + headEnd, end: start + to }
  const part: PartFacts = {
    unit: 'bytes',
    first: range.start,
    last: range.end - 1,
    ...defined({ size: facts.size }),
    ...(to < bytes.length ? { next: `bytes=${range.end}-` } : {}),
  }
  const tailFacts: TailFacts = { lines, earlier: range.start > first, ...unfinished }
  const lastLines = bytes.subarray(headEnd, to)
  return {
    ...facts,
    range,
    meta: { ...facts.meta, [partKey]: part, [tailKey]: tailFacts },
    ...(text ? { text: lastLines.toString() } : { bytes: lastLines }),
  }
}

function lineTooLong(limit: number): ResourceError {
  return tooLarge(
    `The last line alone has more than ${limit} bytes, too many to be read at once. Ask for a part with ?bytes.`,
    { limit },
  )
}

interface Ending {
  readonly bytes: Buffer
  readonly start: number
  readonly facts: ContentMetadata
  /** Whether the bytes are text in UTF-8. */
  readonly text: boolean
  /** Byte offset of the first line in the resource. */
  readonly first: number
  readonly newline: Newline
}

type Newline = Buffer

const newlines = {
  'utf-8': Buffer.from('\n'),
  'utf-16le': Buffer.from([0x0a, 0x00]),
  'utf-16be': Buffer.from([0x00, 0x0a]),
  'utf-32le': Buffer.from([0x0a, 0x00, 0x00, 0x00]),
  'utf-32be': Buffer.from([0x00, 0x00, 0x00, 0x0a]),
} as const

const firstBytes = 64 * 1024
const several = () => invalidTailError('The resource has several contents, so it has no last lines. Leave out ?tail.')

/** Whether the resource was truncated or replaced while it was read. */
const isChange = (error: unknown) =>
  error instanceof ChangedError || (isResourceError(error, 'invalid') && error.detail.size !== undefined)

/** Reads the end of a resource: enough for `count` lines and one more, but at most `limit` bytes. */
async function readEnding(
  provider: Provider,
  request: ReadRequest,
  { count, limit }: { readonly count: number; readonly limit: number },
  context: Context,
): Promise<Ending> {
  const once = async (): Promise<Ending> => {
    const head = await readOne(provider, { ...request, range: { start: 0, end: 64 } }, context, several)
    const newline = newlines[byteOrderMarkOf(await readContentBytes(head)) ?? 'utf-8']
    const { range, size } = head
    if (range === undefined || size === undefined) return readThrough(provider, request, { newline, limit }, context)
    const first = newline.length === 1 ? range.start : newline.length
    return readBackwards(provider, request, { size, first, newline, count, limit }, context)
  }
  return readOneVersion(once, isChange)
}

interface TailRequest {
  readonly size: number
  readonly first: number
  readonly newline: Newline
  readonly count: number
  readonly limit: number
}

async function readBackwards(
  provider: Provider,
  request: ReadRequest,
  { size, first, newline, count, limit }: TailRequest,
  context: Context,
): Promise<Ending> {
  let most = limit
  for (let length = Math.min(firstBytes, most); ; length = Math.min(length * 4, most)) {
    const from = Math.max(0, size - length)
    let content: Content
    try {
      // Read again as a whole, so that the end is of one version.
      content = await readOne(
        provider,
        { ...request, range: { start: from - (from % newline.length), end: size } },
        context,
        several,
      )
    } catch (error) {
      // The provider may have a smaller limit, which its error names.
      const least = isResourceError(error, 'too-large') ? Number(error.detail.limit) : Number.NaN
      if (!(least > 0 && least < length)) throw error
      most = least - 1
      length = most / 4
      continue
    }
    if (content.range === undefined) throw new ChangedError()
    const bytes = await readContentBytes(content)
    const { start } = content.range
    if (start <= first || length >= most || hasLines(bytes, count, newline))
      return { bytes, start, facts: withoutPayload(content), text: 'text' in content, first, newline }
  }
}

/** Reads the whole resource and keeps its end, for a provider without ranges or without sizes. */
async function readThrough(
  provider: Provider,
  request: ReadRequest,
  { newline, limit }: Pick<TailRequest, 'newline' | 'limit'>,
  context: Context,
): Promise<Ending> {
  let bytes = Buffer.alloc(0)
  let start = 0
  let facts: ContentMetadata = {}
  for await (const chunk of chunksOf(provider, request, { start: 0, length: limit }, context)) {
    facts = chunk.facts
    const all = Buffer.concat([bytes, chunk.bytes])
    const over = Math.max(0, all.length - limit)
    bytes = all.subarray(Math.ceil(over / newline.length) * newline.length)
    start = chunk.start + chunk.bytes.length - bytes.length
  }
  facts = { ...facts, size: start + bytes.length }
  return { bytes, start, facts, text: isTextPart(bytes, facts), first: 0, newline }
}

function behindNewline(bytes: Buffer, before: number, newline: Newline): number {
  for (let at = before - newline.length; at >= 0; at--) {
    at = bytes.lastIndexOf(newline, at)
    if (at === -1) return 0
    if (at % newline.length === 0) return at + newline.length
  }
  return 0
}

function hasLines(bytes: Buffer, count: number, newline: Newline): boolean {
  let at = bytes.length
  for (let lines = 0; lines <= count; lines++) {
    if (at === 0) return false
    at = behindNewline(bytes, at - newline.length, newline)
  }
  return at > 0
}
