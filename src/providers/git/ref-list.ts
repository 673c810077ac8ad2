import { isUtf8 } from 'node:buffer'
import { type ResourceError, unavailable } from '../../core/errors.ts'
import type { PathTest } from '../../core/glob.ts'
import { type Slices, sortInSlices } from '../../core/kit/breath.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { isPath } from '../../core/path.ts'
import type { HeldFile } from './folder.ts'

/**
 * A list of refs in typed arrays outside the JavaScript heap: a million refs are four buffers instead of millions of objects for the garbage
 * collector. Sorted by the bytes of `name/`, so that the refs below a directory of names are one range.
 */
export interface RefList {
  readonly length: number
  /** The concatenated names, each with a final `/`. */
  readonly names: Buffer
  /** The offset of each name in `names`, and finally the length of `names`. */
  readonly starts: Uint32Array
  /** The ids, `idBytes` bytes each. */
  readonly ids: Buffer
  readonly idBytes: number
  /** For each ref, whether it is served: 1 or 0. */
  readonly served: Uint8Array
}

/** Range of indices from `start` up to but not including `end`. */
export interface IndexRange {
  readonly start: number
  readonly end: number
}

export function nameAt({ names, starts }: RefList, index: number): string {
  return names.toString('utf8', starts[index], (starts[index + 1] ?? 0) - 1)
}

/** Returns the id of a ref in hexadecimal digits. */
export function oidAt({ ids, idBytes }: RefList, index: number): string {
  return ids.toString('hex', index * idBytes, (index + 1) * idBytes)
}

export function refAt(list: RefList, index: number): Ref {
  return { name: nameAt(list, index), oid: oidAt(list, index) }
}

/** Yields the refs of a list. Lets other work run between time slices. */
export async function* refsIn(list: RefList, slices: Slices): AsyncGenerator<Ref> {
  for (let i = 0; i < list.length; i++) {
    yield refAt(list, i)
    if (slices.due()) await slices.rest()
  }
}

/** Returns the index of the ref with a name; -1 when there is none. */
export function indexOfRef(list: RefList, name: string): number {
  const { start, end } = rangeBelow(list, `${name}/`)
  return start < end && (list.starts[start + 1] ?? 0) - (list.starts[start] ?? 0) === Buffer.byteLength(name) + 1
    ? start
    : -1
}

/** Binary search for the refs whose `name/` begins with a prefix, within a range of the list. */
export function rangeBelow(
  list: RefList,
  prefix: string,
  within: IndexRange = { start: 0, end: list.length },
): IndexRange {
  const key = Buffer.from(prefix)
  const start = firstIndex(within.start, within.end, (index) => comparePrefix(list, index, key) >= 0)
  return { start, end: firstIndex(start, within.end, (index) => comparePrefix(list, index, key) > 0) }
}

/** Returns 0 when `name/` begins with the key; negative when it sorts before all names that do, positive when it sorts after them. */
function comparePrefix({ names, starts }: RefList, index: number, key: Buffer): number {
  const start = starts[index] ?? 0
  const end = Math.min(starts[index + 1] ?? 0, start + key.length)
  const order = names.compare(key, 0, end - start, start, end)
  return order === 0 && end - start < key.length ? -1 : order
}

/** Compares the names of two refs by their bytes, each with a final `/`. */
export function compareRefs(a: RefList, i: number, b: RefList, j: number): number {
  return compareBytes(a.names, a.starts[i] ?? 0, a.starts[i + 1] ?? 0, b.names, b.starts[j] ?? 0, b.starts[j + 1] ?? 0)
}

/** Compares two ranges of bytes by a loop, which for short names is faster than `Buffer.compare` with its checks of arguments. */
function compareBytes(a: Buffer, from: number, to: number, b: Buffer, start: number, end: number): number {
  const length = Math.min(to - from, end - start)
  for (let k = 0; k < length; k++) {
    const difference = (a[from + k] as number) - (b[start + k] as number)
    if (difference !== 0) return difference
  }
  return to - from - (end - start)
}

