import { setImmediate as turn } from 'node:timers/promises'
import type { Resource } from '../core/view.ts'
import { bm25, rarityIn, rarityOf, type TermCounts } from '../text/relevance.ts'
import { bagOf, createBagCount, createTermCount } from '../text/words.ts'
import type { ReadingCache } from './memory.ts'
import { type ContextReader, decodeUriPath, type ReadOutcome } from './reader.ts'
import { compareUris, type ScoredDocument, scaleScores } from './searched.ts'
import type { ContextLimits } from './types.ts'

/** Number of resources read at a time. */
const batch = 64
/** Number of UTF-16 units examined before the task yields to the event loop. */
const slice = 65_536

export interface LexicalResult {
  /** Resources with words of the query in their paths, titles or descriptions, best first. */
  readonly names: readonly ScoredDocument[]
  /** Resources with words of the query in their texts, best first. */
  readonly contents: readonly ScoredDocument[]
  /** The rarity of each term among the texts that were read. */
  readonly rarity: readonly number[]
  readonly notes: readonly string[]
}

/**
 * Searches words in the names and texts of resources, as far as the limits allow.
 *
 * @param memory Cache of resources, which are not read again.
 * @param minTermsOf Minimum number of different terms that a resource must have, in its name and its text together, to match.
 */
export async function matchWords(
  resources: readonly Resource[],
  terms: readonly string[],
  isRead: (resource: Resource) => boolean,
  reader: ContextReader,
  limits: ContextLimits,
  memory?: ReadingCache,
  minTermsOf: (resource: Resource) => number = () => 1,
): Promise<LexicalResult> {
  const countIn = createTermCount(terms)
  const countInBag = createBagCount(terms)
  const countLists: TermCounts[] = []
  for (const [position, resource] of resources.entries()) {
    countLists.push(countIn(metadataText(resource)))
    if (position % 256 === 255) await turn()
  }
  const names = bm25(countLists)
  const order = resources
    .map((resource, index) => ({ resource, index, name: names[index] ?? 0 }))
    .filter(({ resource }) => isRead(resource) && isReadable(resource, limits))
    .sort((a, b) => b.name - a.name || compareUris(a.resource.uri, b.resource.uri))
  const candidates = order.slice(0, limits.read)
  const counts: TermCounts[] = []
  const indices: number[] = []
  let missed = order.length - candidates.length
  let units = 0
  const uris = candidates.map(({ resource }) => resource.uri)
  const { known, unitsOf } = bagsIn(
    memory,
    candidates.map(({ resource }) => resource),
  )
  for await (const { reading, position } of ahead(uris, reader, unitsOf)) {
    const { resource, index } = candidates[position] ?? {}
    if (reading === undefined) missed++
    if (reading === undefined || resource === undefined || index === undefined) continue
    const isText = reading !== 'remembered' && 'text' in reading
    const bag = isText ? bagOf(reading.text) : reading === 'remembered' ? known.get(resource.uri) : null
    // The text may have changed after it was listed, so it is cached only if its version is the listed one.
    if (isText && reading.version === resource.version) memory?.keepBag(resource, bag ?? null)
    else if (reading !== 'remembered' && 'fault' in reading && reading.fault === 'not-text')
      memory?.keepBag(resource, null)
    if (bag === null || bag === undefined) continue
    units += isText ? bag.units : 0
    if (units > slice) {
      units = 0
      await turn()
    }
    counts.push(countInBag(bag))
    indices.push(index)
  }
  const rarity = rarityIn(counts)
  const contents = bm25(counts, rarity)
  const inContents = new Map(counts.map((count, position) => [indices[position] ?? 0, count] as const))
  const matches = (index: number) => {
    const resource = resources[index]
    if (resource === undefined) return false
    const least = minTermsOf(resource)
    if (least <= 1) return true
    const has = (_: string, term: number) => hasTerm(countLists[index], term) || hasTerm(inContents.get(index), term)
    return terms.filter(has).length >= least
  }
  const listOf = (scores: Iterable<readonly [index: number, score: number]>) =>
    scaleScores(
      [...scores].flatMap(([index, score]) => (score > 0 && matches(index) ? [[uriAt(index), score] as const] : [])),
    )
  const uriAt = (index: number) => resources[index]?.uri ?? ''
  return {
    names: listOf(names.entries()),
    contents: listOf(contents.map((score, position) => [indices[position] ?? 0, score] as const)),
    rarity,
    notes:
      missed === 0
        ? []
        : [`the texts of ${missed} ${missed === 1 ? 'resource' : 'resources'} were not read: only names were searched`],
  }
}

