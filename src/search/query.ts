import { classOf, han, other, word } from '../text/characters.ts'
import { fold } from '../text/fold.ts'
import { type TermKind, tokenize } from '../text/tokenizer.ts'

/** A parsed query. */
export interface Query {
  readonly terms: readonly QueryTerm[]
  /** Quoted texts that a passage must contain, folded and in small letters. None in a long question: it quotes messages and code. */
  readonly phrases: readonly string[]
}

export interface QueryTerm {
  readonly term: string
  /** How much it says about what is asked for, beside how rare it is. */
  readonly weight: number
  /** How many times the query has it. */
  readonly times: number
  /** One character of a script whose characters are not terms: it stands for all pairs that it begins. */
  readonly prefix: boolean
  /**
   * A Han character that is a part of a longer word, such as each of 決済. It counts for the rank of a passage, and finds one only
   * where nothing has the word, or a pair of its characters.
   */
  readonly loose: boolean
}

/** How many terms of a query count: the first ones. */
const mostTerms = 200
/** How much of a query is looked at, in UTF-16 units. */
const mostUnits = 4000

const quoted = /"([^"]+)"/g
/** A question with this many words outside of its quotes requires none of them: issues quote messages, and code has strings. */
const wordsOfLong = 12

const hiragana = /^[\p{Script=Hiragana}ー]+$/u
const katakana = /^[\p{Script=Katakana}ー]+$/u
const anyHiragana = /\p{Script=Hiragana}/u
/** A Han character between two of these, or at an end of the run, is a word: 薬 in 「薬を飲む」. */
const particles = /^[をはがのにでともへや]$/u

/**
 * Endings, particles and what makes a question of a sentence are written in hiragana, and are rare in what answers it: by their
 * rarity alone they would count for more than the words that are asked for. Katakana are names and words from abroad. Figures: decision 12.
 */
const shares = { hiragana: 0.4, mixed: 0.6, katakana: 1.2, part: 0.5 }

export function parseQuery(text: string): Query {
  const folded = fold(text.slice(0, mostUnits).toWellFormed()).text
  const phrases = [...folded.matchAll(quoted)].map((match) => (match[1] ?? '').trim().toLowerCase())
  const terms = new Map<string, QueryTerm>()
  let lastPair = -1
  tokenize(folded, (term, start, end, kind) => {
    if (kind === 'bigram') lastPair = end
    // It is the end of a pair already.
    if (kind === 'tail' && lastPair === end) return
    if (terms.size >= mostTerms && !terms.has(term)) return
    add(terms, term, kind, kind === 'single' && !isWordAlone(folded, start, end))
  })
  const isLong = phrases.length > 0 && wordsIn(folded.replaceAll(quoted, ' ')) >= wordsOfLong
  return { terms: [...terms.values()], phrases: isLong ? [] : phrases.filter((phrase) => phrase !== '') }
}

/** How many different words a text has; of a script without spaces, three characters stand for one. */
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
  const weight = shareOf(term, kind)
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

function shareOf(term: string, kind: TermKind): number {
  if (kind === 'part') return shares.part
  if (kind !== 'bigram') return 1
  if (hiragana.test(term)) return shares.hiragana
  if (anyHiragana.test(term)) return shares.mixed
  return katakana.test(term) ? shares.katakana : 1
}
