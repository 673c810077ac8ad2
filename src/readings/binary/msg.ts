import { isUtf8 } from 'node:buffer'
import { decodeBytes } from '../../text/encoding/decode.ts'
import { detectEncoding } from '../../text/encoding/detect.ts'
import { codePageOfLanguage, decodeCodePage } from '../code-pages.ts'
import { unreadableError } from '../formats.ts'
import type { AttachedPart, StoredMessage } from '../message.ts'
import { openCompoundFile, type Storage } from './compound.ts'

/** Numbers of properties ([MS-OXPROPS]). */
const id = {
  subject: 0x0037,
  sent: 0x0039,
  senderName: 0x0c1a,
  senderAddress: 0x0c1f,
  senderSmtp: 0x5d01,
  recipientKind: 0x0c15,
  received: 0x0e06,
  body: 0x1000,
  rtf: 0x1009,
  html: 0x1013,
  name: 0x3001,
  address: 0x3003,
  smtp: 0x39fe,
  data: 0x3701,
  shortFileName: 0x3704,
  fileName: 0x3707,
  mimeType: 0x370e,
  contentId: 0x3712,
  htmlCodePage: 0x3fde,
  language: 0x3ff1,
  codePage: 0x3ffd,
} as const

/** Types of properties: a number, a date, a text in a code page, a text in UTF-16, bytes, an object such as an attached message. */
const [numberType, dateType, narrowType, wideType, bytesType, objectType] = [0x03, 0x40, 0x1e, 0x1f, 0x102, 0x0d]

export function openMsg(bytes: Uint8Array, limit: number): StoredMessage {
  const root = openCompoundFile(bytes, limit)
  if (!root.has('__properties_version1.0')) throw unreadableError('The document is damaged: it contains no message.')
  return messageIn(root, 32)
}

/** @param headBytes Size of the header before the fixed properties, in bytes. It is smaller in a message that is stored within another. */
function messageIn(storage: Storage, headBytes: number): StoredMessage {
  const message = createProperties(storage, headBytes)
  const codePage = codePageIn(message)
  const text = (number: number) => message.text(number, codePage)
  const recipients = recipientsIn(storage, codePage)
  const html = htmlOf(message, codePage)
  const compressed = message.bytes(id.rtf)
  return {
    subject: text(id.subject) ?? '',
    headers: [
      ['From', formatMailAddress(text(id.senderName), text(id.senderSmtp) ?? text(id.senderAddress))],
      ['To', recipients(1)],
      ['Cc', recipients(2)],
      ['Date', message.date(id.sent) ?? message.date(id.received) ?? ''],
    ],
    ...(html === undefined ? {} : { html }),
    text: text(id.body) ?? '',
    ...(compressed === undefined ? {} : { rtf: decompressRtf(compressed) }),
    attachments: partsIn(storage, '__attach_version1.0_#')
      .map((part) => attachedIn(part, codePage))
      .filter((part) => part !== undefined),
  }
}

/** The code page of texts that are not in UTF-16: the stated one, else that of the language, else that of the HTML text. */
function codePageIn(message: Properties): number | undefined {
  const language = message.number(id.language)
  const ofLanguage = language === undefined ? undefined : codePageOfLanguage(language)
  return message.number(id.codePage) ?? ofLanguage ?? message.number(id.htmlCodePage)
}

function htmlOf(message: Properties, codePage: number | undefined): string | undefined {
  const bytes = message.bytes(id.html)
  if (bytes === undefined) return message.text(id.html, codePage)
  const declared = message.number(id.htmlCodePage)
  const encoding = detectEncoding(bytes)
  if (declared !== undefined && encoding !== 'utf-8') return decodeCodePage(bytes, declared)
  return encoding === undefined ? decodeCodePage(bytes, codePage ?? 1252) : decodeBytes(bytes, encoding)
}

function formatMailAddress(name = '', address = ''): string {
  // An address without `@` is a path in the directory of an organisation, of no use to others.
  const addressText = address.includes('@') ? address : ''
  const plain = name.replace(/^'(.*)'$/, '$1').trim()
  if (plain === '' || plain === addressText) return addressText
  return addressText === '' ? plain : `${plain} <${addressText}>`
}

function partsIn(storage: Storage, prefix: string): readonly Storage[] {
  return storage.storages
    .filter((name) => name.toLowerCase().startsWith(prefix))
    .sort()
    .flatMap((name) => storage.storage(name) ?? [])
}

function recipientsIn(storage: Storage, codePage: number | undefined) {
  const all = partsIn(storage, '__recip_version1.0_#').map((part) => {
    const recipient = createProperties(part, 8)
    const text = (number: number) => recipient.text(number, codePage)
    return {
      kind: recipient.number(id.recipientKind) ?? 1,
      shown: formatMailAddress(text(id.name), text(id.smtp) ?? text(id.address)),
    }
  })
  return (mask: number) =>
    all
      .filter(({ kind, shown }) => (kind & 0xf) === mask && shown !== '')
      .map(({ shown }) => shown)
      .join(', ')
}

