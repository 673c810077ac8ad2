import type { rules } from '@secretlint/secretlint-rule-preset-recommend'
import { mergeSpans, type Span } from '../core/kit/sorted.ts'
import { isText } from '../core/kit/utf8.ts'
import { replaceSpans } from '../core/scrub.ts'
import { beginsLikePrivateKey } from './der.ts'
import { findPrintableTexts } from './encoded.ts'
import { type FindOptions, type FoundSecret, findSecretsByRules, textsToSearch, toFoundSecret } from './find.ts'

export interface TextWindow {
  readonly text: string
  /** Index of the requested part, in UTF-16 code units; text before it is only context. */
  readonly from: number
  /** Whether the whole text ends with the window. */
  readonly final: boolean
  /** The beginning of the text, if it may name the columns of a table and is not in the window. */
  readonly head?: string
}

export interface CleanPart {
  readonly text: string
  /** End of the part in the window; the next part begins there. */
  readonly cut: number
  readonly changed: boolean
}

/** Size of a scanned part, in bytes. */
export const windowBytes = 512 * 1024
/** Size of the context that is scanned on either side of a part, in bytes. */
export const contextBytes = 64 * 1024

/**
 * Removes the secrets from a part of a text, and chooses the end of the part: at the end of a line if there is one, and not within a
 * secret.
 */
export async function redactWindow({ text, from, final, head }: TextWindow, options: FindOptions): Promise<CleanPart> {
  const spans = mergeSpans(await findSecrets(text, head === undefined ? options : { ...options, head }))
  const partEnd = final ? text.length : choosePartEnd(text, from, spans)
  const inside = spans.flatMap(({ start, end }) =>
    end <= from || start >= partEnd
      ? []
      : [{ start: Math.max(start, from) - from, end: Math.min(end, partEnd) - from }],
  )
  return { text: replaceSpans(text.slice(from, partEnd), inside), cut: partEnd, changed: inside.length > 0 }
}

function choosePartEnd(text: string, from: number, spans: readonly Span[]): number {
  const last = Math.max(from + 1, text.length - contextBytes)
  const newline = text.lastIndexOf('\n', last) + 1
  let end = newline > from ? newline : last
  // Cut before a secret that crosses the cut, or after it if the part would be empty.
  const across = spans.find((span) => span.start < end && span.end > end)
  if (across !== undefined) end = across.start > from ? across.start : across.end
  return end < text.length && /[\udc00-\udfff]/.test(text[end] ?? '') ? end + 1 : end
}

export type CleanBytes = { readonly bytes: Uint8Array; readonly changed: boolean } | { readonly withheld: Withheld }

/** `secret`: the bytes contain a secret that cannot be removed. `encoding`: they are text in an unknown encoding. */
type Withheld = 'secret' | 'encoding'

/**
 * Removes the secrets from bytes. Text in UTF-8, UTF-16 and encodings that contain ASCII keeps its encoding. Other bytes are shown if they
 * contain no secret, read as ASCII or as UTF-16. Private keys, and bytes that look like text in an encoding that hides ASCII (EBCDIC,
 * UTF-32), are withheld.
 */
export async function redactBytes(bytes: Buffer, options: FindOptions): Promise<CleanBytes> {
  if (beginsLikePrivateKey(bytes)) return { withheld: 'secret' }
  const encoding = encodingOf(bytes)
  if (encoding === 'unknown') return { withheld: 'encoding' }
  if (encoding === undefined) {
    return (await holdsSecret(bytes, options)) ? { withheld: 'secret' } : { bytes, changed: false }
  }
  const text = decode(bytes, encoding)
  const clean = replaceSpans(text, mergeSpans(await findSecrets(text, options)))
  const output = clean === text ? bytes : encode(clean, encoding)
  // Bytes that were only guessed to be text may hold texts at other offsets.
  if (encoding !== 'utf8' && (await holdsSecret(output, options))) return { withheld: 'secret' }
  return { bytes: output, changed: clean !== text }
}

