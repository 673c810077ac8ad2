import { ownCopy } from '../core/kit/own-copy.ts'
import { firstIndex } from '../core/kit/sorted.ts'

/** The result of {@link fold}, with the origin of each of its UTF-16 units. */
export interface FoldedText {
  readonly text: string
  /** Returns the position in the original at which the unit at `index` begins. For the length of `text`: the length of the original. */
  origin(index: number): number
}

/** Frequent characters that NFKC does not change unless a mark follows, as a part of a regular expression. */
const usual = String.raw`\0-\x7f\u3001\u3002\u300c-\u300f\u3041-\u3096\u30a1-\u30fe\u4e00-\u9fff\uac00-\ud7a3`
const unusual = new RegExp(`[^${usual}]`)
const mark = String.raw`[\p{M}\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7fb]`
/** Characters that NFKC may change, with at most 16 of the marks that follow each, because sorting marks takes quadratic time. */
const changeable = new RegExp(`[${usual}]${mark}{1,16}|[^${usual}]${mark}{0,16}`, 'gu')

/**
 * Folds different spellings into one: NFKC, so full and half width, ligatures and composed characters are equal. Capitals stay, because
 * words are split at them.
 */
export function fold(text: string): FoldedText {
  if (!unusual.test(text)) return { text, origin: (index) => index }
  /** Positions at which the offset between folded text and original changes: from `at` on, units come from `from` on. */
  const at: number[] = [0]
  const from: number[] = [0]
  let folded = ''
  let end = 0
  for (const { 0: character, index } of text.matchAll(changeable)) {
    const normal = character.normalize('NFKC')
    if (normal === character) continue
    folded += text.slice(end, index)
    for (let unit = 0; unit < normal.length; unit++) {
      at.push(folded.length + unit)
      from.push(index)
    }
    folded += normal
    end = index + character.length
    at.push(folded.length)
    from.push(end)
  }
  const originOf = (index: number): number => {
    const last = firstIndex(0, at.length, (each) => (at[each] ?? 0) > index) - 1
    return (from[last] ?? 0) + index - (at[last] ?? 0)
  }
  return { text: folded + text.slice(end), origin: originOf }
}

/** Length of the character at `index`, in UTF-16 units. */
export function widthAt(text: string, index: number): 1 | 2 {
  return (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1
}

/** Classes of characters. Han and syllables are indexed in pairs (bigrams), because many of their scripts have no spaces between words. */
export const otherClass = 0
export const wordClass = 1
const hanClass = 2
/** Kana, Hangul, and the scripts of South East Asia that are written without spaces. */
const syllableClass = 3

type CharacterClass = typeof otherClass | typeof wordClass | typeof hanClass | typeof syllableClass

const hanText = /[\p{Script=Han}々〆〇]/u
// The marks that lengthen, voice or repeat kana belong to several scripts, or to none, so they are listed one by one.
const syllableText =
  /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー゛゜ゝゞヽヾ]/u
const wordText = /[\p{L}\p{N}\p{M}]/u

const unclassified = 255
/** Class of each code point below U+10000 that has been classified so far. */
const table = new Uint8Array(0x10000).fill(unclassified)

/** The class of the character at an index; {@link otherClass} outside of the text. */
export function classAt(text: string, index: number): CharacterClass {
  return classOf(text.codePointAt(index) ?? 0)
}

function classOf(point: number): CharacterClass {
  if (point > 0xffff) return classify(point)
  if (table[point] === unclassified) table[point] = classify(point)
  return table[point] as CharacterClass
}

/** Whether a term is a word or a part of one: pairs and single characters begin with a character of another class. */
export function isWordTerm(term: string): boolean {
  return classOf(term.codePointAt(0) ?? 0) === wordClass
}

function classify(point: number): CharacterClass {
  const isSurrogate = point >= 0xd800 && point < 0xe000
  if (isSurrogate) return otherClass
  const text = String.fromCodePoint(point)
  if (hanText.test(text)) return hanClass
  if (!wordText.test(text) && point !== 0x309b && point !== 0x309c) return otherClass
  return syllableText.test(text) ? syllableClass : wordClass
}

/**
 * Version of the rules by which texts are split, folded and tokenised. Increase it with any change of a rule, so that documents are indexed
 * again.
 */
export const analyserVersion = 7

/**
 * Kind of a term. `word`: a whole word or compound. `part`: a part of a compound, such as `foo` of `fooBar`. `bigram`: two neighbouring Han
 * characters or syllables. `single`: a Han character. `tail`: the last syllable of a run of them.
 */
