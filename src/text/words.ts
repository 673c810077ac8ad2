import { ownCopy } from '../core/kit/own-copy.ts'
import { firstIndex } from '../core/kit/sorted.ts'
import { extractWords, termsOfWord } from './analyser.ts'
import type { TermCounts } from './relevance.ts'

/** The hashes of the terms of words. */
let hashesByWord = new Map<string, readonly number[]>()
/** Maximum number of words whose hashes are cached. */
const mostKnown = 50_000

/** FNV-1a over UTF-16 units, as a signed number: V8 keeps it without an object. */
export function fnv1aHash(term: string): number {
  let hash = 0x811c9dc5 | 0
  for (let index = 0; index < term.length; index++) hash = Math.imul(hash ^ term.charCodeAt(index), 0x01000193)
  return hash
}

function hashesOf(word: string): readonly number[] {
  const positions = hashesByWord.get(word)
  if (positions !== undefined) return positions
  const hashes = termsOfWord(word).map(fnv1aHash)
  if (hashesByWord.size >= mostKnown) hashesByWord = new Map()
  hashesByWord.set(ownCopy(word), hashes)
  return hashes
}

/** The frequencies of the terms of a text, by their 32-bit hashes. */
function countsIn(text: string): ReadonlyMap<number, number> {
  const words = new Map<string, number>()
  for (const word of extractWords(text)) words.set(word, (words.get(word) ?? 0) + 1)
  const counts = new Map<number, number>()
  for (const [word, times] of words)
    for (const hash of hashesOf(word)) counts.set(hash, (counts.get(hash) ?? 0) + times)
  return counts
}

/** The frequencies of the terms of a text, in little memory: the hashes of its terms in ascending order, and the number of each. */
export interface TermBag {
  readonly hashes: Int32Array
  readonly counts: Uint32Array
  /** The number of all terms. */
  readonly length: number
  readonly units: number
}

export function bagOf(text: string): TermBag {
  const countsByTerm = countsIn(text)
  const hashes = Int32Array.from(countsByTerm.keys()).sort()
  const counts = Uint32Array.from(hashes, (hash) => countsByTerm.get(hash) ?? 0)
  return { hashes, counts, length: counts.reduce((sum, count) => sum + count, 0), units: text.length }
}

export function createTermCount(terms: readonly string[]): (text: string) => TermCounts {
  const countOf = createBagCount(terms)
  return (text) => countOf(bagOf(text))
}

export function createBagCount(terms: readonly string[]): (bag: TermBag) => TermCounts {
  const termHashes = terms.map(fnv1aHash)
  return ({ hashes, counts, length }) => ({ counts: termHashes.map((hash) => countIn(hashes, counts, hash)), length })
}

function countIn(hashes: Int32Array, counts: Uint32Array, termHashes: number): number {
  const at = firstIndex(0, hashes.length, (index) => (hashes[index] ?? 0) >= termHashes)
  return hashes[at] === termHashes ? (counts[at] ?? 0) : 0
}
