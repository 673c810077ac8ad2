import { detectEncoding } from '../text/encoding/detect.ts'
import { isCompoundFile, openCompoundFile } from './binary/compound.ts'
import { type DocumentFormat, unreadableError } from './formats.ts'
import { openZip, relationshipsOf, type Zip } from './package.ts'

/** Formats whose files may have the extension of another of these formats. */
const office: ReadonlySet<DocumentFormat> = new Set([
  'docx',
  'xlsx',
  'xlsb',
  'xls',
  'pptx',
  'ppt',
  'odf',
  'epub',
  'mail',
  'msg',
  'rtf',
  'doc',
])

/** Formats whose extensions programs give to exported tables and texts in plain text or HTML. */
const exported: ReadonlySet<DocumentFormat> = new Set(['xlsx', 'xls', 'doc'])

/** Signs of formats in the first part of a file, after its byte order mark. */
const signs: readonly (readonly [sign: RegExp, format: DocumentFormat])[] = [
  [/^%PDF-/, 'pdf'],
  [/^\s*\{\\rtf/, 'rtf'],
  [/^\s*<\?xml\b[\s\S]*<office:document[\s>]/, 'odf'],
  [/^(?:From .*\r?\n|(?:[\w-]+:.*\r?\n(?:[ \t].*\r?\n)*)*mime-version:)/i, 'mail'],
  // The element may follow an XML declaration and comments.
  [/^(?:\s|<\?xml\b[^>]*>|<!--[^>]*-->)*<(?:!doctype html|html|head|body|table)\b/i, 'html'],
]

/**
 * Returns the format of a file by its content, or else `format`. `text`: plain text.
 *
 * @param format The format by the name or type of the file. The content is examined only if it is in {@link office}.
 * @param limit Maximum number of bytes that are unpacked.
 * @throws ResourceError `invalid` for an encrypted document, and for a mail without headers.
 */
export async function recogniseFormat(
  bytes: Uint8Array,
  format: DocumentFormat,
  limit: number,
): Promise<DocumentFormat | 'text'> {
  if (!office.has(format)) return format
  const head = Buffer.from(bytes.subarray(0, 4096))
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
  if (head.startsWith('PK')) return (await formatOfPackage(bytes, limit)) ?? format
  if (isCompoundFile(bytes)) return formatOfCompound(bytes, limit) ?? format
  const signFormat = signs.find(([sign]) => sign.test(head))?.[1]
  if (signFormat !== undefined) return signFormat
  if (format === 'mail' && !/^\s*[\w-]+[ \t]*:/.test(head))
    throw unreadableError('This is not a mail: it has no headers.')
  return exported.has(format) && detectEncoding(bytes) !== undefined ? 'text' : format
}

/** The main streams of the formats that are compound files. */
const streams: readonly (readonly [stream: string, format: DocumentFormat])[] = [
  ['WordDocument', 'doc'],
  ['Workbook', 'xls'],
  ['Book', 'xls'],
  ['PowerPoint Document', 'ppt'],
  ['__properties_version1.0', 'msg'],
]

function formatOfCompound(bytes: Uint8Array, limit: number): DocumentFormat | undefined {
  const root = openCompoundFile(bytes, limit)
  // Current versions of Office store an encrypted document as a stream in a compound file.
  if (root.has('EncryptedPackage'))
    throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
  return streams.find(([stream]) => root.has(stream))?.[1]
}

/** The format of a zip archive, by the type that it states, or by its main part; `undefined` if neither tells. */
async function formatOfPackage(bytes: Uint8Array, limit: number): Promise<DocumentFormat | undefined> {
  const zip = await openZip(bytes, limit)
  const type = zip.has('mimetype') ? await beginningOf(zip, 'mimetype') : ''
  if (type.includes('opendocument')) return 'odf'
  if (type.includes('epub+zip') || zip.has('META-INF/container.xml')) return 'epub'
  const main = (await relationshipsOf(zip, '')).find(({ type }) => type === 'officeDocument')?.target
  if (main === undefined || !zip.has(main)) return undefined
  if (main.toLowerCase().endsWith('.bin')) return 'xlsb'
  const root = /<(?:[\w.-]+:)?(document|workbook|presentation)[\s>]/.exec(await beginningOf(zip, main))?.[1]
  return root === undefined ? undefined : roots[root]
}

const roots: Readonly<Record<string, DocumentFormat>> = { document: 'docx', workbook: 'xlsx', presentation: 'pptx' }

async function beginningOf(zip: Zip, part: string): Promise<string> {
  for await (const piece of zip.read(part)) return piece.toString('latin1', 0, 4096)
  return ''
}
