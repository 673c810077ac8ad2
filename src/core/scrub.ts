import {
  type Automaton,
  compilePatternSet,
  compilePatterns,
  createPatternScanner,
  holdsPattern,
  type PatternSet,
  seekInText,
  unitsInBytes,
  unitsInText,
  unitsOf,
} from './aho-corasick.ts'
import { toUnicodeEscape } from './entry.ts'
import { mergeSpans, type Span } from './kit/sorted.ts'
import { decodeIfValid } from './uri.ts'

/** The replacement of a removed secret. It is constant, so it reveals no length, prefix or hash. */
export const redactedMark = '[redacted]'

/** Replaces each span of a text by {@link redactedMark}. The spans must be merged, and lie within the text. */
export function replaceSpans(text: string, spans: readonly Span[]): string {
  const pieces: string[] = []
  let from = 0
  for (const { start, end } of spans) {
    pieces.push(text.slice(from, start), redactedMark)
    from = end
  }
  return from === 0 ? text : pieces.join('') + text.slice(from)
}

/** Minimum length of a secret, in UTF-16 code units. Shorter ones would occur in ordinary text. */
export const minSecretLength = 6

/** Removes known secrets from text and bytes. */
export interface Scrubber {
  /** Whether the scrubber has no secrets to remove, and never will. */
  readonly isEmpty?: boolean
  /**
   * Whether JSON texts in UTF-8 contain no secret in any string. The syntax of JSON is searched, too, so the result can
   * be false although no string contains a secret.
   */
  lacks?(json: readonly Buffer[]): boolean
  /** Replaces the secrets in a text, in their forms, by {@link redactedMark}. */
  scrub(text: string): string
  /**
   * Replaces the secrets in bytes, which may be text in UTF-8 or UTF-16, or binary. Returns the input itself when it
   * contains no secret.
   */
  scrubBytes(bytes: Uint8Array): Uint8Array
  /**
   * Creates a stream that replaces the secrets in bytes that arrive in pieces, split anywhere. It holds back bytes that
   * may begin a secret.
   */
  stream(): ReturnType<typeof createStream>
}

/**
 * Creates a scrubber of known secrets.
 * Each secret is found literally, in base64 and base64url (of UTF-8 and of UTF-16LE, at each of the three alignments),
 * in hexadecimal, percent-encoded, escaped for JSON, XML and Markdown, and in UTF-16; in bytes also decoded, if the
 * secret itself is base64 or hexadecimal. The password in a URL is a secret of its own, as is each long line of a
 * secret with several lines. Secrets shorter than {@link minSecretLength} are ignored.
 */
