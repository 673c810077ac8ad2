import { joinRanges } from '../core/kit/sorted.ts'
import type { Texts } from '../store/index.ts'
import { classAt, fold, widthAt, wordClass } from '../text/analyser.ts'
import type { RankedDocuments } from './documents.ts'
import { type FoundPassage, parseFoundPassage } from './part.ts'
import { bestStretch, type PassageScore, type Ranker } from './rank.ts'
import type { Snippet } from './search-index.ts'

/** Number of passages ranked before the task yields to the event loop. */
const inOneTurn = 50
/** Weight of the quoted texts of a query in a passage, as a share of the best score. */
const quotedShare = 0.25
/** The constant of the fusion with the ranking by vectors. */
const fusion = 60
/** Number of best documents whose first passages are all scored, and number of these passages. Figures: decision 12. */
const completed = { documents: 20, passages: 20 }

/** The terms by which passages are ranked, and the average lengths for BM25. */
export interface Ranking {
  readonly ranker: Ranker
  /** The average length of a passage and of a document, in terms. */
  readonly averageLength: number
  readonly averageDocumentLength: number
  /** Quoted texts of the query, folded and in lower case. */
  readonly phrases: readonly string[]
  /** Weight of the ranking by vectors, from 0 to 1; the ranking by words has the rest. */
  readonly vectorWeight: number
}

export interface ScoredPassage {
  readonly found: FoundPassage
  readonly score: number
}

export interface RatedPassage {
  readonly found: FoundPassage
  readonly rating: PassageScore
}

/**
 * Ranks passages together, best first.
 *
 * @param near Ids of the passages that are nearest by vectors.
 * @param whole Scores of the documents, if these were ranked first.
 */
export async function rankPassages(
  texts: Texts,
  ids: readonly number[],
  ranking: Ranking,
  near: readonly number[],
  whole?: Omit<RankedDocuments, 'ids'>,
): Promise<readonly ScoredPassage[]> {
  const { ranker, averageDocumentLength, vectorWeight } = ranking
  const documents = new Map<string, RatedPassage[]>()
  for await (const passage of ratePassages(texts, ids, ranking)) {
    const { uri } = passage.found.facts
    const passages = documents.get(uri)
    if (passages === undefined) documents.set(uri, [passage])
    else passages.push(passage)
  }
  const others = whole === undefined && ranker.hasWords ? await othersOf(texts, documents, ranking) : undefined
  const scored = [...documents].flatMap(([uri, passages]): readonly ScoredPassage[] => {
    const score = whole?.scores.get(uri)
    if (whole !== undefined && score === undefined) return []
    const all = [...passages, ...(others?.get(uri) ?? [])]
    const more = score ?? ranker.documentScore(all, averageDocumentLength)
    return passages.map(({ found, rating }) => ({ found, score: rating.score + more }))
  })
  const ordered = withShares(scored, whole?.paths, ranking.phrases).sort(byScore)
  if (near.length === 0) return ordered
  const scoredPassages = new Map(ordered.map((one) => [one.found.id, one]))
  return fuseRanks(fusion, [
    [ordered.filter(({ score }) => score > 0), 1 - vectorWeight],
    [near.flatMap((id) => scoredPassages.get(id) ?? []), vectorWeight],
  ])
}

/** Fuses rankings, each with its weight, by reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009). */
export function fuseRanks(
  constant: number,
  rankings: readonly (readonly [ranked: readonly ScoredPassage[], weight: number])[],
): readonly ScoredPassage[] {
  const passages = new Map<number, ScoredPassage>()
  for (const [ranked, weight] of rankings)
    for (const [rank, { found }] of ranked.entries()) {
      const score = (passages.get(found.id)?.score ?? 0) + weight / (constant + 1 + rank)
      passages.set(found.id, { found, score })
    }
  return [...passages.values()].sort(byScore)
}

