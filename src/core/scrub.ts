import {
  type Automaton,
  compilePatterns,
  createScan,
  mergeSpans,
  type Span,
  seekInText,
  unitsInBytes,
  unitsInText,
  unitsOf,
} from './aho-corasick.ts'
import { formsOf, keysIn, partsOf } from './secret-forms.ts'

/** What stands in the place of everything that was taken out. It is always the same: it tells no length, prefix or hash. */
export const redactedMark = '[redacted]'

/** Secrets shorter than this, in UTF-16 code units, are not looked for: they would be found everywhere. */
export const minSecretLength = 6

/** Takes values out that are known to be secret, wherever they turn up. */
export interface Scrubber {
  /** The text with every secret, in any of its forms, replaced by {@link redactedMark}. */
  scrub(text: string): string
  /** The same for bytes, which may be text in UTF-8 or UTF-16, or anything else. The input where nothing was found. */
  scrubBytes(bytes: Uint8Array): Uint8Array
  /** The same for bytes that come in pieces, cut anywhere: it holds back what may be the beginning of a secret. */
  stream(): ScrubStream
}

export interface ScrubStream {
  /** Takes a piece, and gives what is known to be clean by now. */
  push(bytes: Uint8Array): Uint8Array
  /** Gives the rest. Nothing may be pushed behind it. */
  end(): Uint8Array
}

/**
 * A scrubber of known secrets: the last line, behind everything that finds secrets by what they look like.
 *
 * Each is found as it is, in base64 and base64url (of UTF-8 and of UTF-16LE, at each of the three alignments), in
 * hexadecimal, percent-encoded, JSON-escaped, XML-escaped, and in UTF-16; in bytes also as what it is the base64 or the
 * hexadecimal of. Of a URL the password is a secret of its own, of a text with several lines each long line. What is shorter
 * than {@link minSecretLength} is passed over.
 *
 * Time is in proportion to the input, however many secrets there are (Aho and Corasick, 1975).
 */
export function createScrubber(secrets: Iterable<string>): Scrubber {
  const all = new Set([...secrets].flatMap(partsOf).filter((secret) => secret.length >= minSecretLength))
  const forms = [...all].flatMap(formsOf)
  let inText: Automaton | undefined
  let inBytes: Automaton | undefined
  const forText = () => {
    inText ??= compilePatterns(forms.map(unitsOf))
    return inText
  }
  const forBytes = () => {
    inBytes ??= compilePatterns([
      ...forms.map((form) => Buffer.from(form)),
      ...[...all].flatMap((secret) => {
        const wide = Buffer.from(secret, 'utf16le')
        return [wide, Buffer.from(wide).swap16(), ...keysIn(secret)]
      }),
    ])
    return inBytes
  }
  return {
    scrub: (text) => {
      if (all.size === 0) return text
      // Most texts hold not even the beginning of one.
      if (seekInText(text, forText().begins, 0, text.length) >= text.length - 2) return text
      const found = createScan(forText()).find(unitsInText(text), 0, text.length)
      if (found.length === 0) return text
      const pieces: string[] = []
      let from = 0
      for (const { start, end } of mergeSpans(found)) {
        pieces.push(text.slice(from, start), redactedMark)
        from = end
      }
      return pieces.join('') + text.slice(from)
    },
    scrubBytes: (bytes) => {
      if (all.size === 0) return bytes
      const found = createScan(forBytes()).find(unitsInBytes(bytes), 0, bytes.length)
      return found.length === 0 ? bytes : replaceBytes(bytes, mergeSpans(found), bytes.length)
    },
    stream: () => (all.size === 0 ? { push: (bytes) => bytes, end: () => new Uint8Array() } : createStream(forBytes())),
  }
}

function replaceBytes(bytes: Uint8Array, spans: readonly Span[], to: number): Uint8Array {
  const mark = Buffer.from(redactedMark)
  const pieces: Uint8Array[] = []
  let from = 0
  for (const { start, end } of spans) {
    pieces.push(bytes.subarray(from, start), mark)
    from = end
  }
  return Buffer.concat([...pieces, bytes.subarray(from, to)])
}

function createStream(automaton: Automaton): ScrubStream {
  const scan = createScan(automaton)
  let held = Buffer.alloc(0)
  let spans: readonly Span[] = []
  /** Gives what lies before `until`, or before a span that reaches over it, and holds the rest. */
  const release = (until: number): Uint8Array => {
    const open = spans.find((span) => span.end > until)
    const to = open === undefined ? until : Math.min(until, open.start)
    const given = replaceBytes(
      held,
      spans.filter((span) => span.end <= to),
      to,
    )
    held = held.subarray(to)
    spans = spans.filter((span) => span.end > to).map(({ start, end }) => ({ start: start - to, end: end - to }))
    return given
  }
  return {
    push: (bytes) => {
      const from = held.length
      held = Buffer.concat([held, bytes])
      spans = mergeSpans([...spans, ...scan.find(unitsInBytes(held), from, held.length)])
      // One more than what may have begun, so that no two spans touch where they are torn apart.
      return release(Math.max(0, held.length - scan.pending - 1))
    },
    end: () => release(held.length),
  }
}
