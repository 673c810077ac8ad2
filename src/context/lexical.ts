import { setImmediate as turn } from 'node:timers/promises'
import type { Resource } from '../core/view.ts'
import { bm25, countTerms, type TermCounts } from './bm25.ts'
import { pathOf } from './places.ts'
import type { Reader } from './reader.ts'
import type { Limits } from './types.ts'

/** The shares of what a resource says and of what it is called. */
const shares = { content: 0.6, name: 0.4 }

export interface Lexical {
  /** What matches, best first. */
  readonly list: readonly string[]
  readonly notes: readonly string[]
}

/**
 * Looks for words in what resources are called, and in what they say: of those that may be read, as many as the limits allow, first those
 * whose names match.
 */
export async function matchWords(
  resources: readonly Resource[],
  terms: readonly string[],
  isRead: (resource: Resource) => boolean,
  reader: Reader,
  limits: Limits,
): Promise<Lexical> {
  const named: TermCounts[] = []
  for (const [position, resource] of resources.entries()) {
    named.push(countTerms(nameOf(resource), terms))
    if (position % 256 === 255) await turn()
  }
  const names = bm25(named)
  const order = resources
    .map((resource, index) => ({ resource, index, name: names[index] ?? 0 }))
    .filter(({ resource }) => isRead(resource) && isReadable(resource, limits))
    .sort((a, b) => b.name - a.name || compare(a.resource.uri, b.resource.uri))
  const chosen = order.slice(0, limits.read)
  const readings = await reader.read(chosen.map(({ resource }) => resource.uri))
  const counts: TermCounts[] = []
  const indices: number[] = []
  let missed = order.length - chosen.length
  for (const [position, reading] of readings.entries()) {
    if (reading === undefined) missed++
    if (reading === undefined || !('text' in reading)) continue
    if (position % 8 === 7) await turn()
    counts.push(countTerms(reading.text, terms))
    indices.push(chosen[position]?.index ?? 0)
  }
  const contents = new Map(bm25(counts).map((score, position) => [indices[position] ?? 0, score] as const))
  const scores = combined(names, contents)
  const list = resources
    .map(({ uri }, index) => ({ uri, score: scores[index] ?? 0 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || compare(a.uri, b.uri))
    .map(({ uri }) => uri)
  return { list, notes: missed === 0 ? [] : [`${missed} resources were not read: only their names were looked at`] }
}

function combined(names: readonly number[], contents: ReadonlyMap<number, number>): readonly number[] {
  const bestName = names.reduce((best, score) => Math.max(best, score), 0) || 1
  const bestContent = [...contents.values()].reduce((best, score) => Math.max(best, score), 0) || 1
  return names.map(
    (name, index) => (shares.name * name) / bestName + (shares.content * (contents.get(index) ?? 0)) / bestContent,
  )
}

function nameOf({ uri, title, description }: Resource): string {
  return [pathOf(uri), title ?? '', description ?? ''].join(' ')
}

/** What is known to be too large or no text is not read to look for words. */
function isReadable({ size, mimeType }: Resource, limits: Limits): boolean {
  return (size ?? 0) <= limits.item && !/^(?:image|audio|video|font)\//.test(mimeType ?? '')
}

/** The order of URIs, the same everywhere. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
