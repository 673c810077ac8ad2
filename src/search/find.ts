import { defined } from '../core/kit/object.ts'
import type { TextFilter, TextSet, Texts, WeightedTerm } from '../store/index.ts'
import { type Compound, fold, isWordTerm, parseQuery, type Query, type QueryTerm } from '../text/analyser.ts'
import { createLabelScore, rarityOf } from '../text/relevance.ts'
import { documentWords, type RankedDocuments, rankDocuments } from './documents.ts'
import type { VectorRanking } from './embedder.ts'
import { expandQuery, fuseTail, unchangedHits, withWordForms } from './expansion.ts'
import { type FoundPassage, storedWeight } from './part.ts'
import { createRanker, type Ranker, type RatedTerm } from './rank.ts'
import { hasPhrases, type Ranking, rankPassages, type ScoredPassage, snippetOf } from './rank-passages.ts'
import type { SearchHit, SearchQuery } from './search-index.ts'
import { createPassageFilter, toTextFilter, type Visibility, type VisibleSet } from './visible.ts'

/** Number of passages that are ranked together before the others: three times the requested hits, within these bounds. */
const together = { least: 100, most: 300, perHit: 3 }
const defaultLimit = 20
/** Maximum number of passages of one document in an answer. */
const ofOneDocument = 3
/** Maximum number of occurrences of the terms that are looked up; the rarest terms come first. */
const occurrences = 20_000
const leastTerms = 3
const mostOfForm = 5000
/** Maximum number of passages that one search examines, if the caller continues. */
const mostFound = 200_000

/** Share of all passages above which a word is too frequent to count more where the query repeats it. */
const mostRepeated = 0.5

const looseHits =
  'No passage has two characters of a word of the query side by side. The passages below have only single characters of the words.'

const partialHits =
  'No passage has all parts of the compound words in the query. The passages below have only some of the parts.'

/** Note with hits that lack the quotation of the query. */
const unquotedHits = 'No passage has the quoted text. The passages below have only words of the query.'

interface RankedQuery extends Query, Ranking {
  /** The number of passages with each of the ranker's terms. */
  readonly counts: readonly number[]
  /** The number of documents and of passages. */
  readonly size: { readonly texts: number; readonly parts: number }
  /** Tells how well a path fits the labels of the query. Undefined: the query has none. */
  readonly labelScore: ((path: string) => number) | undefined
  /** The number of passages that are ranked together. */
  readonly block: number
  /** Whether the words of the best hits find further ones. */
  readonly hasFeedback: boolean
  /** Documents that the caller may see. Undefined: all. */
  readonly among?: TextSet
}

export async function* findPassages(
  texts: Texts,
  visibility: Visibility,
  query: SearchQuery,
  meaning?: VectorRanking,
): AsyncGenerator<SearchHit> {
  const { signal } = query
  const visible = await visibility.of(query.allows, signal)
  const block = Math.min(together.most, Math.max(together.least, together.perHit * (query.limit ?? defaultLimit)))
  const hasFeedback = meaning === undefined && (query.limit ?? defaultLimit) > unchangedHits
  const rankedQuery = {
    ...(await prepareQuery(texts, query.text, visible)),
    block,
    hasFeedback,
    vectorWeight: meaning?.weight ?? 0,
  }
  if (rankedQuery.ranker.terms.length === 0 && meaning === undefined) return
  const near = meaning === undefined ? [] : await meaning.nearest(query.text, visible?.has, signal)
  const isFor = eligible(query)
  const required = rankedQuery.isQuoted ? rankedQuery.phrases : []
  const where = toTextFilter(query.where)
  const { terms } = rankedQuery.ranker
  const parts = new Set(rankedQuery.compounds.flatMap((compound) => compound.parts))
  const marker = createRanker(terms.filter(({ term, loose }) => !loose || parts.has(term)))
  const ways: SearchWay[] = [
    { asked: rankedQuery, near, choose: chooser(isFor, required, compoundTest(rankedQuery, near)), marker },
  ]
  if (terms.some(({ loose }) => loose)) {
    const ranker = createRanker(terms.map((term) => ({ ...term, loose: false })))
    const fallback = rankedQuery.compounds.length > 0 ? partialHits : looseHits
    ways.push({
      asked: { ...rankedQuery, ranker },
      near: [],
      choose: chooser(isFor, required),
      marker: ranker,
      fallback,
    })
  }
  if (required.length > 0)
    ways.push({
      asked: rankedQuery,
      near,
      choose: chooser(isFor, [], compoundTest(rankedQuery, near)),
      marker,
      fallback: unquotedHits,
    })

  for (const { fallback, ...way } of ways) {
    let isFound = false
    for await (const { found, score } of rankedPages(texts, way.asked, where, way.near, isFor, signal)) {
      if (!way.choose(found)) continue
      if (!isFound && fallback !== undefined) query.fallback?.(fallback)
      isFound = true
      yield hitOf(found, score, way.marker)
    }
    if (isFound) return
  }
}

