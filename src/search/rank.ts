import {
  beginningsOf,
  type FoldedText,
  fold,
  isWordTerm,
  type QueryTerm,
  type TermBeginnings,
  tokenize,
} from '../text/analyser.ts'
import { impactOf, wordBm25 } from '../text/relevance.ts'
import type { FoundPassage } from './part.ts'

/** A word that is derived like a word of a query. */
export interface WordForm {
  readonly term: string
  /** Weight of an occurrence of this form, as a share of the weight of an occurrence of the word itself. */
  readonly share: number
  /** Number of passages that contain the term. */
  readonly count: number
}

/** A term of a query, with its weight. */
export interface RatedTerm extends Pick<QueryTerm, 'term' | 'prefix' | 'loose' | 'light' | 'joined'> {
  /** Rarity of the term, times `share`. */
  readonly weight: number
  /** Weight by the kind of the term and its frequency in the query, without its rarity. */
  readonly share: number
  /** Other forms of the word, if it is rare. */
  readonly forms?: readonly WordForm[]
}

/**
 * Okapi BM25, in which a term in the title counts as `title` more occurrences, and one in the path as `path` (BM25F, with the length of the
 * text only). Figures: decision 12.
 */
const bm25 = { characters: { k1: 0.9, b: 0.75 }, title: 2, path: 0.5 }
/** Weight of terms that are close together: the best stretch of this many UTF-16 units. */
const nearness = { words: { share: 0.5, units: 80 }, characters: { share: 1.5, units: 100 } }

/** Length of the beginning of a text, in UTF-16 units. Terms count once more there, because it names the topic. Figures: decision 12. */
const beginningUnits = { words: 60, characters: 30 }

/** Occurrence of a term in a folded text. */
interface TermMatch {
  readonly term: number
  readonly start: number
  readonly end: number
  /** Weight of the occurrence: 1; less for another form of the word. */
  readonly share: number
}

/** The terms in a text, and the weight of the terms that are closest together. */
interface TextMatches {
  readonly matches: readonly TermMatch[]
  readonly near: number
}

export interface PassageScore {
  readonly score: number
  /** The weighted frequency of each term in the passage, its title and its path. */
  readonly counts: Float64Array
}