export type RedactionJob = FindOptions & ({ readonly window: TextWindow } | { readonly bytes: Uint8Array })

/** Answer of the worker. An error has no text, because that might hold a part of the scanned content. */
export type ScanAnswer = { readonly part: CleanPart } | { readonly clean: CleanBytes } | { readonly error: true }

async function holdsSecret(bytes: Buffer, options: FindOptions): Promise<boolean> {
  const secrets = await findSecrets(findPrintableTexts(bytes).join('\n'), { ...options, path: 'bytes.txt' })
  return secrets.length > 0
}

type Encoding = 'utf8' | 'latin1' | 'utf16le' | 'utf16be'

/** The encoding of a text; `unknown` if it cannot be decoded, `undefined` for bytes that are not text. */
function encodingOf(bytes: Buffer): Encoding | 'unknown' | undefined {
  if (isText(bytes)) return 'utf8'
  const head = bytes.subarray(0, 4).toString('hex')
  if (head === 'fffe0000' || head === '0000feff') return 'unknown'
  if (head.startsWith('fffe')) return 'utf16le'
  if (head.startsWith('feff')) return 'utf16be'
  const [even, odd] = zerosIn(bytes)
  if (odd > 0.4 && even < 0.05) return 'utf16le'
  if (even > 0.4 && odd < 0.05) return 'utf16be'
  if (even + odd > 1.2) return 'unknown'
  if (looksLikeEbcdic(bytes)) return 'unknown'
  return controlsIn(bytes) < 0.01 ? 'latin1' : undefined
}

function decode(bytes: Buffer, encoding: Encoding): string {
  if (encoding === 'utf16be')
    return Buffer.from(bytes.subarray(0, bytes.length & ~1))
      .swap16()
      .toString('utf16le')
  return bytes.toString(encoding)
}

function encode(text: string, encoding: Encoding): Buffer {
  if (encoding === 'utf16be') return Buffer.from(text, 'utf16le').swap16()
  return Buffer.from(text, encoding)
}

/** The share of zeros among the bytes at even and at odd positions. */
function zerosIn(bytes: Buffer): readonly [even: number, odd: number] {
  const head = bytes.subarray(0, 65536)
  const counts: [number, number] = [0, 0]
  for (let at = 0; at < head.length; at++) if (head[at] === 0) counts[at % 2 === 0 ? 0 : 1]++
  const half = Math.max(1, head.length / 2)
  return [counts[0] / half, counts[1] / half]
}

/** The share of control characters that no text has. */
function controlsIn(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d && byte !== 0x1b) count++
  return count / Math.max(1, bytes.length)
}

/** In EBCDIC (code pages 037, 500, 1047) a space is 0x40, a line does not end in 0x0a, and letters and digits are high. */
function looksLikeEbcdic(bytes: Buffer): boolean {
  const head = bytes.subarray(0, 65536)
  let spaces = 0
  let others = 0
  for (const byte of head) {
    const low = byte & 0x0f
    if (byte === 0x0a) return false
    if (byte === 0x40) spaces++
    else if (byte < 0x40 ? byte !== 0x15 && byte !== 0x25 && byte !== 0x0d : byte >= 0x80 && low > 9) others++
  }
  return head.length >= 16 && spaces / head.length > 0.02 && others / head.length < 0.05
}

/** Finds the secrets in a text with all detectors, in no order; they may overlap. It is slow, so call it in a worker. */
export async function findSecrets(text: string, options: FindOptions): Promise<readonly FoundSecret[]> {
  const secrets = [...findSecretsByRules(text, options)]
  if (options.without?.includes('lint') === true) return secrets
  for (const decoded of textsToSearch(text, options))
    for (const span of await findByLint(decoded.text)) secrets.push(toFoundSecret(decoded, 'lint', span))
  return secrets
}

