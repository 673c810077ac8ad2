import { base64Of } from '../../core/entry.ts'
import { ResourceError } from '../../core/errors.ts'
import { answerBuffers } from './buffers.ts'
import { type BlobStream, base64Length, bytesOfBlob, isJsonText, type JsonText, jsonTextKey } from './json-parts.ts'

/** Maximum nesting of arrays and objects. */
const maxDepth = 64

/** JSON that could not be parsed. The message is safe to send. */
export class JsonError extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses one JSON text from bytes, strictly: UTF-8 without a byte order mark (RFC 8259, section 8.1), no duplicate member in an
 * object (parsers disagree on them), at most 64 levels deep.
 *
 * @throws JsonError
 */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new JsonError('The message is not valid UTF-8.')
  }
  if (text.charCodeAt(0) === 0xfeff) throw new JsonError('The message begins with a byte order mark.')
  // Check the depth before the parse, which would accept any, and count the members of all objects: each has one colon outside of strings.
  let depth = 0
  let members = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x7b: // {
      case 0x5b: // [
        if (++depth > maxDepth) throw new JsonError(`The message is more than ${maxDepth} levels deep.`)
        break
      case 0x7d: // }
      case 0x5d: // ]
        depth--
        break
      case 0x3a: // :
        members++
        break
      case 0x22: {
        const end = endOfString(text, i)
        // Without an end it is no JSON.
        i = end === -1 ? text.length : end
        break
      }
    }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new JsonError('The message is not valid JSON.')
  }
  if (membersIn(value) !== members) throw new JsonError('The message names a member twice.')
  return value
}

function endOfString(text: string, start: number): number {
  for (let i = text.indexOf('"', start + 1); i !== -1; i = text.indexOf('"', i + 1)) {
    let slashes = 0
    while (text.charCodeAt(i - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return i
  }
  return -1
}

/** Returns the number of members of all objects in a value. Of members with the same name, `JSON.parse` keeps the last. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += membersIn(item)
    return count
  }
  const object = value as Readonly<Record<string, unknown>>
  for (const name of Object.keys(object)) count += 1 + membersIn(object[name])
  return count
}

/** The parts of a message around its {@link BlobStream}. */
export interface StreamedMessage {
  readonly head: string
  readonly blob: BlobStream
  readonly tail: string
}

/** Returns the parts of a message whose content is a stream. */
export function streamedMessage(message: unknown): StreamedMessage {
  const { result } = message as { readonly result: { readonly contents: readonly [{ readonly blob: BlobStream }] } }
  const [content] = result.contents
  const { blob } = content
  const mark = `blob ${crypto.randomUUID()}`
  const frame = JSON.stringify({
    ...(message as object),
    result: { ...result, contents: [{ ...content, blob: mark }] },
  })
  const [head = '', tail = ''] = frame.split(mark).map(escapeLineEnds)
  return { head, blob, tail }
}

type ListAnswer = { readonly result: { readonly resources: JsonText } }

function holdsJsonText(message: unknown): message is ListAnswer {
  const { result } = (message ?? {}) as Partial<ListAnswer>
  return isJsonText(result?.resources)
}

/**
 * Writes a message with a {@link JsonText} in pieces.
 *
 * @throws ResourceError `too-large` when they would be longer than `limit` bytes together.
 */
function piecesOf(message: ListAnswer, limit: number): readonly Buffer[] {
  const { result } = message
  const mark = `list ${crypto.randomUUID()}`
  const frame = JSON.stringify({ ...message, result: { ...result, resources: mark } })
  const [head = '', tail = ''] = frame.split(`"${mark}"`).map(escapeLineEnds)
  const items = result.resources[jsonTextKey].flatMap((piece, at) => (at === 0 ? [piece] : [comma, piece]))
  const pieces = [Buffer.from(`${head}[`), ...items, Buffer.from(`]${tail}`)]
  if (pieces.reduce((sum, { length }) => sum + length, 0) > limit) throw tooLong(limit)
  return pieces
}

const comma = Buffer.from(',')
const lineEnd = Buffer.from('\n')

/** Formats a message as a line. One with a {@link JsonText} is written in pieces of UTF-8: most of them are there already. */
export function formatLine(message: unknown, limit: number): string | readonly Buffer[] {
  if (!holdsJsonText(message)) return `${formatJson(message, limit)}\n`
  return [...piecesOf(message, limit), lineEnd]
}

/** Does the same as {@link formatJson}, in UTF-8. */
export function encodeJson(message: unknown, limit = Number.POSITIVE_INFINITY): Buffer {
  return holdsJsonText(message) ? Buffer.concat(piecesOf(message, limit)) : Buffer.from(formatJson(message, limit))
}

/**
 * Formats one message as JSON, the objects of a {@link JsonText} too. U+0085, U+2028 and U+2029 are escaped: some line readers take them for line ends.
 *
 * @throws ResourceError `too-large` when it would be longer than `limit` bytes.
 */
export function formatJson(message: unknown, limit = Number.POSITIVE_INFINITY): string {
  let json = JSON.stringify(message)
  if (json.length <= limit) json = escapeLineEnds(json)
  // Without a look at each character where no text of this length could be too long.
  if (json.length > limit || (json.length * maxBytesPerUnit > limit && Buffer.byteLength(json) > limit))
    throw tooLong(limit)
  return json
}

/**
 * Length above which a string is written in pieces, length of a piece (short enough for the young generation of the heap), both
 * in characters, and number of pieces per turn of the event loop.
 */
const longStringLength = 128 * 1024
const pieceLength = 32 * 1024
/** Number of bytes that are encoded as base64 at once: a multiple of three has no padding. */
const pieceBytes = 24 * 1024
const piecesPerTurn = 4
/** Maximum number of UTF-8 bytes per UTF-16 unit. */
const maxBytesPerUnit = 3

/**
 * Formats the same JSON as `formatJson`, in UTF-8, for a message with long strings: they are written piece by piece, a few in
 * each turn of the event loop, so that other requests need not wait for all of them. The bytes lie in a buffer of `answerBuffers`.
 *
 * @param breath Resolves in the turn for the next pieces.
 * @throws ResourceError `too-large` as `formatJson` does.
 */
export async function encodeJsonInPieces(
  message: unknown,
  limit = Number.POSITIVE_INFINITY,
  breath: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve)),
): Promise<Buffer> {
  const long: (string | Uint8Array)[] = []
  // A random mark that no string of the message contains.
  const mark = `piece ${crypto.randomUUID()} `
  const markOf = (part: string | Uint8Array) => `${mark}${long.push(part) - 1}"`
  const frame = JSON.stringify(replaceBlobs(message, markOf), (_, value: unknown) =>
    typeof value === 'string' && value.length > longStringLength ? markOf(value) : value,
  )
  const lengthOf = (part: string | Uint8Array) =>
    typeof part === 'string' ? Buffer.byteLength(part) : base64Length(part.length)
  const bytes = long.reduce((sum, part) => sum + lengthOf(part), 0)
  // No text is shorter in JSON.
  if (bytes > limit) throw tooLong(limit)
  const output = createOutput(frame.length + bytes, limit)
  let count = 0
  // The parts between the numbers of the marks hold the short values, and the quotation marks around the long strings.
  const arounds = frame.split(new RegExp(`${mark}(\\d+)\\\\"`))
  for (let at = 0; at < arounds.length; at += 2) {
    output.add(escapeLineEnds(arounds[at] ?? ''))
    const part = long[Number(arounds[at + 1])] ?? ''
    for (let start = 0; start < part.length; ) {
      const end = typeof part === 'string' ? endOfPiece(part, start + pieceLength) : start + pieceBytes
      if (typeof part === 'string') output.add(escapeLineEnds(JSON.stringify(part.slice(start, end)).slice(1, -1)))
      else output.add(base64Of(part.subarray(start, end)), 'latin1')
      start = end
      if (++count % piecesPerTurn === 0) await breath()
    }
  }
  return output.take()
}

