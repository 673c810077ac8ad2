import { toUnicodeEscape } from '../../core/entry.ts'
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
  checkStructure(text)
  try {
    return JSON.parse(text)
  } catch {
    throw new JsonError('The message is not valid JSON.')
  }
}

/** Checks the depth, and that no object names a member twice, because `JSON.parse` would keep the last. */
function checkStructure(text: string): void {
  const open: (Set<string> | undefined)[] = []
  let lastString = ''
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '{':
      case '[':
        if (open.push(text[at] === '{' ? new Set() : undefined) > maxDepth)
          throw new JsonError(`The message is more than ${maxDepth} levels deep.`)
        break
      case '}':
      case ']':
        open.pop()
        break
      case '"': {
        const end = endOfString(text, at)
        // A string without an end is not JSON.
        if (end === -1) return
        lastString = text.slice(at, end + 1)
        at = end
        break
      }
      case ':': {
        const names = open.at(-1)
        const name = lastString.includes('\\') ? decodeString(lastString) : lastString.slice(1, -1)
        if (names?.has(name)) throw new JsonError('An object in the message has the same key twice.')
        names?.add(name)
        break
      }
    }
  }
}

function decodeString(json: string): string {
  try {
    return String(JSON.parse(json))
  } catch {
    throw new JsonError('The message is not valid JSON.')
  }
}

function endOfString(text: string, start: number): number {
  for (let i = text.indexOf('"', start + 1); i !== -1; i = text.indexOf('"', i + 1)) {
    let slashes = 0
    while (text.charCodeAt(i - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return i
  }
  return -1
}

export const blobStreamKey = Symbol('blob')

/** The member `blob` of a content whose bytes are read while the answer is sent. */
export interface BlobStream {
  readonly [blobStreamKey]: AsyncIterable<Uint8Array>
  readonly length: number
  /** Whether all of the bytes are in memory until they are sent. */
  readonly isInMemory?: boolean
}

export function blobStreamOf({ stream, length }: { stream: AsyncIterable<Uint8Array>; length: number }): BlobStream {
  return { [blobStreamKey]: stream, length }
}

export function isBlobStream(value: unknown): value is BlobStream {
  return typeof value === 'object' && value !== null && blobStreamKey in value
}

export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3)
}

/** Length of a string, in characters, that takes about a millisecond to write. */
export const longTextLength = 512 * 1024

export interface StreamedMessage {
  readonly head: string
  readonly blob: BlobStream
  readonly tail: string
}

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

/**
 * Formats one message as JSON. U+0085, U+2028 and U+2029 are escaped: some line readers take them for line ends.
 *
 * @throws ResourceError `too-large` when it would be longer than `limit` bytes.
 */
export function formatJson(message: unknown, limit = Number.POSITIVE_INFINITY): string {
  const json = escapeLineEnds(JSON.stringify(message))
  if (json.length > limit || Buffer.byteLength(json) > limit) throw tooLongError(limit)
  return json
}

export function tooLongError(limit: number): ResourceError {
  // Base64 makes bytes a third longer, so a part of half the limit fits.
  const last = Math.min(1_048_576, Math.floor(limit / 2)) - 1
  return new ResourceError(
    'too-large',
    `The answer is larger than ${limit} bytes. Of a resource read a part, by the parameter lines=1-1000 or bytes=0-${last} of its URI.`,
    { reason: 'too-large', limit },
  )
}

/** Line ends besides the control characters, which JSON escapes anyway. */
const lineEnds = ['\u0085', '\u2028', '\u2029']

export function escapeLineEnds(json: string): string {
  let escaped = json
  // These searches are cheaper than a regular expression.
  for (const end of lineEnds) if (escaped.includes(end)) escaped = escaped.replaceAll(end, toUnicodeEscape(end))
  return escaped
}
