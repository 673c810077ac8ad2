import { ResourceError } from '../core/errors.ts'
import type { ContentFacts, Context, Provider, ReadRequest } from '../core/provider.ts'
import { ChangedError, chunksOf } from './chunks.ts'

/** A resource as one buffer; a text in UTF-8. */
interface Whole {
  readonly bytes: Buffer
  readonly facts: ContentFacts
}

/** Number of bytes read at a time. */
const chunkBytes = 8 * 1024 * 1024

/**
 * Reads a whole resource in one version, even if it is larger than one answer of its provider.
 *
 * @param tooLarge The error for a resource of more than `limit` bytes; `size` if it is known.
 * @throws ResourceError `unavailable` if it changes all the time.
 */
export async function readWhole(
  provider: Provider,
  request: ReadRequest,
  limit: number,
  tooLarge: (size: number | undefined) => ResourceError,
  context: Context,
): Promise<Whole> {
  const once = async (): Promise<Whole> => {
    const pieces: Buffer[] = []
    let length = 0
    let facts: ContentFacts = {}
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
  for (let attempt = 0; attempt < 4; attempt++) {
    try {
      return await once()
    } catch (error) {
      if (!(error instanceof ChangedError)) throw error
    }
  }
  throw new ResourceError('unavailable', 'A resource changes faster than it can be read as one version.')
}