export function isSameId(a: RefList, i: number, b: RefList, j: number): boolean {
  const [m, n] = [i * a.idBytes, j * b.idBytes]
  return a.idBytes === b.idBytes && compareBytes(a.ids, m, m + a.idBytes, b.ids, n, n + b.idBytes) === 0
}

/** Whether a ref has an id of zeros: it leads nowhere. */
export function isAtNothing({ ids, idBytes }: RefList, index: number): boolean {
  for (let k = index * idBytes; k < (index + 1) * idBytes; k++) if (ids[k] !== 0) return false
  return true
}

/** Whether a ref of the list has the object id. Compares the ids in time slices. */
export async function holdsId({ ids, idBytes, length }: RefList, oid: string, slices: Slices): Promise<boolean> {
  const id = Buffer.from(oid, 'hex')
  if (id.length !== idBytes) return false
  for (let i = 0; i < length; i++) {
    let k = 0
    while (k < idBytes && ids[i * idBytes + k] === id[k]) k++
    if (k === idBytes) return true
    if (slices.due()) await slices.rest()
  }
  return false
}

/** @param room Maximum number of refs, and of bytes of their names with a final `/` each. */
export function createRefListWriter(idBytes: number, room: { readonly refs: number; readonly bytes: number }) {
  // Unused room costs nothing: the system allocates a page of memory only when it is written.
  const names = Buffer.allocUnsafeSlow(room.bytes)
  const starts = new Uint32Array(room.refs + 1)
  const ids = Buffer.allocUnsafeSlow(room.refs * idBytes)
  const served = new Uint8Array(room.refs)
  let [length, at] = [0, 0]
  const next = (isServed: number) => {
    served[length] = isServed
    length++
    starts[length] = at
  }
  return {
    add: (name: string, oid: string, isServed: boolean): void => {
      ids.write(oid, length * idBytes, 'hex')
      at += names.write(name, at, 'utf8')
      names[at++] = 0x2f
      next(isServed ? 1 : 0)
    },
    /** Adds a ref of another list. */
    copy: (list: RefList, index: number): void => {
      list.ids.copy(ids, length * idBytes, index * idBytes, (index + 1) * idBytes)
      at += list.names.copy(names, at, list.starts[index], list.starts[index + 1])
      next(list.served[index] ?? 0)
    },
    /** Returns the list written so far. The writer must not be used afterwards. */
    finish: (): RefList => ({
      length,
      names: names.subarray(0, at),
      starts: starts.subarray(0, length + 1),
      ids: ids.subarray(0, length * idBytes),
      idBytes,
      served: served.subarray(0, length),
    }),
  }
}

/** A ref that is served, with the id of its object: a commit, or a tag that leads to one. */
export interface Ref {
  /** Full name of the ref: `refs/heads/main`. */
  readonly name: string
  readonly oid: string
}

/** Maximum size of the packed refs, in bytes, and maximum number of refs of any kind. */
const maxPackedBytes = 128 * 1024 * 1024
export const maxRefs = 1_000_000
/** Maximum length of a ref name, in bytes: longer refs are left out, because Linux has no longer paths (PATH_MAX). */
export const maxNameBytes = 4096
const bytesPerRead = 1024 * 1024

interface PackedFormat {
  /** Number of digits of an id. */
  readonly idLength: number
  readonly isId: (text: string) => boolean
  readonly serves: PathTest
}

/**
 * Parses a `packed-refs` file: lines of an id, a space and a name; lines that begin with `#` or `^` hold other data. Names that {@link
 * isServable} refuses are left out. Of two lines with the same name the last one is used.
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
  for (const [position, index] of order.entries()) {
    const next = order[position + 1]
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
  return unavailable('The repository has too many refs. Serve fewer: see the option "refs".')
}
