import { posix } from 'node:path'
import { Parser } from 'htmlparser2'
import yauzl from 'yauzl'
import { isResourceError, tooLarge } from '../core/errors.ts'
import { unreadableError } from './formats.ts'

const maxEntries = 10_000

/**
 * Opens a zip archive in memory, whose parts are read by name.
 *
 * @param limit Maximum number of bytes that the reads together may unpack. The sizes that the archive states are not trusted.
 * @throws ResourceError `invalid` for bytes that are not an archive or are encrypted, `too-large` for more than 10,000 parts.
 */
export async function openZip(bytes: Uint8Array, limit: number) {
  const buffer = archiveIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  // Encrypted documents are compound files, as documents of Office 97 are.
  if (buffer.subarray(0, 4).toString('hex') === 'd0cf11e0')
    throw unreadableError(
      'The document is encrypted, or in the format of Office 97: save it without a password, in a current format.',
      'withheld',
    )
  const { file, entries } = await openArchive(buffer).catch((error: Error) => {
    const repaired = isResourceError(error, 'invalid') ? withNewDirectory(buffer) : undefined
    if (repaired === undefined) throw error
    return openArchive(repaired)
  })
  let remaining = limit

  return {
    has: (name: string): boolean => entries.has(normalizePartName(name)),
    /** @throws ResourceError `invalid` for a part that is missing, encrypted or damaged, `too-large` beyond the limit. */
    read: async function* (name: string) {
      const entry = entries.get(normalizePartName(name))
      if (entry === undefined)
        throw unreadableError(`The document is damaged: it has no part ${JSON.stringify(name.slice(0, 100))}.`)
      if ((entry.generalPurposeBitFlag & 1) !== 0)
        throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
      if (entry.uncompressedSize > remaining) throw unpacksToTooMuch(limit)
      try {
        for await (const piece of await streamOf(file, entry)) {
          remaining -= piece.length
          if (remaining < 0) throw unpacksToTooMuch(limit)
          yield piece
        }
      } catch (error) {
        throw asDamage(error)
      }
    },
  }
}

export type Zip = Awaited<ReturnType<typeof openZip>>

async function openArchive(buffer: Buffer) {
  const file = await open(buffer)
  return { file, entries: await readZipEntries(file) }
}

function open(buffer: Buffer): Promise<yauzl.ZipFile> {
  return new Promise((resolve, reject) => {
    const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: true }
    yauzl.fromBuffer(buffer, options, (error, file) => (error === null ? resolve(file) : reject(asDamage(error))))
  })
}

function readZipEntries(file: yauzl.ZipFile): Promise<ReadonlyMap<string, yauzl.Entry>> {
  return new Promise((resolve, reject) => {
    const entries = new Map<string, yauzl.Entry>()
    file.on('error', (error) => reject(asDamage(error)))
    file.on('end', () => resolve(entries))
    file.on('entry', (entry: yauzl.Entry) => {
      if (entries.size >= maxEntries) return reject(tooLarge(`The document has more than ${maxEntries} parts.`))
      const name = normalizePartName(String(entry.fileName))
      if (!entries.has(name)) entries.set(name, entry)
      file.readEntry()
    })
    file.readEntry()
  })
}

/**
 * Returns the name of a part in the form in which names are compared: without regard to case and to percent-encoding (ECMA-376, part 2,
 * section 6.2.2).
 */
export function normalizePartName(name: string): string {
  const plain = name.replaceAll('\\', '/').replace(/^\/+/, '').toLowerCase()
  try {
    return decodeURIComponent(plain)
  } catch {
    return plain
  }
}

const [endRecord, centralRecord, localRecord, sizesRecord] = ['PK\x05\x06', 'PK\x01\x02', 'PK\x03\x04', 'PK\x07\x08']
const endRecordBytes = 22

/** Returns the archive without bytes that stand before and after it, such as a line end or padding. */
function archiveIn(buffer: Buffer): Buffer {
  for (let at = buffer.length; at > 0; ) {
    at = buffer.lastIndexOf(endRecord, at - 1, 'latin1')
    if (at === -1 || at + endRecordBytes > buffer.length) continue
    const [size, offset] = [buffer.readUInt32LE(at + 12), buffer.readUInt32LE(at + 16)]
    const end = at + endRecordBytes + buffer.readUInt16LE(at + 20)
    // An archive in the 64-bit format (ZIP64) states its directory elsewhere, and sets all bits of this offset.
    if (offset === 0xffffffff) return buffer.subarray(0, end)
    const isDirectoryAt = (place: number) =>
      place >= 0 && (size === 0 || buffer.toString('latin1', place, place + 4) === centralRecord)
    if (isDirectoryAt(offset)) return buffer.subarray(0, end)
    const before = at - size - offset
    if (before > 0 && isDirectoryAt(offset + before)) return buffer.subarray(before, end)
  }
  return buffer
}