type TermKind = 'word' | 'part' | 'bigram' | 'single' | 'tail'

type Emit = (term: string, start: number, end: number, kind: TermKind) => void

/** Maximum length of a stored word, in UTF-16 units. A longer word is truncated. */
const longestTerm = 64

/** Flags for the beginnings of the wanted terms: 65536 for their first UTF-16 units, then 26 × 26 for their first two lower-case ASCII letters. */
export type TermBeginnings = Uint8Array

/**
 * Emits the terms of a folded text, in the order in which they begin.
 *
 * @param emit Must not call `tokenize`: all calls share a buffer.
 * @param beginnings Beginnings of the wanted terms: terms with another beginning may be left out, which is faster.
 */
export function tokenize(text: string, emit: Emit, beginnings?: TermBeginnings): void {
  const units = unitsOf(text)
  for (let index = 0; index < text.length; ) {
    const point = pointAt(units, index)
    const characterClass = classOf(point)
    if (characterClass === otherClass) index += point > 0xffff ? 2 : 1
    else
      index =
        characterClass === wordClass
          ? emitWord(text, units, index, emit, beginnings)
          : emitRun(text, units, index, emit, beginnings)
  }
}

type Units = Uint16Array

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1
let scratch = new Uint16Array(4096)

/** Returns the units of a text, valid until the next call. `charCodeAt` is slow in code that meets several of V8's kinds of strings. */
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

/** Returns the beginnings of terms, for {@link tokenize}. */
export function beginningsOf(terms: Iterable<string>): TermBeginnings {
  const table = new Uint8Array(0x10000 + 26 * 26)
  for (const term of terms) {
    table[term.charCodeAt(0)] = 1
    if (/^[a-z]{2}/.test(term)) table[pairOf(term.charCodeAt(0), term.charCodeAt(1))] = 1
  }
  return table
}

function pairOf(first: number, second: number): number {
  return 0x10000 + 26 * (first - 0x61) + second - 0x61
}

/** Whether the term of a word of lower-case ASCII letters may be wanted, by its first two letters. */
function isWanted(units: Units, start: number, end: number, beginnings: TermBeginnings): boolean {
  const first = units[start] ?? 0
  return beginnings[first] === 1 && (end - start < 2 || beginnings[pairOf(first, units[start + 1] ?? 0)] === 1)
}

/** Emits the terms of a run of Han characters and syllables: pairs of neighbours, single Han characters, and a tail. Returns the end of the run. */
function emitRun(text: string, units: Units, start: number, emit: Emit, beginnings?: TermBeginnings): number {
  let before = -1
  let index = start
  for (;;) {
    const point = index < text.length ? pointAt(units, index) : 0
    const characterClass = classOf(point)
    const isMore = characterClass !== otherClass && characterClass !== wordClass
    const end = index + (point > 0xffff ? 2 : 1)
    if (before >= 0 && (beginnings === undefined || beginnings[units[before] ?? 0] === 1)) {
      if (isMore) emit(text.slice(before, end), before, end, 'bigram')
      else if (classOf(pointAt(units, before)) !== hanClass) emit(text.slice(before, index), before, index, 'tail')
    }
    if (!isMore) return index
    if (characterClass === hanClass && (beginnings === undefined || beginnings[units[index] ?? 0] === 1))
      emit(text.slice(index, end), index, end, 'single')
    before = index
    index = end
  }
}

/**
 * Emits a word, and the parts of a compound: `fooBar`, `foo_bar`, `foo-bar` and `foo.bar` are `foobar`, `foo` and `bar`. Returns the end of
 * the word.
 */
function emitWord(text: string, units: Units, start: number, emit: Emit, beginnings?: TermBeginnings): number {
  const plain = endOfSmall(text, units, start)
  if (plain > start && beginnings !== undefined && !isWanted(units, start, plain, beginnings)) return plain
  const end = plain > start ? plain : endOfWord(text, units, start)
  if (plain === start && beginnings !== undefined && !mayBegin(units, start, end, beginnings)) return end
  const whole = text.slice(start, Math.min(end, start + 2 * longestTerm))
  if (plain > start && end - start <= longestTerm) {
    // Stemming such a word takes less time than finding it in the cache.
    emit(stemOf(whole), start, end, 'word')
  } else if (end - start > longestTerm) {
    const term = termOf(whole.replace(/[^\p{L}\p{N}\p{M}]/gu, ''))
    if (term !== '') emit(term, start, end, 'word')
  } else for (const { term, at, length, kind } of locateTerms(whole)) emit(term, start + at, start + at + length, kind)
  return end
}

