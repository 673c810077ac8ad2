import { isAscii, isUtf8 } from 'node:buffer'
import { invalid } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { wholeCharacters } from '../../core/kit/utf8.ts'
import {
  byteOrderMarkOf,
  countHigh,
  decodeBytes,
  encodingLabel,
  guessUtf16,
  guessUtf32,
  hasWholeCharacters,
  hasZeros,
  isBinary,
  isDamagedUtf8,
  isMostlyUtf8,
  isTextIn,
} from './decode.ts'
import { type LikelihoodModel, likelihood, randomLikelihood, westernness } from './models.ts'
import { detectSingleByte, westernEncodings } from './single-byte.ts'

type Language = 'ja' | 'zh' | 'ko' | 'western'

/** Number of examined bytes at the beginning of a text and, if its first non-ASCII byte is beyond them, from there. */
export const detectionSampleBytes = 64 * 1024

/** Number of bytes of the sample from which the likelihood of an encoding is computed. */
const scoredBytes = 16 * 1024

/**
 * Detects the encoding of a text, as a label of the WHATWG Encoding Standard in lower case. `undefined` for bytes that are not text, and
 * for a text whose encoding is not certain enough. A text in ASCII is `utf-8`, and so is a text in UTF-8 with a few damaged bytes. The
 * order: a byte order mark, UTF-16 and UTF-32 by their zeros, the escapes of ISO-2022-JP, UTF-8, a declaration (`<meta charset>`, `<?xml
 * encoding>`, `coding:`) that the bytes confirm, and then the encoding that makes the likeliest text.
 *
 * @param languages The likeliest languages of the text. They decide if the bytes are ambiguous.
 */
export function detectEncoding(bytes: Uint8Array, ...languages: readonly (Language | undefined)[]): string | undefined {
  const head = bytes.subarray(0, detectionSampleBytes)
  const mark = byteOrderMarkOf(bytes)
  if (mark === 'utf-8') return isMostlyUtf8(head) && !head.includes(0) ? mark : undefined
  if (mark !== undefined) return isTextIn(head, mark) ? mark : undefined
  if (head.includes(0)) return guessWide(bytes, head)
  const { sample, cut } = sampleOf(bytes)
  if (hasControls(head) || hasControls(sample)) return undefined
  if (isAscii(sample)) return isJis(sample) ? 'iso-2022-jp' : 'utf-8'
  const characters = cut ? sample.subarray(0, wholeCharacters(sample).to) : sample
  if (isUtf8(characters) || isDamagedUtf8(sample)) return 'utf-8'
  const scored = { bytes: sample.subarray(0, scoredBytes), ends: !cut && sample.length <= scoredBytes }
  const guess = likeliest(scored, languages)
  const isIn = guess !== undefined && decodeBytes(sample, guess, 'strict') !== undefined
  return (
    declared(head, sample) ??
    (isIn ? confirmed(guess, scored, languages) : undefined) ??
    mostlyAscii(sample) ??
    detectSingleByte(scored.bytes) ??
    ofLanguages(scored, languages)
  )
}

/** Checks a guess of a western encoding, because text in most other code pages can also be read as western. */
function confirmed(guess: string, { bytes }: Scored, languages: readonly (Language | undefined)[]): string | undefined {
  const isSure = !isWestern(guess) || languages.includes('western') || mostlyAscii(bytes) !== undefined
  return isSure ? guess : detectSingleByte(bytes, guess)
}

/** Minimum length of a UTF-16 or UTF-32 text without a byte order mark, in bytes. */
const minWideBytes = 8

function guessWide(bytes: Uint8Array, head: Uint8Array): string | undefined {
  if (bytes.length < minWideBytes || bytes.length % 2 !== 0) return undefined
  return (bytes.length % 4 === 0 ? guessUtf32(head) : undefined) ?? guessUtf16(head)
}

/** Whether bytes look like a text, with neither zeros nor controls, but their encoding is not certain. */
export function isTextOfUnknownEncoding(bytes: Uint8Array, mimeType?: string): boolean {
  const head = bytes.subarray(0, detectionSampleBytes)
  if (head.includes(0) || hasControls(head) || isBinary(head, mimeType)) return false
  return detectEncoding(bytes) === undefined
}

/** Sample for the detection. `ends`: the text ends with the sample, so no character can be cut in two. */
interface Scored {
  readonly bytes: Uint8Array
  readonly ends: boolean
}

