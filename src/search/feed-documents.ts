import { createHash } from 'node:crypto'
import { isResourceError } from '../core/errors.ts'
import { defined, isObject } from '../core/kit/object.ts'
import { beforeNul, headBytes, isTextHead } from '../core/kit/utf8.ts'
import { documentOriginIn, metaKeys } from '../core/meta.ts'
import type { MountReader } from '../core/mount-reader.ts'
import type { Content, Entry } from '../core/provider.ts'
import type { Scrubber } from '../core/scrub.ts'
import { documentFormatOf, scanFault, scanWaitingFault } from '../readings/formats.ts'
import type { SearchDocument } from './search-index.ts'

export interface ReadingSettings {
  readonly mount: MountReader
  /** Documents that were read with another key are read again. */
  readonly way: string
  /** Maximum length of the indexed beginning of a text, in bytes. */
  readonly maxBytes: number
  readonly scrubber?: Scrubber
  /** Line counts of logs, by path, from earlier readings: a log mostly grows at its end. */
  readonly lineCounts?: LineCounts
  /** Called for each entry that was read: whether the source gave only a part of it, such as the first page of rows. */
  readonly onRead?: (path: string, isPart: boolean) => void
  readonly signal: AbortSignal
}

/** The end of the version of a document of which only the beginning is indexed. */
function cutMark(maxBytes: number): string {
  return `+${maxBytes}`
}

/** Whether the indexed version of a document says that only its beginning is indexed. */
export function isCutVersion(version: string, maxBytes: number): boolean {
  return version.endsWith(cutMark(maxBytes))
}

/**
 * Marks at the end of the indexed version of a document with pages that hold only pictures or unreadable text. `unread`: the pages are not
 * read. `waiting`: OCR will read them, so the document is read again.
 */
const scanMarks = { unread: '+scan', waiting: '+scan-waiting' } as const

/** The state of the pages that hold only pictures or unreadable text, in the indexed version of a document. */
export function scanState(version: string): keyof typeof scanMarks | undefined {
  const mark = /\+scan(-waiting)?(?:\+\d+)?$/.exec(version)
  if (mark === null) return undefined
  return mark[1] === undefined ? 'unread' : 'waiting'
}

/** Whether an indexed version is that of an entry. */
export function isVersionOf(version: string, entry: Entry, { way, maxBytes }: ReadingSettings | WayOf): boolean {
  const stamp = documentStamp(entry, way)
  if (stamp === undefined) return false
  return [stamp, stamp + scanMarks.unread].some((one) => version === one || version === one + cutMark(maxBytes))
}

type WayOf = Pick<ReadingSettings, 'way' | 'maxBytes'>

/** Returns a digest of the version and the facts of a document. Undefined when the source has neither version nor time. */
function documentStamp({ path: _, icons: __, description: ___, ...entry }: Entry, way: string): string | undefined {
  const { version, size, modified, ...facts } = entry
  if (version === undefined && modified === undefined) return undefined
  const marks = version === undefined ? [size, modified] : [version]
  return shortDigest(JSON.stringify([way, marks, facts]))
}

export function shortDigest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 27)
}

/** Whether a document belongs to the mount at an address. No searched mount lies in another. */
export function isInMount(uri: string, address: string): boolean {
  return uri === address || uri.startsWith(`${address}/`)
}

/** Whether a document is indexed by its text from `?as=text`, if its mount offers that form. */
export function hasTextForm(path: string, mimeType: string | undefined): boolean {
  return documentFormatOf(path, mimeType) !== undefined
}

/** The version of a document that is indexed only by name. It differs from every stamp. */
export const nameOnlyVersion = 'name'

/** A document without its text, which is found by its path and title. */
export function documentWithoutText(
  entry: Entry,
  reading: Pick<ReadingSettings, 'mount' | 'scrubber'>,
): SearchDocument {
  return toSearchDocument(entry, reading, { text: '', version: nameOnlyVersion })
}

/**
 * Reads a document for the index. `undefined`: it no longer exists.
 *
 * @throws ResourceError `unavailable` if it exists, but cannot be read now.
 */
export async function readDocument(entry: Entry, reading: ReadingSettings): Promise<SearchDocument | undefined> {
  const { way, maxBytes, scrubber } = reading
  try {
    const indexedText = await readIndexedText(entry, reading)
    const text = scrubber?.scrub(indexedText.text) ?? indexedText.text
    const stamp = documentStamp(entry, way) ?? shortDigest(`${way}\n${text}`)
    const version = indexedText.scan === undefined ? stamp : stamp + scanMarks[indexedText.scan]
    const content = {
      text,
      version: indexedText.isCut ? version + cutMark(maxBytes) : version,
      ...defined({ firstLine: indexedText.firstLine }),
    }
    return toSearchDocument(entry, reading, content)
  } catch (error) {
    if (isResourceError(error, 'not-found')) return undefined
    throw error
  }
}

