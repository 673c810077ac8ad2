/** Characters that most texts hardly have: other than Latin, Greek and Cyrillic, kana, ideographs, Hangul, punctuation, symbols and emoji. */
const unusual =
  /[^\t\n\r\x20-\x7e\xa0-\u017f\u0370-\u045f\u200b-\u2027\u2030-\u205e\u20ac\u2100-\u27bf\u3000-\u30ff\u3131-\u318e\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\uffe0-\uffe6\p{Emoji_Presentation}]/gu
/** Controls other than white space, private-use characters and noncharacters: bytes that give one of these are taken for no text. */
const impossible = /(?![\t-\r])[\p{Cc}\p{Co}\p{Noncharacter_Code_Point}]/u

type Utf16 = 'utf-16le' | 'utf-16be'
type Utf32 = 'utf-32le' | 'utf-32be'

/** The encoding that a byte order mark at the beginning of the bytes shows; undefined without such a mark. */
export function byteOrderMarkOf(bytes: Uint8Array): 'utf-8' | Utf16 | Utf32 | undefined {
  const [a, b, c, d] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8'
  if (a === 0xff && b === 0xfe && c === 0 && d === 0) return 'utf-32le'
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return 'utf-32be'
  if (a === 0xff && b === 0xfe) return 'utf-16le'
  return a === 0xfe && b === 0xff ? 'utf-16be' : undefined
}

/** Whether bytes with a byte order mark are text in its encoding: other data can begin with the same bytes. */
export function isTextIn(bytes: Uint8Array, label: Utf16 | Utf32): boolean {
  return decodeWideSample(bytes, label) !== undefined
}

/** Whether characters other than NUL can have zero bytes in an encoding. */
export function hasZeros(label: string): boolean {
  return /^utf-(?:16|32)/.test(label)
}

/** Guesses the byte order of a UTF-32 text without a byte order mark: nearly all characters are usual ones, some of them ASCII. */
export function guessUtf32(bytes: Uint8Array): Utf32 | undefined {
  return (['utf-32le', 'utf-32be'] as const).find((label) => {
    const text = decodeWideSample(bytes, label) ?? ''
    const usual = text.length - (text.match(unusual)?.length ?? 0)
    return /[\t\n\r\x20-\x7e]/.test(text) && usual >= text.length * 0.97
  })
}

/**
 * Guesses the byte order of a UTF-16 text without a byte order mark: nearly all characters are usual ones, some of them ASCII, and the
 * other byte order does not give such a text.
 */
export function guessUtf16(bytes: Uint8Array): Utf16 | undefined {
  const readings = (['utf-16le', 'utf-16be'] as const).map((label) => {
    const text = decodeWideSample(bytes, label) ?? ''
    const ascii = text.match(/[\t\n\r\x20-\x7e]/g)?.length ?? 0
    const share = ascii === 0 ? 0 : 1 - (text.match(unusual)?.length ?? 0) / text.length
    const ideographs = (text.match(/[\u2e80-\uffff]/g)?.length ?? 0) / Math.max(1, text.length)
    return { label, share, ascii, ideographs }
  })
  const [best, other] = readings.sort((a, b) => b.share - a.share || b.ascii - a.ascii)
  if (best === undefined || other === undefined || best.share < 0.97) return undefined
  if (best.ideographs > 0.1 && countHigh(bytes) < 0.05 * bytes.length) return undefined
  return other.share < 0.8 || other.ascii * 4 < best.ascii ? best.label : undefined
}

function decodeWideSample(bytes: Uint8Array, label: Utf16 | Utf32): string | undefined {
  // A sample may end within a character.
  const whole = bytes.subarray(0, bytes.length - (bytes.length % (label.startsWith('utf-32') ? 4 : 2)))
  const text = decodeBytes(whole, label, 'strict')
  return text === undefined || impossible.test(text) ? undefined : text
}

/** The number of bytes that are not ASCII. */
export function countHigh(bytes: Uint8Array): number {
  let high = 0
  for (const byte of bytes) if (byte >= 0x80) high++
  return high
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

/** Reads bytes as UTF-8. `good`: the number of non-ASCII characters; `bad`: the number of bytes outside of any character. */
function examine(bytes: Uint8Array): { readonly good: number; readonly bad: number } {
  let good = 0
  let bad = 0
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length > 1) good++
    if (length === 0 && at < bytes.length - 3) bad++
    at += length || 1
  }
  return { good, bad }
}

