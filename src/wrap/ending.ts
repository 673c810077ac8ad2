import { isResourceError, ResourceError } from '../core/errors.ts'
import type { Content, ContentFacts, Context, Provider, ReadRequest } from '../core/provider.ts'
import { markOf } from '../text/encoding/utf16.ts'
import { changed, chunksOf, isTextPart } from './chunks.ts'
import { bytesOf, factsOf } from './content.ts'
import { badTail } from './tail.ts'

/** The last bytes of a resource, as one version of it had them. */
export interface Ending {
  readonly bytes: Buffer
  /** Byte offset of the bytes in the resource. */
  readonly start: number
  readonly facts: ContentFacts
  /** Whether the provider sees text in them. */
  readonly text: boolean
  /** Byte offset of the first line in the resource, after a byte order mark. */
  readonly first: number
  readonly newline: Newline
}

/** Bytes of a newline. In UTF-16 they are two bytes at an even offset. */
export type Newline = Buffer

const newlines = {
  'utf-8': Buffer.from('\n'),
  'utf-16le': Buffer.from([0x0a, 0x00]),
  'utf-16be': Buffer.from([0x00, 0x0a]),
} as const

/** How much is read first: enough for a few hundred lines of most logs. */
const firstBytes = 64 * 1024
const attempts = 6

/**
 * Reads the end of a resource: as much as has `count` lines in it, and one more, but at most `limit` bytes.
 *
 * @throws ResourceError `invalid` (reason `tail`) for a resource with several contents.
 */
export async function readEnding(
  provider: Provider,
  request: ReadRequest,
  { count, limit }: { readonly count: number; readonly limit: number },
  context: Context,
): Promise<Ending> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      const head = await readOne(provider, { ...request, range: { start: 0, end: 64 } }, context)
      const newline = newlines[markOf(await bytesOf(head)) ?? 'utf-8']
      const { range, size } = head
      if (range === undefined || size === undefined)
        return await readThrough(provider, request, { newline, limit }, context)
      const first = newline.length === 2 ? 2 : range.start
      return await readBackwards(provider, request, { size, first, newline, count, limit }, context)
    } catch (error) {
      // It was cut short, or another took its place.
      if (error !== changed && !(isResourceError(error, 'invalid') && error.detail.size !== undefined)) throw error
    }
  }
  throw new ResourceError('unavailable', 'A resource changes faster than its end can be read as one version.')
}

interface Wanted {
  readonly size: number
  readonly first: number
  readonly newline: Newline
  readonly count: number
  readonly limit: number
}

async function readBackwards(
  provider: Provider,
  request: ReadRequest,
  { size, first, newline, count, limit }: Wanted,
  context: Context,
): Promise<Ending> {
  let most = limit
  for (let length = Math.min(firstBytes, most); ; length = Math.min(length * 4, most)) {
    const from = Math.max(0, size - length)
    let content: Content
    try {
      // Each time all of it is read, so that it is of one version.
      content = await readOne(
        provider,
        { ...request, range: { start: from - (from % newline.length), end: size } },
        context,
      )
    } catch (error) {
      // The provider may have a smaller limit than this: it says so.
      const least = isResourceError(error, 'too-large') ? Number(error.detail.limit) : Number.NaN
      if (!(least > 0 && least < length)) throw error
      most = least - 1
      length = most / 4
      continue
    }
    if (content.range === undefined) throw changed
    const bytes = await bytesOf(content)
    const { start } = content.range
    if (start <= first || length >= most || hasLines(bytes, count, newline))
      return { bytes, start, facts: factsOf(content), text: 'text' in content, first, newline }
  }
}

/** Reads the whole resource and keeps its end. Used when the size is unknown, so that counting back is impossible. */
async function readThrough(
  provider: Provider,
  request: ReadRequest,
  { newline, limit }: Pick<Wanted, 'newline' | 'limit'>,
  context: Context,
): Promise<Ending> {
  let bytes = Buffer.alloc(0)
  let start = 0
  let facts: ContentFacts = {}
  for await (const chunk of chunksOf(provider, request, { start: 0, length: limit }, context)) {
    facts = chunk.facts
    const all = Buffer.concat([bytes, chunk.bytes])
    const over = Math.max(0, all.length - limit)
    bytes = all.subarray(over + (over % newline.length))
    start = chunk.start + chunk.bytes.length - bytes.length
  }
  facts = { ...facts, size: start + bytes.length }
  return { bytes, start, facts, text: isTextPart(bytes, facts), first: 0, newline }
}

async function readOne(provider: Provider, request: ReadRequest, context: Context): Promise<Content> {
  const [content, other] = await provider.read(request, context)
  if (content === undefined) throw new ResourceError('internal', 'a provider answered a read with nothing')
  if (other !== undefined) throw badTail('This resource has several contents: ask for it without ?tail.')
  return content
}

/** Returns the offset after the last newline before an index; 0 when there is none. */
export function behindNewline(bytes: Buffer, before: number, newline: Newline): number {
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
