import { isUtf8 } from 'node:buffer'
import { type ResourceError, unavailable } from '../../core/errors.ts'
import { type Slices, sortInSlices } from '../../core/kit/breath.ts'
import { firstIndex } from '../../core/kit/sorted.ts'
import { isPath } from '../../core/path.ts'

/** The format of `git for-each-ref` that a {@link RefList} is read from. */
export const refFormat = '%(objectname) %(refname)/'

/**
 * A list of refs, in the bytes that git wrote: a million refs are two buffers instead of millions of objects for the garbage collector. Sorted
 * by the bytes of `name/`, so that the refs below a directory of names are one range.
 */
export interface RefList {
  readonly length: number
  /** Lines of {@link refFormat}, of these refs and of others. */
  readonly bytes: Buffer
  /** The offset of the line of each ref. */
  readonly starts: Uint32Array
  /** Number of digits of an id. */
  readonly idLength: number
}

/** Range of indices from `start` up to but not including `end`. */
export interface IndexRange {
  readonly start: number
  readonly end: number
}

/** A ref that is served, with the id of its object: a commit, or a tag that leads to one. */
export interface Ref {
  /** Full name of the ref: `refs/heads/main`. */
  readonly name: string
  readonly oid: string
}

const [lineFeed, slash] = [0x0a, 0x2f]
const maxRefs = 1_000_000
/** Maximum length of a ref name, in bytes: longer refs are left out, because Linux has no longer paths (PATH_MAX). */
export const maxNameBytes = 4096

/** Returns the offset of `name/` of a ref. A line feed follows it. */
export function nameStart({ starts, idLength }: RefList, index: number): number {
  return (starts[index] ?? 0) + idLength + 1
}

export function nameAt(list: RefList, index: number): string {
  const start = nameStart(list, index)
  return list.bytes.toString('utf8', start, list.bytes.indexOf(lineFeed, start) - 1)
}

/** Returns the id of a ref in hexadecimal digits. */
export function oidAt({ bytes, starts, idLength }: RefList, index: number): string {
  return bytes.toString('latin1', starts[index], (starts[index] ?? 0) + idLength)
}

export function refAt(list: RefList, index: number): Ref {
  return { name: nameAt(list, index), oid: oidAt(list, index) }
}

/** Whether the `name/` of a ref is a text, and not only begins with it. */
export function isKey(list: RefList, index: number, key: string): boolean {
  return list.bytes[nameStart(list, index) + Buffer.byteLength(key)] === lineFeed
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
  return start < end && isKey(list, start, `${name}/`) ? start : -1
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
export function comparePrefix(list: RefList, index: number, key: Uint8Array): number {
  const start = nameStart(list, index)
  for (let k = 0; k < key.length; k++) {
    const difference = (list.bytes[start + k] ?? 0) - (key[k] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Compares the names of two refs by their bytes, each with a final `/`. */
export function compareRefs(a: RefList, i: number, b: RefList, j: number): number {
  const [from, start] = [nameStart(a, i), nameStart(b, j)]
  for (let k = 0; ; k++) {
    const [x, y] = [a.bytes[from + k] ?? lineFeed, b.bytes[start + k] ?? lineFeed]
    // No byte of a name is smaller than a line feed.
    if (x !== y || x === lineFeed) return x - y
  }
}

export function isSameId(a: RefList, i: number, b: RefList, j: number): boolean {
  const [from, start] = [a.starts[i] ?? 0, b.starts[j] ?? 0]
  return a.idLength === b.idLength && a.bytes.compare(b.bytes, start, start + b.idLength, from, from + a.idLength) === 0
}

/** Whether a ref of the list has the object id. Compares the ids in time slices. */
export async function holdsId(
  { bytes, starts, idLength, length }: RefList,
  oid: string,
  slices: Slices,
): Promise<boolean> {
  const id = Buffer.from(oid)
  if (id.length !== idLength) return false
  for (let i = 0; i < length; i++) {
    const start = starts[i] ?? 0
    let k = 0
    while (k < idLength && bytes[start + k] === id[k]) k++
    if (k === idLength) return true
    if (slices.due()) await slices.rest()
  }
  return false
}

/**
 * Parses lines of {@link refFormat}. Names that no path can hold, or that `keeps` refuses, are left out.
 *
 * @throws ResourceError `unavailable` for more than a million refs.
 */
export async function parseRefs(
  bytes: Buffer,
  idLength: number,
  keeps: (name: string) => boolean,
  slices: Slices,
): Promise<RefList> {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) {
    lines++
    if (slices.due()) await slices.rest()
  }
  if (lines > maxRefs) throw tooManyRefs()
  const starts = new Uint32Array(lines)
  let length = 0
  for (let at = 0, end = bytes.indexOf(lineFeed); end !== -1; at = end + 1, end = bytes.indexOf(lineFeed, at)) {
    const start = at + idLength + 1
    const name = bytes.toString('utf8', start, end - 1)
    const isText = !name.includes('\ufffd') || isUtf8(bytes.subarray(start, end))
    if (isText && end - start <= maxNameBytes + 1 && isServable(name) && keeps(name)) starts[length++] = at
    if (slices.due()) await slices.rest()
  }
  return inOrder({ length, bytes, starts: starts.subarray(0, length), idLength }, slices)
}

/** Sorts a list by `name/`. git has nearly this order: it sorts names without a final `/`. */
async function inOrder(list: RefList, slices: Slices): Promise<RefList> {
  let isSorted = true
  for (let i = 1; i < list.length && isSorted; i++) {
    isSorted = compareRefs(list, i - 1, list, i) < 0
    if (slices.due()) await slices.rest()
  }
  if (isSorted) return list
  const indices: number[] = []
  for (let i = 0; i < list.length; i++) {
    indices.push(i)
    if (slices.due()) await slices.rest()
  }
  const order = await sortInSlices(indices, (a, b) => compareRefs(list, a, list, b), slices)
  const starts = new Uint32Array(list.length)
  for (const [position, index] of order.entries()) {
    starts[position] = list.starts[index] ?? 0
    if (slices.due()) await slices.rest()
  }
  return { ...list, starts }
}

/** Returns the end of the child of a directory of names that a ref is in: the offset after its `/`. */
export function childEnd(list: RefList, index: number, prefixLength: number): number {
  return list.bytes.indexOf(slash, nameStart(list, index) + prefixLength) + 1
}

/** Whether a ref of this name can be served: valid in git, and valid as a path. */
export function isServable(name: string): boolean {
  return isRefName(name) && isPath(name)
}

/** Whether a text is a valid ref name: git-check-ref-format(1). */
function isRefName(name: string): boolean {
  if (!name.startsWith('refs/') || name.endsWith('.') || name.includes('..') || name.includes('@{')) return false
  if (/[\p{Cc} ~^:?*[\\]/u.test(name)) return false
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'))
}

export function tooManyRefs(): ResourceError {
  return unavailable('The repository has too many refs. Serve fewer: see the option "refs".')
}
