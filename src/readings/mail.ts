import { isUtf8 } from 'node:buffer'
import PostalMime, { type Address, type Attachment, type Email } from 'postal-mime'
import { isResourceError, tooLarge } from '../core/errors.ts'
import { defined } from '../core/kit/object.ts'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { isCompoundFile } from './binary/compound.ts'
import { openMsg } from './binary/msg.ts'
import {
  documentFormatOf,
  type Reading,
  type ReadingForm,
  type ReadingJob,
  type ReadingLimits,
  unreadableError,
} from './formats.ts'
import { readHtmlPage } from './html.ts'
import type { AttachedPart, StoredMessage } from './message.ts'
import { recogniseFormat } from './recognise.ts'
import { readRtf } from './rtf.ts'
import { collapseWhitespace, createDocumentWriter, type DocumentWriter } from './writer.ts'

export type ReadAttached = (job: ReadingJob & { readonly form: ReadingForm }) => Promise<Reading>

const [maxMessages, maxAttachments, maxDepth, maxNesting] = [10_000, 2000, 4, 50]

interface Mailbox {
  readonly writer: DocumentWriter
  readonly form: ReadingForm
  readonly limits: ReadingLimits
  readonly readAttached: ReadAttached
  attachments: number
}

/**
 * Reads a mail (RFC 5322, MIME), a web page that was saved as a mail (MHTML), a mailbox (RFC 4155), or a message of Outlook: headers, text,
 * attachments.
 */