export function createScrubber(secrets: Iterable<string>): Scrubber {
  const all = new Set([...secrets].flatMap(secretParts).filter((secret) => secret.length >= minSecretLength))
  const forms = [...all].flatMap(formsOf)
  let inText: Automaton | undefined
  let inBytes: Automaton | undefined
  const forText = () => {
    inText ??= compilePatterns(forms.map(unitsOf))
    return inText
  }
  let inJson: PatternSet | undefined
  /** Compiles the patterns for text inside JSON strings, where some characters of a secret are escaped. */
  const forJson = () => {
    const escapes = forms.map((form) => JSON.stringify(form).slice(1, -1)).filter((form, at) => form !== forms[at])
    inJson ??= compilePatternSet(
      [...forms, ...escapes, ...escapes.map(escapedLineEnds)].map((form) => Buffer.from(form)),
    )
    return inJson
  }
  const byteForms = () => [
    ...forms.map((form) => Buffer.from(form)),
    ...[...all].flatMap((secret) => {
      const wide = Buffer.from(secret, 'utf16le')
      return [wide, Buffer.from(wide).swap16(), ...keysIn(secret)]
    }),
  ]
  const forBytes = () => {
    inBytes ??= compilePatterns(byteForms())
    return inBytes
  }
  let setInBytes: PatternSet | undefined
  const isInBytes = (bytes: Uint8Array) => {
    setInBytes ??= compilePatternSet(byteForms())
    return holdsPattern(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), setInBytes)
  }
  return {
    isEmpty: all.size === 0,
    scrub: (text) => {
      if (all.size === 0) return text
      // Most texts do not contain the beginning of a secret.
      if (seekInText(text, forText().begins, 0, text.length) >= text.length - 2) return text
      const spans = createPatternScanner(forText()).find(unitsInText(text), 0, text.length)
      if (spans.length === 0) return text
      const pieces: string[] = []
      let from = 0
      for (const { start, end } of mergeSpans(spans)) {
        pieces.push(text.slice(from, start), redactedMark)
        from = end
      }
      return pieces.join('') + text.slice(from)
    },
    lacks: (json) => all.size === 0 || json.every((bytes) => !holdsPattern(bytes, forJson())),
    scrubBytes: (bytes) => {
      // Most bytes contain no secret, and this search is faster than a scan.
      if (all.size === 0 || !isInBytes(bytes)) return bytes
      const spans = createPatternScanner(forBytes()).find(unitsInBytes(bytes), 0, bytes.length)
      return spans.length === 0 ? bytes : replaceBytes(bytes, mergeSpans(spans), bytes.length)
    },
    stream: () =>
      all.size === 0 ? { push: (bytes) => [bytes], end: () => new Uint8Array() } : createStream(forBytes(), isInBytes),
  }
}

/** Escapes the line ends that `JSON.stringify` leaves unescaped, as the messages of the server do. */
function escapedLineEnds(text: string): string {
  return text.replace(/[\u0085\u2028\u2029]/g, toUnicodeEscape)
}

function replaceBytes(bytes: Uint8Array, spans: readonly Span[], to: number): Uint8Array {
  if (spans.length === 0) return bytes.subarray(0, to)
  const mark = Buffer.from(redactedMark)
  const pieces: Uint8Array[] = []
  let from = 0
  for (const { start, end } of spans) {
    pieces.push(bytes.subarray(from, start), mark)
    from = end
  }
  return Buffer.concat([...pieces, bytes.subarray(from, to)])
}

/** Creates the stream of a scrubber. If `isIn` finds no secret in a long piece, only the end of the piece needs the slower scan. */
function createStream(automaton: Automaton, isIn: (bytes: Uint8Array) => boolean) {
  const longest = automaton.depth.reduce((most, depth) => Math.max(most, depth), 0)
  let scan = createPatternScanner(automaton)
  let tail: Buffer = Buffer.alloc(0)
  let spans: readonly Span[] = []
  const release = (until: number): Uint8Array => {
    const open = spans.find((span) => span.end > until)
    const to = open === undefined ? until : Math.min(until, open.start)
    const output = replaceBytes(
      tail,
      spans.filter((span) => span.end <= to),
      to,
    )
    // Copy the bytes: the caller may reuse its buffer, and a few bytes must not keep a whole piece in memory.
    tail = Buffer.from(tail.subarray(to))
    spans = spans.filter((span) => span.end > to).map(({ start, end }) => ({ start: start - to, end: end - to }))
    return output
  }
  const isAcross = (before: Buffer, bytes: Uint8Array) =>
    before.length > 0 && isIn(Buffer.concat([before, bytes.subarray(0, longest)]))
  return {
    /** Takes the next bytes of the stream, and returns those that are known to be clean. The result may share the memory of the argument. */
    push: (bytes: Uint8Array): readonly Uint8Array[] => {
      const before = tail
      // Do not copy a long piece without a secret: copies of 1 MiB each fill the memory until the next garbage
      // collection.
      if (spans.length === 0 && bytes.length > longest && !isIn(bytes) && !isAcross(before, bytes)) {
        // The state of the scan depends only on the last `longest` bytes, so it is computed from those alone.
        scan = createPatternScanner(automaton)
        scan.find(unitsInBytes(bytes), bytes.length - longest, bytes.length)
        const start = bytes.length - scan.pending
        tail = Buffer.from(bytes.subarray(start))
        return before.length === 0 ? [bytes.subarray(0, start)] : [before, bytes.subarray(0, start)]
      }
      tail = Buffer.concat([before, bytes])
      spans = mergeSpans([...spans, ...scan.find(unitsInBytes(tail), before.length, tail.length)])
      const start = tail.length - scan.pending
      // Two spans that touch become one mark. So the last byte of a span is held back if another span may begin directly after it.
      return [release(spans.some(({ end }) => end === start) ? start - 1 : start)]
    },
    /** Returns the remaining bytes. Nothing may be pushed after it. */
    end: (): Uint8Array => release(tail.length),
  }
}

