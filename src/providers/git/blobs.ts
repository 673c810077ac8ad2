import { notFound, unavailable } from '../../core/errors.ts'
import { headBytes, isText, wholeCharacters } from '../../core/kit/utf8.ts'
import type { ByteRange, Content } from '../../core/provider.ts'
import { mimeTypeFor } from '../files/media.ts'
import { rangeWithin } from '../files/read.ts'
import type { Launcher } from './launch.ts'
import type { Objects } from './objects.ts'
import type { TreeEntry } from './trees.ts'

interface BlobPart {
  readonly bytes: Buffer
  /** Offset of the first of the bytes in the file. */
  readonly start: number
  readonly head: Buffer
  readonly size: number
  /** Whether the file, or at least its head, is text. */
  readonly isText: boolean
}

/**
 * Creates a function that reads the content of a file, a link or a submodule. The content of a link is its target path, and the link is never
 * followed; the content of a submodule is the id of its commit. It throws `too-large` above the limit, `invalid` (reason `range`) for a range
 * that begins beyond the end, and `not-found` for an object that is not in the repository.
 */
export function createBlobReader(launcher: Launcher, objects: Objects, maxBytes: number) {
  const readPart = async (oid: string, range: ByteRange | undefined, signal: AbortSignal): Promise<BlobPart> => {
    const object = await objects.read(oid, maxBytes, range !== undefined)
    if (object.type !== 'blob') throw notFound('not a file')
    const { size, bytes } = object
    const { start, end } = rangeWithin(range, size, maxBytes)
    if (bytes !== undefined) {
      const head = bytes.subarray(0, headBytes)
      const isWhole = range === undefined
      return {
        bytes: bytes.subarray(start, end),
        start,
        head,
        size,
        isText: isWhole ? isText(bytes) : isText(head.subarray(0, wholeCharacters(head).to)),
      }
    }
    return readFar(launcher, oid, { start, end, size }, signal)
  }

  return async (
    { name, kind, oid }: TreeEntry,
    range: ByteRange | undefined,
    signal: AbortSignal,
  ): Promise<Content> => {
    if (kind === 'submodule') return submodule(oid)
    const part = await readPart(oid, range, signal)
    const text = textOf(part, range === undefined)
    const where = text ?? { start: part.start, end: part.start + part.bytes.length }
    const byName = { text: text !== undefined, head: part.head }
    return {
      version: oid,
      size: part.size,
      mimeType: kind === 'link' ? 'inode/symlink' : mimeTypeFor(name, byName),
      ...(range === undefined ? {} : { range: { start: where.start, end: where.end } }),
      ...(text === undefined ? { bytes: part.bytes } : { text: text.text }),
    }
  }
}

function submodule(oid: string): Content {
  return {
    text: `Submodule at commit ${oid}, whose files are in a repository of their own.\n`,
    version: oid,
    mimeType: 'text/plain',
  }
}

/** Reads a range of a file that is too large to hold: the bytes before its end are streamed through. */
async function readFar(
  launcher: Launcher,
  oid: string,
  { start, end, size }: { readonly start: number; readonly end: number; readonly size: number },
  signal: AbortSignal,
): Promise<BlobPart> {
  const head: Buffer[] = []
  const pieces: Buffer[] = []
  let at = 0
  await launcher.pipe({ args: ['cat-file', 'blob', '--end-of-options', oid], signal }, (chunk) => {
    if (at < headBytes) head.push(chunk.subarray(0, headBytes - at))
    if (at < end && at + chunk.length > start) pieces.push(chunk.subarray(Math.max(0, start - at), end - at))
    at += chunk.length
    return at < Math.max(end, headBytes)
  })
  const bytes = Buffer.concat(pieces)
  if (bytes.length !== end - start) throw unavailable('A file could not be read to its end.')
  const beginning = Buffer.concat(head)
  return { bytes, start, head: beginning, size, isText: isText(beginning.subarray(0, wholeCharacters(beginning).to)) }
}

/** Decodes a part as text, cut to whole characters; undefined when it is binary. */
function textOf({ bytes, start, isText: is }: BlobPart, whole: boolean) {
  const { from, to } = whole ? { from: 0, to: bytes.length } : wholeCharacters(bytes)
  const part = bytes.subarray(from, to)
  // A whole file was examined already.
  if (!is || !(whole || isText(part)) || (part.length === 0 && bytes.length > 0)) return undefined
  return { text: part.toString('utf8'), start: start + from, end: start + to }
}