/**
 * Returns an archive whose damaged directory is replaced by a new one, made from the headers of its parts. Undefined if parts may be
 * missing.
 */
function withNewDirectory(buffer: Buffer): Buffer | undefined {
  const last = buffer.lastIndexOf(endRecord, undefined, 'latin1')
  if (last === -1 || last + endRecordBytes > buffer.length) return undefined
  const records: Buffer[] = []
  let at = buffer.indexOf(localRecord, 0, 'latin1')
  while (at !== -1 && at + localBytes <= buffer.length && records.length <= maxEntries) {
    const [nameBytes, extraBytes] = [buffer.readUInt16LE(at + 26), buffer.readUInt16LE(at + 28)]
    const start = at + localBytes + nameBytes + extraBytes
    const sizes = sizesAt(buffer, at, start)
    if (sizes === undefined) return undefined
    const record = Buffer.alloc(centralBytes)
    record.write(centralRecord, 'latin1')
    buffer.copy(record, 6, at + 4, at + 14)
    sizes.copy(record, 16)
    record.writeUInt16LE(nameBytes, 28)
    record.writeUInt32LE(at, 42)
    records.push(record, buffer.subarray(at + localBytes, at + localBytes + nameBytes))
    at = buffer.indexOf(localRecord, start + sizes.readUInt32LE(4), 'latin1')
  }
  const directory = Buffer.concat(records)
  const end = Buffer.alloc(endRecordBytes)
  end.write(endRecord, 'latin1')
  end.writeUInt16LE(records.length / 2, 8)
  end.writeUInt16LE(records.length / 2, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(buffer.length, 16)
  return records.length === 0 ? undefined : Buffer.concat([buffer, directory, end])
}

/** Lengths of the two headers of a part, without its name, in bytes: the header before its data, and the header in the directory. */
const [localBytes, centralBytes] = [30, 46]

/** Returns the checksum and the sizes of a part, from its header or from a record after its data; `undefined` if that record is missing. */
function sizesAt(buffer: Buffer, header: number, start: number): Buffer | undefined {
  if ((buffer.readUInt16LE(header + 6) & 8) === 0) return buffer.subarray(header + 14, header + 26)
  let at = buffer.indexOf(sizesRecord, start, 'latin1')
  while (at !== -1 && at + 16 <= buffer.length) {
    if (buffer.readUInt32LE(at + 8) === at - start) return buffer.subarray(at + 4, at + 16)
    at = buffer.indexOf(sizesRecord, at + 1, 'latin1')
  }
  return undefined
}

function streamOf(file: yauzl.ZipFile, entry: yauzl.Entry): Promise<AsyncIterable<Buffer>> {
  return new Promise((resolve, reject) => {
    file.openReadStream(entry, (error, stream) => (error === null ? resolve(stream) : reject(error)))
  })
}

function unpacksToTooMuch(limit: number): Error {
  return tooLarge(`The document unpacks to more than ${limit} bytes.`)
}

/** Converts an error of the library: each counts as damage of the document. A ResourceError stays as it is. */
function asDamage(error: unknown): Error {
  if (error instanceof Error && error.name === 'ResourceError') return error
  return unreadableError('The document is damaged: it is not a valid zip archive.')
}

/** Returns the name of the part to which a reference in another part leads. */
export function resolvePartName(part: string, target: string): string {
  const path = target.replaceAll('\\', '/').replace(/#.*$/s, '')
  return posix.join('/', path.startsWith('/') ? '' : posix.dirname(part), path).slice(1)
}

export type Attributes = Readonly<Record<string, string>>

/**
 * Handlers for the elements of an XML document. An element is named with the usual prefix of its namespace: `w:p`, `x:row`. In an unknown
 * namespace, the prefix is `?`. An attribute has a prefix only if its namespace differs from that of its element: `val` of `w:pStyle`, but
 * `r:id`.
 */
interface XmlHandlers {
  readonly open?: (name: string, attributes: Attributes) => void
  readonly text?: (text: string) => void
  readonly close?: (name: string) => void
  /** Elements that are skipped, with everything in them. */
  readonly skip?: ReadonlySet<string>
  /** Whether a document type definition is ignored, with the entities that it declares. If not, it is an error. */
  readonly allowsDefinition?: boolean
}

/** The usual prefixes of namespaces. The names are without host and year, which differ between editions and in strict documents. */
const prefixes: Readonly<Record<string, string>> = {
  'wordprocessingml/main': 'w',
  'spreadsheetml/main': 'x',
  'presentationml/main': 'p',
  'drawingml/main': 'a',
  'drawingml/wordprocessingDrawing': 'wp',
  'officeDocument/math': 'm',
  'officeDocument/relationships': 'r',
  'package/relationships': 'rel',
  'markup-compatibility': 'mc',
}

/** A namespace of OpenDocument, such as `urn:oasis:names:tc:opendocument:xmlns:table:1.0`. Its prefix is the word in it, or in {@link openPrefixes}. */
const openDocument = /^urn:oasis:names:tc:opendocument:xmlns:([a-z-]+):[\d.]+$/
const openPrefixes: ReadonlyMap<string, string> = new Map([
  ['drawing', 'draw'],
  ['http://www.w3.org/1999/xlink', 'xlink'],
])

function prefixOf(namespace: string): string {
  const open = openDocument.exec(namespace)?.[1]
  const openPrefix = openPrefixes.get(open ?? namespace) ?? open
  if (openPrefix !== undefined) return openPrefix
  const [, name = ''] =
    /^https?:\/\/(?:schemas\.openxmlformats\.org|purl\.oclc\.org\/ooxml)\/(.*)$/.exec(namespace) ?? []
  const plain = name.replace(/\/\d+(?=\/|$)/g, '').replace(/\/$/, '')
  return Object.hasOwn(prefixes, plain) ? (prefixes[plain] ?? '?') : '?'
}

/** Whether alternatives that require a namespace are preferred to their fallback: if it has a usual prefix, or is one of Microsoft. */
function isUnderstood(namespace: string | undefined): boolean {
  return (
    namespace !== undefined &&
    (prefixOf(namespace) !== '?' || /^(?:https?:\/\/schemas|urn:schemas-)[.-]?microsoft/.test(namespace))
  )
}

type Namespaces = Readonly<Record<string, string>>

const maxDepth = 1000

/**
 * Parses an XML document, piece by piece. A document with a document type definition is refused unless the handlers allow it. Of the
 * alternatives of an `mc:AlternateContent`, only the first that is understood is read.
 *
 * @throws ResourceError `invalid` for a definition, or elements nested deeper than 1000.
 */
export async function walkXml(pieces: AsyncIterable<Buffer>, handlers: XmlHandlers): Promise<void> {
  const elements: { readonly name: string; readonly namespaces: Namespaces; hasChoice: boolean }[] = []
  let skipped = 0

  const isSkipped = (name: string, attributes: Attributes, namespaces: Namespaces): boolean => {
    if (handlers.skip?.has(name) === true) return true
    if (name !== 'mc:Choice' && name !== 'mc:Fallback') return false
    const alternatives = elements.at(-1)
    if (alternatives === undefined) return false
    const required = (attributes.Requires ?? '').split(/\s+/).filter((prefix) => prefix !== '')
    const isChosen =
      !alternatives.hasChoice &&
      (name === 'mc:Fallback' ||
        required.every((prefix) => (prefix in namespaces ? isUnderstood(namespaces[prefix]) : true)))
    alternatives.hasChoice ||= isChosen
    return !isChosen
  }

  const parser = new Parser(
    {
      onopentag: (elementName, attributes) => {
        if (elements.length >= maxDepth) throw unreadableError('The document is nested too deeply.')
        const namespaces = namespacesIn(attributes, elements.at(-1)?.namespaces ?? Object.create(null))
        const name = withUsualPrefix(elementName, namespaces)
        const own = attributesOf(attributes, name, namespaces)
        if (skipped > 0 || isSkipped(name, own, namespaces)) skipped++
        else handlers.open?.(name, own)
        elements.push({ name, namespaces, hasChoice: false })
      },
      ontext: (text) => {
        if (skipped === 0) handlers.text?.(text)
      },
      onclosetag: () => {
        const name = elements.pop()?.name ?? ''
        if (skipped > 0) skipped--
        else handlers.close?.(name)
      },
      onprocessinginstruction: (name) => {
        if (name.startsWith('!') && handlers.allowsDefinition !== true)
          throw unreadableError(
            'The document is damaged: it has a document type definition, which Office documents never have.',
          )
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  let decoder: InstanceType<typeof TextDecoder> | undefined
  for await (const piece of pieces) {
    // The parts of Office documents are in UTF-8, or in UTF-16 with a byte order mark.
    decoder ??= new TextDecoder(piece[0] === 0xff ? 'utf-16le' : piece[0] === 0xfe ? 'utf-16be' : 'utf-8')
    parser.write(decoder.decode(piece, { stream: true }))
  }
  parser.end(decoder?.decode())
}

function namespacesIn(attributes: Attributes, outer: Namespaces): Namespaces {
  const declared = Object.entries(attributes).filter(([name]) => name === 'xmlns' || name.startsWith('xmlns:'))
  if (declared.length === 0) return outer
  // The namespaces of the parent are in the prototype, because a copy for each element would take too long.
  const namespaces: Record<string, string> = Object.create(outer)
  for (const [name, value] of declared) namespaces[name.slice('xmlns:'.length)] = value
  return namespaces
}

/** Returns the name of an element or attribute with the usual prefix of its namespace. A prefix that the document does not declare stays as it is. */
function withUsualPrefix(name: string, namespaces: Namespaces): string {
  const colon = name.indexOf(':')
  const prefix = colon === -1 ? '' : name.slice(0, colon)
  const namespace = namespaces[prefix]
  return `${namespace === undefined ? prefix : prefixOf(namespace)}:${name.slice(colon + 1)}`
}

function attributesOf(attributes: Attributes, element: string, namespaces: Namespaces): Attributes {
  const valuesByName: Record<string, string> = Object.create(null)
  const home = element.slice(0, element.indexOf(':') + 1)
  for (const [written, value] of Object.entries(attributes)) {
    const name = written.includes(':') ? withUsualPrefix(written, namespaces) : written
    valuesByName[name.startsWith(home) ? name.slice(home.length) : name] = value
  }
  return valuesByName
}

interface Relationship {
  readonly id: string
  /** The last word of a type in the standard, such as `slide`, `hyperlink` or `officeDocument`; any other type as a whole. */
  readonly type: string
  readonly target: string
}

/** The relationships of a part; those of the document itself are of the part `''`. */
export async function relationshipsOf(zip: Zip, part: string): Promise<readonly Relationship[]> {
  const slash = part.lastIndexOf('/') + 1
  const name = `${part.slice(0, slash)}_rels/${part.slice(slash)}.rels`
  if (!zip.has(name)) return []
  const relationships: Relationship[] = []
  await walkXml(zip.read(name), {
    open: (element, { Id = '', Type = '', Target = '', TargetMode }) => {
      if (element !== 'rel:Relationship' || relationships.length >= 100_000) return
      const target = TargetMode === 'External' ? Target : resolvePartName(part, Target)
      const slash = Type.lastIndexOf('/')
      const type = prefixOf(Type.slice(0, Math.max(0, slash))) === 'r' ? Type.slice(slash + 1) : Type
      relationships.push({ id: Id, type, target })
    },
  })
  return relationships
}

/** Returns the name of the main part of an Office document. If the relationships do not name it, the content type of the part tells. */
export async function mainPartOf(zip: Zip): Promise<string> {
  const target = (await relationshipsOf(zip, '')).find(({ type }) => type === 'officeDocument')?.target
  const main = target ?? (await mainPartByType(zip))
  if (main === undefined) throw unreadableError('The document is damaged: it does not say which part is the main one.')
  return main
}

const typesPart = '[Content_Types].xml'

async function mainPartByType(zip: Zip): Promise<string | undefined> {
  if (!zip.has(typesPart)) return undefined
  let main: string | undefined
  await walkXml(zip.read(typesPart), {
    open: (_, { PartName = '', ContentType = '' }) => {
      if (/[.]main\+xml$/.test(ContentType) && zip.has(PartName)) main ??= PartName
    },
  })
  return main === undefined ? undefined : resolvePartName('', main)
}
