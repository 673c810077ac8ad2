import type { PartQuery, TextSet, Texts, WeightedTerm } from '../store/index.ts'
import { classOf, word } from '../text/characters.ts'
import { fold } from '../text/fold.ts'
import { tokenize } from '../text/tokenizer.ts'
import { documentForms, foundOf } from './part.ts'
import type { RatedTerm } from './rank.ts'

/**
 * A question of several words is answered by documents first: no passage has many of its words, and a document that has them in several places
 * is about it. Figures: decision 12.
 */
const long = {
  /** How many different words a question has that asks for documents, and from how many on it is long. */
  words: { least: 3, long: 12 },
  /** How many passages a document has on average at least: where most have one, passages are the documents. */
  averagePassages: 2,
  /** How much the score of a passage counts beside that of its document in a long question. */
  passageShare: 0.3,
  /** How many documents are ranked among each other, by the share of the passages that are. */
  perBlock: 1 / 3,
  /** How many passages of each are ranked. */
  passages: 3,
  /** How many occurrences of words in documents are looked up: the rarer words, which say most. */
  occurrences: 60_000,
  /** How many of the best passages are looked among for those of the documents, for each passage that is ranked. */
  among: 10,
}
/** BM25 of paths among the documents that are ranked; the average length is a fixed number of terms. Figures: decision 12. */
const ofPath = { k1: 1.2, b: 0.75, averageLength: 8 }
/** Weights are stored as integers: multiples of 1/1000. */
const unit = 1000

export interface Documents {
  /** Their best passages, in no order. */
  readonly ids: readonly number[]
  /** How well each document fits, by its URI. */
  readonly scores: ReadonlyMap<string, number>
  /** How much the score of a passage counts beside it. */
  readonly passageShare: number
  /** How well the path of each document fits, from 0 to 1, by its URI: none for a long question. */
  readonly paths: ReadonlyMap<string, number>
}

/** The words of a question that ask for whole documents. Empty: it is too short, or most documents are one passage. */
export function documentWords(
  terms: readonly RatedTerm[],
  { texts, parts }: { readonly texts: number; readonly parts: number },
): readonly RatedTerm[] {
  if (parts < long.averagePassages * texts) return []
  const words = terms.filter(({ term, prefix }) => !prefix && classOf(term.codePointAt(0) ?? 0) === word)
  return words.length < long.words.least ? [] : words
}

/**
 * The documents that fit best by all of their words, with the passages of each that have most of the terms.
 *
 * @param passageTerms What passages are found by.
 */
export async function documentsOf(
  texts: Texts,
  words: readonly RatedTerm[],
  passageTerms: readonly WeightedTerm[],
  filter: Pick<PartQuery, 'where' | 'among'>,
  block: number,
  size: number,
): Promise<Documents> {
  const terms = await rated(texts, words, size, filter.among)
  const [heads, passages] = await Promise.all([
    texts.weigh({ terms, ...filter, limit: Math.ceil(block * long.perBlock) }),
    texts.find({ terms: passageTerms, ...filter, limit: long.among * block }),
  ])
  const weights = new Map(heads.map(({ id, weight }) => [id, weight / unit]))
  const scores = new Map<string, number>()
  const isLong = words.length >= long.words.long
  const paths = new Map<string, number>()
  const documents: { readonly first: number; readonly count: number; readonly ids: number[] }[] = []
  for (const part of await texts.read(heads.map(({ id }) => id))) {
    const { id, facts, path, passages: count = 1 } = foundOf(part)
    scores.set(facts.uri, weights.get(id) ?? 0)
    if (!isLong) paths.set(facts.uri, pathScore(path, words))
    documents.push({ first: id, count, ids: [] })
  }
  documents.sort((a, b) => a.first - b.first)
  for (const id of passages) {
    const document = documents[lastNotAfter(documents, id)]
    if (document !== undefined && id < document.first + document.count && document.ids.length < long.passages)
      document.ids.push(id)
  }
  return {
    ids: documents.flatMap(({ first, ids }) => (ids.length === 0 ? [first] : ids)),
    scores,
    passageShare: isLong ? long.passageShare : 1,
    paths: besideBest(paths),
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
  const { k1, b, averageLength } = ofPath
  const norm = k1 * (1 - b + (b * length) / averageLength)
  return words.reduce((sum, { term, weight }) => {
    const times = counts.get(term) ?? 0
    return sum + (weight * times * (k1 + 1)) / (times + norm)
  }, 0)
}

function besideBest(scores: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const best = [...scores.values()].reduce((most, score) => Math.max(most, score), 0) || 1
  return new Map([...scores].map(([uri, score]) => [uri, score / best]))
}

/** In how many documents each word is, and so how much it says: the rarest, as far as they are looked up. */
async function rated(
  texts: Texts,
  words: readonly RatedTerm[],
  size: number,
  among: TextSet | undefined,
): Promise<readonly WeightedTerm[]> {
  const forms = words.map(({ term }) => documentForms(term))
  const counts = await texts.counts(
    forms.flatMap((some) => some.map(({ term }) => term)),
    among,
  )
  let at = 0
  const known = words.map(({ share }, index) => {
    const some = (forms[index] ?? []).map((form) => ({ ...form, count: counts[at++] ?? 0 }))
    return { share, forms: some, count: some.reduce((sum, { count }) => sum + count, 0) }
  })
  let sum = 0
  const rare = known
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.count - b.count)
    .filter(({ count }, index) => {
      sum += count
      return index === 0 || sum <= long.occurrences
    })
  return rare.flatMap(({ share, forms: some, count }) => {
    const rarity = Math.log(1 + (Math.max(0, size - count) + 0.5) / (count + 0.5))
    return some.flatMap((form) =>
      form.count === 0
        ? []
        : [{ term: form.term, weight: Math.max(1, Math.round(share * rarity * form.share * unit)) }],
    )
  })
}

function lastNotAfter(documents: readonly { readonly first: number }[], id: number): number {
  let low = 0
  let high = documents.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((documents[middle]?.first ?? 0) <= id) low = middle + 1
    else high = middle
  }
  return low - 1
}
