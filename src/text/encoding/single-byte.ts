import { createRequire } from 'node:module'
import { decodeBytes } from './decode.ts'

/** Labels of encodings by their names in jschardet. An encoding without a label is recognised, but not decoded. */
const labels: Readonly<Record<string, string>> = {
  'Windows-1250': 'windows-1250',
  'Windows-1251': 'windows-1251',
  'Windows-1252': 'windows-1252',
  'Windows-1253': 'windows-1253',
  'Windows-1254': 'windows-1254',
  'Windows-1255': 'windows-1255',
  'Windows-1256': 'windows-1256',
  'Windows-1257': 'windows-1257',
  'Windows-1258': 'windows-1258',
  cp1258: 'windows-1258',
  CP874: 'windows-874',
  'KOI8-R': 'koi8-r',
  'koi8-u': 'koi8-u',
  'ISO-8859-2': 'iso-8859-2',
  'iso8859-3': 'iso-8859-3',
  'ISO-8859-5': 'iso-8859-5',
  'ISO-8859-6': 'iso-8859-6',
  'ISO-8859-7': 'iso-8859-7',
  'ISO-8859-8': 'iso-8859-8',
  'ISO-8859-13': 'iso-8859-13',
  'iso8859-14': 'iso-8859-14',
  'iso8859-15': 'iso-8859-15',
  MacCyrillic: 'x-mac-cyrillic',
  IBM866: 'ibm866',
  IBM855: 'ibm855',
}
const options = {
  detectEncodings: [...Object.keys(labels), 'mac-roman', 'cp437', 'cp850', 'cp852'],
  minimumThreshold: 0,
}

/** Encodings of western Europe. Almost every byte is a character in them, so {@link detectSingleByte} returns one only if it is expected. */
export const westernEncodings: readonly string[] = ['windows-1252', 'iso-8859-15']

/**
 * Minimum confidence of the library in an encoding; the same if another encoding is expected; and minimum lead over the next encoding that
 * gives another text.
 */
const [leastConfidence, leastAgainst, leastLead] = [0.1, 0.3, 0.005]
/** Minimum number of different letters beyond ASCII: two fit too many languages. */
const fewestLetters = 3
/** Maximum share of the characters beyond ASCII that are in a place where no text has them. */
const mostMisplaced = 0.02

interface SingleByteText {
  readonly label: string | undefined
  readonly confidence: number
  readonly text: string | undefined
  readonly misplaced: number
}

type Library = Pick<typeof import('jschardet'), 'detectAll'>
let library: Library | undefined

/**
 * Detects an encoding with one byte for each character, by a library that knows pairs of letters of many languages. `undefined` if the
 * library is not sure.
 *
 * @param expected An encoding that needs less evidence.
 */
export function detectSingleByte(bytes: Uint8Array, expected?: string): string | undefined {
  // Loaded at its first use: its tables have a megabyte.
  library ??= createRequire(import.meta.url)('jschardet') as Library
  const detections = library.detectAll(bytes, options).flatMap(({ encoding, confidence }): SingleByteText[] => {
    const label = labels[encoding ?? '']
    if (label === undefined) return [{ label, confidence, text: undefined, misplaced: 0 }]
    const text = decodeBytes(bytes, label, 'strict')
    const misplaced = text === undefined ? 1 : misplacedIn(text)
    return misplaced <= mostMisplaced ? [{ label, confidence, text, misplaced }] : []
  })
  const [best] = detections
  if (best?.label === undefined || best.text === undefined) return undefined
  const target = expected === undefined ? undefined : decodeBytes(bytes, expected, 'strict')
  const agreed = target === undefined ? undefined : detections.find(({ text }) => text === target)
  if (agreed !== undefined && agreed.confidence > best.confidence - leastLead) return expected
  const next = detections.find(({ text, misplaced }) => text !== best.text && misplaced <= best.misplaced)
  const isSure =
    best.confidence >= (expected === undefined ? leastConfidence : leastAgainst) &&
    best.confidence - (next?.confidence ?? 0) >= leastLead
  const letters = new Set(best.text.toLowerCase().match(/(?!\p{ASCII})\p{L}/gu))
  return isSure && letters.size >= fewestLetters && !westernEncodings.includes(best.label) ? best.label : undefined
}

/**
 * Signs of a wrong encoding, such as capitals after small letters, signs within words, or Latin letters beside letters of another script.
 */
const wrong =
  /\p{Ll}\p{Lu}|\p{L}[\p{S}\p{No}¡¿]+\p{L}|(?![\p{ASCII}°€©])\p{S}\p{L}|[A-Za-z](?!\p{Script=Latin})\p{L}|(?!\p{Script=Latin})\p{L}[A-Za-z]|(?<![^\s])[’”]\p{L}|[\p{Co}\p{Cn}]/gu

/** The share of the characters beyond ASCII that are where no text has them; 1 if most letters that are not Latin stand alone. */
function misplacedIn(text: string): number {
  const words = text.match(/(?:(?!\p{Script=Latin})\p{L}\p{M}*)+/gu) ?? []
  if (words.join('').length < 2 * words.length) return 1
  const count = text.match(wrong)?.filter((text) => /[^\0-\x7f]/.test(text)).length ?? 0
  return count / Math.max(1, text.match(/[^\0-\x7f]/g)?.length ?? 0)
}
