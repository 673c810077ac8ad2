import type { Resource } from '../core/view.ts'
import type { AssembleOptions, Explanation, Factor } from './types.ts'

/** URIs, best first, from one way of looking for them. */
export interface RankedList {
  readonly name: string
  readonly uris: readonly string[]
  readonly weight: number
}

export interface Fused {
  /** From 0 to 1, which the best has. */
  readonly relevance: number
  readonly because: string
}

/** Reciprocal rank fusion: how much a place counts less than the one before. */
const k = 10
const day = 86_400_000
const defaultHalfLife = 30 * day

/** Fuses lists by the places that something has in them. */
export function fuse(lists: readonly RankedList[]): ReadonlyMap<string, Fused> {
  const sums = new Map<string, { sum: number; places: string[] }>()
  for (const { name, uris, weight } of lists)
    for (const [index, uri] of uris.entries()) {
      const known = sums.get(uri) ?? { sum: 0, places: [] }
      known.sum += weight / (k + index + 1)
      known.places.push(`${name} #${index + 1}`)
      sums.set(uri, known)
    }
  const best = [...sums.values()].reduce((most, { sum }) => Math.max(most, sum), 0) || 1
  return new Map(
    [...sums].map(([uri, { sum, places }]) => [uri, { relevance: sum / best, because: places.join(', ') }]),
  )
}

/**
 * Relevance times bounded factors. Each has a floor, so that what is old or of little priority can still win by what it says; what is
 * not known changes nothing.
 */
export function explain(
  { uri, priority, modified }: Resource,
  fused: Fused,
  { now, halfLife = defaultHalfLife, changes }: Pick<AssembleOptions, 'now' | 'halfLife' | 'changes'>,
): Explanation {
  const factors: Factor[] = [{ name: 'relevance', value: fused.relevance, because: fused.because }]
  if (isKnown(priority)) {
    const p = Math.min(1, Math.max(0, priority))
    factors.push({ name: 'priority', value: 0.75 + 0.5 * p, because: `priority ${p}` })
  }
  if (isKnown(modified)) {
    const age = Math.max(0, now - modified)
    const value = 0.8 + 0.2 * 2 ** (-age / halfLife)
    factors.push({ name: 'recency', value, because: `modified ${(age / day).toFixed(1)} days ago` })
  }
  const times = changes?.(uri)
  if (isKnown(times) && times > 0)
    factors.push({
      name: 'activity',
      value: 1 + 0.1 * Math.log(1 + times),
      because: times === 1 ? 'changed once' : `changed ${times} times`,
    })
  return { score: factors.reduce((product, { value }) => product * value, 1), factors }
}

function isKnown(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value)
}
