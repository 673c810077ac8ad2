import { isUtf8 } from 'node:buffer'
import { ResourceError } from '../../core/errors.ts'
import type { PathTest } from '../../core/glob.ts'
import { isPath } from '../../core/path.ts'
import type { HeldFile } from './folder.ts'
import { compareRefs, createRefListWriter, type RefList } from './ref-list.ts'
import { type Slices, sortInSlices } from './slices.ts'

/** Maximum size of the packed refs, in bytes, and maximum number of refs of any kind. */
const maxPackedBytes = 128 * 1024 * 1024
export const maxRefs = 1_000_000
/** Maximum length of a ref name, in bytes: longer refs are left out, because Linux has no longer paths (PATH_MAX). */
export const maxNameBytes = 4096
const bytesPerRead = 1024 * 1024

export interface PackedFormat {
  /** Number of digits of an id. */
  readonly idLength: number
  readonly isId: (text: string) => boolean
  readonly serves: PathTest
}

/**
 * Parses a `packed-refs` file: lines of an id, a space and a name; lines that begin with `#` or `^` hold other data. Names that {@link
 * isServable} refuses are left out. Of two lines with the same name the last one counts.
 *
 * @throws ResourceError `unavailable` for a file of more than 128 MiB, or of more than a million refs.
 */
export async function readPackedRefs(file: HeldFile, format: PackedFormat, slices: Slices): Promise<RefList> {
  if (file.stats.size > maxPackedBytes) throw tooManyRefs()
  const bytes = await readInParts(file, slices)
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    lines++
    if (slices.due()) await slices.rest()
  }
  if (lines > 2 * maxRefs + 1) throw tooManyRefs()
  return sorted(await parseLines(bytes, lines + 1, format, slices), slices)
}

async function readInParts(file: HeldFile, slices: Slices): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(Number(file.stats.size))
  let length = 0
  while (length < bytes.length) {
    const read = file.readPart(bytes, length, Math.min(bytesPerRead, bytes.length - length))
    if (read === 0) break
    length += read
    await slices.rest()
  }
  return bytes.subarray(0, length)
}

/** Returns the refs in the order of their lines. */
async function parseLines(
  bytes: Buffer,
  lines: number,
  { idLength, isId, serves }: PackedFormat,
  slices: Slices,
): Promise<RefList> {
  const room = { refs: Math.min(lines, maxRefs), bytes: bytes.length + 1 }
  const writer = createRefListWriter(idLength / 2, room)
  let count = 0
  for (let at = 0; at < bytes.length; ) {
    const newline = bytes.indexOf(0x0a, at)
    const end = newline === -1 ? bytes.length : newline
    const nameStart = at + idLength + 1
    if (end > nameStart && end - nameStart <= maxNameBytes && bytes[nameStart - 1] === 0x20) {
      const oid = bytes.toString('latin1', at, nameStart - 1)
      const name = bytes.toString('utf8', nameStart, end)
      const isText = !name.includes('\ufffd') || isUtf8(bytes.subarray(nameStart, end))
      if (isText && isId(oid) && isServable(name)) {
        if (++count > maxRefs) throw tooManyRefs()
        writer.add(name, oid, serves(name))
      }
    }
    at = end + 1
    if (slices.due()) await slices.rest()
  }
  return writer.finish()
}

/** Returns the refs in the order of their names. git writes nearly this order: it sorts names without a final `/`. */
async function sorted(list: RefList, slices: Slices): Promise<RefList> {
  let inOrder = true
  for (let i = 1; i < list.length && inOrder; i++) {
    inOrder = compareRefs(list, i - 1, list, i) < 0
    if (slices.due()) await slices.rest()
  }
  if (inOrder) return list
  const indices: number[] = []
  for (let i = 0; i < list.length; i++) {
    indices.push(i)
    if (slices.due()) await slices.rest()
  }
  const order = await sortInSlices(indices, (a, b) => compareRefs(list, a, list, b), slices)
  const writer = createRefListWriter(list.idBytes, { refs: list.length, bytes: list.names.length })
  for (const [place, index] of order.entries()) {
    const next = order[place + 1]
    if (next === undefined || compareRefs(list, index, list, next) !== 0) writer.copy(list, index)
    if (slices.due()) await slices.rest()
  }
  return writer.finish()
}

/** Whether a ref of this name can be served: valid in git, and valid as a path. */
export function isServable(name: string): boolean {
  return isRefName(name) && isPath(name)
}

/** Whether a text is a valid ref name: git-check-ref-format(1). */
export function isRefName(name: string): boolean {
  if (!name.startsWith('refs/') || name.endsWith('.') || name.includes('..') || name.includes('@{')) return false
  if (/[\p{Cc} ~^:?*[\\]/u.test(name)) return false
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'))
}

export function tooManyRefs(): ResourceError {
  return new ResourceError('unavailable', 'The repository has too many refs. Serve fewer: see the option "refs".')
}
