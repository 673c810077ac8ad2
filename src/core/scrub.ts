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
    inText ??= compile(forms.map(unitsOf))
    return inText
  }
  const forBytes = () => {
    inBytes ??= compile([
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
      for (const { start, end } of merge(found)) {
        pieces.push(text.slice(from, start), redactedMark)
        from = end
      }
      return pieces.join('') + text.slice(from)
    },
    scrubBytes: (bytes) => {
      if (all.size === 0) return bytes
      const found = createScan(forBytes()).find(unitsInBytes(bytes), 0, bytes.length)
      return found.length === 0 ? bytes : replaceBytes(bytes, merge(found), bytes.length)
    },
    stream: () => (all.size === 0 ? { push: (bytes) => bytes, end: () => new Uint8Array() } : createStream(forBytes())),
  }
}

/** The parts of a secret that are secret by themselves, the whole first. */
function partsOf(secret: string): readonly string[] {
  const parts = [secret, secret.trim()]
  const password = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#@:]*:([^/?#]*)@/.exec(secret.trim())?.[1]
  if (password !== undefined) parts.push(password, decoded(password))
  if (/[\r\n]/.test(secret))
    parts.push(...secret.split(/[\r\n]+/).flatMap((line) => (line.trim().length >= 20 ? [line.trim()] : [])))
  return parts
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Every spelling of a secret in text. */
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
    ...[[...secret].join('\0'), [...secret].join('\\u0000')],
  ]
  const base64 = [plain, Buffer.from(secret, 'utf16le')].flatMap(base64Forms)
  return [...new Set([...spellings, ...base64])]
}

/** The bytes that a secret is the base64 or the hexadecimal of: a key may lie somewhere as it is. */
function keysIn(secret: string): readonly Buffer[] {
  const hex = /^(?:[0-9a-f]{2}){12,}$/i.test(secret) ? [Buffer.from(secret, 'hex')] : []
  const base64 = /^[\w+/-]{16,}={0,2}$/.test(secret) ? [Buffer.from(secret, 'base64')] : []
  return [...hex, ...base64]
}

/** What base64 makes of bytes amid others, at each alignment: only the characters that hold nothing but these bytes. */
function base64Forms(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const own = encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

const lowerEscapes = (text: string) => text.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase())

const asciiOnly = (text: string, others: RegExp) =>
  text.replace(others, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

const xmlEscaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const unitsOf = (text: string) => Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))

/** States are numbers; 0 is the root. */
interface Automaton {
  /** The state behind a state and a unit (`state * 65536 + unit`). */
  readonly next: ReadonlyMap<number, number>
  readonly fail: readonly number[]
  readonly depth: readonly number[]
  /** The length of the longest pattern that ends in a state, 0 where none does. */
  readonly longest: readonly number[]
  /** By a hash of three units: whether a pattern may begin with them. */
  readonly begins: Uint8Array
}

const hash = (a: number, b: number, c: number) => (a * 961 + b * 31 + c) & 0xffff

function compile(patterns: readonly ArrayLike<number>[]): Automaton {
  const next = new Map<number, number>()
  const depth = [0]
  const longest = [0]
  const begins = new Uint8Array(65536)
  const edges: (readonly [state: number, unit: number, target: number])[] = []
  for (const units of patterns) {
    let state = 0
    for (let i = 0; i < units.length; i++) {
      const unit = units[i] ?? 0
      let target = next.get(state * 65536 + unit)
      if (target === undefined) {
        target = depth.length
        next.set(state * 65536 + unit, target)
        edges.push([state, unit, target])
        depth.push(i + 1)
        longest.push(0)
      }
      state = target
    }
    longest[state] = units.length
    begins[hash(units[0] ?? 0, units[1] ?? 0, units[2] ?? 0)] = 1
  }
  const fail = depth.map(() => 0)
  // Nearer to the root first: what a state falls back to is then known already.
  edges.sort(([, , a], [, , b]) => (depth[a] ?? 0) - (depth[b] ?? 0))
  for (const [state, unit, target] of edges) {
    if (state !== 0) fail[target] = step({ next, fail }, fail[state] ?? 0, unit)
    if (longest[target] === 0) longest[target] = longest[fail[target] ?? 0] ?? 0
  }
  return { next, fail, depth, longest, begins }
}

function step({ next, fail }: Pick<Automaton, 'next' | 'fail'>, from: number, unit: number): number {
  for (let state = from; ; state = fail[state] ?? 0) {
    const target = next.get(state * 65536 + unit)
    if (target !== undefined) return target
    if (state === 0) return 0
  }
}

interface Span {
  readonly start: number
  readonly end: number
}

/** The units of a text or of bytes. */
interface Units {
  at(index: number): number
  /** The next place, from `at` on, where three units are such as a pattern may begin with; `to - 2` where there is none. */
  seek(begins: Uint8Array, at: number, to: number): number
}

// The two are alike, and apart: one loop over either kind would be several times slower.
const unitsInText = (text: string): Units => ({
  at: (index) => text.charCodeAt(index),
  seek: (begins, from, to) => seekInText(text, begins, from, to),
})

function seekInText(text: string, begins: Uint8Array, from: number, to: number): number {
  let first = text.charCodeAt(from)
  let second = text.charCodeAt(from + 1)
  for (let at = from; at + 2 < to; at++) {
    const third = text.charCodeAt(at + 2)
    if (begins[hash(first, second, third)] !== 0) return at
    first = second
    second = third
  }
  return Math.max(from, to - 2)
}

const unitsInBytes = (bytes: Uint8Array): Units => ({
  at: (index) => bytes[index] as number,
  seek: (begins, from, to) => {
    let [first, second] = [bytes[from] as number, bytes[from + 1] as number]
    for (let at = from; at + 2 < to; at++) {
      const third = bytes[at + 2] as number
      if (begins[hash(first, second, third)] !== 0) return at
      first = second
      second = third
    }
    return Math.max(from, to - 2)
  },
})

/** A walk over units, which can be continued where the last one ended. */
interface Scan {
  find(units: Units, from: number, to: number): readonly Span[]
  /** How many of the units seen last may be the beginning of a secret. */
  readonly pending: number
}

function createScan(automaton: Automaton): Scan {
  const { begins, depth, longest } = automaton
  let state = 0
  return {
    find: (units, from, to) => {
      const found: Span[] = []
      for (let at = from; at < to; at++) {
        // At the root nothing has begun: whatever no pattern begins with is passed over quickly.
        if (state === 0) at = units.seek(begins, at, to)
        state = step(automaton, state, units.at(at))
        const length = longest[state] ?? 0
        if (length > 0) found.push({ start: at + 1 - length, end: at + 1 })
      }
      return found
    },
    get pending() {
      return depth[state] ?? 0
    },
  }
}

/** Overlapping spans as one, in order. */
function merge(spans: readonly Span[]): readonly Span[] {
  const merged: Span[] = []
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last === undefined || span.start > last.end) merged.push(span)
    else if (span.end > last.end) merged[merged.length - 1] = { start: last.start, end: span.end }
  }
  return merged
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
      spans = merge([...spans, ...scan.find(unitsInBytes(held), from, held.length)])
      // One more than what may have begun, so that no two spans touch where they are torn apart.
      return release(Math.max(0, held.length - scan.pending - 1))
    },
    end: () => release(held.length),
  }
}
