/** Characters other than ASCII, Latin letters, kana, ideographs, Hangul and their punctuation: rare in most texts. */
const unusual =
  /[^\t\n\r\x20-\x7e\xa0-\u017f\u0370-\u045f\u200b-\u2027\u2030-\u205e\u20ac\u2100-\u27bf\u3000-\u30ff\u3131-\u318e\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\uffe0-\uffe6\p{Emoji_Presentation}]/gu
/** Characters that occur in no text. */
const impossible = /(?![\t-\r])[\p{Cc}\p{Co}\p{Noncharacter_Code_Point}]/u

type Utf16 = 'utf-16le' | 'utf-16be'

/** The encoding of the byte order mark at the beginning of bytes. */
export function markOf(bytes: Uint8Array): 'utf-8' | Utf16 | undefined {
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8'
  if (a === 0xff && b === 0xfe) return 'utf-16le'
  return a === 0xfe && b === 0xff ? 'utf-16be' : undefined
}

/** Whether bytes with a byte order mark of UTF-16 are text in it: sound and numbers can begin with the same bytes. */
export function isUtf16(bytes: Uint8Array, label: Utf16): boolean {
  return read(bytes, label) !== undefined
}

/**
 * Guesses the byte order of a UTF-16 text without a byte order mark. Nearly all characters must be usual ones, including ASCII
 * (at least a space or a line end), and the other byte order must not give such a text. Ideographs made of bytes that are nearly
 * all ASCII do not count: such bytes are another text that contains zeros.
 */
export function guessUtf16(bytes: Uint8Array): Utf16 | undefined {
  const readings = (['utf-16le', 'utf-16be'] as const).map((label) => {
    const text = read(bytes, label) ?? ''
    const ascii = text.match(/[\t\n\r\x20-\x7e]/g)?.length ?? 0
    const share = ascii === 0 ? 0 : 1 - (text.match(unusual)?.length ?? 0) / text.length
    const ideographs = (text.match(/[\u2e80-\uffff]/g)?.length ?? 0) / Math.max(1, text.length)
    return { label, share, ascii, ideographs }
  })
  const [best, other] = readings.sort((a, b) => b.share - a.share || b.ascii - a.ascii)
  if (best === undefined || other === undefined || best.share < 0.97) return undefined
  if (best.ideographs > 0.1 && beyondAscii(bytes) < 0.05) return undefined
  return other.share < 0.8 || other.ascii * 4 < best.ascii ? best.label : undefined
}

function read(bytes: Uint8Array, label: Utf16): string | undefined {
  try {
    // A sample may end within a character.
    const even = bytes.subarray(0, bytes.length - (bytes.length % 2))
    const text = new TextDecoder(label, { fatal: true }).decode(even, { stream: true })
    return impossible.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** The share of non-ASCII characters: about every other in text with real ideographs. */
function beyondAscii(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) if (byte >= 0x80) count++
  return count / Math.max(1, bytes.length)
}

/** The length of the well-formed character at an index; 0 if it is malformed (Unicode 16, table 3-7). */
function characterAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  if (lead < 0xc2 || lead > 0xf4) return 0
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  const second = bytes[at + 1] ?? 0
  const from = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const to = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  if (second < from || second > to) return 0
  for (let i = 2; i < length; i++) if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return 0
  return length
}

/** The number of non-ASCII characters in bytes as UTF-8, and the number of bytes outside of any character. */
function examine(bytes: Uint8Array): { readonly good: number; readonly bad: number } {
  let good = 0
  let bad = 0
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length > 1) good++
    // A character may be cut in two at the end.
    if (length === 0 && at < bytes.length - 3) bad++
    at += length || 1
  }
  return { good, bad }
}

/** Whether bytes are certainly UTF-8 although a few are damaged: at most one of 20 non-ASCII characters. */
export function isDamagedUtf8(bytes: Uint8Array): boolean {
  const { good, bad } = examine(bytes)
  return good >= 10 && bad * 20 <= good
}

/** Whether bytes can be part of a text in UTF-8 that has damaged bytes in it. */
export function isMostlyUtf8(bytes: Uint8Array): boolean {
  return examine(bytes).bad * 10 <= bytes.length
}

/** Replaces each byte outside of any character by `?`. The number of bytes stays the same, so offsets stay valid. */
export function repairUtf8(bytes: Uint8Array): Buffer {
  const repaired = Buffer.from(bytes)
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length === 0) repaired[at] = 0x3f
    at += length || 1
  }
  return repaired
}

/** Types that are never text, whatever their bytes look like. */
const media = /^(?:image\/(?!svg\b)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|wasm)\b)/

/** First bytes of binary formats that may continue for long without a byte that no text contains. */
const beginnings: readonly string[] = [
  '%PDF-',
  'PK\x03\x04',
  'PK\x05\x06',
  '\x89PNG',
  'GIF87a',
  'GIF89a',
  '\xff\xd8\xff',
  '\x1f\x8b',
  'BZh',
  '\xfd7zXZ',
  '7z\xbc\xaf',
  'Rar!',
  '\x28\xb5\x2f\xfd',
  '\xd0\xcf\x11\xe0',
  '\x7fELF',
  '\xca\xfe\xba\xbe',
  'ID3',
  'OggS',
  'fLaC',
  'RIFF',
  'wOFF',
  'wOF2',
]

/** Whether a MIME type is one of pictures, sound or archives. */
export function isMedia(mimeType = ''): boolean {
  return media.test(mimeType)
}

/** Whether bytes are of a format that is not text, judged by their declared type or their first bytes. */
export function isBinary(bytes: Uint8Array, mimeType?: string): boolean {
  const head = Buffer.from(bytes.subarray(0, 8)).toString('latin1')
  return isMedia(mimeType) || beginnings.some((beginning) => head.startsWith(beginning))
}
