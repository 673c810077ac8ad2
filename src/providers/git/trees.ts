import { isUtf8 } from 'node:buffer'
import { createSlices, type Slices, sortInSlices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { segmentFault } from '../../core/path.ts'
import type { BatchObject } from './batch.ts'
import { type Objects, wholeBytes } from './objects.ts'

/** The kinds of entries. A column stores their indices. */
const kinds: readonly TreeKind[] = ['file', 'directory', 'link', 'submodule']
const [file, directory, link, submodule] = [0, 1, 2, 3] as const
/** Minimum size of an entry without its id, in bytes: `40000 a` and a NUL. */
const fewestBytes = 8

/** The entries of a tree in typed arrays, unordered: the offset of each name in the bytes of the tree, and its kind. */
interface Columns {
  readonly bytes: Buffer
  readonly length: number
  readonly starts: Uint32Array
  readonly kinds: Uint8Array
}

/**
 * Parses a tree object: a sequence of `mode name NUL id`. The result keeps the bytes, and decodes entries on demand: a million objects would
 * burden the garbage collector.
 *
 * Trees are untrusted, so their order is checked, and some names are left out: those that no path can hold (`..`, with a slash, with a control
 * character, not UTF-8), `.git` in any letter case, and its alias on Windows. Of two entries with the same name the first is kept.
 */
export async function parseTree(oid: string, bytes: Buffer, idBytes: number, slices: Slices): Promise<GitTree> {
  const stored = await readColumns(bytes, idBytes, slices)
  const columns = await withoutTwins(await inPathOrder(stored, slices), slices)
  const nameAt = (index: number): string => {
    const start = columns.starts[index] ?? 0
    return bytes.toString('utf8', start, bytes.indexOf(0, start))
  }
  const kindAt = (index: number): TreeKind => kinds[columns.kinds[index] ?? file] ?? 'file'
  return {
    oid,
    length: columns.length,
    weight: bytes.length + 5 * columns.length + 200,
    keyAt: (index) => (columns.kinds[index] === directory ? `${nameAt(index)}/` : nameAt(index)),
    entryAt: (index): TreeEntry | undefined => {
      if (index < 0 || index >= columns.length) return undefined
      const end = bytes.indexOf(0, columns.starts[index] ?? 0) + 1
      return { name: nameAt(index), kind: kindAt(index), oid: bytes.toString('hex', end, end + idBytes) }
    },
    indexOf: (name, isDirectory) =>
      name.includes('\0') ? -1 : indexIn(columns, Buffer.from(`${name}\0`), 0, isDirectory),
  }
}

async function readColumns(bytes: Buffer, idBytes: number, slices: Slices): Promise<Columns> {
  const room = Math.ceil(bytes.length / (fewestBytes + idBytes))
  const columns = { bytes, starts: new Uint32Array(room), kinds: new Uint8Array(room) }
  let length = 0
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const nul = bytes.indexOf(0, space)
    const end = nul + 1 + idBytes
    if (space === -1 || nul === -1 || end > bytes.length) break
    const kind = kindOf(bytes, at, space)
    if (kind !== undefined && isServed(bytes, space + 1, nul)) {
      columns.starts[length] = space + 1
      columns.kinds[length] = kind
      length++
    }
    at = end
    if (slices.due()) await slices.rest()
  }
  return { ...columns, length }
}

/** Returns the entries in path order; the same object if git stored them so. */
async function inPathOrder(columns: Columns, slices: Slices): Promise<Columns> {
  let sorted = true
  for (let i = 1; i < columns.length && sorted; i++) {
    sorted = compareEntries(columns, i - 1, i) <= 0
    if (slices.due()) await slices.rest()
  }
  if (sorted) return columns
  const indices: number[] = []
  for (let i = 0; i < columns.length; i++) {
    indices.push(i)
    if (slices.due()) await slices.rest()
  }
  return select(columns, await sortInSlices(indices, (a, b) => compareEntries(columns, a, b), slices), slices)
}

/** Leaves out duplicate entries, and directories with the name of a file. */
async function withoutTwins(columns: Columns, slices: Slices): Promise<Columns> {
  const { bytes, length, starts } = columns
  const kept: number[] = []
  for (let i = 0; i < length; i++) {
    const isDirectory = columns.kinds[i] === directory
    const isTwin =
      (i > 0 && compareEntries(columns, i - 1, i) === 0) ||
      (isDirectory && indexIn(columns, bytes, starts[i] ?? 0, false) !== -1)
    if (!isTwin) kept.push(i)
    if (slices.due()) await slices.rest()
  }
  return kept.length === length ? columns : select(columns, kept, slices)
}

async function select(columns: Columns, indices: readonly number[], slices: Slices): Promise<Columns> {
  const starts = new Uint32Array(indices.length)
  const kindColumn = new Uint8Array(indices.length)
  for (const [position, index] of indices.entries()) {
    starts[position] = columns.starts[index] ?? 0
    kindColumn[position] = columns.kinds[index] ?? file
    if (slices.due()) await slices.rest()
  }
  return { bytes: columns.bytes, length: indices.length, starts, kinds: kindColumn }
}

function compareEntries({ bytes, starts, kinds: all }: Columns, i: number, j: number): number {
  return compareNames(bytes, starts[i] ?? 0, all[i] === directory, bytes, starts[j] ?? 0, all[j] === directory)
}

/** Compares two NUL-terminated names as parts of paths: a directory has a final `/`. */
function compareNames(a: Buffer, from: number, isDirA: boolean, b: Buffer, start: number, isDirB: boolean): number {
  for (let k = 0; ; k++) {
    const [x, y] = [a[from + k] ?? 0, b[start + k] ?? 0]
    if (x !== 0 && x === y) continue
    const [p, q] = [x === 0 ? endOf(isDirA) : x, y === 0 ? endOf(isDirB) : y]
    return p - q
  }
}

