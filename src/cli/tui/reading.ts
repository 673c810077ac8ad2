import { isResourceError } from '../../core/errors.ts'
import { defined, objectOf } from '../../core/kit/object.ts'
import { isText } from '../../core/kit/utf8.ts'
import { metaKeys } from '../../core/meta.ts'
import { directoryMimeType, type Resource, type ResourceContent, type View } from '../../core/view.ts'
import { formatSize } from '../terminal/io.ts'
import { createFences, type Language, languageOf, type PreviewLine, type PreviewText } from './preview.ts'

/** Size above which a text is read in parts, in bytes; lines of a part; maximum size of a content that is shown, in bytes. */
const large = { bytes: 262_144, lines: 1000, wholeBytes: 1_048_576 }
/** Number of bytes shown of binary content. */
const hexBytes = 512
/** Maximum length of a line, in UTF-16 units. A longer line is shown as several lines, which bounds the work of the layout. */
const maxLine = 4096

/** Reads a resource for the preview: the first part of a large text, the beginning of binary content. */
export async function readShown(
  view: View,
  uri: string,
  { size, mimeType }: Pick<Resource, 'size' | 'mimeType'>,
  signal: AbortSignal,
): Promise<PreviewText> {
  if (uri.endsWith('/') || mimeType === directoryMimeType) return directoryShown(view, uri, signal)
  const isWhole = size === undefined || size <= large.bytes || uri.includes('?')
  if (!isWhole) return readLarge(view, uri, size, signal)
  try {
    return await shownOf((await view.read(uri, { signal })).contents, uri)
  } catch (error) {
    if (isResourceError(error, 'too-large') && !uri.includes('?')) return readLarge(view, uri, size, signal)
    throw error
  }
}

/** Reads a further part of a resource. */
export async function readPart(view: View, uri: string, part: string, signal: AbortSignal): Promise<PreviewText> {
  return shownOf((await view.read(part, { signal })).contents, uri)
}

/** Reads the first lines of a text, the first bytes of a binary content, or the whole content if the server has no parts. */
async function readLarge(view: View, uri: string, size: number | undefined, signal: AbortSignal): Promise<PreviewText> {
  for (const part of [`lines=1-${large.lines}`, `bytes=0-${hexBytes - 1}`]) {
    try {
      return await shownOf((await view.read(`${uri}?${part}`, { signal })).contents, uri, size)
    } catch (error) {
      if (!isResourceError(error, 'invalid') && !isResourceError(error, 'not-found')) throw error
    }
  }
  return shownOf((await view.read(uri, { signal })).contents, uri, size)
}

async function directoryShown(view: View, uri: string, signal: AbortSignal): Promise<PreviewText> {
  const { items, nextCursor } = await view.directory({ uri }, { signal })
  const lines = items.map(({ name, mimeType, title }): PreviewLine => {
    const slash = mimeType === directoryMimeType && !name.endsWith('/') ? '/' : ''
    return { text: `${name}${slash}${title === undefined ? '' : `  ${title}`}`, language: 'names' }
  })
  const more: readonly PreviewLine[] = nextCursor === undefined ? [] : [{ text: '… more', language: 'note' }]
  const fact = `${items.length.toLocaleString('en')}${nextCursor === undefined ? '' : '+'} in it`
  return { lines: [...lines, ...more], facts: [fact] }
}

async function shownOf(contents: readonly ResourceContent[], uri: string, size?: number): Promise<PreviewText> {
  const [first] = contents
  if (first === undefined) return { lines: [{ text: 'There is nothing in it.', language: 'note' }], facts: [] }
  if (contents.length === 1) return contentShown(first, uri, size)
  const lines: PreviewLine[] = []
  for (const content of contents.slice(0, 100)) {
    lines.push({ text: `── ${content.uri}`, language: 'note' }, ...(await contentShown(content, content.uri)).lines)
  }
  return { lines, facts: [`${contents.length} contents`] }
}

