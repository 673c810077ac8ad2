import { mergeSpans, type Span } from '../core/kit/sorted.ts'
import { replaceSpans } from '../core/scrub.ts'
import { findAssignedSecrets, styleOf } from './assignments.ts'
import { type DecodedText, decodedTexts } from './decoded.ts'
import { findEncoded } from './encoded.ts'
import { findHeaderSecrets, findJwkSecrets, findXmlKeySecrets } from './formats.ts'
import { findKubernetesSecrets } from './kubernetes.ts'
import { findAttributeSecrets, findElementSecrets } from './markup.ts'
import { findAwsSecrets, findKnownTokens } from './shapes.ts'
import { findSqlSecrets } from './sql.ts'
import { findTableSecrets } from './tables.ts'
import { findUrlSecrets } from './urls.ts'
import type { FileStyle } from './values.ts'

/**
 * Detection layers, by the evidence they use: the structure around a secret (`blocks`, `urls`, `headers`, `kubernetes`), its name (`keys`),
 * its form (`shapes`), its decoded form (`encoded`), and the rules of secretlint (`lint`). `decoded` also searches the text with its
 * escapes decoded and its lines joined; `vaults` withholds files by name; `bytes` scans content that is not UTF-8 text.
 */
export const detectionLayers = [
  'blocks',
  'urls',
  'headers',
  'kubernetes',
  'keys',
  'shapes',
  'encoded',
  'lint',
  'decoded',
  'vaults',
  'bytes',
] as const

export type DetectionLayer = (typeof detectionLayers)[number]

export interface FindOptions {
  /** Path of the file, whose name tells the format. */
  readonly path: string
  /** Layers that are left out, for tests. */
  readonly without?: readonly DetectionLayer[]
  /** Beginning of the file, if the text does not begin with it: it may name the columns of a table. */
  readonly head?: string
}

export interface FoundSecret extends Span {
  readonly layer: DetectionLayer
}

/**
 * A short text in which no detector finds a secret, such as a name, a path or an option. A start waits for the scan of the environment
 * variables, many of which match.
 */
const shortWord = /^[A-Za-z0-9_./~-]{0,15}$/

/** Finds the secrets in a text with all detectors except secretlint, in no order; they may overlap. */
export function findSecretsByRules(text: string, options: FindOptions): readonly FoundSecret[] {
  if (shortWord.test(text)) return []
  return textsToSearch(text, options).flatMap((decoded) =>
    finders(options).flatMap(([layer, find]) => find(decoded.text).map((span) => toFoundSecret(decoded, layer, span))),
  )
}

/** Returns a text and, unless the layer `decoded` is left out, its decoded forms, the text itself first. */
export function textsToSearch(text: string, { without = [] }: FindOptions): readonly DecodedText[] {
  return without.includes('decoded') ? decodedTexts(text).slice(0, 1) : decodedTexts(text)
}

/** Converts a span in a decoded text to a finding in the source text. */
export function toFoundSecret(decoded: DecodedText, layer: DetectionLayer, { start, end, key }: Span): FoundSecret {
  return {
    layer,
    start: decoded.startOf(start),
    end: decoded.endOf(end),
    ...(key === undefined ? {} : { key: decoded.startOf(key) }),
  }
}

export function redactPhrase(text: string): string {
  return replaceSpans(text, mergeSpans(findSecretsByRules(text, { path: 'phrase.txt' })))
}

type Finder = readonly [DetectionLayer, (text: string) => readonly Span[]]

