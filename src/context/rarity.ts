import type { Resource } from '../core/view.ts'
import { rarityOf, type TermCounts } from '../text/bm25.ts'
import { bagOf, createBagCount } from './bags.ts'
import type { Memory } from './memory.ts'
import type { Reader } from './reader.ts'

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
  const known = new Map(sample.map((resource) => [resource.uri, memory?.bag(resource)] as const))
  const unitsOf = (uri: string) => {
    const bag = known.get(uri)
    return bag === undefined ? undefined : (bag?.units ?? 0)
  }
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
