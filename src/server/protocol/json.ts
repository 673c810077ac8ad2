import { ResourceError } from '../../core/errors.ts'

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
  const fault = scan(text)
  if (fault !== undefined) throw new JsonError(fault)
  try {
    return JSON.parse(text)
  } catch {
    throw new JsonError('The message is not valid JSON.')
  }
}

/** Checks, before the costly parse, for faults that `JSON.parse` accepts: excessive depth and duplicate members. Returns the fault. */
function scan(text: string): string | undefined {
  // The names seen in each open object; undefined for an array.
  const open: (Set<string> | undefined)[] = []
  let expectsName = false
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x7b: // {
      case 0x5b: // [
        if (open.length === maxDepth) return `The message is more than ${maxDepth} levels deep.`
        expectsName = text[i] === '{'
        open.push(expectsName ? new Set() : undefined)
        break
      case 0x7d: // }
      case 0x5d: // ]
        open.pop()
        expectsName = false
        break
      case 0x2c: // ,
        expectsName = open.at(-1) !== undefined
        break
      case 0x22: {
        const end = endOfString(text, i)
        if (end === -1) return 'The message is not valid JSON.'
        if (expectsName && names(open.at(-1), text.slice(i, end + 1))) return 'The message names a member twice.'
        expectsName = false
        i = end
        break
      }
    }
  }
  return undefined
}