interface Cut {
  readonly term: string
  readonly at: number
  readonly length: number
  readonly kind: TermKind
}

/** Maximum number of words in the cache of their terms. */
const mostKnown = 12_000
const knownTerms = new Map<string, readonly Cut[]>()

/** Returns the terms of a word of at most {@link longestTerm} units. */
function locateTerms(text: string): readonly Cut[] {
  const cachedCuts = knownTerms.get(text)
  if (cachedCuts !== undefined) return cachedCuts
  const own = ownCopy(text)
  const cuts: Cut[] = []
  const add = (part: string, at: number, length: number, kind: TermKind) => {
    const term = termOf(part)
    if (term !== '') cuts.push({ term, at, length, kind })
  }
  const parts = splitWord(own)
  const [only] = parts
  if (parts.length === 1 && only !== undefined) add(only.text, 0, own.length, 'word')
  else {
    add(joinWordParts(parts), 0, own.length, 'word')
    for (const part of parts) add(part.text, part.at, part.text.length, 'part')
  }
  if (knownTerms.size >= mostKnown) knownTerms.clear()
  knownTerms.set(own, cuts)
  return cuts
}

function mayBegin(units: Units, start: number, end: number, beginnings: TermBeginnings): boolean {
  let isJoined = true
  for (let index = start; index < end; index++) {
    const unit = units[index] ?? 0
    if (unit >= 0x80) return true
    const isCapital = unit >= 0x41 && unit <= 0x5a
    const isSmall = unit >= 0x61 && unit <= 0x7a
    const isDigit = unit >= 0x30 && unit <= 0x39
    if ((isJoined || !isSmall) && beginnings[isCapital ? unit + 0x20 : unit] === 1) return true
    isJoined = !(isCapital || isSmall || isDigit)
  }
  return false
}

function termOf(text: string): string {
  const small = text.toLowerCase()
  return small.length > longestTerm ? wellFormed(small.slice(0, longestTerm)) : stem(small)
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
  if (unit < 0x80) return classOf(unit) === wordClass || isJoiner(text, unit, index) ? start : index
  return classOf(pointAt(units, index)) === wordClass || unit === joiner.quote ? start : index
}

function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.slice(0, -1)
}

/** Returns the end of the word at `start`. A joiner, such as `-`, belongs to the word if the word goes on after it; a comma, only between digits. */
function endOfWord(text: string, units: Units, start: number): number {
  let index = start
  for (;;) {
    while (index < text.length) {
      const point = pointAt(units, index)
      if (classOf(point) !== wordClass) break
      index += point > 0xffff ? 2 : 1
    }
    if (index >= text.length || !isJoiner(text, units[index] ?? 0, index)) return index
    if (classOf(pointAt(units, index + 1)) !== wordClass) return index
    index++
  }
}

const joiner = { apostrophe: 0x27, comma: 0x2c, hyphen: 0x2d, dot: 0x2e, underscore: 0x5f, quote: 0x2019 }

function isJoiner(text: string, unit: number, index: number): boolean {
  if (unit === joiner.underscore || unit === joiner.hyphen || unit === joiner.dot) return true
  // As in "don't" and "3,000".
  if (unit === joiner.apostrophe || unit === joiner.quote) return true
  return unit === joiner.comma && /^\d,\d{3}(?!\d)/.test(text.slice(index - 1, index + 5))
}

interface Segment {
  readonly text: string
  readonly at: number
}

const partText = /[\p{Lu}\p{N}]+(?![\p{Ll}\p{M}])|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}\p{N}]+|[\p{L}\p{M}\p{N}]/gu

function splitWord(text: string): readonly Segment[] {
  // An apostrophe separates an ending from a word; commas group the digits of one number.
  if (/^\d[\d,]*$/.test(text)) return [{ text: text.replaceAll(',', ''), at: 0 }]
  const bare = /['’]/.test(text) ? text.replace(/['’](?:\p{L}{1,2})?$/u, '') : text
  return [...bare.matchAll(partText)].map((match) => ({ text: match[0], at: match.index }))
}

function joinWordParts(parts: readonly Segment[]): string {
  const isNumber = parts.every(({ text }) => /^\p{N}+$/u.test(text))
  return parts.map(({ text }) => text).join(isNumber ? '.' : '')
}

/**
 * Returns the stem of an English word in lower case, without plurals, `-ed`, `-ing` and a final `e`: `caches`, `cached` and `caching` are
 * the same. A stem need not be a word. Other words stay unchanged.
 */
export function stem(word: string): string {
  return /^[a-z]+$/.test(word) ? stemOf(word) : word
}