/** Returns a sample that begins one character before the first one that is not ASCII. `cut`: the sample may end within a character. */
function sampleOf(bytes: Uint8Array): { readonly sample: Uint8Array; readonly cut: boolean } {
  const first = firstBeyondAscii(bytes)
  const end = first < detectionSampleBytes ? detectionSampleBytes : first + detectionSampleBytes
  return { sample: bytes.subarray(Math.max(0, first - 1), end), cut: bytes.length >= end }
}

/** Returns the offset of the first byte that is not ASCII, or of an escape of ISO-2022-JP; the length when there is none. */
function firstBeyondAscii(bytes: Uint8Array): number {
  const escaped = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf('\x1b$')
  let at = 0
  while (at < bytes.length && isAscii(bytes.subarray(at, at + 1024))) at += 1024
  while (at < bytes.length && (bytes[at] ?? 0) < 0x80) at++
  return Math.min(at, bytes.length, escaped === -1 ? bytes.length : escaped)
}

/**
 * Whether bytes contain a control character that no text contains. Escape, bell and backspace are allowed, because output of terminals
 * contains them, and a final 0x1A, which once marked the end of files.
 */
function hasControls(bytes: Uint8Array): boolean {
  const end = bytes.at(-1) === 0x1a ? bytes.length - 1 : bytes.length
  for (let at = 0; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte < 0x20 ? byte < 0x07 || (byte > 0x0d && byte !== 0x1b) : byte === 0x7f) return true
  }
  return false
}

function isJis(bytes: Uint8Array): boolean {
  const sample = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // The escapes for JIS X 0208, in two versions. Output of terminals has other escapes.
  if (!sample.includes('\x1b$B') && !sample.includes('\x1b$@')) return false
  return decodeBytes(bytes, 'iso-2022-jp', 'strict') !== undefined
}