function toSearchDocument(
  { path, title, mimeType, audience, priority, size, modified, meta }: Entry,
  { mount, scrubber }: Pick<ReadingSettings, 'mount' | 'scrubber'>,
  content: Pick<SearchDocument, 'text' | 'version' | 'firstLine'>,
): SearchDocument {
  const { link, revision } = documentOriginIn(meta)
  const clean = (text: string) => scrubber?.scrub(text) ?? text
  return {
    uri: mount.uriOf(path),
    mount: mount.address,
    ...content,
    ...(title === undefined ? {} : { title: clean(title) }),
    ...defined({ mimeType, audience, priority, size, modified }),
    // Leave out a link that contains a secret: without the secret it would lead nowhere.
    ...(link === undefined || clean(link) !== link ? {} : { link }),
    ...(revision === undefined || clean(revision) !== revision ? {} : { revision }),
  }
}

const binary =
  /^(?:image\/(?!svg)|audio\/|video\/|font\/|application\/(?:zip|gzip|x-tar|x-7z|vnd\.rar|java-archive|wasm)\b)/

interface IndexedText {
  readonly text: string
  readonly isCut: boolean
  /** Number of the first indexed line. Default 1. */
  readonly firstLine?: number
  /** Set if the document has pages that hold only pictures or unreadable text. */
  readonly scan?: keyof typeof scanMarks
}

const noText: IndexedText = { text: '', isCut: false }

/** The text of a document; empty if it has none, or is not readable as text. */
async function readIndexedText(entry: Entry, reading: ReadingSettings): Promise<IndexedText> {
  const { path, mimeType = '', size } = entry
  const { mount, maxBytes, onRead, signal } = reading
  const isDocument = hasTextForm(path, mimeType)
  if (!isDocument && binary.test(mimeType)) return noText
  const whole = { path, params: new Map<string, string>() }
  try {
    if (size !== undefined && size > maxBytes && isLog(path)) {
      const end = await readLogEnd({ path, size }, reading)
      if (end !== undefined) return end
    }
    const asText = isDocument && (await hasParameter(mount, 'as', signal))
    const contents = asText
      ? await mount.read({ ...whole, params: new Map([['as', 'text']]) }, signal)
      : await readBeginning(mount, path, maxBytes, signal)
    onRead?.(
      path,
      contents.some(({ meta }) => meta?.[metaKeys.truncated] === true),
    )
    const own = contents.filter((content) => content.path === undefined || content.path === path)
    const texts: IndexedText[] = []
    for (const content of own) texts.push(await textIn(content, maxBytes))
    const scan = own.map(scanIn).find((one) => one !== undefined)
    return {
      text: texts.map(({ text }) => text).join('\n'),
      isCut: texts.some(({ isCut }) => isCut),
      ...defined({ scan }),
    }
  } catch (error) {
    // Documents that are not readable as text are indexed only by name. Temporary errors are thrown.
    if (isResourceError(error, 'too-large')) return { text: '', isCut: isDocument || mimeType.startsWith('text/') }
    const scan = isResourceError(error, 'invalid') ? scanOfFault(error.detail.fault) : undefined
    if (scan !== undefined) return { ...noText, scan }
    if (isResourceError(error, 'invalid') || isResourceError(error, 'internal')) return noText
    throw error
  }
}

function scanOfFault(fault: unknown): keyof typeof scanMarks | undefined {
  if (fault === scanWaitingFault) return 'waiting'
  return fault === scanFault ? 'unread' : undefined
}

function scanIn({ meta }: Content): keyof typeof scanMarks | undefined {
  const facts = meta?.[metaKeys.reading]
  if (!isObject(facts) || facts.pictures === undefined) return undefined
  return facts.waiting === true ? 'waiting' : 'unread'
}

/** Whether a text is a log, by its name: then its newest part is at its end. */
export function isLog(path: string): boolean {
  return /\.(?:log|out|err|jsonl|ndjson)(?:\.\d+)?$/i.test(path)
}

/** The number of lines before a position of a log, and the bytes before that position, by which the log is recognized. */
interface LineCount {
  readonly position: number
  readonly lines: number
  readonly before: string
}

export type LineCounts = Map<string, LineCount>

/** Number of bytes before a position that are compared, and number of bytes of one range when lines are counted. */
const [comparedBytes, countedBytes] = [64, 1024 * 1024]
/** Maximum number of logs whose line counts are kept. */
const maxLineCounts = 1000

