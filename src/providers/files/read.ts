import type { BigIntStats } from 'node:fs'
import { invalid, later, tooLarge, unavailable } from '../../core/errors.ts'
import { sleep } from '../../core/kit/abort.ts'
import { headBytes, isText, wholeCharacters } from '../../core/kit/utf8.ts'
import type { ByteRange, Context } from '../../core/provider.ts'
import type { ReadHandle } from './access.ts'
import { hasStamp, tickMs } from './stats.ts'

/** Bytes of one version of a file, with the stats of that version. */
interface Bytes {
  readonly bytes: Buffer
  /** Offset of the first of the bytes in the file. */
  readonly start: number
  /** The first bytes of the file. */
  readonly head: Buffer
  readonly stats: BigIntStats
}

const chunkBytes = 1024 * 1024
const attempts = 6

/**
 * Reads a file, or a range of it, as it was at one moment.
 *
 * A file that was written within the last tick of the clock may be in the middle of a write, and could change once more without a new time, so
 * the read waits for 20 ms first. Times and size are compared before and after; when they differ, the file is read again, with at most six
 * attempts. A file that only grows, like a log, is read up to its size when the read began. A file of which only `ctime` keeps changing, for
 * example by renames, is accepted when two reads are equal.
 *
 * @param limit Maximum number of bytes read.
 * @throws ResourceError `too-large` above the limit, `invalid` (reason `range`) for a range that begins beyond the end, `unavailable` for a
 * file that does not stop changing, {@link later} for more bytes than `most`.
 */
export async function readStable(
  handle: ReadHandle,
  range: ByteRange | undefined,
  limit: number,
  { signal, most = limit }: Pick<Context, 'signal' | 'most'>,
): Promise<Bytes> {
  let previous: Bytes | undefined
  for (let attempt = 0; attempt < attempts; attempt++) {
    // Stats from before the opening suffice, because the stats after the read must be the same.
    let stats = (attempt === 0 ? handle.found : undefined) ?? (await handle.stat(signal))
    let quiet = isQuiet(stats)
    if (!quiet) {
      await sleep(tickMs + 1, signal)
      signal.throwIfAborted()
      stats = await handle.stat(signal)
      quiet = isQuiet(stats)
    }
    const { start, end } = rangeWithin(range, Number(stats.size), limit)
    if (end - start > most) throw later(end - start)
    const read = await readPart(handle, start, end, range === undefined, signal)
    const hasHead = start === 0 && (range === undefined || read.length >= headBytes)
    const head = hasHead ? read.subarray(0, headBytes) : await readPart(handle, 0, headBytes, false, signal)
    const found: Bytes = { bytes: read.subarray(0, end - start), start, head, stats }
    const after = await handle.stat(signal)
    if (quiet && read.length === end - start && hasStamp(after, stats)) return found
    const complete = found.bytes.length === end - start
    if (complete && previous !== undefined && hasGrown(previous, found)) return found
    if (complete && previous !== undefined && isUntouched(previous, found, after)) return found
    previous = found
  }
  throw unavailable('A file changes faster than it can be read as one version.')
}

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
    throw invalid(`The range begins after the end. The size in bytes is ${size}.`, 'range', { size })
  if (end - start <= limit) return { start, end }
  const what = range === undefined ? 'The resource' : 'The range'
  throw tooLarge(
    `${what} has ${end - start} bytes, and at most ${limit} are read at once. ` +
      `Ask for a part of it: ?bytes=0-${limit - 1}, or ?lines=1-200 for text.`,
    { size, limit },
  )
}

/** Whether a file was only appended to between two reads, as far as the reads show. */
function hasGrown(before: Bytes, after: Bytes): boolean {
  if (after.stats.size <= before.stats.size || after.bytes.length < before.bytes.length) return false
  return after.bytes.subarray(0, before.bytes.length).equals(before.bytes)
}

/** Whether a file was only renamed or given other permissions between two reads, which changes only `ctime`. */
function isUntouched(before: Bytes, found: Bytes, after: BigIntStats): boolean {
  const { mtimeNs, size } = before.stats
  const same = [found.stats, after].every((stats) => stats.mtimeNs === mtimeNs && stats.size === size)
  return same && isQuiet(before.stats) && found.bytes.equals(before.bytes)
}

/**
 * Whether a file was last modified more than a tick of the clock ago. A modification time in the future is accepted, too, because
 * only a program can have set it.
 */
function isQuiet({ mtimeMs }: BigIntStats): boolean {
  return Math.abs(Date.now() - Number(mtimeMs)) > tickMs
}

/** @param beyond Whether to try to read one byte more: a file that grew is then longer than its size said. */
async function readPart(handle: ReadHandle, start: number, end: number, beyond: boolean, signal: AbortSignal) {
  const buffer = Buffer.allocUnsafe(end - start + (beyond ? 1 : 0))
  let length = 0
  while (length < buffer.length) {
    const part = { offset: length, length: Math.min(chunkBytes, buffer.length - length), position: start + length }
    const read = await handle.read(buffer, part, signal)
    length += read
    // A short read means the end of the file only if all expected bytes have been read; before that it is merely short.
    if (read === 0 || (read < part.length && length >= end - start)) break
  }
  return buffer.subarray(0, length)
}

/** A text without its byte order mark, with its byte range in the file. */
interface TextRange {
  readonly text: string
  readonly start: number
  readonly end: number
}

/**
 * Decodes bytes of a file as text; undefined when they are binary. A range is text only when the start of the file is too, and is then cut to
 * whole characters.
 */
export function textOf({ bytes, start, head }: Omit<Bytes, 'stats'>, whole: boolean): TextRange | undefined {
  const { from, to } = whole ? { from: 0, to: bytes.length } : wholeCharacters(bytes)
  const part = bytes.subarray(from, to)
  if (!isText(part) || (part.length === 0 && bytes.length > 0)) return undefined
  if (!whole && !isText(head.subarray(0, wholeCharacters(head).to))) return undefined
  const mark = start === 0 && part[0] === 0xef && part[1] === 0xbb && part[2] === 0xbf ? 3 : 0
  return { text: part.toString('utf8', mark), start: start + from + mark, end: start + to }
}