function endOf(isDirectory: boolean): number {
  return isDirectory ? 0x2f : -1
}

/** Binary search for a NUL-terminated name; -1 when it is missing. */
function indexIn(columns: Columns, name: Buffer, start: number, isDirectory: boolean): number {
  let [low, high] = [0, columns.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const isDir = columns.kinds[middle] === directory
    const order = compareNames(columns.bytes, columns.starts[middle] ?? 0, isDir, name, start, isDirectory)
    if (order === 0) return middle
    if (order < 0) low = middle + 1
    else high = middle
  }
  return -1
}

/** Returns the kind of a mode in octal digits; undefined for one that git does not write. */
function kindOf(bytes: Buffer, start: number, end: number): number | undefined {
  const length = end - start
  if (length !== 5 && length !== 6) return undefined
  let mode = 0
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > 7) return undefined
    mode = mode * 8 + digit
  }
  if (mode === 0o40000) return directory
  if (length === 5) return undefined
  if (mode === 0o120000) return link
  if (mode === 0o160000) return submodule
  return mode >> 9 === 0o100 ? file : undefined
}

/** Whether a name is served. Plain ASCII names need no decoding. */
function isServed(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start] ?? 0
  let plain = end > start && first !== 0x2e && first !== 0x67 && first !== 0x47
  for (let at = start; at < end && plain; at++) {
    const byte = bytes[at] ?? 0
    plain = byte >= 0x20 && byte < 0x7f && byte !== 0x2f
  }
  if (plain) return true
  const name = bytes.toString('utf8', start, end)
  // A replacement character comes from invalid UTF-8, unless the text itself contains one.
  if (name.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) return false
  return segmentFault(name) === undefined && !/^(?:\.git|git~1)$/i.test(name)
}

/** The kind of a tree entry: a file, a directory, a symbolic link, or the commit of a submodule. */
type TreeKind = 'file' | 'directory' | 'link' | 'submodule'

export interface TreeEntry {
  readonly name: string
  readonly kind: TreeKind
  readonly oid: string
}

/** One directory, as git stores it. */
export interface GitTree {
  readonly oid: string
  /** Number of entries, which are in path order, without duplicates. */
  readonly length: number
  /** Approximate memory use, in bytes. */
  readonly weight: number
  /** Returns the name of an entry; a directory's name ends in `/`. */
  keyAt(index: number): string
  entryAt(index: number): TreeEntry | undefined
  /** Returns the index of the directory, or of the other entry, with a name; -1 when there is none. */
  indexOf(name: string, isDirectory: boolean): number
}

/** Maximum size of a tree, in bytes (about a million names). */
const maxTreeBytes = 64 * 1024 * 1024
/**
 * Maximum total size of the cached trees in bytes, and maximum number of commits whose tree ids are cached. The newest tree is always cached.
 */
const maxRememberedBytes = 64 * 1024 * 1024
const maxRememberedNames = 10_000
/** Maximum depth, and maximum length of a path below a commit (in UTF-16 units), that is served. */
const maxDepth = 256
const maxPath = 4096

export function createTrees(objects: Objects, idBytes: number, heard?: (entries: number) => void) {
  const known = createRecent<GitTree>(maxRememberedBytes, ({ weight }) => weight)
  /** The ids of trees by the requested name: the id of a commit in the form `id^{tree}`. */
  const ids = createRecent<string>(maxRememberedNames)

  /** Single-flight: many concurrent calls read the same few trees. */
  const loading = new Map<string, Promise<GitTree>>()

  const load = async (name: string): Promise<GitTree> => {
    const object = await objects.read(name, maxTreeBytes)
    const tree = known.get(object.oid) ?? (await parseTree(object.oid, ownBytes(object), idBytes, createSlices(heard)))
    known.set(object.oid, tree)
    if (name !== object.oid) ids.set(name, object.oid)
    return tree
  }

  /** Reads a tree by its id, or by the id of a commit in the form `id^{tree}`. */
  const read = async (name: string): Promise<GitTree> => {
    const remembered = known.get(ids.get(name) ?? name)
    if (remembered !== undefined) return remembered
    const loaded = loading.get(name) ?? load(name).finally(() => loading.delete(name))
    loading.set(name, loaded)
    return loaded
  }

  return {
    read,
    /** Finds the entry at a path below a tree; undefined when there is none. The path is not empty, and has no final `/`. */
    find: async (name: string, path: string): Promise<TreeEntry | undefined> => {
      if (isTooDeep(path)) return undefined
      const segments = path.split('/')
      let at = name
      for (const [index, segment] of segments.entries()) {
        const entry = entryIn(await read(at), segment)
        if (entry === undefined || index === segments.length - 1) return entry
        if (entry.kind !== 'directory') return undefined
        at = entry.oid
      }
      return undefined
    },
  }
}

export type Trees = ReturnType<typeof createTrees>

/** Whether a path below a commit is too long or too deep to be served. */
export function isTooDeep(path: string): boolean {
  return path.length > maxPath || path.split('/').length > maxDepth
}

/** Copies the contents of an object if they are a small slice of a large chunk of output. */
function ownBytes(object: BatchObject): Buffer {
  const bytes = wholeBytes(object)
  return bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes
}

/** Returns the entry with a name, directory or not. */
function entryIn(tree: GitTree, name: string): TreeEntry | undefined {
  const index = tree.indexOf(name, false)
  return tree.entryAt(index === -1 ? tree.indexOf(name, true) : index)
}
