import { invalid } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { isBinary } from './binary.ts'
import { labelOf } from './decode.ts'
import { detectEncoding, type Language } from './detect.ts'

/** Settings for the encodings of texts. If several rules match a path, the last one applies. */
export interface EncodingRule {
  /** One or more globs of paths. */
  readonly match: string | readonly string[]
  /** A label of the WHATWG Encoding Standard, such as `shift_jis`, or `cp932`; `binary` leaves bytes as they are. */
  readonly encoding: string
}

/** The encoding of a text, as a label; `undefined` if the content is not known to be text. */
type Judge = (bytes: Uint8Array, path: string, mimeType: string | undefined) => string | undefined

/** @throws ResourceError `invalid` for a malformed glob or an unknown encoding. */
export function createJudge(rules: readonly EncodingRule[], languages: readonly Language[]): Judge {
  const compiled = rules.map(({ match, encoding }) => ({
    matches: compileGlobs(typeof match === 'string' ? [match] : match),
    label: encoding === 'binary' ? encoding : knownLabel(encoding),
  }))
  return (bytes, path, mimeType) => {
    const rule = compiled.findLast(({ matches }) => matches(path))?.label
    if (rule === 'binary' || isBinary(bytes, mimeType)) return undefined
    const found = detectEncoding(bytes, ...languages)
    // Valid UTF-8 is certain. Any other encoding is a guess, over which a rule takes precedence.
    if (rule === undefined || (found === 'utf-8' && rule !== 'iso-2022-jp')) return found
    return bytes.includes(0) && !rule.startsWith('utf-16') ? undefined : rule
  }
}

function knownLabel(encoding: string): string {
  const label = labelOf(encoding)
  if (label !== undefined) return label
  throw invalid(
    `There is no encoding ${JSON.stringify(encoding.slice(0, 60))}. ` +
      'Write a label of the WHATWG Encoding Standard, such as "shift_jis", "euc-jp" or "windows-1252", or "binary".',
    'encoding',
  )
}

/** Returns the language groups of language tags, each once. */
export function languagesOf(tags: string | readonly string[] = []): readonly Language[] {
  return [...new Set([tags].flat().map(languageOf))].filter((language) => language !== undefined)
}

/** Returns the language group of a language tag: `zh-TW` is `zh`, `de` is `western`. */
export function languageOf(tag: string | undefined): Language | undefined {
  const primary = tag?.toLowerCase().split('-')[0]
  if (primary === 'ja' || primary === 'zh' || primary === 'ko') return primary
  return [
    'ca',
    'da',
    'de',
    'en',
    'es',
    'eu',
    'fi',
    'fo',
    'fr',
    'ga',
    'gl',
    'is',
    'it',
    'nb',
    'nl',
    'nn',
    'no',
    'pt',
    'sv',
  ].includes(primary ?? '')
    ? 'western'
    : undefined
}
