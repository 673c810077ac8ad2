import type { Resource } from '../core/view.ts'
import type { AssembleOptions, Explanation, Factor } from './types.ts'

/** The results of one search method, best first: URIs with scores from 0 to 1. */
export interface RankedList {
  readonly name: string
  readonly entries: readonly Scored[]
  readonly weight: number
}

export interface Scored {
  readonly uri: string
  readonly score: number
}

export interface Fused {
  /** From 0 to 1; the best candidate has 1. */
  readonly relevance: number
  readonly because: string
}

/** The exponent of the sum of a resource, relative to the best sum: scores of BM25 fall off slowly. Figures: decision 21. */
const power = 2
/**
 * Factor for a history of changes: it names everything, and seldom answers a question. A query that names it asks for it. Figures:
 * decision 21.
 */
const ofHistory = 0.25
const day = 86_400_000
const defaultHalfLife = 30 * day

/** The sums of the weighted scores of each resource. */
export function sumsOf(lists: readonly RankedList[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { entries, weight } of lists)
    for (const { uri, score } of entries) sums.set(uri, (sums.get(uri) ?? 0) + weight * score)
  return sums
}

/** Fuses lists: adds the weighted scores of each resource, and divides by the best sum. */
export function fuse(lists: readonly RankedList[]): ReadonlyMap<string, Fused> {
  const found = new Map<string, { relevance: number; because: string }>()
  let best = 0
  for (const { name, entries, weight } of lists)
    for (const [index, { uri, score }] of entries.entries()) {
      const place = `${name} #${index + 1}`
      const known = found.get(uri)
      if (known === undefined) found.set(uri, { relevance: weight * score, because: place })
      else {
        known.relevance += weight * score
        known.because = `${known.because}, ${place}`
      }
    }
  for (const { relevance } of found.values()) best = Math.max(best, relevance)
  for (const fused of found.values()) fused.relevance = (fused.relevance / (best || 1)) ** power
  return found
}

/** Scores relative to the best of them, best first; equal scores in the order of their URIs. Scores of 0 are left out. */
export function scaled(scores: Iterable<readonly [uri: string, score: number]>): readonly Scored[] {
  const entries = [...scores].filter(([, score]) => score > 0)
  const best = entries.reduce((most, [, score]) => Math.max(most, score), 0)
  return entries
    .map(([uri, score]) => ({ uri, score: score / best }))
    .sort((a, b) => b.score - a.score || compare(a.uri, b.uri))
}

/** The order of URIs, independent of the locale. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * Relevance times bounded factors. Each factor has a floor, so that an old resource or one of low priority can still win by its
 * text; unknown values change nothing.
 */
export function explain(
  { uri, priority, modified }: Resource,
  { relevance, because, isHistory = false }: Pick<Fused, 'relevance' | 'because'> & { readonly isHistory?: boolean },
  { now, halfLife = defaultHalfLife, changes }: Pick<AssembleOptions, 'now' | 'halfLife' | 'changes'>,
): Explanation {
  const factors: Factor[] = [{ name: 'relevance', value: relevance, because }]
  if (isHistory) factors.push({ name: 'history', value: ofHistory, because: 'a history of changes names everything' })
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