/** One way to find passages. It is used if the ways before it found nothing. */
interface SearchWay {
  readonly asked: RankedQuery
  /** Passages that are near the query in meaning. */
  readonly near: readonly number[]
  readonly choose: (found: FoundPassage) => boolean
  readonly marker: ReturnType<typeof createRanker>
  /** Note on the hits. */
  readonly fallback?: string
}

async function* rankedPages(
  texts: Texts,
  query: RankedQuery,
  where: TextFilter | undefined,
  near: readonly number[],
  isFor: (found: FoundPassage) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<ScoredPassage> {
  const seenIds = new Set<number>()
  let isFirst = true
  for await (const { ids, ...documents } of pages(texts, query, where, near)) {
    signal?.throwIfAborted()
    const fresh = ids.filter((id) => !seenIds.has(id))
    for (const id of fresh) seenIds.add(id)
    const whole = 'scores' in documents ? documents : undefined
    const ranked = mainCopiesFirst(await rankPassages(texts, fresh, query, near, whole), isFor)
    const hasTail = query.hasFeedback && isFirst && whole === undefined && query.ranker.isOfWords
    isFirst = false
    for (const scored of hasTail ? ranked.slice(0, unchangedHits) : ranked) {
      signal?.throwIfAborted()
      yield scored
    }
    if (!hasTail || ranked.length <= unchangedHits) continue
    for (const scored of mainCopiesFirst(await tailOf(texts, ranked, query, where), isFor)) {
      signal?.throwIfAborted()
      seenIds.add(scored.found.id)
      yield scored
    }
  }
}

/** Returns the passages after the best ones, and further passages that have words of the best ones, in one order. */
async function tailOf(
  texts: Texts,
  ranked: readonly ScoredPassage[],
  query: RankedQuery,
  where: TextFilter | undefined,
): Promise<readonly ScoredPassage[]> {
  const expanded = await expandQuery(texts, ranked, query)
  if (expanded === undefined) return ranked.slice(unchangedHits)
  const { among, block } = query
  const terms = firstTerms(expanded)
  const ids = await texts.find({ terms, ...defined({ where, among }), limit: block })
  const second = await rankPassages(texts, ids, { ...query, ...expanded }, [])
  // A passage that has none of the words of the query itself is not a hit.
  const hits = second.filter(({ found }) => query.ranker.rate(found, query.averageLength).score > 0)
  return fuseTail(ranked, hits)
}

async function prepareQuery(
  texts: Texts,
  text: string,
  visible: VisibleSet | undefined,
): Promise<Omit<RankedQuery, 'block' | 'hasFeedback' | 'vectorWeight'>> {
  const query = parseQuery(text)
  const terms = query.terms.map(({ term }) => term)
  const [counts, size] = await Promise.all([texts.counts(terms, visible?.set), visible ?? texts.size()])
  const countedTerms = query.terms.flatMap((term, index) => {
    const count = term.prefix ? size.parts : (counts[index] ?? 0)
    return count === 0 && !term.prefix ? [] : [{ ...term, count }]
  })
  const loose = looseParts(query.compounds, countedTerms)
  const markedTerms = countedTerms.map((term) => (loose.has(term.term) ? { ...term, loose: true } : term))
  const rated = markedTerms.map(({ count, times, ...term }): RatedTerm => {
    const isRepeated = isWordTerm(term.term) && count <= mostRepeated * size.parts
    const share = term.weight * (isRepeated ? 1 + Math.log(times) : 1)
    return { ...term, share, weight: share * rarityOf(count, size.parts) }
  })
  const termCounts = markedTerms.map(({ count }) => count)
  const formed = await withWordForms(texts, rated, termCounts, size.parts, visible?.set)
  return {
    ...query,
    size,
    labelScore: createLabelScore(text),
    ranker: createRanker(formed),
    counts: termCounts,
    averageLength: size.length / Math.max(1, size.parts),
    averageDocumentLength: size.length / Math.max(1, size.texts),
    ...defined({ among: visible?.set }),
  }
}

/**
 * Returns the parts of compounds that do not find passages by themselves: all parts except the rarest. If no passage has the rarest part,
 * all of them.
 */
function looseParts(
  compounds: readonly Compound[],
  terms: readonly (QueryTerm & { readonly count: number })[],
): ReadonlySet<string> {
  const counts = new Map(terms.map(({ term, count }) => [term, count]))
  return new Set(
    compounds.flatMap(({ parts }) => {
      const rare = [...parts].sort((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0))
      return counts.has(rare[0] ?? '') ? rare.slice(1) : rare
    }),
  )
}

/**
 * Returns a test of passages: whether a passage, with title and path, has a word of the query or all parts of a compound, or is near the
 * query in meaning. Undefined: the query has no compound.
 */
function compoundTest(
  { ranker, compounds }: RankedQuery,
  near: readonly number[],
): ((found: FoundPassage) => boolean) | undefined {
  if (compounds.length === 0) return undefined
  const parts = new Set(compounds.flatMap((compound) => compound.parts))
  return ({ id, title, path, passage }) => {
    if (near.includes(id)) return true
    const matches = ranker.matches(fold([title, path, passage.heading ?? '', passage.text].join('\n')))
    const terms = new Set(matches.map(({ term }) => ranker.terms[term]).filter((term) => term !== undefined))
    const names = new Set([...terms].map(({ term }) => term))
    if ([...terms].some(({ term, loose }) => !loose && !parts.has(term))) return true
    return compounds.some((compound) => compound.parts.length > 0 && compound.parts.every((part) => names.has(part)))
  }
}

/** Yields the ids of possible passages. An id may come more than once. */
async function* pages(
  texts: Texts,
  query: RankedQuery,
  where: TextFilter | undefined,
  near: readonly number[],
): AsyncGenerator<{ readonly ids: readonly number[] } | RankedDocuments> {
  const { among, block } = query
  const filter = { ...defined({ where, among }) }
  const terms = firstTerms(query)
  const words = documentWords(query.ranker.terms, query.size)
  if (words.length > 0)
    yield await rankDocuments(texts, words, terms, filter, block, query.size.texts, query.labelScore)
  const first = await texts.find({ terms, ...filter, limit: block })
  // The store's filter is applied to these passages when they are chosen.
  yield { ids: [...new Set([...first, ...near])] }
  const all = query.ranker.terms.filter(({ loose }) => !loose).map((term) => weighed(term))
  let start = 0
  for (let limit = 10 * block; ; limit = Math.min(10 * limit, mostFound)) {
    const rest = await texts.find({ terms: all, ...filter, limit })
    for (; start < rest.length; start += block) yield { ids: rest.slice(start, start + block) }
    if (rest.length < limit || limit === mostFound) return
  }
}

/** The rare terms, by which passages are found first. */
function firstTerms({ ranker, counts }: Pick<RankedQuery, 'ranker' | 'counts'>): readonly WeightedTerm[] {
  const all = ranker.terms
    .map((term, index) => ({ term, count: counts[index] ?? 0 }))
    .sort((a, b) => a.count - b.count || (a.term.term < b.term.term ? -1 : 1))
  const finding = all.filter(({ term }) => !term.loose)
  const heavy = finding.filter(({ term }) => term.light !== true)
  const ordered = heavy.length > 0 ? heavy : finding
  let sum = 0
  const rare = ordered.filter(({ count }, index) => {
    sum += count
    return index < leastTerms || sum <= occurrences
  })
  return rare.flatMap(({ term }) => [
    weighed(term),
    ...(term.forms ?? [])
      .filter(({ count }) => count <= mostOfForm)
      .map((form) => weighed({ ...term, term: form.term }, form.share)),
  ])
}

function weighed({ term, prefix, weight }: RatedTerm, share = 1): WeightedTerm {
  return { term, weight: storedWeight(weight * share), ...(prefix ? { prefix } : {}) }
}

/** Swaps passages of equal text, so that the one with the shortest path comes first. */
function mainCopiesFirst(
  ranked: readonly ScoredPassage[],
  isFor: (found: FoundPassage) => boolean,
): readonly ScoredPassage[] {
  const depthOf = ({ path }: FoundPassage) => path.split('/').length
  const ordered = [...ranked]
  const firsts = new Map<string, number>()
  for (const [index, { found, score }] of ordered.entries()) {
    const { text } = found.passage
    if (text === '' || !isFor(found)) continue
    const at = firsts.get(text)
    const first = at === undefined ? undefined : ordered[at]
    if (at === undefined || first === undefined) firsts.set(text, index)
    else if (depthOf(found) < depthOf(first.found)) {
      ordered[at] = { found, score: first.score }
      ordered[index] = { found: first.found, score }
    }
  }
  return ordered
}

/** Returns the test whether a passage passes the filter of the query, and the caller may see it. */
function eligible({ where, allows }: SearchQuery): (found: FoundPassage) => boolean {
  const passes = createPassageFilter(where)
  return (passage) => passes(passage) && allows?.({ uri: passage.facts.uri, mount: passage.mount }) !== false
}

/** Returns a function that decides for each passage whether it is part of the answer. */
function chooser(
  isFor: (found: FoundPassage) => boolean,
  phrases: readonly string[],
  hasWords: (found: FoundPassage) => boolean = () => true,
): (found: FoundPassage) => boolean {
  const counts = new Map<string, number>()
  const texts = new Set<string>()
  return (foundPassage) => {
    const { facts, passage } = foundPassage
    if (!isFor(foundPassage)) return false
    if (!hasPhrases(foundPassage, phrases)) return false
    if (!hasWords(foundPassage)) return false
    const count = counts.get(facts.uri) ?? 0
    const isKnown = passage.text !== '' && texts.has(passage.text)
    if (count >= ofOneDocument || isKnown) return false
    counts.set(facts.uri, count + 1)
    texts.add(passage.text)
    return true
  }
}

function hitOf({ facts, mount, passage }: FoundPassage, score: number, ranker: Ranker): SearchHit {
  const { text, start, end, heading } = passage
  const headingMember = heading === undefined ? {} : { heading }
  const { skippedLines, ...snippet } = snippetOf(text, ranker)
  const line = start + skippedLines
  return { ...facts, mount, score, lines: { start, end }, ...headingMember, snippet: { ...snippet, line } }
}