/** The encoding that a text declares in its first kilobyte, or anywhere in the head of a page, if the sample is valid in it. */
function declared(head: Uint8Array, sample: Uint8Array): string | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1')
  const anywhere = /(?:charset|encoding|coding)\s*[:=]\s*["']?([\w.:-]{2,40})/i
  const inPage = /<meta\b[^>]{0,1000}?\bcharset\s*=\s*["']?([\w.:-]{2,40})/i
  const name = anywhere.exec(text.slice(0, 1024))?.[1] ?? inPage.exec(text.split(/<body\b/i, 1)[0] ?? '')?.[1]
  const label = name === undefined ? undefined : encodingLabel(name)
  // UTF-8 has been ruled out already.
  if (label === undefined || /^(?:utf-|replacement|x-user-defined)/.test(label)) return undefined
  const decoded = decodeBytes(sample, label, 'strict')
  return decoded === undefined || /[\x80-\x9f\ue000-\uf8ff]/.test(decoded) ? undefined : label
}

/**
 * Returns the encoding of a text of which at most one byte in a thousand is not ASCII: `macintosh` if these bytes are its apostrophes,
 * otherwise UTF-8 with damaged bytes. Undefined for any other text.
 */
function mostlyAscii(sample: Uint8Array): 'utf-8' | 'macintosh' | undefined {
  if (countHigh(sample) * 1000 > sample.length) return undefined
  const text = Buffer.from(sample.buffer, sample.byteOffset, sample.byteLength).toString('latin1')
  return /[\x80-\xff]/.test(text.replace(/(?<=[A-Za-z])\xd5(?=[a-z])/g, "'")) ? 'utf-8' : 'macintosh'
}

const candidates: readonly (readonly [label: string, model: LikelihoodModel, language: Language])[] = [
  ['shift_jis', 'ja', 'ja'],
  ['euc-jp', 'ja', 'ja'],
  ['gb18030', 'hans', 'zh'],
  ['big5', 'hant', 'zh'],
  ['euc-kr', 'ko', 'ko'],
]

function isWestern(label: string): boolean {
  return westernEncodings.includes(label)
}

/** Minimum log-likelihood of a text above chance, in an East Asian and in a western encoding, and above the next encoding. */
const [leastEast, leastWest, lead] = [4, 1.5, 3]
/** Minimum log-likelihood above chance for each non-ASCII byte. */
const leastPerByte = 0.5
/** Score bonus for an expected language. */
const bonus = 8

function likeliest({ bytes: sample, ends }: Scored, languages: readonly (Language | undefined)[]): string | undefined {
  const high = countHigh(sample)
  const base = randomLikelihood(sample.length - high, high)
  const east = candidates.flatMap(([label, model, of]) => {
    const text = decodeBytes(sample, label, 'strict')
    if (text === undefined || (ends && !hasWholeCharacters(sample, label))) return []
    return { label, score: likelihood(text, model) - base + (languages.includes(of) ? bonus : 0), least: leastEast }
  })
  const west = westernEncodings.map((label) => {
    const text = decodeBytes(sample, label, 'strict')
    const score = text === undefined ? Number.NEGATIVE_INFINITY : westernness(text)
    return { label, score: score + (languages.includes('western') ? bonus : 0), least: leastWest }
  })
  // Keep the likelier western encoding: two of them differ in few characters, so neither would lead clearly.
  const likelier = west.sort((a, b) => b.score - a.score).slice(0, 1)
  const guesses = [...east.filter(({ score }) => score >= high * leastPerByte), ...likelier]
  const [best, next] = guesses.sort((a, b) => b.score - a.score)
  if (best === undefined || best.score < best.least) return undefined
  return best.score - Math.max(0, next?.score ?? 0) >= Math.min(lead, best.least) ? best.label : undefined
}

/** Returns the likeliest valid encoding of the expected languages. Used when no encoding scores high enough, as with a few words. */
function ofLanguages({ bytes, ends }: Scored, languages: readonly (Language | undefined)[]): string | undefined {
  const high = countHigh(bytes)
  const base = randomLikelihood(bytes.length - high, high)
  const text1252 = languages.includes('western') ? decodeBytes(bytes, 'windows-1252', 'strict') : undefined
  const west = text1252 === undefined ? [] : [{ label: 'windows-1252', score: base + westernness(text1252) }]
  const [best] = candidates
    .flatMap(([label, model, of]) => {
      const text = languages.includes(of) ? decodeBytes(bytes, label, 'strict') : undefined
      if (text === undefined || /[\ue000-\uf8ff]/.test(text) || (ends && !hasWholeCharacters(bytes, label))) return []
      // Half-width and full-width kana are equally likely.
      return { label, score: likelihood(text.normalize('NFKC'), model) }
    })
    .concat(west)
    .sort((a, b) => b.score - a.score)
  return best?.label
}

export interface EncodingRule {
  readonly match: string | readonly string[]
  /** A label of the WHATWG Encoding Standard, such as `shift_jis`, or a usual name, such as `cp932`; `binary` leaves bytes as they are. */
  readonly encoding: string
}

export function createEncodingDetector(rules: readonly EncodingRule[], languages: readonly Language[]) {
  const compiled = rules.map(({ match, encoding }) => ({
    matches: compileGlobs(typeof match === 'string' ? [match] : match),
    label: encoding === 'binary' ? encoding : knownLabel(encoding),
  }))
  /** The encoding of a text, as a label; `undefined` if the content is not known to be text. */
  return (bytes: Uint8Array, path: string, mimeType: string | undefined): string | undefined => {
    const rule = compiled.findLast(({ matches }) => matches(path))?.label
    if (rule === 'binary' || isBinary(bytes, mimeType)) return undefined
    const encoding = detectEncoding(bytes, ...languages)
    if (rule === undefined || (encoding === 'utf-8' && rule !== 'iso-2022-jp')) return encoding
    return bytes.includes(0) && !hasZeros(rule) ? undefined : rule
  }
}

function knownLabel(encoding: string): string {
  const label = encodingLabel(encoding)
  if (label !== undefined) return label
  throw invalid(
    `There is no encoding ${JSON.stringify(encoding.slice(0, 60))}. ` +
      'Write a label of the WHATWG Encoding Standard, such as "shift_jis", "euc-jp" or "windows-1252", or "binary".',
    'argument',
  )
}

export function languagesOf(tags: string | readonly string[] = []): readonly Language[] {
  return [...new Set([tags].flat().map(languageOf))].filter((language) => language !== undefined)
}

const westernLanguages: ReadonlySet<string> = new Set(
  'ca da de en es eu fi fo fr ga gl is it nb nl nn no pt sv'.split(' '),
)

/** Returns the language group of a language tag: `zh-TW` is `zh`, `de` is `western`. */
export function languageOf(tag: string | undefined): Language | undefined {
  const primary = tag?.toLowerCase().split('-')[0] ?? ''
  if (primary === 'ja' || primary === 'zh' || primary === 'ko') return primary
  return westernLanguages.has(primary) ? 'western' : undefined
}
