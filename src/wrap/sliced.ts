import { defined, requireProvider } from '../core/kit/object.ts'
import { isContinuation } from '../core/kit/utf8.ts'
import type { Content, ContentMetadata, Context, Params, Provider, ReadRequest, Template } from '../core/provider.ts'
import { createLineReader } from './lines.ts'
import {
  chunksOf,
  formatPart,
  invalidRangeError,
  isTextPart,
  type PartFacts,
  type PartRequest,
  partKey,
  readOneVersion,
} from './part.ts'

export interface SlicedOptions {
  /** Maximum size of a part, in bytes; the rest of a longer request is the next part. Default 1 MiB. */
  readonly maxBytes?: number
}

const template: Template = {
  template: '{+path}{?lines,bytes}',
  free: ['lines', 'bytes'],
  name: 'Part of a resource',
  title: 'Some lines or bytes of a resource',
  description:
    'lines=10-40 counts from 1, bytes=0-4095 from 0; both ends are included, and the last may be left out. ' +
    `\`_meta\` says under "${partKey}" which part it is, and how to ask for the next.`,
}

/**
 * Gives the resources of a provider parts: `?lines=10-40` (of a text, from 1) and `?bytes=0-4095` (from 0). A part of a text is text: byte
 * ranges are cut at character boundaries, and report their actual range. `meta` has the facts of the part, see {@link PartFacts}. Reads
 * throw ResourceError `invalid` (reason `range`) for a malformed range, a range that begins after the end, and lines of a resource that is
 * not text.
 */
export function sliced(provider: Provider, options: SlicedOptions = {}): Provider {
  requireProvider('sliced(provider, options)', provider)
  const limit = options.maxBytes ?? 1024 * 1024
  const readLines = createLineReader(provider, limit)

  const readAsked = async (request: ReadRequest, context: Context): Promise<readonly Content[]> => {
    const { part, others } = partIn(request.params)
    if (part === undefined) return provider.read(request, context)
    const whole = { path: request.path, params: others }
    const readPart = () =>
      part.unit === 'lines' ? readLines(part, whole, context) : readBytes(provider, part, whole, limit, context)
    return [await readOneVersion(readPart)]
  }

  return {
    ...provider,
    read: async (request, context) =>
      request.params.size === 0 ? provider.read(request, context) : readAsked(request, context),
    templates: async (context) => [...((await provider.templates?.(context)) ?? []), template],
  }
}

const example = {
  lines: 'lines=10-40 (from line 10 to line 40), lines=10- or lines=10',
  bytes: 'bytes=0-4095, bytes=4096- or bytes=0',
}

function partIn(params: Params): { readonly part: PartRequest | undefined; readonly others: Params } {
  const lines = params.get('lines')
  const bytes = params.get('bytes')
  if (lines === undefined && bytes === undefined) return { part: undefined, others: params }
  if (lines !== undefined && bytes !== undefined)
    throw invalidRangeError(`Ask for lines or bytes, not both: ?${example.lines} or ?${example.bytes}.`)
  const others = new Map(params)
  others.delete('lines')
  others.delete('bytes')
  const part = lines === undefined ? parsePartRange('bytes', bytes ?? '') : parsePartRange('lines', lines)
  return { part, others }
}

function parsePartRange(unit: 'lines' | 'bytes', text: string): PartRequest {
  const match = /^(\d{1,15})(-(\d{1,15})?)?$/.exec(text)
  const first = Number(match?.[1])
  const last = match?.[2] === undefined ? first : match[3] === undefined ? undefined : Number(match[3])
  if (match === null) throw invalidRangeError(`?${unit} must be a range, such as ?${example[unit]}.`)
  if (unit === 'lines' && first === 0) throw invalidRangeError(`The first line is 1. Write ?${example.lines}.`)
  if (last !== undefined && last < first)
    throw invalidRangeError(`The range of ${unit} ends before it begins. Write ?${example[unit]}.`)
  return { unit, first, last }
}

async function readBytes(
  provider: Provider,
  part: PartRequest,
  request: ReadRequest,
  limit: number,
  context: Context,
): Promise<Content> {
  const { first, last } = part
  const count = Math.min(last === undefined ? limit : last - first + 1, limit)
  // Three more bytes on either side show the borders of the characters at the ends.
  const from = Math.max(0, first - 3)
  const to = first + count + 3
  const pieces: Buffer[] = []
  let begin: number | undefined
  let end = 0
  let facts: ContentMetadata = {}
  for await (const chunk of chunksOf(provider, request, { start: from, length: to - from }, context)) {
    facts = chunk.facts
    end = chunk.start + chunk.bytes.length
    const skipped = Math.max(0, from - chunk.start)
    const piece = chunk.bytes.subarray(skipped, Math.max(skipped, to - chunk.start))
    if (piece.length > 0) {
      begin ??= chunk.start + skipped
      pieces.push(piece)
    }
    if (chunk.final && (end === 0 || begin !== undefined)) facts = { ...facts, size: facts.size ?? end }
    if (end >= to) break
  }
  const { size } = facts
  const [only, ...others] = pieces
  const result = only !== undefined && others.length === 0 ? only : Buffer.concat(pieces)
  const start = begin ?? from
  if (first > 0 && first >= Math.min(size ?? Number.POSITIVE_INFINITY, start + result.length))
    throw size === undefined
      ? invalidRangeError('The range begins after the end of the resource.')
      : invalidRangeError(`The range begins after the end of the resource, which has ${size} bytes.`, { size })

  const exact = { from: Math.max(0, first - start), to: Math.min(result.length, Math.max(0, first + count - start)) }
  const characters = cutCharacters(result, exact, start)
  const text = isTextPart(result, facts)
  const bounds = text ? characters : exact
  const behind = start + bounds.to
  const partFacts: PartFacts = {
    unit: 'bytes',
    first: start + bounds.from,
    last: behind - 1,
    ...defined({ size }),
    ...(size === undefined || behind < size ? { next: nextBytes(part, behind, count, size) } : {}),
  }
  const bytes = result.subarray(bounds.from, bounds.to)
  return {
    ...facts,
    range: { start: start + bounds.from, end: behind },
    meta: { ...facts.meta, [partKey]: partFacts },
    ...(text ? { text: bytes.toString('utf8') } : { bytes }),
  }
}

/** Returns the query of the next part: the rest of the request, or as many bytes again. */
function nextBytes({ last }: PartRequest, behind: number, count: number, size = Number.POSITIVE_INFINITY): string {
  if (last === undefined) return formatPart('bytes', behind, undefined)
  const rest = last - behind + 1
  // Up to three bytes may be left, because characters are not cut; they do not make a part.
  return formatPart('bytes', behind, Math.min(rest > 3 ? rest : count, size - behind))
}

/**
 * Returns the borders of the whole characters in a part of a text; if there are none, of the character that contains the part. `start`:
 * byte offset of `text` in the resource.
 */
function cutCharacters(text: Buffer, part: { readonly from: number; readonly to: number }, start: number) {
  let { from, to } = part
  if (from === 0 && start === 0 && text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf)
    from = Math.min(3, text.length)
  while (from < text.length && isContinuation(text, from)) from++
  while (to > from && to < text.length && isContinuation(text, to)) to--
  if (to > from || part.to === part.from) return { from, to: Math.max(from, to) }
  from = part.from
  while (from > 0 && isContinuation(text, from)) from--
  to = from + 1
  while (to < text.length && isContinuation(text, to)) to++
  return { from, to }
}
