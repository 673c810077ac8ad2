import { ownCopy } from '../core/kit/own-copy.ts'
import { classOf, han, other, word } from './fold.ts'

/**
 * Version of the rules by which texts are split, folded and tokenised. Increase it with any change: older documents are then
 * indexed again.
 */
export const edition = 5

/**
 * Kind of a term. `word`: a whole word or identifier. `part`: a part of an identifier. `bigram`: two characters of a script
 * without spaces. `single`: a Han character. `tail`: the last character of a run without spaces, unless it is a Han character,
 * so that each character begins a term.
 */
export type TermKind = 'word' | 'part' | 'bigram' | 'single' | 'tail'

/** Receives a term, and its position in the folded text. */
type Emit = (term: string, start: number, end: number, kind: TermKind) => void

/** Maximum length of a stored word, in UTF-16 units. A longer word is truncated. */
const mostUnits = 64

/** First units of the wanted terms: 1 at each UTF-16 unit, followed by one entry for each pair of small ASCII letters. */
export type Beginnings = Uint8Array

/**
 * Yields the terms of a folded text, in the order in which they begin. Linear in its length.
 *
 * @param emit Must not call this function.
 * @param wanted Beginnings of the wanted terms: most other terms may be skipped, which is faster.
 */
export function tokenize(text: string, emit: Emit, wanted?: Beginnings): void {
  const units = unitsOf(text)
  for (let index = 0; index < text.length; ) {
    const point = pointAt(units, index)
    const found = classOf(point)
    if (found === other) index += point > 0xffff ? 2 : 1
    else index = found === word ? emitWord(text, units, index, emit, wanted) : emitRun(text, units, index, emit, wanted)
  }
}

/** UTF-16 units of a text, and a zero behind them. */
type Units = Uint16Array

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1
let scratch = new Uint16Array(4096)

/**
 * The units of a text, until the next call. V8 has many kinds of strings (of one and two bytes, slices, joined ones), so code that reads
 * units of all kinds is slow.
 */
function unitsOf(text: string): Units {
  const { length } = text
  if (scratch.length <= length) scratch = new Uint16Array(2 * length)
  if (isLittleEndian) Buffer.from(scratch.buffer, 0, 2 * length).write(text, 'utf16le')
  else for (let index = 0; index < length; index++) scratch[index] = text.charCodeAt(index)
  scratch[length] = 0
  return scratch
}

/** The code point at an index; a lone surrogate stands for itself. */
function pointAt(units: Units, index: number): number {
  const unit = units[index] ?? 0
  if ((unit & 0xfc00) !== 0xd800) return unit
  const next = units[index + 1] ?? 0
  return (next & 0xfc00) === 0xdc00 ? 0x10000 + ((unit & 0x3ff) << 10) + (next & 0x3ff) : unit
}

/** Returns the beginnings of terms, for a quick test of a text. */
export function beginningsOf(terms: Iterable<string>): Beginnings {
  const wanted = new Uint8Array(0x10000 + 26 * 26)
  for (const term of terms) {
    wanted[term.charCodeAt(0)] = 1
    if (/^[a-z]{2}/.test(term)) wanted[pairOf(term.charCodeAt(0), term.charCodeAt(1))] = 1
  }
  return wanted
}

function pairOf(first: number, second: number): number {
  return 0x10000 + 26 * (first - 0x61) + second - 0x61
}

/** Whether a word of small letters of ASCII may be wanted: its stem has its first two letters. */
function isWanted(units: Units, start: number, end: number, wanted: Beginnings): boolean {
  const first = units[start] ?? 0
  return wanted[first] === 1 && (end - start < 2 || wanted[pairOf(first, units[start + 1] ?? 0)] === 1)
}

/** Characters without spaces: pairs of neighbours, and Han characters by themselves. */
function emitRun(text: string, units: Units, start: number, emit: Emit, wanted?: Beginnings): number {
  let before = -1
  let index = start
  for (;;) {
    const point = index < text.length ? pointAt(units, index) : 0
    const found = classOf(point)
    const isMore = found !== other && found !== word
    const end = index + (point > 0xffff ? 2 : 1)
    if (before >= 0 && (wanted === undefined || wanted[units[before] ?? 0] === 1)) {
      if (isMore) emit(text.slice(before, end), before, end, 'bigram')
      else if (classOf(pointAt(units, before)) !== han) emit(text.slice(before, index), before, index, 'tail')
    }
    if (!isMore) return index
    if (found === han && (wanted === undefined || wanted[units[index] ?? 0] === 1))
      emit(text.slice(index, end), index, end, 'single')
    before = index
    index = end
  }
}