/**
 * Creates a single growing buffer for the output: many smaller ones would fragment the memory of the process. It grows when more
 * characters are escaped than expected.
 */
function createOutput(expected: number, limit: number) {
  let bytes = answerBuffers.take(Math.ceil(1.05 * Math.min(expected, limit)) + maxBytesPerUnit * pieceLength)
  let length = 0
  return {
    /** @param encoding `latin1` for a text of ASCII characters only. */
    add: (text: string, encoding: 'utf8' | 'latin1' = 'utf8'): void => {
      const most = (encoding === 'utf8' ? maxBytesPerUnit : 1) * text.length
      if (length + most > bytes.length && length + Buffer.byteLength(text) > bytes.length) {
        const larger = answerBuffers.take(Math.ceil(1.5 * bytes.length) + most)
        bytes.copy(larger, 0, 0, length)
        answerBuffers.give(bytes)
        bytes = larger
      }
      length += bytes.write(text, length, encoding)
      if (length > limit) throw tooLong(limit)
    },
    take: () => bytes.subarray(0, length),
  }
}

/** Returns the message with a text in the place of each {@link BlobBytes}. */
function replaceBlobs(message: unknown, textFor: (bytes: Uint8Array) => string): unknown {
  const { result } = (message ?? {}) as { readonly result?: { readonly contents?: unknown } }
  if (!Array.isArray(result?.contents)) return message
  const contents = (result.contents as readonly Readonly<Record<string, unknown>>[]).map((content) => {
    const bytes = bytesOfBlob(content.blob)
    return bytes === undefined ? content : { ...content, blob: textFor(bytes) }
  })
  return { ...(message as object), result: { ...result, contents } }
}

/** Returns an end that does not split a surrogate pair. */
function endOfPiece(text: string, end: number): number {
  const [high, low] = [text.charCodeAt(end - 1), text.charCodeAt(end)]
  return high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff ? end + 1 : end
}

export function tooLong(limit: number): ResourceError {
  // Base64 makes bytes a third longer, so a part of half the limit fits.
  const last = Math.min(1_048_576, Math.floor(limit / 2)) - 1
  return new ResourceError(
    'too-large',
    `The answer is larger than ${limit} bytes. Read a part of the resource: append ?lines=1-1000 or ?bytes=0-${last} to its URI.`,
    { reason: 'too-large', limit },
  )
}

/** Line ends besides the control characters, which JSON escapes anyway. */
const lineEnds = ['\u0085', '\u2028', '\u2029']

export function escapeLineEnds(json: string): string {
  let escaped = json
  // Each of these searches is far cheaper than a regular expression, and they rarely find anything.
  for (const end of lineEnds) if (escaped.includes(end)) escaped = escaped.replaceAll(end, escapeOf(end))
  return escaped
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
