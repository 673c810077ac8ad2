import { tooLarge } from '../../core/errors.ts'
import { unreadableError } from '../formats.ts'

export interface Storage {
  readonly storages: readonly string[]
  /** Whether the folder has a stream of this name. */
  readonly has: (name: string) => boolean
  readonly storage: (name: string) => Storage | undefined
  /**
   * The bytes of a stream; `undefined` if the folder has no stream of this name.
   *
   * @throws ResourceError `invalid` for a damaged stream, `too-large` if the streams that were read have too many bytes together.
   */
  readonly stream: (name: string) => Buffer | undefined
}

const signature = 'd0cf11e0a1b11ae1'
const headerBytes = 512
const entryBytes = 128
const maxEntries = 200_000
/** Numbers from here on are not sectors. They mark the end of a chain, a free sector, or a sector of the table ([MS-CFB], 2.1). */
const noSector = 0xfffffffa

const damaged = (what: string) => unreadableError(`The document is damaged: ${what}.`)

/** Whether bytes begin as a compound file, which is a file system within a file. */
export function isCompoundFile(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 8)).toString('hex') === signature
}

export function openCompoundFile(bytes: Uint8Array, limit: number): Storage {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isCompoundFile(file) || file.length < headerBytes) throw damaged('it is not a compound file')
  const [shift, miniShift] = [file.readUInt16LE(30), file.readUInt16LE(32)]
  if (shift < 7 || shift > 16 || miniShift < 4 || miniShift >= shift)
    throw damaged('the size of its sectors is not valid')
  const sector = (number: number) => file.subarray((number + 1) << shift, (number + 2) << shift)
  const maxSectors = (file.length >> shift) + 1

  const table = numbersIn(tableSectors(file, sector, maxSectors).map(sector))
  const readChain = (start: number, size: number) =>
    Buffer.concat(chain(start, size, shift, table, maxSectors).map(sector))
  const directory = entriesIn(readChain(file.readUInt32LE(48), Number.POSITIVE_INFINITY))
  const [root] = directory
  if (root === undefined) throw damaged('it has no directory')
  const miniTable = numbersIn([readChain(file.readUInt32LE(60), Number.POSITIVE_INFINITY)])
  const miniSize = file.readUInt32LE(56)
  let miniStream: Buffer | undefined
  let remaining = limit

  const readStream = ({ start, size }: DirectoryEntry): Buffer => {
    remaining -= size
    if (size > file.length) throw damaged('a stream in it is cut off')
    if (remaining < 0) throw tooLarge(`The streams of the document have more than ${limit} bytes together.`)
    if (size >= miniSize) return takeBytes(readChain(start, size), size)
    miniStream ??= readChain(root.start, root.size)
    const numbers = chain(start, size, miniShift, miniTable, (miniStream.length >> miniShift) + 1)
    const all = miniStream
    return takeBytes(Buffer.concat(numbers.map((at) => all.subarray(at << miniShift, (at + 1) << miniShift))), size)
  }
  return storageOf(root, directory, readStream)
}

function takeBytes(stream: Buffer, size: number): Buffer {
  if (stream.length < size) throw damaged('a stream in it is cut off')
  return stream.subarray(0, size)
}

/** Returns the numbers of the sectors that hold the table of sectors: the header lists the first 109, a chain of sectors the others. */
function tableSectors(file: Buffer, sector: (number: number) => Buffer, maxSectors: number): readonly number[] {
  const sectors = Array.from({ length: 109 }, (_, index) => file.readUInt32LE(76 + index * 4))
  let next = file.readUInt32LE(68)
  for (let count = 0; next < noSector; count++) {
    if (count > maxSectors) throw damaged('its table of sectors forms a loop')
    const numbers = numbersIn([sector(next)])
    sectors.push(...numbers.subarray(0, -1))
    next = numbers.at(-1) ?? noSector
  }
  return sectors.filter((number) => number < maxSectors).slice(0, maxSectors)
}

function numbersIn(sectors: readonly Buffer[]): Uint32Array {
  const bytes = Buffer.concat(sectors)
  return Uint32Array.from({ length: bytes.length >> 2 }, (_, index) => bytes.readUInt32LE(index * 4))
}

/** Returns the numbers of the sectors of a stream of `size` bytes. */
function chain(start: number, size: number, shift: number, table: Uint32Array, most: number): readonly number[] {
  const numbers: number[] = []
  for (let at = start; at < noSector && numbers.length * 2 ** shift < size; at = table[at] ?? noSector) {
    if (numbers.length >= most) throw damaged('a chain of sectors forms a loop')
    numbers.push(at)
  }
  return numbers
}

interface DirectoryEntry {
  readonly name: string
  readonly kind: number
  readonly left: number
  readonly right: number
  readonly child: number
  readonly start: number
  readonly size: number
}

const [storageKind, streamKind] = [1, 2]

function entriesIn(directory: Buffer): readonly DirectoryEntry[] {
  if (directory.length > maxEntries * entryBytes) throw tooLarge(`The document has more than ${maxEntries} parts.`)
  return Array.from({ length: Math.floor(directory.length / entryBytes) }, (_, index) => {
    const entry = directory.subarray(index * entryBytes, (index + 1) * entryBytes)
    return {
      name: entry.toString('utf16le', 0, Math.max(0, Math.min(64, entry.readUInt16LE(64)) - 2)),
      kind: entry[66] ?? 0,
      left: entry.readUInt32LE(68),
      right: entry.readUInt32LE(72),
      child: entry.readUInt32LE(76),
      start: entry.readUInt32LE(116),
      size: entry.readUInt32LE(120),
    }
  })
}

function storageOf(
  { child }: DirectoryEntry,
  directory: readonly DirectoryEntry[],
  readStream: (entry: DirectoryEntry) => Buffer,
): Storage {
  // The entries of a storage are a binary tree.
  const numbers = new Set<number>()
  const open = [child]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const entry = directory[at]
    if (entry === undefined || numbers.has(at)) continue
    numbers.add(at)
    open.push(entry.left, entry.right)
  }
  const entries = [...numbers].sort((a, b) => a - b).flatMap((number) => directory[number] ?? [])
  const find = (kind: number, name: string) =>
    entries.find((entry) => entry.kind === kind && entry.name.toLowerCase() === name.toLowerCase())
  return {
    storages: entries.filter(({ kind }) => kind === storageKind).map(({ name }) => name),
    has: (name) => find(streamKind, name) !== undefined,
    storage: (name) => {
      const entry = find(storageKind, name)
      return entry === undefined ? undefined : storageOf(entry, directory, readStream)
    },
    stream: (name) => {
      const entry = find(streamKind, name)
      return entry === undefined ? undefined : readStream(entry)
    },
  }
}