async function contentShown(content: ResourceContent, uri: string, size?: number): Promise<PreviewText> {
  const { mimeType, meta } = content
  const part = partOf(meta?.[metaKeys.part])
  const whole = content.size ?? part.size ?? size
  const { bytes, isWhole } = await bytesOf(content)
  const length = whole ?? (isWhole ? bytes.length : undefined)
  const facts = [
    ...(mimeType === undefined ? [] : [mimeType]),
    ...(length === undefined ? [] : [`size ${formatSize(length)}`]),
  ]
  if (!isText(isWhole ? bytes : bytes.subarray(0, wholeEnd(bytes)))) {
    const says = [mimeType ?? 'unknown type', ...(length === undefined ? [] : [formatSize(length)])].join(', ')
    return { lines: [{ text: `${says}: no text. It begins:`, language: 'note' }, ...hexLines(bytes)], facts }
  }
  const text = bytes.toString('utf8')
  const lines = linesOf(text, languageOf(uri, mimeType), part.first)
  const next = isWhole ? nextOf(content.uri, part.next) : undefined
  const cut: readonly PreviewLine[] = isWhole
    ? []
    : [{ text: `… only the first ${formatSize(bytes.length)} are shown`, language: 'note' }]
  return {
    lines: [...lines, ...cut],
    facts,
    ...defined({ next }),
    ...(next !== undefined && !text.endsWith('\n') ? { isCut: true as const } : {}),
  }
}

/** Returns the length of the bytes without a UTF-8 character that is cut off at their end. */
function wholeEnd(bytes: Uint8Array): number {
  let end = bytes.length
  while (end > 0 && end > bytes.length - 4 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end--
  return end > 0 && (bytes[end - 1] ?? 0) >= 0xc0 ? end - 1 : bytes.length
}

async function bytesOf(content: ResourceContent): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }> {
  if ('text' in content) return bounded(Buffer.from(content.text))
  if ('bytes' in content) return bounded(Buffer.from(content.bytes))
  const chunks: Uint8Array[] = []
  let length = 0
  // The end of the loop closes the stream.
  for await (const chunk of content.stream) {
    chunks.push(chunk)
    length += chunk.length
    if (length > large.wholeBytes) break
  }
  return bounded(Buffer.concat(chunks))
}

function bounded(bytes: Buffer) {
  if (bytes.length <= large.wholeBytes) return { bytes, isWhole: true }
  const start = bytes.subarray(0, large.wholeBytes)
  return { bytes: start.subarray(0, wholeEnd(start)), isWhole: false }
}

/** Parses the description of a part, which comes from any server and is validated. */
function partOf(value: unknown) {
  const { unit, first, size, next } = objectOf(value)
  const isLines = unit === 'lines' && typeof first === 'number' && Number.isSafeInteger(first)
  return {
    first: value === undefined || isLines ? (isLines ? first : 1) : undefined,
    size: typeof size === 'number' && size >= 0 ? size : undefined,
    next: typeof next === 'string' && /^(?:lines|bytes)=[\d-]{1,40}$/.test(next) ? next : undefined,
  }
}

function nextOf(uri: string, next: string | undefined): string | undefined {
  const [path, query] = uri.split('?')
  return next !== undefined && /^(?:(?:lines|bytes)=[\d-]+)?$/.test(query ?? '') ? `${path}?${next}` : undefined
}

/** @param first The number of the first line. `undefined`: the lines have no numbers. */
function linesOf(text: string, language: Language, first: number | undefined): readonly PreviewLine[] {
  const isFenced = language === 'markdown' ? createFences() : () => false
  const texts = text.split('\n')
  if (texts.at(-1) === '') texts.pop()
  return texts.flatMap((raw, index): readonly PreviewLine[] => {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
    const kind = isFenced(line) ? 'fenced' : language
    const number = first === undefined ? {} : { number: first + index }
    const [begin = '', ...rest] = pieces(line)
    return [{ text: begin, ...number, language: kind }, ...rest.map((piece) => ({ text: piece, language: kind }))]
  })
}

function pieces(line: string): readonly string[] {
  if (line.length <= maxLine) return [line]
  const found: string[] = []
  for (let at = 0; at < line.length; ) {
    const cut = at + maxLine
    // Do not split a surrogate pair.
    const end = /[\ud800-\udbff]/.test(line[cut - 1] ?? '') ? cut - 1 : cut
    found.push(line.slice(at, end))
    at = end
  }
  return found
}

function hexLines(bytes: Buffer): readonly PreviewLine[] {
  const lines: PreviewLine[] = []
  for (let at = 0; at < Math.min(hexBytes, bytes.length); at += 8) {
    const row = bytes.subarray(at, at + 8)
    const hex = (row.toString('hex').match(/../g) ?? []).join(' ').padEnd(24)
    const text = row.toString('latin1').replace(/[^\x20-\x7e]/g, '.')
    lines.push({ text: `${at.toString(16).padStart(8, '0')}  ${hex} ${text}`, language: 'hex' })
  }
  return lines
}