/** Whether bytes are certainly UTF-8, although some may be damaged: they have at least 10 non-ASCII characters, and 20 for each damaged byte. */
export function isDamagedUtf8(bytes: Uint8Array): boolean {
  const { good, bad } = examine(bytes)
  return good >= 10 && bad * 20 <= good
}

export function isMostlyUtf8(bytes: Uint8Array): boolean {
  return examine(bytes).bad * 10 <= bytes.length
}

/** Replaces each byte outside of any character by `?`. The number of bytes stays the same. */
export function repairUtf8(bytes: Uint8Array): Buffer {
  const repaired = Buffer.from(bytes)
  for (let at = 0; at < bytes.length; ) {
    const length = characterAt(bytes, at)
    if (length === 0) repaired[at] = 0x3f
    at += length || 1
  }
  return repaired
}

/** MIME types that are never text, whatever the bytes are. */
const media = /^(?:image\/(?!svg\b)|audio\/|video\/|font\/|application\/(?:pdf|zip|gzip|wasm)\b)/

/** First bytes of binary formats whose next bytes can look like text for long. */
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

/** Whether a MIME type is one of pictures (except SVG), sound, video, fonts, PDF, archives or WebAssembly. */
export function isBinaryType(mimeType = ''): boolean {
  return media.test(mimeType)
}

/** Whether bytes are of a format that is not text, judged by their declared type or their first bytes. */
export function isBinary(bytes: Uint8Array, mimeType?: string): boolean {
  const head = Buffer.from(bytes.subarray(0, 8)).toString('latin1')
  return isBinaryType(mimeType) || beginnings.some((beginning) => head.startsWith(beginning))
}

const aliases: Readonly<Record<string, string>> = {
  cp932: 'shift_jis',
  ms932: 'shift_jis',
  eucjp: 'euc-jp',
  jis: 'iso-2022-jp',
  cp936: 'gbk',
  cp949: 'euc-kr',
  uhc: 'euc-kr',
  cp950: 'big5',
  cp855: 'ibm855',
  'utf-32': 'utf-32le',
}

/** Encodings that the Encoding Standard does not have. */
const others: Readonly<Record<string, (bytes: Uint8Array, strict?: 'strict') => string | undefined>> = {
  ibm855: decodeIbm855,
  'utf-32le': (bytes, strict) => decodeUtf32(bytes, 'utf-32le', strict),
  'utf-32be': (bytes, strict) => decodeUtf32(bytes, 'utf-32be', strict),
}

/**
 * The label of an encoding in the WHATWG Encoding Standard, in lower case: of `CP932` it is `shift_jis`. Also `ibm855`, `utf-32le` and
 * `utf-32be`. Undefined for an unknown name.
 */