function attachedIn(storage: Storage, codePage: number | undefined): AttachedPart | undefined {
  const part = createProperties(storage, 8)
  const text = (number: number) => part.text(number, codePage)
  const mimeType = text(id.mimeType) ?? 'application/octet-stream'
  const name = text(id.fileName) ?? text(id.shortFileName) ?? text(id.name) ?? ''
  // Leave out a picture that the HTML text of the message shows.
  if (mimeType.startsWith('image/') && text(id.contentId) !== undefined) return undefined
  const inner = storage.storage(streamName(id.data, objectType))
  if (inner?.has('__properties_version1.0') === true)
    return { name, mimeType: 'message/rfc822', open: () => messageIn(inner, 24) }
  return { name, mimeType, open: () => part.bytes(id.data) ?? Buffer.alloc(0) }
}

const streamName = (number: number, type: number) =>
  `__substg1.0_${number.toString(16).padStart(4, '0')}${type.toString(16).padStart(4, '0')}`

/** The properties of a message, recipient or attachment: short ones are in one stream, each longer one in its own. */
function createProperties(storage: Storage, headBytes: number) {
  const fixed = storage.stream('__properties_version1.0') ?? Buffer.alloc(0)
  const fixedValue = (number: number, type: number): Buffer | undefined => {
    for (let at = headBytes; at + 16 <= fixed.length; at += 16)
      if (fixed.readUInt32LE(at) === number * 0x10000 + type) return fixed.subarray(at + 8, at + 16)
    return undefined
  }
  return {
    number: (number: number) => fixedValue(number, numberType)?.readInt32LE(0),
    /** A date in ISO 8601, if there is one. It is stored in units of 100 ns since 1601. */
    date: (number: number): string | undefined => {
      const ticks = fixedValue(number, dateType)?.readBigUInt64LE(0)
      const date = ticks === undefined ? undefined : new Date(Number(ticks / 10_000n) - 11_644_473_600_000)
      return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString()
    },
    /** A text, if there is one and it is not empty. */
    text: (number: number, codePage: number | undefined): string | undefined => {
      const wide = storage.stream(streamName(number, wideType))?.toString('utf16le')
      const narrow = wide === undefined ? storage.stream(streamName(number, narrowType)) : undefined
      const text = wide ?? (narrow === undefined ? '' : decodeNarrow(narrow, codePage))
      const plain = text.replace(/\0+$/, '').toWellFormed()
      return plain === '' ? undefined : plain
    },
    bytes: (number: number) => storage.stream(streamName(number, bytesType)),
  }
}

type Properties = ReturnType<typeof createProperties>

const twoByteCodePages = new Set([932, 936, 949, 950])

function decodeNarrow(bytes: Buffer, codePage: number | undefined): string {
  // Some programs write UTF-8 whatever the code page is. In code pages with two bytes per character, short texts may look like UTF-8.
  if (isUtf8(bytes) && !twoByteCodePages.has(codePage ?? 0)) return bytes.toString()
  const encoding = codePage === undefined ? detectEncoding(bytes) : undefined
  return (encoding === undefined ? undefined : decodeBytes(bytes, encoding)) ?? decodeCodePage(bytes, codePage ?? 1252)
}

/** The text to which the first repetitions in a compressed text may refer ([MS-OXRTFCP], 2.1.2.1). */
const beginning =
  '{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArial' +
  'Times New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx'
const windowBytes = 4096

/** Decompresses Rich Text Format ([MS-OXRTFCP]): a byte stands for itself, or two bytes for a repetition of earlier text. */
function decompressRtf(bytes: Buffer): Buffer {
  if (bytes.length < 16) return Buffer.alloc(0)
  const size = Math.min(bytes.readUInt32LE(4), bytes.length * 18)
  if (bytes.toString('latin1', 8, 12) === 'MELA') return bytes.subarray(16, 16 + size)
  const window = Buffer.alloc(windowBytes, ' ')
  let write = window.write(beginning, 'latin1')
  const result = Buffer.alloc(size)
  let length = 0
  const add = (byte: number) => {
    window[write] = byte
    write = (write + 1) % windowBytes
    if (length < size) result[length++] = byte
  }
  for (let at = 16; at < bytes.length; ) {
    const flags = bytes[at++] ?? 0
    for (let bit = 0; bit < 8 && at < bytes.length; bit++) {
      if (((flags >> bit) & 1) === 0) {
        add(bytes[at++] ?? 0)
        continue
      }
      const pair = at + 2 <= bytes.length ? bytes.readUInt16BE(at) : 0
      at += 2
      const start = pair >> 4
      if (start === write) return result.subarray(0, length)
      for (let index = 0; index < (pair & 0xf) + 2; index++) add(window[(start + index) % windowBytes] ?? 0)
    }
  }
  return result.subarray(0, length)
}