const letter = { d: 0x64, e: 0x65, g: 0x67, n: 0x6e, s: 0x73 }

/** Returns the stem of a word of lower-case ASCII letters. */
function stemOf(word: string): string {
  const { length } = word
  if (length < 4) return word
  const last = word.charCodeAt(length - 1)
  if (last === letter.e) return word.slice(0, -1)
  const before = word.charCodeAt(length - 2)
  const hasEnding =
    last === letter.s || (last === letter.d && before === letter.e) || (last === letter.g && before === letter.n)
  if (!hasEnding) return word
  const bare = withoutEnding(singular(word))
  return bare.length > 3 && bare.endsWith('e') ? bare.slice(0, -1) : bare
}

/** Removes a plural ending, by rules like those of Harman's S stemmer (How effective is suffixing?, JASIS 42, 1991). */
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

export function termsIn(text: string): readonly string[] {
  return extractWords(text).flatMap(termsOfWord)
}

export function extractWords(text: string): readonly string[] {
  return text.match(words) ?? []
}

// A longer run becomes several words, because words are kept in a cache.
const words = /[\p{L}\p{N}\p{M}_]{1,64}/gu

export function termsOfWord(word: string): readonly string[] {
  const terms: string[] = []
  tokenize(fold(word).text, (term, _start, _end, kind) => {
    if (kind !== 'tail') terms.push(term)
  })
  return terms
}

export interface Query {
  readonly terms: readonly QueryTerm[]
  /** Quoted texts, folded and in lower case. */
  readonly phrases: readonly string[]
  /** Whether a passage must contain the quoted texts. If not, passages that contain them rank higher. */
  readonly isQuoted: boolean
  /** The words of several parts, such as `needle-in-haystack`. Empty in a long query. */
  readonly compounds: readonly Compound[]
}

export interface Compound {
  readonly whole: string
  /** The parts of the word that the query does not contain as words of their own. */
  readonly parts: readonly string[]
}

export interface QueryTerm {
  readonly term: string
  /** Weight of the term beside its rarity. */
  readonly weight: number
  /** How often the query contains the term. */
  readonly times: number
  /** Whether the term is a syllable by itself, such as a kana. It then stands for all pairs that it begins. */
  readonly prefix: boolean
  /**
   * Whether the term is a Han character of a longer word, such as each of 決済, or a part of a compound other than the rarest. It finds
   * passages only if no passage has the word, a pair of its characters, or all parts.
   */
  readonly loose: boolean
  /** Whether the term is a question word or a function word beside several other words. It then finds no candidates. */
  readonly light?: true
  /** Whether the term is two neighbouring words, written together like an identifier without a hyphen or a dot: `rootpath` for `root path`. */
  readonly joined?: true
}

/** Maximum number of terms of a query: the first ones. */
const mostTerms = 200
/** Maximum length of the examined part of a query, in UTF-16 units. */
const longestQuery = 4000

const quoted = /"([^"]+)"/g
/** Number of words beside quotes from which the quotes are not required. */
const wordsOfQuestion = 3
/** Number of words from which the parts of a compound are not required together. */
const wordsOfLong = 12

const hiragana = /\p{Script=Hiragana}/u
/** A Han character with one of these, or with an end of the run, on each side is a word: 薬 in 「薬を飲む」. */
const particles = /^[をはがのにでともへや]$/u

/**
 * Weights of kinds of terms. Endings, particles and question words are rare in an answer, so by rarity alone they would count more than the
 * words that matter. Figures: decision 12.
 */
const weights = { hiragana: 0.4, joined: 0.3, light: 0.02 }

/**
 * Stems of question words and function words. In code and short texts they are rare, so by rarity alone they would count more than the
 * words that matter. Figures: decision 12.
 */
const lightWords: ReadonlySet<string> = new Set(
  (
    'how what which who whom whose when where why can could may might must shall should will would do does did is are was were be ' +
    'been being has have had there a an the of to in on at for from with by and or not if as into onto about than then so but i me ' +
    'my we us our you your it its they them their he she his her this that these those any some all each such'
  )
    .split(' ')
    .map(stem),
)
/** Minimum number of other words in a query from which its light words count less, and find no candidates. */
const enoughOthers = 3

