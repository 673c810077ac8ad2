import { invalid, ResourceError, tooLarge } from '../../core/errors.ts'
import { wholeCharacters } from '../../core/kit/utf8.ts'
import type { ByteRange, Content, ContentMetadata, Context, Provider, ReadRequest } from '../../core/provider.ts'
import { createPositionCache } from '../lines.ts'
import { ChangedError, chunksOf, isTextPart, readOneVersion } from '../part.ts'
import { type Cleaner, factsAfterRemoval, type ReadPiece } from './cleaner.ts'

/** Maximum number of bytes of the source that are scanned for one part. */
const maxScannedBytes = 64 * 1024 * 1024
/** Maximum size of a part, in bytes. */
const maxPartBytes = 16 * 1024 * 1024

/** Thrown for a source that has no ranges, or is not text. */
class WholeOnlyError extends Error {}

/**
 * Reads parts of texts without reading all of them: the text before a part is scanned once, and the positions of its windows are cached for
 * the version.
 */
export function createRangeReader(provider: Provider, cleaner: Cleaner) {
  const checkpoints = createPositionCache(0)

  const readRange = async (request: ReadRequest, range: ByteRange, context: Context): Promise<Content> => {
    const key = JSON.stringify([context.principal.id, request.path, [...request.params]])
    const from = checkpoints.before(key, range.start)
    const source = createPieceReader(provider, request, context, from.version)
    const part = createPart(range, from.index)
    let isTaken = false
    for await (const clean of cleaner.parts(request.path, source.read, from.at, context.signal)) {
      const facts = cleaner.facts(source.facts(), request.path)
      if (typeof clean === 'string') return cleaner.withhold(clean, request.path, facts)
      part.add(Buffer.from(clean.text))
      isTaken ||= clean.changed
      checkpoints.set(key, { version: source.facts().version, index: part.end(), at: clean.next })
      if (clean.final || part.full()) return part.content(factsAfterRemoval(facts, isTaken), clean.final)
      if (clean.next - from.at > maxScannedBytes) throw tooFar(part.end())
    }
    throw new ResourceError('internal', 'a text ended without its last part')
  }

  /** Reads a part of the redacted text, counted in its bytes. Resolves to undefined if the resource can only be read as a whole. */
  return (request: ReadRequest, range: ByteRange, context: Context): Promise<Content | undefined> =>
    readOneVersion(async () => {
      try {
        return await readRange(request, range, context)
      } catch (error) {
        if (error instanceof WholeOnlyError) return undefined
        if (error instanceof ChangedError)
          checkpoints.forget(JSON.stringify([context.principal.id, request.path, [...request.params]]))
        throw error
      }
    })
}

/** Reads the source in pieces of one version. Throws {@link ChangedError} for another, and {@link WholeOnlyError}. */
function createPieceReader(provider: Provider, request: ReadRequest, context: Context, version: string | undefined) {
  let facts: ContentMetadata = {}
  let expected = version
  const readPiece: ReadPiece = async (start, end) => {
    const pieces: Buffer[] = []
    let begin = start
    let length = 0
    for await (const chunk of chunksOf(provider, request, { start, length: end - start }, context)) {
      facts = chunk.facts
      if (expected !== undefined && facts.version !== expected) throw new ChangedError()
      expected = facts.version
      if (pieces.length === 0) {
        if (chunk.start < start || !isTextPart(chunk.bytes, facts)) throw new WholeOnlyError()
        begin = chunk.start
      }
      pieces.push(chunk.bytes)
      length += chunk.bytes.length
      // The source returned more than requested: the whole content at once.
      if (length > end - start) throw new WholeOnlyError()
      if (chunk.final || begin + length >= end - 3)
        return { bytes: Buffer.concat(pieces), start: begin, final: chunk.final }
    }
    return { bytes: Buffer.concat(pieces), start: begin, final: true }
  }
  return { read: readPiece, facts: () => facts }
}

function createPart({ start, end = Number.POSITIVE_INFINITY }: ByteRange, from: number) {
  const pieces: Buffer[] = []
  let at = from
  let length = 0
  return {
    add: (bytes: Buffer) => {
      const piece = bytes.subarray(Math.max(0, start - at), Math.max(0, end - at))
      pieces.push(piece)
      at += bytes.length
      length += piece.length
      if (length > maxPartBytes)
        throw tooLarge(`The range is longer than ${maxPartBytes} bytes. Ask for a shorter range.`, {
          limit: maxPartBytes,
        })
    },
    end: () => at,
    full: () => at >= end,
    content: (facts: ContentMetadata, final: boolean): Content => {
      if (final && start > 0 && start >= at)
        throw invalid(`The range begins after the end of the text, which has ${at} bytes.`, 'range', { size: at })
      const bytes = Buffer.concat(pieces)
      const characters = wholeCharacters(bytes)
      const metadata = final ? { ...facts, size: at } : facts
      // A range within one character is not text.
      if (characters.to <= characters.from && bytes.length > 0)
        return { ...metadata, range: { start, end: start + bytes.length }, bytes }
      return {
        ...metadata,
        range: { start: start + characters.from, end: start + characters.to },
        text: bytes.toString('utf8', characters.from, characters.to),
      }
    },
  }
}

function tooFar(place: number): ResourceError {
  return tooLarge(
    `The text before the range has not been searched for secrets yet. Ask for a part at byte ${place} first.`,
    { reason: 'range', place },
  )
}