/** Emits a word, and the parts of a compound: `fooBar`, `foo_bar`, `foo-bar` and `foo.bar` are `foobar`, `foo` and `bar`. */
function emitWord(text: string, units: Units, start: number, emit: Emit, wanted?: Beginnings): number {
  const plain = endOfSmall(text, units, start)
  if (plain > start && wanted !== undefined && !isWanted(units, start, plain, wanted)) return plain
  const end = plain > start ? plain : endOfWord(text, units, start)
  if (plain === start && wanted !== undefined && !mayBegin(units, start, end, wanted)) return end
  const whole = text.slice(start, Math.min(end, start + 2 * mostUnits))
  if (plain > start && end - start <= mostUnits) {
    // Cutting such a word takes less time than looking it up.
    emit(stemOf(whole), start, end, 'word')
  } else if (end - start > mostUnits) {
    const term = termOf(whole.replace(/[^\p{L}\p{N}\p{M}]/gu, ''))
    if (term !== '') emit(term, start, end, 'word')
  } else for (const { term, at, length, kind } of cutOf(whole)) emit(term, start + at, start + at + length, kind)
  return end
}

/** A term of a word, and its position in the word. */
interface Cut {
  readonly term: string
  readonly at: number
  readonly length: number
  readonly kind: TermKind
}

/** Cache of the terms of words, because words repeat: two generations of this many words. */
const mostKnown = 6000
let known = new Map<string, readonly Cut[]>()
let knownBefore: ReadonlyMap<string, readonly Cut[]> = new Map()

/** The terms of a word that is not too long. */
function cutOf(text: string): readonly Cut[] {
  const found = known.get(text)
  if (found !== undefined) return found
  const before = knownBefore.get(text)
  const own = ownCopy(text)
  if (before !== undefined) return remember(own, before)
  const cuts: Cut[] = []
  const add = (part: string, at: number, length: number, kind: TermKind) => {
    const term = termOf(part)
    if (term !== '') cuts.push({ term, at, length, kind })
  }
  const parts = partsOf(own)
  const [only] = parts
  if (parts.length === 1 && only !== undefined) add(only.text, 0, own.length, 'word')
  else {
    add(joined(parts), 0, own.length, 'word')
    for (const part of parts) add(part.text, part.at, part.text.length, 'part')
  }
  return remember(own, cuts)
}

function remember(word: string, cuts: readonly Cut[]): readonly Cut[] {
  if (known.size >= mostKnown) {
    knownBefore = known
    known = new Map()
  }
  known.set(word, cuts)
  return cuts
}

/** Whether a term of a word may begin like one of the wanted terms: the word, or a part of it. A non-ASCII word always may. */
function mayBegin(units: Units, start: number, end: number, wanted: Beginnings): boolean {
  let isJoined = true
  for (let index = start; index < end; index++) {
    const unit = units[index] ?? 0
    if (unit >= 0x80) return true
    const isCapital = unit >= 0x41 && unit <= 0x5a
    const isSmall = unit >= 0x61 && unit <= 0x7a
    const isDigit = unit >= 0x30 && unit <= 0x39
    if ((isJoined || !isSmall) && wanted[isCapital ? unit + 0x20 : unit] === 1) return true
    isJoined = !(isCapital || isSmall || isDigit)
  }
  return false
}

function termOf(text: string): string {
  const small = text.toLowerCase()
  return small.length > mostUnits ? wellFormed(small.slice(0, mostUnits)) : stem(small)
}

/** The end of a word of lower-case ASCII letters only; the start for any other word. */
function endOfSmall(text: string, units: Units, start: number): number {
  let index = start
  for (; index < text.length; index++) {
    const unit = units[index] ?? 0
    if (unit < 0x61 || unit > 0x7a) break
  }
  if (index === text.length) return index
  const unit = units[index] ?? 0
  if (unit < 0x80) return classOf(unit) === word || isJoiner(text, unit, index) ? start : index
  return classOf(pointAt(units, index)) === word || unit === joiner.quote ? start : index
}

