import { posix } from 'node:path'
import { Parser } from 'htmlparser2'
import yauzl from 'yauzl'
import { tooMuch, unreadable } from './formats.ts'

const maxEntries = 10_000

/**
 * Opens a zip archive in memory, whose parts are read by name. Nothing is written to disk, so names cannot do harm.
 *
 * @param limit Maximum size of all its unpacked parts together, in bytes. The sizes that the archive states are not trusted.
 * @throws ResourceError `invalid` for bytes that are no archive, `too-large` for one of more than 10,000 parts.
 */
export async function openZip(bytes: Uint8Array, limit: number) {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // An encrypted document is in a container of the old format.
  if (buffer.subarray(0, 4).toString('hex') === 'd0cf11e0')
    throw unreadable(
      'The document is encrypted, or in the format of Office 97: save it without a password, in a current format.',
      'encrypted',
    )
  const file = await open(buffer)
  const entries = await entriesOf(file)
  let left = limit

  return {
    has: (name: string): boolean => entries.has(name),
    /** @throws ResourceError `invalid` for a part that is missing, encrypted or damaged, `too-large` beyond the limit. */
    read: async function* (name: string) {
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

export type Zip = Awaited<ReturnType<typeof openZip>>

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

/** Any failure of the library counts as damage of the document. */
function asDamage(error: unknown): Error {
  if (error instanceof Error && error.name === 'ResourceError') return error
  return unreadable('The document is damaged: it is no valid zip archive.', 'damaged')
}

/** Returns the name of the part to which a relationship of another part refers. */
function targetOf(part: string, target: string): string {
  return posix.join('/', target.startsWith('/') ? '' : posix.dirname(part), target).slice(1)
}

export type Attributes = Readonly<Record<string, string>>

/** Handlers for the elements of an XML document. Names are local: `w:p` is `p`. Attributes have their local names and also
 *  their full names. */
interface XmlHandlers {
  readonly open?: (name: string, attributes: Attributes) => void
  readonly text?: (text: string) => void
  readonly close?: (name: string) => void
  /** Elements that are skipped, with everything in them. */
  readonly skip?: ReadonlySet<string>
}

const maxDepth = 1000

/**
 * Parses an XML document, piece by piece. No Office document has a document type definition, so a document with one is refused.
 * This excludes all entities except the five that need no definition.
 *
 * @throws ResourceError `invalid` for a definition, or elements nested deeper than 1000.
 */
export async function walkXml(pieces: AsyncIterable<Buffer>, handlers: XmlHandlers): Promise<void> {
  let depth = 0
  let skipped = 0
  const parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (++depth > maxDepth) throw unreadable('The document is nested too deep.', 'damaged')
        const local = localName(name)
        if (skipped > 0 || handlers.skip?.has(local) === true) skipped++
        else handlers.open?.(local, attributesOf(attributes))
      },
      ontext: (text) => {
        if (skipped === 0) handlers.text?.(text)
      },
      onclosetag: (name) => {
        depth--
        if (skipped > 0) skipped--
        else handlers.close?.(localName(name))
      },
      onprocessinginstruction: (name) => {
        if (name.startsWith('!'))
          throw unreadable('The document has a document type definition, as no Office document does.', 'damaged')
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  let decoder: InstanceType<typeof TextDecoder> | undefined
  for await (const piece of pieces) {
    // The parts of Office documents are in UTF-8, or in UTF-16 with a mark.
    decoder ??= new TextDecoder(piece[0] === 0xff ? 'utf-16le' : piece[0] === 0xfe ? 'utf-16be' : 'utf-8')
    parser.write(decoder.decode(piece, { stream: true }))
  }
  parser.end(decoder?.decode())
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

function attributesOf(attributes: Readonly<Record<string, string>>): Attributes {
  const found: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(attributes)) {
    found[name] = value
    found[localName(name)] ??= value
  }
  return found
}

/** A relationship of a part: its type, and the part or address that it points to. */
interface Relationship {
  readonly id: string
  /** The last word of its type: `slide`, `hyperlink`, `officeDocument`. */
  readonly type: string
  readonly target: string
}

/** The relationships of a part; those of the document itself are of the part `''`. */
export async function relationshipsOf(zip: Zip, part: string): Promise<readonly Relationship[]> {
  const slash = part.lastIndexOf('/') + 1
  const name = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
  if (!zip.has(name)) return []
  const found: Relationship[] = []
  await walkXml(zip.read(name), {
    open: (element, { Id = '', Type = '', Target = '', TargetMode }) => {
      if (element !== 'Relationship' || found.length >= 100_000) return
      const target = TargetMode === 'External' ? Target : targetOf(part, Target)
      found.push({ id: Id, type: Type.slice(Type.lastIndexOf('/') + 1), target })
    },
  })
  return found
}

/** The main part of an Office document. */
export async function mainPartOf(zip: Zip): Promise<string> {
  const main = (await relationshipsOf(zip, '')).find(({ type }) => type === 'officeDocument')
  if (main === undefined) throw unreadable('The document is damaged: it names no main part.', 'damaged')
  return main.target
}
