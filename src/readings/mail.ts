import { isUtf8 } from 'node:buffer'
import PostalMime, { type Address, type Attachment, type Email } from 'postal-mime'
import { isResourceError } from '../core/errors.ts'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import {
  type DocumentFormat,
  formatOf,
  type Reading,
  type ReadingForm,
  type ReadingJob,
  type ReadingLimits,
  tooMuch,
  unreadable,
} from './formats.ts'
import { readPage } from './html.ts'
import { recognise } from './recognise.ts'
import { createWriter, type Writer } from './writer.ts'

/** Reads a document that is attached to a mail. */
export type ReadAttached = (job: ReadingJob & { readonly form: ReadingForm }) => Promise<Reading>

const [maxMessages, maxAttachments, maxDepth, maxNesting] = [10_000, 2000, 4, 50]

interface Mailbox {
  readonly writer: Writer
  readonly form: ReadingForm
  readonly limits: ReadingLimits
  readonly readAttached: ReadAttached
  /** Number of attachments that were read. */
  attachments: number
}

/** Reads a mail (RFC 5322, MIME), a page that was saved as one (MHTML), or a mailbox (RFC 4155): headers, text, attachments. */
export async function readMail(
  bytes: Uint8Array,
  form: ReadingForm,
  limits: ReadingLimits,
  readAttached: ReadAttached,
): Promise<Reading> {
  const writer = createWriter(form, limits.characters)
  const mailbox: Mailbox = { writer, form, limits, readAttached, attachments: 0 }
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const messages = source.toString('latin1', 0, 5) === 'From ' ? messagesIn(source) : [source]
  let title: string | undefined
  for (const message of messages) {
    const { subject } = await writeMail(message, mailbox, 0)
    title ??= subject
  }
  const parts = messages.length > 1 ? messages.length : mailbox.attachments
  const shown = messages.length > 1 ? '' : Array.from(lineOf(title)).slice(0, 200).join('')
  return { text: writer.finish(), ...(parts > 0 ? { parts } : {}), ...(shown === '' ? {} : { title: shown }) }
}

/** The messages of a mailbox. Each begins with a line `From …` before its headers. Other lines that begin so mostly have `>` before them. */
function messagesIn(source: Buffer): readonly Buffer[] {
  const starts: number[] = [0]
  for (const separator of ['\n\nFrom ', '\r\n\r\nFrom '])
    for (let at = source.indexOf(separator); at !== -1; at = source.indexOf(separator, at + 1)) {
      const start = at + separator.length - 'From '.length
      if (!/^From .*\r?\n[!-9;-~]+:/.test(source.toString('latin1', start, start + 1000))) continue
      starts.push(start)
      if (starts.length > maxMessages) throw tooMuch(`The mailbox has more than ${maxMessages} messages.`)
    }
  starts.sort((a, b) => a - b)
  return starts.map((start, index) => {
    const line = source.indexOf('\n', start)
    const end = starts[index + 1] ?? source.length
    const message = source.subarray(line === -1 || line >= end ? end : line + 1, end)
    return message.includes('\n>From ') || message.includes('\n>>From ')
      ? Buffer.from(message.toString('latin1').replace(/^>(>*From )/gm, '$1'), 'latin1')
      : message
  })
}

async function writeMail(message: Uint8Array, mailbox: Mailbox, depth: number): Promise<Email> {
  const { writer, form, limits } = mailbox
  const mail = await parse(message)
  writer.heading(depth === 0 ? 1 : 3, writer.plain(mail.subject ?? ''))
  const lines = [
    ['From', namesOf([mail.from ?? mail.sender])],
    ['To', namesOf(mail.to)],
    ['Cc', namesOf(mail.cc)],
    ['Date', lineOf(mail.date)],
  ].flatMap(([name, value]) => (value === '' ? [] : [writer.plain(`${name}: ${value}`)]))
  writer.paragraph(lines.join('\n'))
  const page = mail.html === undefined ? '' : readPage(mail.html, form, limits).text
  if (page.trim() !== '') writer.document(page)
  else
    for (const paragraph of (mail.text ?? '').split(/\r?\n(?:[ \t]*\r?\n)+/)) writer.paragraph(writer.plain(paragraph))
  const isPage = /^\s*multipart\/related/i.test(mail.headers.find(({ key }) => key === 'content-type')?.value ?? '')
  for (const attachment of mail.attachments)
    if (!isPartOfPage(attachment, isPage)) await writeAttached(attachment, mailbox, depth)
  return mail
}

async function parse(message: Uint8Array): Promise<Email> {
  // Text in another encoding than UTF-8 that is not declared.
  const source = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  const encoding = isUtf8(source) || /charset/i.test(source.toString('latin1')) ? undefined : detectEncoding(source)
  const decoded = encoding === undefined ? undefined : decodeBytes(source, encoding)
  try {
    return await PostalMime.parse(decoded ?? source, { forceRfc822Attachments: true, maxNestingDepth: maxNesting })
  } catch {
    throw unreadable('The mail is damaged, or its parts are nested too deep.')
  }
}

/** Whether an attachment is a picture or style of the page that the mail shows. */
function isPartOfPage({ filename, mimeType, related }: Attachment, isPage: boolean): boolean {
  if (mimeType === 'message/rfc822') return false
  const isShown =
    /^(?:image|font|audio|video)\/|^text\/(?:css|javascript)|^application\/(?:x-)?(?:javascript|font)/.test(mimeType)
  return isShown ? related === true || isPage || filename === null : isPage && filename === null
}

async function writeAttached(attachment: Attachment, mailbox: Mailbox, depth: number): Promise<void> {
  const { writer } = mailbox
  if (++mailbox.attachments > maxAttachments) throw tooMuch(`The mail has more than ${maxAttachments} attachments.`)
  const { mimeType, content } = attachment
  const name = lineOf(attachment.filename ?? '')
  writer.end()
  writer.heading(2, writer.plain(`Attachment: ${name === '' ? mimeType : name}`))
  const bytes = typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
  if (bytes.length === 0) return
  const named = formatOf(name, mimeType)
  if (named !== undefined) await writeDocument(bytes, named, mailbox, depth)
  else if (mimeType.startsWith('text/')) {
    const encoding = detectEncoding(bytes)
    writer.block(encoding === undefined ? '' : (decodeBytes(bytes, encoding) ?? ''))
  }
}

async function writeDocument(bytes: Uint8Array, named: DocumentFormat, mailbox: Mailbox, depth: number): Promise<void> {
  const { writer, form, limits, readAttached } = mailbox
  try {
    const format = await recognise(bytes, named, limits.unpacked)
    if (format !== 'mail') writer.document((await readAttached({ format: named, form, bytes, limits })).text)
    else if (depth >= maxDepth) writer.paragraph(writer.plain('[This message is nested too deep to be read.]'))
    else await writeMail(bytes, mailbox, depth + 1)
  } catch (error) {
    // The mail stays readable if an attachment is damaged, but not if it has too much in it.
    if (!isResourceError(error, 'invalid')) throw error
    writer.paragraph(writer.plain(`[${error.message}]`))
  }
}

function namesOf(addresses: readonly (Address | undefined)[] = []): string {
  return addresses
    .flatMap((address) => (address === undefined ? [] : (address.group ?? [address])))
    .map(({ name, address = '' }) => (name === '' || name === address ? address : `${name} <${address}>`))
    .map(lineOf)
    .join(', ')
}

function lineOf(text: string | undefined): string {
  return (text ?? '').replace(/\s+/g, ' ').trim()
}
