import { setImmediate as turn } from 'node:timers/promises'
import type { Resource } from '../core/view.ts'
import { bm25, rarityIn, rarityOf, type TermCounts } from '../text/relevance.ts'
import { type Bag, bagOf, createBagCount, createTermCount } from '../text/words.ts'
import { bagsHere, bagsInThread } from './bags.ts'
import type { Memory, TextReading } from './memory.ts'
import { pathOf, type Reader, type Reading } from './reader.ts'
import { compare, type Scored, scaled } from './searched.ts'
import type { Limits } from './types.ts'

/** Number of resources read at a time. */
const batch = 64
/** Number of texts from which their words are counted in a thread: it takes about as long to start as counting them. */
const leastForThread = 256

export interface Lexical {
  /** Resources with words in their names. */
  readonly names: readonly Scored[]
  /** Resources with words in their texts. */
  readonly contents: readonly Scored[]
  /** The rarity of each term among the texts that were read. */
  readonly rarity: readonly number[]
  readonly notes: readonly string[]
}

/**
 * Searches words in the names and texts of resources. It reads as many texts as the limits allow; those with matching names come
 * first.
 *
 * @param memory Cache of resources, which are not read again.
 * @param minTermsOf Minimum number of different terms that a resource must have, in its name and its text together, to match.
 */
export async function matchWords(
  resources: readonly Resource[],
  terms: readonly string[],
  isRead: (resource: Resource) => boolean,
  reader: Reader,
  limits: Limits,
  memory?: Memory,
  minTermsOf: (resource: Resource) => number = () => 1,
): Promise<Lexical> {
  const countIn = createTermCount(terms)
  const countInBag = createBagCount(terms)
  const named: TermCounts[] = []
  for (const [position, resource] of resources.entries()) {
    named.push(countIn(nameOf(resource)))
    if (position % 256 === 255) await turn()
  }
  const names = bm25(named)
  const order = resources
    .map((resource, index) => ({ resource, index, name: names[index] ?? 0 }))
    .filter(({ resource }) => isRead(resource) && isReadable(resource, limits))
    .sort((a, b) => b.name - a.name || compare(a.resource.uri, b.resource.uri))
  const chosen = order.slice(0, limits.read)
  const counts: TermCounts[] = []
  const indices: number[] = []
  let missed = order.length - chosen.length
  const uris = chosen.map(({ resource }) => resource.uri)
  const { known, unitsOf } = bagsIn(
    memory,
    chosen.map(({ resource }) => resource),
  )
  for (const { readings, bags, from } of await readAll(uris, reader, unitsOf)) {
    const made = (await bags).values()
    for (const [at, reading] of readings.entries()) {
      const { resource, index } = chosen[from + at] ?? {}
      if (reading === undefined) missed++
      if (reading === undefined || resource === undefined || index === undefined) continue
      const isText = isTextReading(reading)
      const bag = isText ? made.next().value : reading === 'remembered' ? known.get(resource.uri) : null
      const isBinary = reading !== 'remembered' && 'fault' in reading && reading.fault === 'not-text'
      if (isText || isBinary) memory?.keepBag(resource, bag ?? null)
      if (bag === null || bag === undefined) continue
      counts.push(countInBag(bag))
      indices.push(index)
    }
    await turn()
  }
  const rarity = rarityIn(counts)
  const contents = bm25(counts, rarity)
  const inContents = new Map(counts.map((count, position) => [indices[position] ?? 0, count] as const))
  const matches = (index: number) => {
    const resource = resources[index]
    if (resource === undefined) return false
    const least = minTermsOf(resource)
    if (least <= 1) return true
    const has = (_: string, term: number) => hasTerm(named[index], term) || hasTerm(inContents.get(index), term)
    return terms.filter(has).length >= least
  }
  const listOf = (scores: Iterable<readonly [index: number, score: number]>) =>
    scaled(
      [...scores].flatMap(([index, score]) => (score > 0 && matches(index) ? [[uriAt(index), score] as const] : [])),
    )
  const uriAt = (index: number) => resources[index]?.uri ?? ''
  return {
    names: listOf(names.entries()),
    contents: listOf(contents.map((score, position) => [indices[position] ?? 0, score] as const)),
    rarity,
    notes: missed === 0 ? [] : [`${missed} resources were not read: only their names were looked at`],
  }
}

function hasTerm(found: TermCounts | undefined, term: number): boolean {
  return (found?.counts[term] ?? 0) > 0
}

type Seen = Reading | 'remembered' | undefined

const isTextReading = (reading: Seen): reading is TextReading => typeof reading === 'object' && 'text' in reading

interface Batch {
  readonly readings: readonly Seen[]
  /** Those of the texts among the readings. */
  readonly bags: Promise<readonly Bag[]>
  /** Index of the first reading. */
  readonly from: number
}

/** Reads texts in batches, and counts the words of each while the next one is read. */
async function readAll(
  uris: readonly string[],
  reader: Reader,
  unitsOf: (uri: string) => number | undefined,
): Promise<readonly Batch[]> {
  const isLong = uris.filter((uri) => unitsOf(uri) === undefined).length >= leastForThread
  const count = isLong ? bagsInThread : bagsHere
  const batches: Batch[] = []
  for (let from = 0; from < uris.length; from += batch) {
    const readings = await reader.readOthers(uris.slice(from, from + batch), unitsOf)
    const texts = readings.filter(isTextReading).map(({ text }) => text)
    const bags = count(texts)
    // Handled where it is awaited: this line only prevents an unhandled rejection.
    bags.catch(() => {})
    batches.push({ readings, bags, from })
  }
  return batches
}

function nameOf({ uri, title, description }: Resource): string {
  return [pathOf(uri), title ?? '', description ?? ''].join(' ')
}

/** Whether a resource may be text within the size limit. Others are not read for the search. */
export function isReadable({ size, mimeType }: Resource, limits: Limits): boolean {
  return (size ?? 0) <= limits.item && !/^(?:image|audio|video|font)\//.test(mimeType ?? '')
}

/** Number of texts read to estimate how rare words are. Figures: decision 21. */
const sampled = 64

/**
 * Estimates how rare each term is in all texts: the leading texts, and an evenly spread sample of the others. In the leading
 * texts alone every word of the query would be frequent.
 */
export async function estimateRarity(
  leaders: readonly TermCounts[],
  others: readonly Resource[],
  terms: readonly string[],
  reader: Reader,
  memory: Memory | undefined,
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
    memory?.keepBag(resource, bag)
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
function bagsIn(memory: Memory | undefined, resources: readonly Resource[]) {
  const known = new Map(resources.map((resource) => [resource.uri, memory?.bag(resource)] as const))
  const unitsOf = (uri: string) => {
    const bag = known.get(uri)
    return bag === undefined ? undefined : (bag?.units ?? 0)
  }
  return { known, unitsOf }
}