/** Scores passages by the terms of a query. */
export function createRanker(terms: readonly RatedTerm[]) {
  const complete = new Map<string, Meant>()
  for (const [index, { term, prefix, joined = false }] of terms.entries())
    if (!prefix) complete.set(term, { index, share: 1, joined })
  for (const [index, { forms = [] }] of terms.entries())
    for (const { term, share } of forms) if (!complete.has(term)) complete.set(term, { index, share, joined: false })
  const beginning = new Map(terms.flatMap(({ term, prefix }, index) => (prefix ? [[term, index] as const] : [])))
  const beginnings = beginningsOf([...complete.keys(), ...beginning.keys()])
  const matchesOf = (text: string) => findMatches(text, complete, beginning, beginnings)
  const areWords = terms.map(({ term }) => isWordTerm(term))
  const isOfWords = !areWords.includes(false)
  const together = isOfWords ? nearness.words : nearness.characters
  const lookAt = (text: string): TextMatches => {
    const matches = matchesOf(fold(text).text)
    return { matches, near: bestStretch(matches, terms, together.units).weight }
  }
  const names = new Map<string, TextMatches>()
  const lookAtName = (name: string): TextMatches => {
    const cachedMatches = names.get(name)
    if (cachedMatches !== undefined) return cachedMatches
    const matches = lookAt(name)
    names.set(name, matches)
    return matches
  }

  return {
    terms,
    /** Whether any of the terms is a word; only words count for a document. */
    hasWords: areWords.includes(true),
    isOfWords,
    /** Returns the occurrences of the terms, in the order in which they begin. */
    matches: ({ text }: FoldedText): readonly TermMatch[] => matchesOf(text),
    /** The score of a passage by itself. */
    rate: ({ passage, index, length, path, title }: FoundPassage, averageLength: number): PassageScore => {
      const counts = new Float64Array(terms.length)
      let near = 0
      const count = (matches: TextMatches, times: number) => {
        for (const { term, share } of matches.matches) counts[term] = (counts[term] ?? 0) + times * share
        near = Math.max(near, matches.near)
      }
      count(lookAt(passage.text), 1)
      count(lookAtName(title), bm25.title)
      count(lookAtName(path), bm25.path)
      if (index === 0) {
        const units = isOfWords ? beginningUnits.words : beginningUnits.characters
        const opening = matchesOf(fold(passage.text.slice(0, units)).text)
        const isAbout = !isOfWords || new Set(opening.map(({ term }) => term)).size >= Math.min(2, terms.length)
        for (const { term, share } of isAbout ? opening : [])
          if (areWords[term] === isOfWords) counts[term] = (counts[term] ?? 0) + share
      }
      const relative = length / Math.max(1, averageLength)
      let score = together.share * near
      for (const [index, { weight }] of terms.entries()) {
        score += weight * impactOf(counts[index] ?? 0, relative, areWords[index] ? wordBm25 : bm25.characters)
      }
      return { score, counts }
    },
    /** The increase of the score of each passage of a document, from its scored passages. */
    documentScore: (
      passages: readonly { readonly found: FoundPassage; readonly rating: PassageScore }[],
      averageDocumentLength: number,
    ): number => {
      const length = passages.reduce((sum, { found }) => sum + found.length, 0)
      const relative = length / Math.max(1, averageDocumentLength)
      let score = 0
      for (const [index, { weight }] of terms.entries()) {
        if (areWords[index] !== true) continue
        let times = 0
        for (const { rating } of passages) times += rating.counts[index] ?? 0
        score += weight * impactOf(times, relative)
      }
      return score
    },
  }
}

export type Ranker = ReturnType<typeof createRanker>

/** The term of the query that a term of a text stands for. */
interface Meant {
  readonly index: number
  readonly share: number
  readonly joined: boolean
}

const separator = /[^\p{L}_]/u

function findMatches(
  text: string,
  complete: ReadonlyMap<string, Meant>,
  beginning: ReadonlyMap<string, number>,
  beginnings: TermBeginnings,
): readonly TermMatch[] {
  const matches: TermMatch[] = []
  tokenize(
    text,
    (word, start, end, kind) => {
      const term = complete.get(word)
      if (term !== undefined && kind !== 'tail' && !(term.joined && separator.test(text.slice(start, end))))
        matches.push({ term: term.index, start, end, share: term.share })
      if (beginning.size === 0 || (kind !== 'bigram' && kind !== 'tail')) return
      const first = String.fromCodePoint(word.codePointAt(0) ?? 0)
      const firstStart = beginning.get(first)
      if (firstStart !== undefined) matches.push({ term: firstStart, start, end: start + first.length, share: 1 })
    },
    beginnings,
  )
  return matches
}

/** Finds the best stretch of a text: the greatest sum of the weights of terms, each counted once, and the first match in it. */
export function bestStretch(
  matches: readonly Pick<TermMatch, 'term' | 'start'>[],
  terms: readonly RatedTerm[],
  units: number,
): { readonly weight: number; readonly first: number } {
  const counts = new Int32Array(terms.length)
  const weightOf = (term: number) => terms[term]?.weight ?? 0
  let best = { weight: 0, first: 0 }
  let weight = 0
  let first = 0
  for (const { term, start } of matches) {
    counts[term] = (counts[term] ?? 0) + 1
    if (counts[term] === 1) weight += weightOf(term)
    for (let last = matches[first]; last !== undefined && last.start < start - units; last = matches[++first]) {
      counts[last.term] = (counts[last.term] ?? 0) - 1
      if (counts[last.term] === 0) weight -= weightOf(last.term)
    }
    if (weight > best.weight + 1e-9) best = { weight, first }
  }
  return best
}