/** A text is scanned by the rules of secretlint only if it matches. */
const gate =
  /gh[pousr]_|github_pat|xox|xapp-|hooks\.slack|:\/\/|PRIVATE KEY|npm_|_authToken|SG\.|shp[a-z]{2}_|sk-|lin_api|ops_ey|secret|SECRET|Secret/

type SecretRule = (typeof rules)[number]

let scanners: Promise<readonly SecretRule[]> | undefined

/**
 * Loads the recommended rules of secretlint for text, except the rule by which comments turn other rules off.
 */
function loadScanners(): Promise<readonly SecretRule[]> {
  scanners ??= import('@secretlint/secretlint-rule-preset-recommend').then(({ rules }) =>
    rules.filter(
      ({ meta }) =>
        !meta.id.endsWith('filter-comments') && meta.supportedContentTypes.some((type) => type !== 'binary'),
    ),
  )
  return scanners
}

type RuleContext = Parameters<SecretRule['create']>[0]
type ScanSource = Parameters<NonNullable<ReturnType<SecretRule['create']>['file']>>[0]
type Report = Parameters<RuleContext['report']>[0]

/**
 * Returns the findings of the rules of secretlint. The rules run without its core, which keeps all its performance measurements: a
 * long-lived process would stall.
 */
async function findByLint(text: string): Promise<readonly Span[]> {
  if (!gate.test(text)) return []
  const hits: Span[] = []
  for (const filePath of ['text.txt', '.npmrc', 'package.json']) {
    if (filePath === '.npmrc' && !text.includes('_authToken')) continue
    if (filePath === 'package.json' && !text.includes('x-oauth-basic')) continue
    for (const { range, message } of await reportsOn(createScanSource(text, filePath))) {
      const values = Object.values((message.data ?? {}) as Readonly<Record<string, unknown>>)
        .filter((value) => typeof value === 'string')
        .flatMap((value) => occurrence(text, value, range[0]))
      // Some ranges begin at the name of a value and end within the value.
      const spans = values.length > 0 ? values : [{ start: range[0], end: range[1] }]
      hits.push(...spans.map((span) => withoutHost(text, span)))
    }
  }
  return hits
}

async function reportsOn(source: ScanSource): Promise<readonly Report[]> {
  const reports: Report[] = []
  const context: RuleContext = {
    sharedOptions: {},
    createTranslator: () => (messageId, data) => ({ message: '', messageId: String(messageId), data }),
    report: (report) => void reports.push(report),
    ignore: () => {},
  }
  for (const rule of await loadScanners()) await rule.create(context, {}).file?.(source)
  return reports
}

/** The path has no physical file, so no rule opens it: one of them reads key stores from the disk. */
function createScanSource(content: string, filePath: string): ScanSource {
  const unused = () => {
    throw new Error('no rule asks for lines and columns')
  }
  return {
    ...{ content, filePath, ext: '.txt', contentType: 'text', hasBOM: false, physicalFilePath: undefined },
    getFilePath: () => filePath,
    getPhysicalFilePath: () => undefined,
    ...{ locationToRange: unused, rangeToLocation: unused, positionToIndex: unused, indexToPosition: unused },
  }
}

/** The secret part of a URL: the user information, or the part after the host. */
function withoutHost(text: string, { start, end }: Span): Span {
  const [head = '', scheme = '', userinfo, host = ''] =
    /^([a-z][\w+.-]*:\/\/)(?:([^\s]*)@)?([^\s/?#@]*)/i.exec(text.slice(start, end)) ?? []
  if (userinfo !== undefined) return { start: start + scheme.length, end: start + scheme.length + userinfo.length }
  return host === '' || head.length === end - start ? { start, end } : { start: start + head.length, end }
}

/** Returns the next occurrence of a value from an index on. A value of one or two characters is not searched. */
function occurrence(text: string, value: string, from: number): readonly Span[] {
  const start = value.length < 3 ? -1 : text.indexOf(value, from)
  return start === -1 ? [] : [{ start, end: start + value.length }]
}
