import { type TermCounts, termsOf, wordsIn } from '../text/bm25.ts'

/** The frequencies of the terms of a text: the hashes of its terms in ascending order, and the number of each. */
export interface Bag {
  readonly hashes: Uint32Array
  readonly counts: Uint32Array
  /** The number of all terms. */
  readonly length: number
  /** The length of the text, in UTF-16 units. */
  readonly units: number
}

/** Cache of the hashes of words, because most words repeat. */
const remembered = new Map<string, Uint32Array>()
const most = { words: 50_000, length: 24 }

function hashesOf(word: string): Uint32Array {
  const known = remembered.get(word)
  if (known !== undefined) return known
  const hashes = Uint32Array.from(termsOf(word), hashOf)
  if (word.length > most.length) return hashes
  if (remembered.size >= most.words) remembered.clear()
  remembered.set(word, hashes)
  return hashes
}

/** FNV-1a over UTF-16 units. */
export function hashOf(term: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < term.length; index++) hash = Math.imul(hash ^ term.charCodeAt(index), 0x01000193) >>> 0
  return hash
}

export function bagOf(text: string): Bag {
  const found = new Map<number, number>()
  let length = 0
  for (const word of wordsIn(text)) {
    const terms = hashesOf(word)
    length += terms.length
    for (let index = 0; index < terms.length; index++) {
      const hash = terms[index] ?? 0
      found.set(hash, (found.get(hash) ?? 0) + 1)
    }
  }
  const hashes = Uint32Array.from(found.keys()).sort()
  return { hashes, counts: hashes.map((hash) => found.get(hash) ?? 0), length, units: text.length }
}

/** Counts terms in bags. In one of some thousand millions of cases two terms have the same hash; they are then counted as one. */
export function createBagCount(terms: readonly string[]): (bag: Bag) => TermCounts {
  const wanted = terms.map(hashOf)
  return ({ hashes, counts, length }) => ({ counts: wanted.map((hash) => counts[placeOf(hashes, hash)] ?? 0), length })
}

/** Binary search. -1: not found. */
function placeOf(hashes: Uint32Array, wanted: number): number {
  let low = 0
  let high = hashes.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const hash = hashes[middle] ?? 0
    if (hash === wanted) return middle
    if (hash < wanted) low = middle + 1
    else high = middle - 1
  }
  return -1
}
