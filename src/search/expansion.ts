import type { TextSet, Texts } from '../store/index.ts'
import { fold, tokenize } from '../text/analyser.ts'
import { impactOf, rarityOf } from '../text/relevance.ts'
import type { FoundPassage } from './part.ts'
import { createRanker, type Ranker, type RatedTerm, type WordForm } from './rank.ts'
import { byScore, type JudgedPassage, judgedOf, type Ranking, type ScoredPassage } from './rank-passages.ts'

/**
 * Pseudo relevance feedback: the words that the best passages share find further passages, which have other words than the query. It
 * only changes the order behind the best passages, where it finds more and harms little. Figures: decision 12.
 */
const feedback = {
  /** Number of best passages whose order stays. */
  after: 30,
  /** Number of best documents whose words are used, and minimum number of these that have a word. */
  documents: 8,
  sharedBy: 2,
  /** Number of words that are added. */
  terms: 20,
  /** Number of words whose rarity is looked up to choose those. */
  examined: 400,
  /** Maximum share of all passages that have an added word. */
  mostPassages: 0.1,
  /** The constant of reciprocal rank fusion, and the weight of the second ranking beside the first. */
  fusion: 20,
  share: 0.7,
}
/** How often a word of the title or path counts, and the parameters of BM25. */
const counted = { title: 2, path: 0.5, k1: 1.6, b: 0.75 }

/** The terms of a query and of the best passages, and the number of passages with each. */
interface Expanded {
  readonly ranker: Ranker
  readonly counts: readonly number[]
}

interface Expanding extends Ranking {
  readonly counts: readonly number[]
  readonly size: { readonly parts: number }
  readonly among?: TextSet
}

/** Number of hits from which feedback changes the order. */
export const afterHits = feedback.after

/** Adds the words of the best passages to those of a query. Undefined: the passages share no words. */
export async function expandedBy(
  texts: Texts,
  ranked: readonly ScoredPassage[],
  { ranker, counts, size, among, averageLength }: Expanding,
): Promise<Expanded | undefined> {
  const impacts = sharedWords(bestOfDocuments(ranked), averageLength)
  if (impacts.length === 0) return undefined
  const found = await texts.counts(
    impacts.map(([term]) => term),
    among,
  )
  const known = impacts.flatMap(([term, impact], index) => {
    const count = found[index] ?? 0
    if (count === 0 || count > feedback.mostPassages * size.parts) return []
    return [{ term, count, weight: impact * rarityOf(count, size.parts) }]
  })
  known.sort((a, b) => b.weight - a.weight || (a.term < b.term ? -1 : 1))
  const added = known.slice(0, feedback.terms)
  const [first] = added
  if (first === undefined) return undefined
  const most = ranker.terms.reduce((weight, term) => Math.max(weight, term.weight), 0)
  const weights = new Map(added.map(({ term, weight }) => [term, (most * weight) / first.weight]))
  const own = new Set(ranker.terms.map(({ term }) => term))
  const more = added.filter(({ term }) => !own.has(term))
  const terms = [
    ...ranker.terms.map((term): RatedTerm => ({ ...term, weight: term.weight + (weights.get(term.term) ?? 0) })),
    ...more.map(
      ({ term }): RatedTerm => ({ term, prefix: false, loose: false, share: 1, weight: weights.get(term) ?? 0 }),
    ),
  ]
  return { ranker: createRanker(terms), counts: [...counts, ...more.map(({ count }) => count)] }
}

/** Ranks passages by the terms of an expanded query, best first, without those that have no term of the query itself. */
export async function rankExpanded(
  texts: Texts,
  ids: readonly number[],
  ranking: Ranking,
  ownTerms: number,
): Promise<readonly ScoredPassage[]> {
  const { ranker, averageLength, averageDocumentLength } = ranking
  const documents = new Map<string, JudgedPassage[]>()
  for await (const passage of judgedOf(texts, ids, ranking)) {
    if (!passage.judged.counts.subarray(0, ownTerms).some((count) => count > 0)) continue
    const { uri } = passage.found.facts
    documents.set(uri, [...(documents.get(uri) ?? []), passage])
  }
  const scored = [...documents.values()].flatMap((passages) => {
    const whole = ranker.documentScore(passages, averageDocumentLength)
    return passages.map(
      (one): ScoredPassage => ({ found: one.found, score: whole + ranker.documentScore([one], averageLength) }),
    )
  })
  return scored.sort(byScore)
}