export function encodingLabel(name: string): string | undefined {
  const labelText = name.trim().toLowerCase()
  const label = aliases[labelText] ?? labelText
  if (Object.hasOwn(others, label)) return label
  try {
    return new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

/** Characters of 0x80 to 0x9F in Windows-1252; all other bytes are Latin-1. */
const punctuation = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

export function decodeBytes(bytes: Uint8Array, label: string, strict?: 'strict'): string | undefined {
  // Node's decoder of Windows-1252 is one of Latin-1 in some releases (nodejs/node#56542).
  if (label === 'windows-1252') return decodeWestern(bytes, strict)
  // ICU, on which the other decoders are based, decodes fewer syllables of EUC-KR than the standard.
  if (label === 'euc-kr') return decodeKorean(bytes, strict)
  if (Object.hasOwn(others, label)) return others[label]?.(bytes, strict)
  try {
    const text = new TextDecoder(label, { fatal: strict !== undefined }).decode(bytes, { stream: strict !== undefined })
    // ICU decodes some bytes to C1 controls that the Encoding Standard calls malformed.
    return strict !== undefined && /[\x80-\x9f]/.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** Whether bytes that decode are whole characters: the last one is not cut in two. */
export function hasWholeCharacters(bytes: Uint8Array, label: string): boolean {
  const padded = Buffer.concat([bytes, Buffer.from('\n')])
  return decodeBytes(padded, label, 'strict')?.endsWith('\n') === true
}

/** The characters of 0x80 to 0xFF in code page 855. */
const cyrillic855 =
  'ђЂѓЃёЁєЄѕЅіІїЇјЈљЉњЊћЋќЌўЎџЏюЮъЪаАбБцЦдДеЕфФгГ«»░▒▓│┤хХиИ╣║╗╝йЙ┐└┴┬├─┼кК╚╔╩╦╠═╬¤лЛмМнНоОп┘┌█▄Пя▀ЯрРсСтТуУжЖвВьЬ№\xadыЫзЗшШэЭщЩчЧ§■\xa0'

function decodeIbm855(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return text.replace(/[\x80-\xff]/g, (character) => cyrillic855.charAt(character.charCodeAt(0) - 0x80))
}

function decodeUtf32(bytes: Uint8Array, label: Utf32, strict?: 'strict'): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const utf16 = Buffer.alloc(bytes.length)
  let length = 0
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const code = view.getUint32(at, label === 'utf-32le')
    const isCharacter = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
    if (!isCharacter && strict !== undefined) return undefined
    if (at > 0 || code !== 0xfeff)
      length += utf16.write(isCharacter ? String.fromCodePoint(code) : '\ufffd', length, 'utf16le')
  }
  const isCut = bytes.length % 4 !== 0 && strict === undefined
  return utf16.toString('utf16le', 0, length) + (isCut ? '\ufffd' : '')
}

function decodeWestern(bytes: Uint8Array, strict?: 'strict'): string | undefined {
  if (strict !== undefined && [0x81, 0x8d, 0x8f, 0x90, 0x9d].some((byte) => bytes.includes(byte))) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return text.replace(/[\x80-\x9f]/g, (character) => punctuation.charAt(character.charCodeAt(0) - 0x80))
}

const [firstSyllable, lastSyllable] = [0xac00, 0xd7a3]
let table: Uint16Array | undefined

/**
 * Returns the character of each pair of bytes in EUC-KR; 0 for an invalid pair. In the Encoding Standard, EUC-KR is code page 949: the 2350
 * syllables of KS X 1001, and all other syllables around them. Node's `TextDecoder` decodes these others as controls and letters.
 */
function pairs(): Uint16Array {
  if (table !== undefined) return table
  const codeTable = new Uint16Array(0x10000)
  const decoder = new TextDecoder('euc-kr')
  const codePoints = new Set<number>()
  for (let lead = 0xa1; lead <= 0xfe; lead++)
    for (let trail = 0xa1; trail <= 0xfe; trail++) {
      const text = decoder.decode(Uint8Array.of(lead, trail))
      const code = text.charCodeAt(0)
      if (text.length !== 1 || code === 0xfffd || (code >= 0xe000 && code <= 0xf8ff)) continue
      codeTable[lead * 0x100 + trail] = code
      codePoints.add(code)
    }
  // The syllables missing from KS X 1001 follow in Unicode order, around its square.
  let syllable = firstSyllable
  for (let lead = 0x81; lead <= 0xc6; lead++)
    for (let trail = 0x41; trail <= 0xfe; trail++) {
      const inSquare = lead >= 0xa1 && trail >= 0xa1
      if (inSquare || (trail > 0x5a && trail < 0x61) || (trail > 0x7a && trail < 0x81)) continue
      while (codePoints.has(syllable)) syllable++
      if (syllable <= lastSyllable) codeTable[lead * 0x100 + trail] = syllable++
    }
  table = codeTable
  return codeTable
}

function decodeKorean(bytes: Uint8Array, strict?: 'strict'): string | undefined {
  const meaning = pairs()
  const codes = new Uint16Array(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const trail = bytes[at + 1]
    let code = byte
    if (byte >= 0x80) {
      if (trail === undefined && strict !== undefined) break
      code = meaning[byte * 0x100 + (trail ?? 0)] ?? 0
      if (code === 0 && strict !== undefined) return undefined
      // A letter after a malformed byte is still a letter.
      if (code !== 0 || (trail ?? 0) >= 0x80) at++
      if (code === 0) code = 0xfffd
    }
    codes[length++] = code
  }
  let text = ''
  for (let from = 0; from < length; from += 8192)
    text += String.fromCharCode(...codes.subarray(from, Math.min(length, from + 8192)))
  return text
}