function finders({ path, without = [], head }: FindOptions): readonly Finder[] {
  const style: FileStyle = styleOf(path)
  const plain: readonly Finder[] = [
    ['blocks', findKeyBlocks],
    ['urls', findUrlSecrets],
    ['headers', findHeaderSecrets],
    ['kubernetes', findKubernetesSecrets],
    [
      'keys',
      (text) => [
        ...findAssignedSecrets(text, style),
        ...findAttributeSecrets(text, style),
        ...findElementSecrets(text),
        ...findJwkSecrets(text),
        ...findXmlKeySecrets(text),
        ...findSqlSecrets(text),
        ...(style === 'code' ? [] : [...findAwsSecrets(text), ...findTableSecrets(text, path, head)]),
      ],
    ],
    ['shapes', findKnownTokens],
  ]
  const activeFinders = plain.filter(([layer]) => !without.includes(layer))
  if (without.includes('encoded')) return activeFinders
  // Decoded text is separate: the format of the file around it does not apply.
  const inside = activeFinders.map(([layer, find]): Finder => [layer, layer === 'keys' ? findDecoded : find])
  const holdsSecret = ({ text }: DecodedText) => inside.some(([, find]) => find(text).length > 0)
  return [
    ...activeFinders,
    ['encoded', (text) => findEncoded(text, (decoded) => decodedTexts(decoded).some(holdsSecret))],
  ]
}

/** In decoded bytes, only an assignment at the beginning of a line and a JSON Web Key count: anything else may be chance. */
function findDecoded(text: string): readonly Span[] {
  const jwk = text.includes('kty') ? findJwkSecrets(text) : []
  if (jwk.length > 0) return jwk
  return /^[ \t"'{]*[A-Za-z][\w.-]{2,}["']?[ \t]*[=:]/m.test(text) ? findAssignedSecrets(text, 'prose') : []
}

/** Maximum length of a private key, in characters: of a key without an end, no more than this is removed. */
const maxKey = 64 * 1024

const begin = /-{4,5} ?BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|SECRET KEY|Static key)[A-Z0-9 ]{0,40}-{4,5}/gi
const end = /-{4,5} ?END [A-Z0-9 ]{0,40}(?:PRIVATE KEY|SECRET KEY|Static key)[A-Z0-9 ]{0,40}-{4,5}/gi

/**
 * Private keys in armour (PEM, OpenSSH, PGP, SSH2, OpenVPN), from their first to their last line, also if the lines between are indented,
 * quoted or escaped. A key without a last line extends as far as its lines look like base64, and a key without a first line begins with the
 * first such line.
 */
function findKeyBlocks(text: string): readonly Span[] {
  if (!/-BEGIN |- BEGIN |-END |- END /i.test(text)) return findPutty(text)
  const spans: Span[] = []
  const ends = Array.from(text.matchAll(end), (match) => ({ start: match.index, end: match.index + match[0].length }))
  let next = 0
  let from = 0
  for (const { 0: head, index } of text.matchAll(begin)) {
    if (index < from) continue
    const body = index + head.length
    while ((ends[next]?.start ?? Number.POSITIVE_INFINITY) < body) spans.push(openBefore(text, ends[next++], from))
    const last = ends[next]
    if (last !== undefined && last.start - body <= maxKey) {
      spans.push({ start: index, end: last.end })
      next++
      from = last.end
    } else {
      from = openBehind(text, body)
      spans.push({ start: index, end: from })
    }
  }
  for (; next < ends.length; next++) spans.push(openBefore(text, ends[next], from))
  return spans.concat(findPutty(text))
}

/** Returns the end of the base64 lines after the first line of a key. */
function openBehind(text: string, body: number): number {
  const rest = text.slice(body, body + maxKey)
  const stop = rest.search(/[^A-Za-z0-9+/=\s\\"'#>|*,:.-]/)
  return body + (stop === -1 ? rest.length : stop)
}

/** Returns the last line of a key with the lines of base64 before it. */
function openBefore(text: string, last: Span | undefined, from: number): Span {
  if (last === undefined) return { start: 0, end: 0 }
  let start = last.start
  const floor = Math.max(from, last.start - maxKey)
  while (start > floor && /[A-Za-z0-9+/=\s\\"'#>|*,]/.test(text[start - 1] ?? '')) start--
  return { start, end: last.end }
}

/** The private part of a key of PuTTY, which is lines of base64, and its MAC. */
function findPutty(text: string): readonly Span[] {
  const parts = text.matchAll(/Private-(?:Lines: ?\d{1,4}|MAC: ?[0-9a-f]{20,})/g)
  return Array.from(parts, ({ 0: head, index }) => {
    const body = index + head.length
    return { start: index, end: head.startsWith('Private-MAC') ? body : openBehind(text, body) }
  })
}