export async function readMail(
  bytes: Uint8Array,
  form: ReadingForm,
  limits: ReadingLimits,
  readAttached: ReadAttached,
): Promise<Reading> {
  const writer = createDocumentWriter(form, limits.characters)
  const mailbox: Mailbox = { writer, form, limits, readAttached, attachments: 0 }
  const source = withoutMark(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const messages = source.toString('latin1', 0, 5) === 'From ' ? messagesIn(source) : [source]
  let title: string | undefined
  for (const message of messages) {
    const storedMessage = await openMessage(message, limits)
    await writeMessage(storedMessage, mailbox, 0)
    title ??= storedMessage.subject
  }
  const parts = messages.length > 1 ? messages.length : mailbox.attachments
  const subject =
    messages.length > 1
      ? ''
      : Array.from(collapseWhitespace(title ?? ''))
          .slice(0, 200)
          .join('')
  return { text: writer.finish(), ...(parts > 0 ? { parts } : {}), ...(subject === '' ? {} : { title: subject }) }
}

function withoutMark(source: Buffer): Buffer {
  return source.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? source.subarray(3) : source
}

/**
 * Returns the messages of a mailbox. Each begins with a line of `From `, followed by its headers. The `>` that programs put before other
 * lines that begin with `From ` is removed.
 */
function messagesIn(source: Buffer): readonly Buffer[] {
  const starts: number[] = [0]
  for (const separator of ['\n\nFrom ', '\r\n\r\nFrom '])
    for (let at = source.indexOf(separator); at !== -1; at = source.indexOf(separator, at + 1)) {
      const start = at + separator.length - 'From '.length
      if (!/^From (?:\S+|.*\d:\d\d.*)\r?\n[!-9;-~]+:/.test(source.toString('latin1', start, start + 1000))) continue
      starts.push(start)
      if (starts.length > maxMessages) throw tooLarge(`The mailbox has more than ${maxMessages} messages.`)
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

async function openMessage(bytes: Uint8Array, limits: ReadingLimits): Promise<StoredMessage> {
  if (isCompoundFile(bytes)) return openMsg(bytes, limits.unpacked)
  const mail = await parseMail(bytes)
  const isPage = /^\s*multipart\/related/i.test(mail.headers.find(({ key }) => key === 'content-type')?.value ?? '')
  return {
    subject: mail.subject ?? '',
    headers: [
      ['From', formatAddresses([mail.from ?? mail.sender])],
      ['To', formatAddresses(mail.to)],
      ['Cc', formatAddresses(mail.cc)],
      ['Date', collapseWhitespace(mail.date ?? '')],
    ],
    ...defined({ html: mail.html, text: mail.text }),
    attachments: mail.attachments
      .filter((attachment) => !isPartOfPage(attachment, isPage))
      .map(({ filename, mimeType, content }) => ({
        name: filename ?? '',
        mimeType,
        open: () => (typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)),
      })),
  }
}

async function writeMessage(message: StoredMessage, mailbox: Mailbox, depth: number): Promise<void> {
  const { writer, form, limits } = mailbox
  writer.heading(depth === 0 ? 1 : 3, writer.plain(message.subject))
  const lines = message.headers.flatMap(([name, value]) => (value === '' ? [] : [writer.plain(`${name}: ${value}`)]))
  writer.paragraph(lines.join('\n'))
  const { html, text = '', rtf } = message
  const page = html === undefined ? '' : readHtmlPage(html, form, limits).text
  if (page.trim() !== '') writer.document(page)
  else if (text.trim() === '' && rtf !== undefined) writer.document(readRtf(rtf, form, limits).text)
  else for (const paragraph of text.split(/\r?\n(?:[ \t]*\r?\n)+/)) writer.paragraph(writer.plain(paragraph))
  for (const attachment of message.attachments) await writeAttached(attachment, mailbox, depth)
}

async function parseMail(message: Uint8Array): Promise<Email> {
  const source = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  // The encoding is detected only if the text is not UTF-8 and the mail declares none.
  const encoding = isUtf8(source) || /charset/i.test(source.toString('latin1')) ? undefined : detectEncoding(source)
  const decoded = encoding === undefined ? undefined : decodeBytes(source, encoding)
  try {
    return await PostalMime.parse(decoded ?? source, { forceRfc822Attachments: true, maxNestingDepth: maxNesting })
  } catch {
    throw unreadableError('The mail is damaged, or its parts are nested too deeply.')
  }
}

function isPartOfPage({ filename, mimeType, related }: Attachment, isPage: boolean): boolean {
  if (mimeType === 'message/rfc822') return false
  const isShown =
    /^(?:image|font|audio|video)\/|^text\/(?:css|javascript)|^application\/(?:x-)?(?:javascript|font)/.test(mimeType)
  return isShown ? related === true || isPage || filename === null : isPage && filename === null
}

async function writeAttached(attachment: AttachedPart, mailbox: Mailbox, depth: number): Promise<void> {
  const { writer } = mailbox
  if (++mailbox.attachments > maxAttachments) throw tooLarge(`The mail has more than ${maxAttachments} attachments.`)
  const { mimeType } = attachment
  const name = collapseWhitespace(attachment.name ?? '')
  writer.end()
  writer.heading(2, writer.plain(`Attachment: ${name === '' ? mimeType : name}`))
  try {
    const bytes = attachment.open()
    if (!(bytes instanceof Uint8Array)) await writeInner(bytes, mailbox, depth)
    else if (bytes.length > 0) await writeBytes(bytes, name, mimeType, mailbox, depth)
  } catch (error) {
    // The mail stays readable if an attachment is damaged, but not if an attachment is too large.
    if (!isResourceError(error, 'invalid')) throw error
    writer.paragraph(writer.plain(`[${error.message}]`))
  }
}

async function writeBytes(
  bytes: Uint8Array,
  name: string,
  mimeType: string,
  mailbox: Mailbox,
  depth: number,
): Promise<void> {
  const { writer, form, limits, readAttached } = mailbox
  const documentFormat = documentFormatOf(name, mimeType)
  if (documentFormat !== undefined) {
    const format = await recogniseFormat(bytes, documentFormat, limits.unpacked)
    if (format === 'mail' || format === 'msg') await writeInner(bytes, mailbox, depth)
    else writer.document((await readAttached({ format: documentFormat, form, bytes, limits })).text)
  } else if (/^(?:text|message)\//.test(mimeType)) {
    const encoding = detectEncoding(bytes)
    writer.block(encoding === undefined ? '' : (decodeBytes(bytes, encoding) ?? ''))
  }
}

async function writeInner(message: Uint8Array | StoredMessage, mailbox: Mailbox, depth: number): Promise<void> {
  const { writer, limits } = mailbox
  if (depth >= maxDepth) writer.paragraph(writer.plain('[This message is nested too deeply to be read.]'))
  else
    await writeMessage(message instanceof Uint8Array ? await openMessage(message, limits) : message, mailbox, depth + 1)
}

function formatAddresses(addresses: readonly (Address | undefined)[] = []): string {
  return addresses
    .flatMap((address) => (address === undefined ? [] : (address.group ?? [address])))
    .map(({ name, address = '' }) => (name === '' || name === address ? address : `${name} <${address}>`))
    .map(collapseWhitespace)
    .join(', ')
}