/** Returns the parts of a secret that are secret by themselves, the whole first. */
function secretParts(secret: string): readonly string[] {
  const parts = [secret, secret.trim()]
  const password = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#@:]*:([^/?#]*)@/.exec(secret.trim())?.[1]
  if (password !== undefined) parts.push(password, decodeIfValid(password))
  if (/[\r\n]/.test(secret))
    parts.push(...secret.split(/[\r\n]+/).flatMap((line) => (line.trim().length >= 20 ? [line.trim()] : [])))
  return parts
}

/** Characters that Markdown escapes: those of a document read as Markdown, of the overview, and of a report. */
const markdownSpecial = [/[\\`*_[\]<>|]/g, /[\\`*_[\]<>|#]/g, /[\\`*_{}[\]<>()#|!~]/g]

function formsOf(secret: string): readonly string[] {
  const plain = Buffer.from(secret)
  const hex = plain.toString('hex')
  const pairs = hex.match(/../g) ?? []
  const component = encodeURIComponent(secret.toWellFormed())
  const strict = component.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const escaped = JSON.stringify(secret).slice(1, -1)
  const units = unitsOf(secret).map((unit) => unit.toString(16).padStart(4, '0'))
  const spellings = [
    ...[secret, hex, hex.toUpperCase()],
    ...[component, strict, component.replaceAll('%20', '+')].flatMap((text) => [text, lowerEscapes(text)]),
    ...[pairs.map((pair) => `%${pair}`).join(''), pairs.map((pair) => `%${pair.toUpperCase()}`).join('')],
    ...[
      escaped,
      escaped.replaceAll('/', '\\/'),
      JSON.stringify(escaped).slice(1, -1),
      asciiOnly(escaped, /[^\x20-\x7e]/g),
      asciiOnly(escaped, /[^\x20-\x7e]|[<>&']/g),
    ],
    ...[units.map((unit) => `\\u${unit}`).join(''), units.map((unit) => `\\u${unit.toUpperCase()}`).join('')],
    ...[xmlEscaped(secret), xmlEscaped(secret).replaceAll("'", '&#39;'), xmlEscaped(secret).replaceAll("'", '&apos;')],
    ...markdownSpecial.map((signs) => secret.replace(signs, '\\$&')),
    ...[[...secret].join('\0'), [...secret].join('\\u0000')],
  ]
  const base64 = [plain, Buffer.from(secret, 'utf16le')].flatMap(base64Forms)
  return [...new Set([...spellings, ...base64])]
}

/** Returns the bytes that a secret may encode in base64 or hexadecimal: elsewhere a key may be stored as these bytes. */
function keysIn(secret: string): readonly Buffer[] {
  const hex = /^(?:[0-9a-f]{2}){12,}$/i.test(secret) ? [Buffer.from(secret, 'hex')] : []
  const base64 = /^[\w+/-]{16,}={0,2}$/.test(secret) ? [Buffer.from(secret, 'base64')] : []
  return [...hex, ...base64]
}

/** Returns the base64 of bytes in the middle of others, at each alignment: only the characters that depend on nothing but these bytes. */
function base64Forms(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const own = encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

const lowerEscapes = (text: string) => text.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase())

const asciiOnly = (text: string, others: RegExp) => text.replace(others, toUnicodeEscape)

const xmlEscaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