function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.slice(0, -1)
}

/** A joining character is between two parts of a word: with a letter or digit before and after it. */
function endOfWord(text: string, units: Units, start: number): number {
  let index = start
  for (;;) {
    while (index < text.length) {
      const point = pointAt(units, index)
      if (classOf(point) !== word) break
      index += point > 0xffff ? 2 : 1
    }
    if (index >= text.length || !isJoiner(text, units[index] ?? 0, index)) return index
    if (classOf(pointAt(units, index + 1)) !== word) return index
    index++
  }
}

const joiner = { apostrophe: 0x27, comma: 0x2c, hyphen: 0x2d, dot: 0x2e, underscore: 0x5f, quote: 0x2019 }

function isJoiner(text: string, unit: number, index: number): boolean {
  if (unit === joiner.underscore || unit === joiner.hyphen || unit === joiner.dot) return true
  // don't, 3,000
  if (unit === joiner.apostrophe || unit === joiner.quote) return true
  return unit === joiner.comma && /^\d,\d{3}(?!\d)/.test(text.slice(index - 1, index + 5))
}

interface Segment {
  readonly text: string
  readonly at: number
}

const partText = /[\p{Lu}\p{N}]+(?![\p{Ll}\p{M}])|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}\p{N}]+|[\p{L}\p{M}\p{N}]/gu

function partsOf(text: string): readonly Segment[] {
  // An apostrophe separates an ending; commas in digits separate groups of one number.
  if (/^\d[\d,]*$/.test(text)) return [{ text: text.replaceAll(',', ''), at: 0 }]
  const bare = /['’]/.test(text) ? text.replace(/['’](?:\p{L}{1,2})?$/u, '') : text
  return [...bare.matchAll(partText)].map((match) => ({ text: match[0], at: match.index }))
}

function joined(parts: readonly Segment[]): string {
  const isNumber = parts.every(({ text }) => /^\p{N}+$/u.test(text))
  return parts.map(({ text }) => text).join(isNumber ? '.' : '')
}

/**
 * Returns the stem of an English word in lower case, without plurals, `-ed`, `-ing` and a final `e`: `caches`, `cached` and
 * `caching` are the same. It uses no dictionary, so a stem need not be a word. Other words stay unchanged.
 */
export function stem(given: string): string {
  return /^[a-z]+$/.test(given) ? stemOf(given) : given
}

const letter = { d: 0x64, e: 0x65, g: 0x67, n: 0x6e, s: 0x73 }

/** Returns the stem of a word of lower-case ASCII letters. Most words have no ending, which the last letters show. */
function stemOf(given: string): string {
  const { length } = given
  if (length < 4) return given
  const last = given.charCodeAt(length - 1)
  if (last === letter.e) return given.slice(0, -1)
  const before = given.charCodeAt(length - 2)
  const hasEnding =
    last === letter.s || (last === letter.d && before === letter.e) || (last === letter.g && before === letter.n)
  if (!hasEnding) return given
  const bare = withoutEnding(singular(given))
  return bare.length > 3 && bare.endsWith('e') ? bare.slice(0, -1) : bare
}

/** Harman's rules (How effective is suffixing?, JASIS 42, 1991). */
function singular(text: string): string {
  if (text.endsWith('ies'))
    return text.length > 4 && !/[ae]ies$/.test(text) ? `${text.slice(0, -3)}y` : text.slice(0, -1)
  if (/(?:ss|x|z|ch|sh)es$/.test(text)) return text.slice(0, -2)
  return /(?:us|ss|is)$/.test(text) || !text.endsWith('s') ? text : text.slice(0, -1)
}

function withoutEnding(text: string): string {
  if (text.endsWith('ied') && text.length > 4) return `${text.slice(0, -3)}y`
  const end = text.endsWith('ing') ? 3 : text.endsWith('ed') ? 2 : 0
  if (end === 0) return text
  const bare = text.slice(0, -end)
  // `need`, `sing` and `string` are words of their own.
  if (bare.length < 3 || bare.endsWith('e') || !/[aeiouy]/.test(bare)) return text
  return /([^aeiouylsz])\1$/.test(bare) ? bare.slice(0, -1) : bare
}
