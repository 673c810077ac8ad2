import { isResourceError } from '../core/errors.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { beforeNul, headBytes, isTextHead, wholeCharacters } from '../core/kit/utf8.ts'
import type { Content, ContentMetadata, Context, Provider, ReadRequest } from '../core/provider.ts'
import {
  ChangedError,
  type Chunk,
  chunksOf,
  formatPart,
  invalidRangeError,
  isTextPart,
  type PartFacts,
  type PartRequest,
  partKey,
} from './part.ts'

const chunkBytes = 256 * 1024
const newline = 0x0a

interface Gathered {
  readonly pieces: Buffer[]
  length: number
  /** Length of the whole lines at the beginning of the gathered bytes. */
  whole: number
  /** Number of whole lines. */
  lines: number
}

/**
 * Reads lines by counting newlines from the beginning of the resource, or from a cached position of the same version. A line includes its
 * `\n`.
 *
 * @param limit Maximum number of bytes of an answer. A line longer than this is cut, and its rest is the next part, in bytes.
 */
export function createLineReader(provider: Provider, limit: number) {
  const marks = createPositionCache(1)

  return async (part: PartRequest, request: ReadRequest, context: Context): Promise<Content> => {
    const key = JSON.stringify([context.principal.id, request.path, [...request.params]])
    const mark = marks.before(key, part.first)
    const scan: Scan = {
      line: mark.index,
      at: mark.at,
      begins: mark.at,
      start: undefined,
      full: false,
      ended: false,
      cut: false,
    }
    const gathered: Gathered = { pieces: [], length: 0, whole: 0, lines: 0 }
    let facts: ContentMetadata = {}
    try {
      for await (const chunk of chunksOf(provider, request, { start: mark.at, length: chunkBytes }, context)) {
        const bytes = beforeNul(chunk.bytes)
        const isCut = bytes.length < chunk.bytes.length
        facts = isCut ? withTextType(chunk.facts) : chunk.facts
        // A cached position is valid for one version only.
        if (mark.version !== undefined && facts.version !== mark.version) throw new ChangedError()
        if (!isTextPart(bytes, facts) || (chunk.start === 0 && !isTextHead(chunk.bytes.subarray(0, headBytes))))
          throw invalidRangeError('The resource is not text, so it has no lines. Write ?bytes=0-4095.')
        scanChunk(scan, isCut ? { ...chunk, bytes, final: false } : chunk, gathered, part, limit)
        scan.cut = isCut && scan.at === chunk.start + bytes.length
        const { line, begins } = scan
        if (begins > 0 && !scan.ended) marks.set(key, { version: facts.version, index: line, at: begins })
        if (isCut || scan.full || scan.ended || line > (part.last ?? Number.POSITIVE_INFINITY)) break
      }
    } catch (error) {
      if (mark.at === 0) throw error
      // The resource has become shorter, or is no longer text: count its lines again.
      marks.forget(key)
      throw isResourceError(error, 'invalid') ? new ChangedError() : error
    }
    return createLinesContent(scan, gathered, facts, part)
  }
}

/** Returns the facts of the text before a NUL. The type of the resource with the NUL is not that of a text. */
function withTextType(facts: ContentMetadata): ContentMetadata {
  return facts.mimeType === 'application/octet-stream' ? { ...facts, mimeType: 'text/plain' } : facts
}

interface Scan {
  /** Number of the line that contains the position `at`, from 1. */
  line: number
  /** Byte offset in the resource. */
  at: number
  /** Byte offset at which the line begins. */
  begins: number
  /** Byte offset of the first requested line; undefined until it is reached. */
  start: number | undefined
  /** Whether the limit was reached before the end of the requested lines. */
  full: boolean
  ended: boolean
  /** Whether the text ends here, at a NUL. */
  cut: boolean
}