/** Reads the end of a log, from a whole line on. Undefined if the source reads no ranges, or the log is not UTF-8. */
async function readLogEnd(
  { path, size }: { readonly path: string; readonly size: number },
  { mount, maxBytes, signal, lineCounts = new Map() }: ReadingSettings,
): Promise<IndexedText | undefined> {
  const readRange = async (start: number, end: number) => {
    const [content] = await mount.read({ path, params: new Map(), range: { start, end } }, signal)
    const isRange = content?.range !== undefined && content.range.start === start
    return isRange && 'text' in content ? { text: content.text, end: content.range.end } : undefined
  }
  const from = size - maxBytes
  const count = lineCounts.get(path)
  const isKnown =
    count !== undefined &&
    count.position <= from &&
    (await readRange(count.position - comparedBytes, count.position))?.text === count.before
  let [position, lines] = isKnown ? [count.position, count.lines] : [0, 0]
  let last = ''
  while (position < from) {
    const part = await readRange(position, Math.min(position + countedBytes, from))
    if (part === undefined || part.end <= position) return undefined
    lines += part.text.split('\n').length - 1
    position = part.end
    last = part.text
  }
  const end = await readRange(position, size)
  if (end === undefined) return undefined
  const before = last.slice(-comparedBytes)
  if (Buffer.byteLength(before) === comparedBytes) {
    lineCounts.delete(path)
    lineCounts.set(path, { position, lines, before })
    for (const oldest of lineCounts.keys()) if (lineCounts.size > maxLineCounts) lineCounts.delete(oldest)
  }
  const firstBreak = end.text.indexOf('\n')
  return { text: end.text.slice(firstBreak + 1), isCut: true, firstLine: lines + (firstBreak === -1 ? 1 : 2) }
}

/** Reads the beginning of a text, as much as the index takes or the source gives at once. */
async function readBeginning(
  mount: MountReader,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<readonly Content[]> {
  const request = (end: number) => ({ path, params: new Map<string, string>(), range: { start: 0, end } })
  try {
    return await mount.read(request(maxBytes), signal)
  } catch (error) {
    const limit = isResourceError(error, 'too-large') ? error.detail.limit : undefined
    if (typeof limit !== 'number' || limit <= 0 || limit >= maxBytes) throw error
    return mount.read(request(limit), signal)
  }
}

/** Whether a mount has a template with a parameter of this name, such as `lines`. */
export async function hasParameter(mount: MountReader, parameter: string, signal: AbortSignal): Promise<boolean> {
  const pattern = new RegExp(`[?,&]${parameter}[,}]`)
  return (await mount.templates(signal)).some(
    ({ template }) => template.startsWith('{+path}{?') && pattern.test(template),
  )
}

async function textIn(content: Content, maxBytes: number): Promise<IndexedText> {
  if ('text' in content) {
    const bytes = Buffer.from(content.text)
    const isWhole = bytes.length <= maxBytes
    const text = isWhole ? content.text : new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })
    return { text, isCut: isPartOf(content, bytes.length, maxBytes) }
  }
  const bytes =
    'bytes' in content
      ? Buffer.from(content.bytes).subarray(0, maxBytes)
      : await readFirstBytes(content.stream, maxBytes)
  const text = decodeText(bytes)
  const length = 'bytes' in content ? content.bytes.length : content.length
  return { text, isCut: text !== '' && isPartOf(content, length ?? bytes.length, maxBytes) }
}

/** Whether a content has more text than the index takes. */
function isPartOf({ range, size }: Content, length: number, maxBytes: number): boolean {
  return length > maxBytes || (range !== undefined && size !== undefined && range.end + incompleteBytes < size)
}

/** Maximum number of bytes of an incomplete UTF-8 character, which a range leaves out at its end. */
const incompleteBytes = 3

function decodeText(bytes: Buffer): string {
  if (!isTextHead(bytes.subarray(0, headBytes))) return ''
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(beforeNul(bytes), { stream: true })
  } catch {
    return ''
  }
}

async function readFirstBytes(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of stream) {
    pieces.push(piece)
    length += piece.length
    if (length >= maxBytes) break
  }
  return Buffer.concat(pieces).subarray(0, maxBytes)
}

/**
 * Limits from which waiting documents are written: their number, their UTF-16 units, and the time since the last write began, in
 * milliseconds. Many documents in one write cost less, but searches wait for the write.
 */
const together = { documents: 64, units: 128 * 1024, ms: 200 }

export function createBatchWriter(write: (documents: readonly SearchDocument[]) => Promise<void>) {
  let waiting: SearchDocument[] = []
  let units = 0
  let since = performance.now()
  let writing: Promise<void> | undefined
  const begin = async () => {
    await writing
    writing = undefined
    if (waiting.length === 0) return
    writing = write(waiting)
    // The next call throws the error of this write.
    writing.catch(() => {})
    waiting = []
    units = 0
    since = performance.now()
  }
  return {
    /** Waits while earlier documents are written, if there are enough for the next write. */
    add: async (documents: readonly SearchDocument[]): Promise<void> => {
      for (const document of documents) {
        waiting.push(document)
        units += document.text.length
      }
      const isDue = performance.now() - since >= together.ms
      if (isDue || waiting.length >= together.documents || units >= together.units) await begin()
    },
    /** Resolves when everything is written. Rejects with the failure of a write. */
    flush: async (): Promise<void> => {
      await begin()
      await writing
      writing = undefined
    },
    /** Resolves when no write is under way. It does not reject. */
    settled: async (): Promise<void> => {
      await writing?.catch(() => {})
    },
  }
}

/** Entries by the time of their last change, the latest first; entries without a time come last, in their order. */
export function newestFirst(entries: readonly Entry[]): readonly Entry[] {
  return [...entries].sort((a, b) => (b.modified ?? 0) - (a.modified ?? 0))
}