function endOfString(text: string, start: number): number {
  for (let i = text.indexOf('"', start + 1); i !== -1; i = text.indexOf('"', i + 1)) {
    let slashes = 0
    while (text.charCodeAt(i - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return i
  }
  return -1
}

/** Whether the object already has the member; adds it if not. Escapes are decoded before the comparison. */
function names(seen: Set<string> | undefined, quoted: string): boolean {
  if (seen === undefined) return false
  let name = quoted
  try {
    if (quoted.includes('\\')) name = JSON.stringify(JSON.parse(quoted))
  } catch {
    return false
  }
  if (seen.has(name)) return true
  seen.add(name)
  return false
}

/** Key of the pieces of a {@link JsonText}. */
export const jsonTextKey = Symbol('json')

/** The member `resources` of a result as JSON that is written already, in UTF-8: the items of the array, in pieces between which commas are missing. */
export interface JsonText {
  readonly [jsonTextKey]: readonly Buffer[]
  /** Returns the same value as objects. */
  toJSON(): readonly unknown[]
}

export function isJsonText(value: unknown): value is JsonText {
  return typeof value === 'object' && value !== null && jsonTextKey in value
}

/** Key of the bytes of a {@link BlobStream}. */
export const blobStreamKey = Symbol('blob')

/** The member `blob` of a content whose bytes are read while the answer is sent. Only `replyLong` writes it. */
export interface BlobStream {
  readonly [blobStreamKey]: AsyncIterable<Uint8Array>
  readonly length: number
}

export function blobStreamOf({ stream, length }: { stream: AsyncIterable<Uint8Array>; length: number }): BlobStream {
  return { [blobStreamKey]: stream, length }
}

export function isBlobStream(value: unknown): value is BlobStream {
  return typeof value === 'object' && value !== null && blobStreamKey in value
}

/** The parts of a message around its {@link BlobStream}. */
export interface StreamedMessage {
  readonly head: string
  readonly blob: BlobStream
  readonly tail: string
}

/** Returns the parts of a message with a content that is a stream; undefined for any other message. */
export function streamedMessage(message: unknown): StreamedMessage | undefined {
  const { result } = (message ?? {}) as { readonly result?: { readonly contents?: unknown } }
  if (!Array.isArray(result?.contents) || result.contents.length !== 1) return undefined
  const [content] = result.contents as readonly Readonly<Record<string, unknown>>[]
  const blob = content?.blob
  if (!isBlobStream(blob)) return undefined
  const mark = `blob ${crypto.randomUUID()}`
  const frame = JSON.stringify({
    ...(message as object),
    result: { ...result, contents: [{ ...content, blob: mark }] },
  })
  const [head = '', tail = ''] = frame.split(mark).map(escapeLineEnds)
  return { head, blob, tail }
}

type Listed = { readonly result: { readonly resources: JsonText } }

function holdsJsonText(message: unknown): message is Listed {
  const { result } = (message ?? {}) as Partial<Listed>
  return isJsonText(result?.resources)
}

/** Writes a message with a {@link JsonText} in pieces. */
function piecesOf(message: Listed): readonly Buffer[] {
  const { result } = message
  const mark = `list ${crypto.randomUUID()}`
  const frame = JSON.stringify({ ...message, result: { ...result, resources: mark } })
  const [head = '', tail = ''] = frame.split(`"${mark}"`).map(escapeLineEnds)
  const comma = Buffer.from(',')
  const items = result.resources[jsonTextKey].flatMap((piece, at) => (at === 0 ? [piece] : [comma, piece]))
  return [Buffer.from(`${head}[`), ...items, Buffer.from(`]${tail}`)]
}

/** Does the same as {@link formatJson}, in UTF-8. */
export function encodeJson(message: unknown, limit = Number.POSITIVE_INFINITY): Buffer {
  if (!holdsJsonText(message)) return Buffer.from(formatJson(message, limit))
  const pieces = piecesOf(message)
  if (pieces.reduce((sum, { length }) => sum + length, 0) > limit) throw tooLong(limit)
  return Buffer.concat(pieces)
}

/**
 * Formats one message as JSON. U+0085, U+2028 and U+2029 are escaped: some line readers take them for line ends.
 *
 * @throws ResourceError `too-large` when it would be longer than `limit` bytes.
 */
export function formatJson(message: unknown, limit = Number.POSITIVE_INFINITY): string {
  if (holdsJsonText(message)) return encodeJson(message, limit).toString()
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
const piecesPerTurn = 4
/** Maximum number of UTF-8 bytes per UTF-16 unit. */
const maxBytesPerUnit = 3

/**
 * Formats the same JSON as `formatJson`, in UTF-8, for a message with long strings: they are written piece by piece, a few in
 * each turn of the event loop, so that other requests need not wait for all of them.
 *
 * @param breath Resolves in the turn for the next pieces.
 * @throws ResourceError `too-large` as `formatJson` does.
 */
export async function encodeJsonInPieces(
  message: unknown,
  limit = Number.POSITIVE_INFINITY,
  breath: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve)),
): Promise<Buffer> {
  const long: string[] = []
  // A random mark that no string of the message contains.
  const mark = `piece ${crypto.randomUUID()} `
  const frame = JSON.stringify(message, (_, value: unknown) =>
    typeof value === 'string' && value.length > longStringLength ? `${mark}${long.push(value) - 1}"` : value,
  )
  const bytes = long.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  // No text is shorter in JSON.
  if (bytes > limit) throw tooLong(limit)
  const output = createOutput(frame.length + bytes, limit)
  let count = 0
  // The parts between the marks hold the short values, and the quotation marks around the long strings.
  for (const [index, part] of frame.split(new RegExp(`${mark}\\d+\\\\"`)).entries()) {
    output.add(escapeLineEnds(part))
    const text = long[index] ?? ''
    for (let start = 0; start < text.length; ) {
      const end = endOfPiece(text, start + pieceLength)
      output.add(escapeLineEnds(JSON.stringify(text.slice(start, end)).slice(1, -1)))
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
  let bytes = Buffer.allocUnsafeSlow(Math.ceil(1.05 * Math.min(expected, limit)) + maxBytesPerUnit * pieceLength)
  let length = 0
  return {
    add: (text: string): void => {
      const most = maxBytesPerUnit * text.length
      if (length + most > bytes.length && length + Buffer.byteLength(text) > bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.ceil(1.5 * bytes.length) + most)
        bytes.copy(larger, 0, 0, length)
        bytes = larger
      }
      length += bytes.write(text, length)
      if (length > limit) throw tooLong(limit)
    },
    take: () => bytes.subarray(0, length),
  }
}

/** Returns an end that does not split a surrogate pair. */
function endOfPiece(text: string, end: number): number {
  const [high, low] = [text.charCodeAt(end - 1), text.charCodeAt(end)]
  return high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff ? end + 1 : end
}

export function tooLong(limit: number): ResourceError {
  return new ResourceError(
    'too-large',
    `The answer is larger than ${limit} bytes. Read a part of the resource: append ?lines=1-1000 or ?bytes=0-1048575 to its URI.`,
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