function scanChunk(scan: Scan, chunk: Chunk, gathered: Gathered, { first, last }: PartRequest, limit: number): void {
  const bytes = chunk.bytes.subarray(Math.max(0, scan.at - chunk.start))
  // The first chunk begins after a byte order mark if the source leaves it out.
  if (scan.begins === scan.at) scan.begins = Math.max(scan.at, chunk.start)
  scan.at = Math.max(scan.at, chunk.start)
  const from = scan.at
  for (let position = 0; position < bytes.length && scan.line <= (last ?? Number.POSITIVE_INFINITY); ) {
    const end = bytes.indexOf(newline, position)
    const next = end === -1 ? bytes.length : end + 1
    if (scan.line >= first) {
      scan.start ??= scan.at
      scan.full = !addLinePiece(gathered, bytes.subarray(position, next), limit, end !== -1)
      if (scan.full) return
    }
    position = next
    scan.at = from + position
    if (end === -1) break
    scan.line++
    scan.begins = scan.at
  }
  scan.ended = chunk.final && scan.at === from + bytes.length
}

/** Adds a piece of a line. Returns false at the limit. */
function addLinePiece(gathered: Gathered, piece: Buffer, limit: number, ends: boolean): boolean {
  const fits = gathered.length + piece.length <= limit
  if (!fits && gathered.lines > 0) return false
  const bytes = fits ? piece : piece.subarray(0, limit - gathered.length)
  gathered.pieces.push(bytes)
  gathered.length += bytes.length
  if (fits && ends) {
    gathered.whole = gathered.length
    gathered.lines++
  }
  return fits
}

function createLinesContent(
  scan: Scan,
  gathered: Gathered,
  facts: ContentMetadata,
  { first, last }: PartRequest,
): Content {
  const { line, at, begins, ended, full, cut, start = at } = scan
  const size = facts.size ?? (ended ? at : undefined)
  // A last line without a newline is a line too.
  const total = ended ? line - 1 + (at > begins ? 1 : 0) : undefined
  if (total !== undefined && first > Math.max(1, total))
    throw invalidRangeError(`The range begins after the end of the text, which has ${total} lines.`, { lines: total })

  if (cut && gathered.pieces.length === 0)
    throw invalidRangeError(
      `Only the first ${at} bytes of the resource are text, and the range begins after them. Write ?bytes=${at}-${at + 4095}.`,
    )
  const all = Buffer.concat(gathered.pieces)
  const longLine = full && gathered.lines === 0
  const end = longLine ? Math.max(1, wholeCharacters(all).to) : full ? gathered.whole : all.length
  const bytes = all.subarray(0, end)
  const lineCount = gathered.lines + (gathered.whole < end ? 1 : 0)
  const behind = first + lineCount
  const count = last === undefined ? undefined : behind <= last ? last - behind + 1 : last - first + 1
  const next = longLine || cut ? formatPart('bytes', start + end, undefined) : formatPart('lines', behind, count)
  const more = !ended && (size === undefined || start + end < size)
  const partFacts: PartFacts = {
    unit: 'lines',
    first,
    last: behind - 1,
    ...defined({ size, lines: total }),
    ...(more ? { next } : {}),
  }
  const mark = start === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  return {
    ...facts,
    range: { start: start + mark, end: start + end },
    meta: { ...facts.meta, [partKey]: partFacts },
    text: bytes.toString('utf8', mark),
  }
}

/** Position of a line, or of a part of the redacted text, in one version of a resource. */
interface LinePosition {
  readonly version: string | undefined
  /** Number of the line, or byte offset in the redacted text. */
  readonly index: number
  /** Byte offset in the source. */
  readonly at: number
}

const maxResources = 200
const maxPositions = 1024

/** Caches positions, so that reading a resource part after part does not begin at its beginning each time. */
export function createPositionCache(first: number) {
  const resources = createLruCache<LinePosition[]>(maxResources)
  return {
    /** Returns the nearest known position at or before an index; without one, the beginning. */
    before: (key: string, index: number): LinePosition =>
      resources.get(key)?.findLast((position) => position.index <= index) ?? {
        version: undefined,
        index: first,
        at: 0,
      },
    set: (key: string, position: LinePosition): void => {
      if (position.version === undefined) return
      const positions = resources.get(key) ?? []
      const same = positions[0]?.version === position.version ? positions : []
      if ((same.at(-1)?.index ?? first) < position.index) same.push(position)
      // Drop every second position.
      resources.set(key, same.length > maxPositions ? same.filter((_, i) => i % 2 === 1) : same)
    },
    forget: resources.delete,
  }
}
