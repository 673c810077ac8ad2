import { classOf, fold, han, other, word } from '../text/fold.ts'
import { stem, type TermKind, tokenize } from '../text/tokenizer.ts'

/** A parsed query. */
export interface Query {
  readonly terms: readonly QueryTerm[]
  /** Quoted texts, folded and in lower case. */
  readonly phrases: readonly string[]
  /** Whether a passage must contain the quoted texts: the query has few other words. If not, passages that contain them rank higher. */
  readonly isQuoted: boolean
  /** The words of several parts, such as `needle-in-haystack`: a passage needs all parts of one. Empty in a long query. */
  readonly compounds: readonly Compound[]
}

/** The terms of a word of several parts. */
export interface Compound {
  readonly whole: string
  /** Those of its parts that are no words of the query by themselves. */
  readonly parts: readonly string[]
}

export interface QueryTerm {
  readonly term: string
  /** Weight of the term beside its rarity. */
  readonly weight: number
  /** How often the query contains it. */
  readonly times: number
  /** One character of a script whose characters are not terms: it stands for all pairs that it begins. */
  readonly prefix: boolean
  /**
   * A Han character of a longer word, such as each of 決済, or a part of a compound. It counts for the rank of a passage, and finds
   * passages only if no passage has the word, a pair of its characters, or all parts.
   */
  readonly loose: boolean
  /** A function word beside several other words: it is not looked up. */
  readonly light?: true
  /** Two neighbouring words written together, as identifiers are, without a hyphen or a dot: `rootpath` for `root path`. */
  readonly joined?: true
}

/** Maximum number of terms of a query: the first ones. */
const mostTerms = 200
/** Maximum length of the examined part of a query, in UTF-16 units. */
const mostUnits = 4000

const quoted = /"([^"]+)"/g
/** Number of words beside quotes from which the quotes are not required: sentences quote names, messages and code. */
const wordsOfQuestion = 3
/** Number of words from which the parts of a compound are not required together. */
const wordsOfLong = 12

const hiragana = /^[\p{Script=Hiragana}ー]+$/u
const anyHiragana = /\p{Script=Hiragana}/u
/** A Han character between two of these, or at an end of the run, is a word: 薬 in 「薬を飲む」. */
const particles = /^[をはがのにでともへや]$/u

/**
 * Weights of kinds of terms. Endings, particles and question words are written in hiragana and are rare in an answer, so by rarity alone
 * they would count more than the words that matter. Figures: decision 12.
 */
const weights = { hiragana: 0.4, mixed: 0.6, joined: 0.3, function: 0.02 }

/**
 * Words that turn an English sentence into a question, and function words. In code and short texts they are rare, so by rarity alone
 * `how` would count more than the words that matter. They count nearly nothing, if the query has several other words. Figures: decision 12.
 */
const lighter: ReadonlySet<string> = new Set(
  (
    'how what which who whom whose when where why can could may might must shall should will would do does did is are was were be ' +
    'been being has have had there a an the of to in on at for from with by and or not if as into onto about than then so but i me ' +
    'my we us our you your it its they them their he his she her this that these those any some all each such'
  )
    .split(' ')
    .map(stem),
)
/** Number of other words from which those count less. */
const enoughOthers = 3

export function parseQuery(text: string): Query {
  const folded = fold(text.slice(0, mostUnits).toWellFormed()).text
  const phrases = [...folded.matchAll(quoted)].flatMap((match) => (match[1] ?? '').trim().toLowerCase() || [])
  const terms = new Map<string, QueryTerm>()
  const joined = createJoined(folded)
  const compounds = createCompounds()
  let lastPair = -1
  tokenize(folded, (term, start, end, kind) => {
    if (kind === 'bigram') lastPair = end
    if (kind === 'word') joined.add(start, end)
    compounds.add(term, end, kind)
    // The character already ends a pair.
    if (kind === 'tail' && lastPair === end) return
    if (terms.size >= mostTerms && !terms.has(term)) return
    add(terms, term, kind, kind === 'single' && !isWordAlone(folded, start, end))
  })
  for (const term of joined.terms)
    if (!terms.has(term) && terms.size < mostTerms)
      terms.set(term, { term, weight: weights.joined, times: 1, prefix: false, loose: false, joined: true })
  const words = [...terms.values()].filter((one) => one.weight === 1 && one.joined !== true && !one.prefix)
  if (words.filter(({ term }) => !lighter.has(term)).length >= enoughOthers)
    for (const one of words)
      if (lighter.has(one.term)) terms.set(one.term, { ...one, weight: weights.function, light: true })
  const isQuoted = phrases.length > 0 && wordsIn(folded.replaceAll(quoted, ' ')) < wordsOfQuestion
  return { terms: [...terms.values()], phrases, isQuoted, compounds: compounds.all() }
}

/** Collects the compounds of a query, of which each part follows the whole. */
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

/** Words that are written together with a neighbour have only letters, and not too few. Figures: decision 12. */
const joinable = { word: /^\p{L}{2,}$/u, together: 5 }
/** Short English words that say nothing about a name: `each is` asks for no `eachIs`. */
const functionWords: ReadonlySet<string> = new Set(
  'an as at be by do he if in is it me my no of on or so to up us we'.split(' '),
)

/** Collects the terms of neighbouring words with one space between them, written together. */
function createJoined(text: string) {
  const terms = new Set<string>()
  let last = { word: '', end: -2 }
  return {
    terms,
    add: (start: number, end: number): void => {
      const word = text.slice(start, end).toLowerCase()
      const isPlain = joinable.word.test(word) && !functionWords.has(word)
      const both = last.word + word
      if (isPlain && last.end === start - 1 && text[last.end] === ' ' && both.length >= joinable.together)
        terms.add(stem(both))
      last = { word, end: isPlain ? end : -2 }
    },
  }
}

/** Number of different words in a text; in a script without spaces, three characters count as one word. */
function wordsIn(text: string): number {
  const words = new Set<string>()
  let pairs = 0
  tokenize(text, (term, _start, _end, kind) => {
    if (kind === 'word') words.add(term)
    else if (kind === 'bigram') pairs++
  })
  return words.size + pairs / 3
}

function add(terms: Map<string, QueryTerm>, term: string, kind: TermKind, isLoose: boolean): void {
  const known = terms.get(term)
  const loose = isLoose && known?.loose !== false
  const weight = kind === 'bigram' ? weightOfPair(term) : 1
  const times = (known?.times ?? 0) + 1
  if (known === undefined || known.weight < weight)
    terms.set(term, { term, weight, times, prefix: kind === 'tail', loose })
  else terms.set(term, { ...known, times, loose })
}

/** Whether a Han character is a word by itself: no other character of a word is beside it. */
function isWordAlone(text: string, start: number, end: number): boolean {
  const before = text.codePointAt(start - 1)
  const isLow = before !== undefined && before >= 0xdc00 && before <= 0xdfff
  return endsWord(isLow ? text.codePointAt(start - 2) : before) && endsWord(text.codePointAt(end))
}

function endsWord(point: number | undefined): boolean {
  if (point === undefined) return true
  const found = classOf(point)
  if (found === other || found === word) return true
  return found !== han && particles.test(String.fromCodePoint(point))
}

function weightOfPair(pair: string): number {
  if (hiragana.test(pair)) return weights.hiragana
  return anyHiragana.test(pair) ? weights.mixed : 1
}