/** Reads passages and scores them. Yields to the event loop after each batch. */
export async function* ratePassages(
  texts: Texts,
  ids: readonly number[],
  ranking: Ranking,
): AsyncGenerator<RatedPassage> {
  const { ranker, averageLength } = ranking
  const turns = Math.ceil(ids.length / inOneTurn)
  // While passages are scored, the store reads the next ones.
  const reads = Array.from({ length: turns }, (_, turn) =>
    texts.read(ids.slice(turn * inOneTurn, (turn + 1) * inOneTurn)),
  )
  for (const read of reads) read.catch(() => {})
  for (const read of reads) {
    for (const part of await read) {
      const passage = parseFoundPassage(part)
      yield { found: passage, rating: ranker.rate(passage, averageLength) }
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The first passages of the best documents, without the found passages, by the URI of their document. */
async function othersOf(
  texts: Texts,
  documents: ReadonlyMap<string, readonly RatedPassage[]>,
  ranking: Ranking,
): Promise<ReadonlyMap<string, readonly RatedPassage[]>> {
  const { ranker, averageDocumentLength } = ranking
  const best = [...documents]
    .map(([uri, passages]) => {
      const most = passages.reduce((score, { rating }) => Math.max(score, rating.score), 0)
      return { uri, passages, score: most + ranker.documentScore(passages, averageDocumentLength) }
    })
    .sort((a, b) => b.score - a.score || (a.uri < b.uri ? -1 : 1))
    .slice(0, completed.documents)
  const ids = best.flatMap(({ passages }) => {
    const [one] = passages
    if (one === undefined) return []
    const first = one.found.id - one.found.index
    const count = Math.min(completed.passages, one.found.passages)
    const ids = new Set(passages.map(({ found }) => found.id))
    return Array.from({ length: count }, (_, index) => first + index).filter((id) => !ids.has(id))
  })
  const uris = new Set(best.map(({ uri }) => uri))
  const others = new Map<string, RatedPassage[]>()
  for await (const passage of ratePassages(texts, ids, ranking)) {
    const { uri } = passage.found.facts
    if (!uris.has(uri)) continue
    others.set(uri, [...(others.get(uri) ?? []), passage])
  }
  return others
}

/** Adds the score of the path of the document and of quoted texts, which are shares of the best score. */
function withShares(
  scored: readonly ScoredPassage[],
  paths: ReadonlyMap<string, number> | undefined,
  phrases: readonly string[],
): ScoredPassage[] {
  const most = scored.reduce((best, { score }) => Math.max(best, score), 0)
  return scored.map(({ found, score }) => {
    const quoted = phrases.length > 0 && hasPhrases(found, phrases) ? quotedShare : 0
    return { found, score: score + most * ((paths?.get(found.facts.uri) ?? 0) + quoted) }
  })
}

/** Whether a passage contains all quoted texts, in its title, heading or text. */
export function hasPhrases({ title, passage }: FoundPassage, phrases: readonly string[]): boolean {
  if (phrases.length === 0) return true
  const folded = fold(`${title}\n${passage.heading ?? ''}\n${passage.text}`).text.toLowerCase()
  return phrases.every((phrase) => folded.includes(phrase))
}

export function byScore(a: ScoredPassage, b: ScoredPassage): number {
  if (a.score !== b.score) return b.score - a.score
  if (a.found.facts.uri !== b.found.facts.uri) return a.found.facts.uri < b.found.facts.uri ? -1 : 1
  return a.found.passage.start - b.found.passage.start || a.found.id - b.found.id
}

/** Maximum length of a snippet without the ellipses, and maximum length of the text before the first mark. */
const units = { most: 240, before: 40 }
/** Maximum distance in which the beginning of a cut word is searched. */
const widestWord = 32

/**
 * The stretch of a text that contains most of the terms, with their positions, and the number of lines before it. Without terms: the
 * beginning.
 */
export function snippetOf(text: string, ranker: Ranker): Omit<Snippet, 'line'> & { readonly skippedLines: number } {
  const folded = fold(text)
  const matches = ranker.matches(folded)
  const marks = matches.map(({ start, end, term }) => {
    const from = folded.origin(start)
    // A range within the folding of one character ends with that character.
    return { term, start: from, end: Math.max(folded.origin(end), from + widthAt(text, from)) }
  })
  const first = marks[bestStretch(marks, ranker.terms, units.most - units.before).first]
  const from = first === undefined ? 0 : startOf(text, first.start)
  const to = endAt(text, from)
  const head = from > 0 ? '… ' : ''
  const tail = to < text.length ? ' …' : ''
  const inside = marks.flatMap(({ start, end }): readonly (readonly [start: number, end: number])[] =>
    start >= from && end <= to ? [[start - from + head.length, end - from + head.length]] : [],
  )
  // Line ends are kept, because code is shown as such.
  const body = text.slice(from, to).replace(/(?!\n)[\s\p{Cc}]/gu, ' ')
  const skippedLines = text.slice(0, from).split('\n').length - 1
  return { text: `${head}${body}${tail}`, marks: joinRanges(inside), skippedLines }
}

/** A little before the match, at the beginning of a sentence, line or word. */
function startOf(text: string, match: number): number {
  if (match <= units.before) return 0
  const before = text.slice(match - units.before, match)
  const sentence = Math.max(...['\n', '。', '. '].map((end) => before.lastIndexOf(end) + (end === '. ' ? 2 : 1)))
  if (sentence > 1) return match - units.before + sentence
  return wordStart(text, match - units.before, match)
}

/** The next position at which neither a word nor a character is cut. */
function wordStart(text: string, from: number, most: number): number {
  let at = from
  if (isLow(text, at)) at++
  if (!isWord(text, at - 1)) return at
  for (let step = 0; step < widestWord && at < most && isWord(text, at); step++) at++
  return isLow(text, at) ? at + 1 : at
}

function endAt(text: string, from: number): number {
  const most = from + units.most
  if (most >= text.length) return text.length
  let at = most
  for (let step = 0; step < widestWord && isWord(text, at - 1) && isWord(text, at); step++) at--
  return isLow(text, at) ? at - 1 : at
}

function isLow(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}

function isWord(text: string, at: number): boolean {
  return classAt(text, at) === wordClass
}
