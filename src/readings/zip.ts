import { posix } from 'node:path'
import yauzl from 'yauzl'
import { tooMuch, unreadable } from './formats.ts'

/** A zip archive in memory, whose parts are read by name. Nothing is written to disk, so names cannot do harm. */
export interface Zip {
  has(name: string): boolean
  /** @throws ResourceError `invalid` for a part that is not there, is encrypted or damaged, `too-large` beyond the limit. */
  read(name: string): AsyncIterable<Buffer>
}

const maxEntries = 10_000

/**
 * Opens a zip archive.
 *
 * @param limit How much is unpacked of all its parts together, in bytes; what they say of their size is not relied upon.
 * @throws ResourceError `invalid` for what is no archive, `too-large` for one of more than 10,000 parts.
 */
export async function openZip(bytes: Uint8Array, limit: number): Promise<Zip> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // An encrypted document is in a container of the old format.
  if (buffer.subarray(0, 4).toString('hex') === 'd0cf11e0')
    throw unreadable(
      'The document is encrypted, or in the format of Office 97: save it without a password, in the format of today.',
      'encrypted',
    )
  const file = await open(buffer)
  const entries = await entriesOf(file)
  let left = limit

  return {
    has: (name) => entries.has(name),
    read: async function* (name) {
      const entry = entries.get(name)
      if (entry === undefined)
        throw unreadable(`The document is damaged: it has no part ${JSON.stringify(name.slice(0, 100))}.`, 'damaged')
      if ((entry.generalPurposeBitFlag & 1) !== 0)
        throw unreadable('The document is encrypted: save it without a password.', 'encrypted')
      if (entry.uncompressedSize > left) throw unpacksToTooMuch(limit)
      try {
        for await (const piece of await streamOf(file, entry)) {
          left -= piece.length
          if (left < 0) throw unpacksToTooMuch(limit)
          yield piece
        }
      } catch (error) {
        throw asDamage(error)
      }
    },
  }
}

function open(buffer: Buffer): Promise<yauzl.ZipFile> {
  return new Promise((resolve, reject) => {
    const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: true }
    yauzl.fromBuffer(buffer, options, (error, file) => (error === null ? resolve(file) : reject(asDamage(error))))
  })
}

function entriesOf(file: yauzl.ZipFile): Promise<ReadonlyMap<string, yauzl.Entry>> {
  return new Promise((resolve, reject) => {
    const entries = new Map<string, yauzl.Entry>()
    file.on('error', (error) => reject(asDamage(error)))
    file.on('end', () => resolve(entries))
    file.on('entry', (entry: yauzl.Entry) => {
      if (entries.size >= maxEntries) return reject(tooMuch(`The document has more than ${maxEntries} parts.`))
      // Undecoded, names are bytes; those of Office documents are ASCII.
      const name = String(entry.fileName).replaceAll('\\', '/')
      if (!entries.has(name)) entries.set(name, entry)
      file.readEntry()
    })
    file.readEntry()
  })
}

function streamOf(file: yauzl.ZipFile, entry: yauzl.Entry): Promise<AsyncIterable<Buffer>> {
  return new Promise((resolve, reject) => {
    file.openReadStream(entry, (error, stream) => (error === null ? resolve(stream) : reject(error)))
  })
}

function unpacksToTooMuch(limit: number): Error {
  return tooMuch(`The document unpacks to more than ${limit} bytes.`)
}

/** A failure of the library is one of the document. */
function asDamage(error: unknown): Error {
  if (error instanceof Error && error.name === 'ResourceError') return error
  return unreadable('The document is damaged: it is no valid zip archive.', 'damaged')
}

/** The name of a part that is the target of a relationship of another. */
export function targetOf(part: string, target: string): string {
  return posix.join('/', target.startsWith('/') ? '' : posix.dirname(part), target).slice(1)
}