/** Fuses the passages behind the best with those of the second ranking. Their scores are at most that of the last of the best. */
export function fusedTail(
  ranked: readonly ScoredPassage[],
  second: readonly ScoredPassage[],
): readonly ScoredPassage[] {
  const head = new Set(ranked.slice(0, feedback.after).map(({ found }) => found.id))
  const last = ranked[feedback.after - 1]?.score ?? 0
  const fused = new Map<number, ScoredPassage>()
  for (const [list, share] of [[ranked, 1] as const, [second, feedback.share] as const]) {
    const ranks = new Map<string, number>()
    for (const { found } of list) {
      if (head.has(found.id)) continue
      const rank = ranks.get(found.facts.uri) ?? ranks.size
      ranks.set(found.facts.uri, rank)
      const score =
        (fused.get(found.id)?.score ?? 0) + (share * last * (feedback.fusion + 1)) / (feedback.fusion + 1 + rank) / 2
      fused.set(found.id, { found, score })
    }
  }
  return [...fused.values()].sort(byScore)
}

/** The best passage of each of the best documents. */
function bestOfDocuments(ranked: readonly ScoredPassage[]): readonly FoundPassage[] {
  const best = new Map<string, FoundPassage>()
  for (const { found } of ranked) {
    if (best.size === feedback.documents) break
    if (!best.has(found.facts.uri)) best.set(found.facts.uri, found)
  }
  return [...best.values()]
}

/** The words that several passages have, with the sum of their impacts (BM25 without the rarity), the greatest first. */
function sharedWords(passages: readonly FoundPassage[], averageLength: number): readonly (readonly [string, number])[] {
  const impacts = new Map<string, { sum: number; passages: number }>()
  for (const { passage, title, path, length } of passages) {
    const counts = new Map<string, number>()
    for (const [text, times] of [
      [passage.text, 1] as const,
      [title, counted.title] as const,
      [path, counted.path] as const,
    ])
      tokenize(fold(text.toWellFormed()).text, (term, _start, _end, kind) => {
        if (kind === 'word' || kind === 'part') counts.set(term, (counts.get(term) ?? 0) + times)
      })
    for (const [term, count] of counts) {
      const known = impacts.get(term) ?? { sum: 0, passages: 0 }
      impacts.set(term, {
        sum: known.sum + impactOf(count, length / Math.max(1, averageLength), counted),
        passages: known.passages + 1,
      })
    }
  }
  return [...impacts]
    .filter(([, one]) => one.passages >= feedback.sharedBy)
    .map(([term, { sum }]) => [term, sum] as const)
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, feedback.examined)
}

/** How often a form counts; the length of a word without its ending; the number of passages from which a word is frequent. Figures: decision 12. */
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
 * Adds to each rare word of a query the words of the index that are derived like it. A form that is more frequent than the word
 * counts less.
 *
 * @param counts The number of passages with each term.
 * @param parts The number of all passages.
 */
export async function withForms(
  texts: Texts,
  terms: readonly RatedTerm[],
  counts: readonly number[],
  parts: number,
  among: TextSet | undefined,
): Promise<readonly RatedTerm[]> {
  const own = new Set(terms.map(({ term }) => term))
  const beginnings: string[] = []
  const wanted = terms.map(({ term, prefix, joined = false }, index) => {
    if (prefix || joined || (counts[index] ?? 0) > forms.mostPassages) return []
    const { base, words } = derivedFrom(term)
    if (words.length > 0) beginnings.push(base)
    return words.filter((one) => !own.has(one))
  })
  const all = wanted.flat()
  if (all.length === 0) return terms
  const found = await texts.counts(all, among, beginnings)
  let at = 0
  return terms.map((term, index) => {
    const rarity = rarityOf(counts[index] ?? 0, parts)
    const some = (wanted[index] ?? []).flatMap((form): readonly WordForm[] => {
      const count = found[at++] ?? 0
      if (count === 0) return []
      return [{ term: form, share: forms.share * Math.min(1, rarityOf(count, parts) / rarity), count }]
    })
    return some.length === 0 ? term : { ...term, forms: some }
  })
}
