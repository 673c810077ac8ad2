import { invalid, ResourceError } from './errors.ts'
import type { ByteRange } from './provider.ts'

/**
 * Returns the requested range within a resource of `size` bytes, of which at most `limit` are read at once.
 *
 * @throws ResourceError `invalid` (reason `range`, with `size`) for a malformed range or one that begins after the end,
 * `too-large` (with `size` and `limit`) for one that is longer than the limit.
 */
export function rangeWithin(
  range: ByteRange | undefined,
  size: number,
  limit: number,
): { readonly start: number; readonly end: number } {
  const { start, end: wanted = size } = range ?? { start: 0 }
  const end = Math.min(wanted, size)
  if (![start, wanted].every(Number.isSafeInteger) || start < 0 || wanted < start)
    throw invalid('A range of bytes is two whole numbers, the first no larger than the second.', 'range', { size })
  if (start > 0 && start >= size)
    throw invalid(`The range begins behind the end: there are ${size} bytes.`, 'range', { size })
  if (end - start <= limit) return { start, end }
  const what = range === undefined ? 'The resource' : 'The range'
  throw new ResourceError(
    'too-large',
    `${what} has ${end - start} bytes, and at most ${limit} are read at once. ` +
      `Ask for a part of it: ?bytes=0-${limit - 1}, or ?lines=1-200 for text.`,
    { reason: 'too-large', size, limit },
  )
}