function hasTerm(counts: TermCounts | undefined, term: number): boolean {
  return (counts?.counts[term] ?? 0) > 0
}

/** Reads the next texts while these are examined. */
async function* ahead(
  uris: readonly string[],
  reader: ContextReader,
  unitsOf: (uri: string) => number | undefined,
): AsyncGenerator<{ readonly reading: ReadOutcome | 'remembered' | undefined; readonly position: number }> {
  const readFrom = (from: number) => {
    const reading = reader.readOthers(uris.slice(from, from + batch), unitsOf)
    reading.catch(() => {})
    return reading
  }
  let next = readFrom(0)
  for (let from = 0; from < uris.length; from += batch) {
    const readings = await next
    next = readFrom(from + batch)
    for (const [index, reading] of readings.entries()) yield { reading, position: from + index }
  }
}

function metadataText({ uri, title, description }: Resource): string {
  return [decodeUriPath(uri), title ?? '', description ?? ''].join(' ')
}

/** Whether a resource may be text within the size limit. Others are not read for the search. */
export function isReadable({ size, mimeType }: Resource, limits: ContextLimits): boolean {
  return (size ?? 0) <= limits.item && !/^(?:image|audio|video|font)\//.test(mimeType ?? '')
}

/** Number of texts read to estimate how rare words are. Figures: decision 21. */
const sampled = 64

/**
 * Estimates how rare each term is, from the leading texts and an evenly spread sample of the others. In the leading texts alone the words
 * of the query would be frequent.
 */
export async function estimateRarity(
  leaders: readonly TermCounts[],
  others: readonly Resource[],
  terms: readonly string[],
  reader: ContextReader,
  memory: ReadingCache | undefined,
): Promise<readonly number[]> {
  const sample = spread(others)
  const { known, unitsOf } = bagsIn(memory, sample)
  const readings = await reader.readOthers([...known.keys()], unitsOf)
  const countInBag = createBagCount(terms)
  const counts = sample.flatMap((resource, index): readonly TermCounts[] => {
    const reading = readings[index]
    const remembered = known.get(resource.uri)
    if (reading === 'remembered') return remembered === undefined || remembered === null ? [] : [countInBag(remembered)]
    if (reading === undefined || !('text' in reading)) return []
    const bag = remembered ?? bagOf(reading.text)
    if (reading.version === resource.version) memory?.keepBag(resource, bag)
    return [countInBag(bag)]
  })
  const share = counts.length === 0 ? 0 : others.length / counts.length
  const total = leaders.length + share * counts.length
  return terms.map((_, term) => rarityOf(having(leaders, term) + share * having(counts, term), total))
}

function having(texts: readonly TermCounts[], term: number): number {
  return texts.filter(({ counts }) => (counts[term] ?? 0) > 0).length
}

/** Returns at most {@link sampled} items of a list, evenly spread. */
function spread<T>(list: readonly T[]): readonly T[] {
  if (list.length <= sampled) return list
  return Array.from({ length: sampled }, (_, at) => list[Math.floor(((at + 0.5) * list.length) / sampled)]).filter(
    (one): one is T => one !== undefined,
  )
}

/** The cached bags of words of resources, by URI, and the length of each. */
function bagsIn(memory: ReadingCache | undefined, resources: readonly Resource[]) {
  const bags = new Map(resources.map((resource) => [resource.uri, memory?.bag(resource)] as const))
  const unitsOf = (uri: string) => {
    const bag = bags.get(uri)
    return bag === undefined ? undefined : (bag?.units ?? 0)
  }
  return { known: bags, unitsOf }
}
