import { firstIndex } from '../core/kit/sorted.ts'
import { pathInMount } from '../core/uri.ts'
import type { PartQuery, TextSet, Texts, WeightedTerm } from '../store/index.ts'
import { fold, isWordTerm, tokenize } from '../text/analyser.ts'
import { impactOf, rarityOf } from '../text/relevance.ts'
import { countGroups, documentTermLevels, documentTermPrefix, storedWeight, weightUnit } from './part.ts'
import type { RatedTerm } from './rank.ts'

/** A query of several words ranks documents first: few passages have many of its words. Figures: decision 12. */
const long = {
  /** Minimum number of different words of a query that ranks documents. */
  words: 3,
  /** Minimum average number of passages in a document: below it, passages and documents are nearly the same. */
  averagePassages: 2,
  /** Number of documents that are ranked, as a share of the number of ranked passages. */
  perBlock: 1 / 3,
  /** Number of ranked passages of each document. */
  passages: 3,
  /** Maximum number of occurrences of words in documents that are looked up; the rarest words come first. */
  occurrences: 60_000,
  /** Number of best passages that are searched for passages of the ranked documents, as a multiple of the number of ranked passages. */
  among: 10,
}
/**
 * Average length of a path in terms, for BM25; weights of the path and of its match with the labels of the query, as shares of the best
 * score. Figures: decision 12.
 */
const ofPath = { averageLength: 8, share: 0.25, labelShare: 0.4 }
/** The documents that fit a query best: their scores, and the passages to rank. */
export interface RankedDocuments {
  /** The best passages of the documents, in no order. */
  readonly ids: readonly number[]
  /** The score of each document, by its URI. */
  readonly scores: ReadonlyMap<string, number>
  /** Score of the path of each document, as a share of the best score, by its URI. */
  readonly paths: ReadonlyMap<string, number>
}

/** The words of a query that ranks documents, without light ones; empty if the query does not rank documents. */
export function documentWords(
  terms: readonly RatedTerm[],
  { texts, parts }: { readonly texts: number; readonly parts: number },
): readonly RatedTerm[] {
  if (parts < long.averagePassages * texts) return []
  const words = terms.filter(({ term, prefix, light }) => !prefix && light !== true && isWordTerm(term))
  return words.filter(({ joined }) => joined !== true).length < long.words ? [] : words
}

/**
 * Returns the documents that score best for the words of the query, with the passages of each that have most of the terms.
 *
 * @param passageTerms The terms by which passages are found.
 * @param block Number of passages to rank.
 * @param size Number of all documents.
 * @param labelScore Tells how well a path fits the labels of the query. `undefined`: the query has none.
 */
export async function rankDocuments(
  texts: Texts,
  words: readonly RatedTerm[],
  passageTerms: readonly WeightedTerm[],
  filter: Pick<PartQuery, 'where' | 'among'>,
  block: number,
  size: number,
  labelScore: ((path: string) => number) | undefined,
): Promise<RankedDocuments> {
  const terms = await rated(texts, words, size, filter.among)
  const [heads, passages] = await Promise.all([
    texts.weigh({ terms, ...filter, limit: Math.ceil(block * long.perBlock) }),
    texts.find({ terms: passageTerms, ...filter, limit: long.among * block }),
  ])
  const ranked = heads.map(({ key, mount, weight }) => ({
    uri: key,
    path: pathInMount(key, mount),
    score: weight / weightUnit,
  }))
  const byWords = ranked.map(({ path }) => pathScore(path, words))
  const bestPath = byWords.reduce((most, score) => Math.max(most, score), 0) || 1
  const shareOf = (path: string, score: number) =>
    (ofPath.share * score) / bestPath + ofPath.labelShare * (labelScore?.(path) ?? 0)
  const documents = heads.map(({ id, parts }) => ({ first: id, count: parts, ids: [] as number[] }))
  documents.sort((a, b) => a.first - b.first)
  for (const id of passages) {
    const document = documents[firstIndex(0, documents.length, (index) => (documents[index]?.first ?? 0) > id) - 1]
    if (document !== undefined && id < document.first + document.count && document.ids.length < long.passages)
      document.ids.push(id)
  }
  return {
    ids: documents.flatMap(({ first, ids }) => (ids.length === 0 ? [first] : ids)),
    scores: new Map(ranked.map(({ uri, score }) => [uri, score])),
    paths: new Map(ranked.map(({ uri, path }, index) => [uri, shareOf(path, byWords[index] ?? 0)])),
  }
}

function pathScore(path: string, words: readonly RatedTerm[]): number {
  const counts = new Map<string, number>()
  let length = 0
  tokenize(fold(path.toWellFormed()).text, (term, _start, _end, kind) => {
    if (kind !== 'word' && kind !== 'part') return
    counts.set(term, (counts.get(term) ?? 0) + 1)
    length++
  })
  const relative = length / ofPath.averageLength
  return words.reduce((sum, { term, weight }) => sum + weight * impactOf(counts.get(term) ?? 0, relative), 0)
}

/** Returns the rarest words with their rarity by the number of documents, up to the limit of occurrences. */
async function rated(
  texts: Texts,
  words: readonly RatedTerm[],
  size: number,
  among: TextSet | undefined,
): Promise<readonly WeightedTerm[]> {
  const beginnings = words.map(({ term }) => documentTermPrefix(term))
  const forms = await countGroups(
    texts,
    words.map(({ term }) => documentTermLevels(term)),
    among,
    beginnings,
  )
  const impacts = words.map(({ share }, index) => {
    const some = forms[index] ?? []
    return { share, forms: some, count: some.reduce((sum, { count }) => sum + count, 0) }
  })
  let sum = 0
  const rare = impacts
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.count - b.count)
    .filter(({ count }, index) => {
      sum += count
      return index === 0 || sum <= long.occurrences
    })
  return rare.flatMap(({ share, forms: some, count }) =>
    some
      .filter((form) => form.count > 0)
      .map((form) => ({ term: form.term, weight: storedWeight(share * rarityOf(count, size) * form.share) })),
  )
}
