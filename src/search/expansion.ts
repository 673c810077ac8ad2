import type { TextSet, Texts } from '../store/index.ts'
import { fold, tokenize } from '../text/analyser.ts'
import { impactOf, rarityOf } from '../text/relevance.ts'
import { countGroups, type FoundPassage } from './part.ts'
import { createRanker, type Ranker, type RatedTerm, type WordForm } from './rank.ts'
import { fuseRanks, type Ranking, type ScoredPassage } from './rank-passages.ts'

/**
 * Pseudo relevance feedback: the words that the best passages share are added to the query for a second ranking. It changes what follows
 * the first `after` passages. Figures: decision 12.
 */
const feedback = {
  /** Number of best passages whose order stays. */
  after: 30,
  /** Number of best documents whose words are used, and minimum number of these that have a word. */
  documents: 8,
  sharedBy: 2,
  /** Number of words that are added, and maximum share of all passages that have one. */
  terms: 20,
  mostPassages: 0.1,
  /** The constant of the fusion, and the weight of the second ranking beside the first. */
  fusion: 20,
  share: 0.7,
}

/** The terms of a query with those of the best passages, and the number of passages that contain each. */
interface Expanded {
  readonly ranker: Ranker
  readonly counts: readonly number[]
}

interface Expanding extends Ranking {
  readonly counts: readonly number[]
  readonly size: { readonly parts: number }
  readonly among?: TextSet
}

export const unchangedHits = feedback.after

/** Adds the words of the best passages to those of a query. Undefined: the passages share no words that are rare enough. */
export async function expandQuery(
  texts: Texts,
  ranked: readonly ScoredPassage[],
  { ranker, counts, size, among, averageLength }: Expanding,
): Promise<Expanded | undefined> {
  const impacts = sharedWords(ranked, averageLength)
  const passageCounts = await texts.counts([...impacts.keys()], among)
  const newTerms = [...impacts]
    .map(([term, impact], index) => ({ term, impact, count: passageCounts[index] ?? 0 }))
    .filter(({ count }) => count > 0 && count <= feedback.mostPassages * size.parts)
    .map(({ term, impact, count }) => ({ term, count, weight: impact * rarityOf(count, size.parts) }))
    .sort((a, b) => b.weight - a.weight || (a.term < b.term ? -1 : 1))
    .slice(0, feedback.terms)
  const [first] = newTerms
  if (first === undefined) return undefined
  const most = ranker.terms.reduce((weight, term) => Math.max(weight, term.weight), 0)
  const weights = new Map(newTerms.map(({ term, weight }) => [term, (most * weight) / first.weight]))
  const own = ranker.terms.map((term): RatedTerm => ({ ...term, weight: term.weight + (weights.get(term.term) ?? 0) }))
  const more = newTerms.filter(({ term }) => own.every((one) => one.term !== term))
  const others = more.map(
    ({ term }): RatedTerm => ({ term, prefix: false, loose: false, share: 1, weight: weights.get(term) ?? 0 }),
  )
  return { ranker: createRanker([...own, ...others]), counts: [...counts, ...more.map(({ count }) => count)] }
}

/** Fuses the passages after the best ones with those of a second ranking. */
export function fuseTail(ranked: readonly ScoredPassage[], second: readonly ScoredPassage[]): readonly ScoredPassage[] {
  const head = new Set(ranked.slice(0, feedback.after).map(({ found }) => found.id))
  const last = ranked[feedback.after - 1]?.score ?? 0
  const tailOf = (list: readonly ScoredPassage[]) => list.filter(({ found }) => !head.has(found.id))
  const weight = (last * feedback.fusion) / 2
  return fuseRanks(feedback.fusion, [
    [tailOf(ranked), weight],
    [tailOf(second), weight * feedback.share],
  ])
}

/** The words that the best documents share, with the sum of their impacts (BM25 without the rarity) in the best passage of each. */
function sharedWords(ranked: readonly ScoredPassage[], averageLength: number): ReadonlyMap<string, number> {
  const best = new Map<string, FoundPassage>()
  for (const { found } of ranked)
    if (best.size < feedback.documents && !best.has(found.facts.uri)) best.set(found.facts.uri, found)
  const impacts = new Map<string, number[]>()
  for (const { passage, title, length } of best.values()) {
    const counts = new Map<string, number>()
    tokenize(fold(`${title}\n${passage.text}`.toWellFormed()).text, (term, _start, _end, kind) => {
      if (kind === 'word' || kind === 'part') counts.set(term, (counts.get(term) ?? 0) + 1)
    })
    for (const [term, count] of counts) {
      const impact = impactOf(count, length / Math.max(1, averageLength))
      impacts.set(term, [...(impacts.get(term) ?? []), impact])
    }
  }
  const shared = [...impacts].filter(([, some]) => some.length >= feedback.sharedBy)
  return new Map(shared.map(([term, some]) => [term, some.reduce((sum, each) => sum + each, 0)]))
}

/**
 * `share`: the weight of an occurrence of a derived word, beside one of the word itself. `leastLength`: minimum length of a word without
 * its ending. `mostPassages`: number of passages above which a word is too frequent to get other forms. Figures: decision 12.
 */
const forms = { share: 0.5, leastLength: 5, mostPassages: 100 }

/** Endings by which English derives words, as the stemmer leaves them, the longer ones first. */
const endings: readonly string[] = (
  'ization ational ability ibility ation ition ement ator ativ ment ness less ful abl ibl anc enc ion ity ism ist ant ent ify ' +
  'iv iz or er al ic ly at y i'
).split(' ')

/** Words that differ from a word in lower case by such an ending: `validator`, `validity` of `validation`. Not all of them are words. */
function derivedFrom(word: string): { readonly base: string; readonly words: readonly string[] } {
  if (!/^[a-z]+$/.test(word) || word.length < forms.leastLength) return { base: word, words: [] }
  const ending = endings.find((one) => word.length - one.length >= forms.leastLength && word.endsWith(one)) ?? ''
  const base = word.slice(0, word.length - ending.length)
  return { base, words: ['', ...endings].map((one) => base + one).filter((one) => one !== word) }
}

/**
 * Adds to each rare word of a query the words of the index that are derived like it.
 *
 * @param counts The number of passages with each term.
 * @param parts The number of all passages.
 */
export async function withWordForms(
  texts: Texts,
  terms: readonly RatedTerm[],
  counts: readonly number[],
  parts: number,
  among: TextSet | undefined,
): Promise<readonly RatedTerm[]> {
  const own = new Set(terms.map(({ term }) => term))
  const beginnings: string[] = []
  const lookups = terms.map(({ term, prefix, joined = false }, index) => {
    if (prefix || joined || (counts[index] ?? 0) > forms.mostPassages) return []
    const { base, words } = derivedFrom(term)
    if (words.length > 0) beginnings.push(base)
    return words.filter((one) => !own.has(one)).map((one) => ({ term: one }))
  })
  const groups = await countGroups(texts, lookups, among, beginnings)
  return terms.map((term, index) => {
    const rarity = rarityOf(counts[index] ?? 0, parts)
    const some = (groups[index] ?? []).filter(({ count }) => count > 0)
    const shareOf = (count: number) => forms.share * Math.min(1, rarityOf(count, parts) / rarity)
    return some.length === 0
      ? term
      : { ...term, forms: some.map((form): WordForm => ({ ...form, share: shareOf(form.count) })) }
  })
}