export function parseQuery(text: string): Query {
  const folded = fold(text.slice(0, longestQuery).toWellFormed()).text
  const phrases = [...folded.matchAll(quoted)].flatMap((match) => (match[1] ?? '').trim().toLowerCase() || [])
  const terms = new Map<string, QueryTerm>()
  const joined = createJoined(folded)
  const compounds = createCompounds()
  let lastPair = -1
  tokenize(folded, (term, start, end, kind) => {
    if (kind === 'bigram') lastPair = end
    if (kind === 'word') joined.add(start, end)
    compounds.add(term, end, kind)
    // Skip the last character of a run if a pair ends with it.
    if (kind === 'tail' && lastPair === end) return
    if (terms.size >= mostTerms && !terms.has(term)) return
    addTerm(terms, term, kind, kind === 'single' && !isWordAlone(folded, start, end))
  })
  for (const term of joined.terms)
    if (!terms.has(term) && terms.size < mostTerms)
      terms.set(term, { term, weight: weights.joined, times: 1, prefix: false, loose: false, joined: true })
  const words = [...terms.values()].filter((one) => one.weight === 1 && one.joined !== true && !one.prefix)
  const light = words.filter(({ term }) => lightWords.has(term))
  if (words.length - light.length >= enoughOthers)
    for (const one of light) terms.set(one.term, { ...one, weight: weights.light, light: true })
  const isQuoted = phrases.length > 0 && countWords(folded.replaceAll(quoted, ' ')) < wordsOfQuestion
  return { terms: [...terms.values()], phrases, isQuoted, compounds: compounds.all() }
}

/** Returns the terms by which a context ranks texts for a query: the first 64, without light words and single syllables (`prefix`). */
export function queryTerms(query: string): readonly string[] {
  const { terms } = parseQuery(query)
  return terms.flatMap(({ term, light, prefix }) => (light === true || prefix ? [] : [term])).slice(0, 64)
}

function createCompounds() {
  const words = new Map<string, Set<string>>()
  let last = { whole: '', end: -1 }
  return {
    add: (term: string, end: number, kind: TermKind): void => {
      if (kind === 'word') {
        last = { whole: term, end }
        words.set(term, words.get(term) ?? new Set())
      } else if (kind === 'part' && end <= last.end) words.get(last.whole)?.add(term)
    },
    all: (): readonly Compound[] => {
      if (words.size >= wordsOfLong) return []
      return [...words].flatMap(([whole, parts]) =>
        parts.size === 0 ? [] : [{ whole, parts: [...parts].filter((part) => words.get(part)?.size !== 0) }],
      )
    },
  }
}

/** A word that is joined with its neighbour has only letters, at least two, and both words together have at least five. Figures: decision 12. */
const joinable = { word: /^\p{L}{2,}$/u, together: 5 }
/** Collects the terms of neighbouring words with one space between them, written together. */
function createJoined(text: string) {
  const terms = new Set<string>()
  let last = { word: '', end: -2 }
  return {
    terms,
    add: (start: number, end: number): void => {
      const word = text.slice(start, end).toLowerCase()
      // `each is` does not ask for the identifier `eachIs`.
      const isPlain = joinable.word.test(word) && !lightWords.has(stem(word))
      const both = last.word + word
      if (isPlain && last.end === start - 1 && text[last.end] === ' ' && both.length >= joinable.together)
        terms.add(stem(both))
      last = { word, end: isPlain ? end : -2 }
    },
  }
}

/** Number of different words in a text; three pairs of Han characters or syllables count as one word. */
function countWords(text: string): number {
  const words = new Set<string>()
  let pairs = 0
  tokenize(text, (term, _start, _end, kind) => {
    if (kind === 'word') words.add(term)
    else if (kind === 'bigram') pairs++
  })
  return words.size + pairs / 3
}

function addTerm(terms: Map<string, QueryTerm>, term: string, kind: TermKind, isLoose: boolean): void {
  const queryTerm = terms.get(term)
  const loose = isLoose && queryTerm?.loose !== false
  const weight = kind === 'bigram' && hiragana.test(term) ? weights.hiragana : 1
  terms.set(term, { term, weight, times: (queryTerm?.times ?? 0) + 1, prefix: kind === 'tail', loose })
}

/** Whether a Han character is a word by itself: on each side there is a particle, or no Han character and no syllable. */
function isWordAlone(text: string, start: number, end: number): boolean {
  const before = text.codePointAt(start - 1)
  const isLow = before !== undefined && before >= 0xdc00 && before <= 0xdfff
  return endsWord(isLow ? text.codePointAt(start - 2) : before) && endsWord(text.codePointAt(end))
}

function endsWord(point: number | undefined): boolean {
  if (point === undefined) return true
  const characterClass = classOf(point)
  if (characterClass === otherClass || characterClass === wordClass) return true
  return characterClass !== hanClass && particles.test(String.fromCodePoint(point))
}
