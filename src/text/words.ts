import { termsOf } from './analyser.ts'
import { createAsciiTable, fnvBasis, fnvPrime } from './ascii-table.ts'
import type { TermCounts } from './relevance.ts'

/** Maximum length of a word, in UTF-16 units, as `termsIn` has it. */
const maxUnits = 64
/** Maximum number of cached words, and maximum length of one, in UTF-16 units. */
const cached = { words: 50_000, units: 32 }

/** Cache of the terms of ASCII words, because most words repeat. */
const words = createAsciiTable(cached.words, cached.units, addTerms)
/** For each cached word: the place of the hashes of its terms in `pool`; they end where those of the next word begin. */
const starts = new Int32Array(cached.words + 1)
let pool = new Uint32Array(2 ** 16)
/** It changes when the cached words are forgotten, and the numbers of words mean others. */
let generation = 0

/** 1 at the units of ASCII words: letters, digits, and `_`. */
const isWordUnit = Uint8Array.from({ length: 128 }, (_, unit) => (/\w/.test(String.fromCharCode(unit)) ? 1 : 0))
/** A word at a place of a text, as `termsIn` has it. */
const wordHere = /[\p{L}\p{N}\p{M}_]{1,64}/uy

/** FNV-1a over UTF-16 units. */
export function hashOf(term: string): number {
  let hash = fnvBasis
  for (let index = 0; index < term.length; index++) hash = Math.imul(hash ^ term.charCodeAt(index), fnvPrime)
  return hash >>> 0
}

/**
 * Tells the words of a part of a text in order, without making a string or a match of an ASCII word. The part begins and ends between
 * two words.
 *
 * @param wordHere Sticky. It matches at most 64 code points, ASCII words among them.
 * @param found Its last argument is the {@link hashOf} of an ASCII word, as a signed number; undefined for other words.
 */
export function eachWord(
  text: string,
  from: number,
  to: number,
  wordHere: RegExp,
  found: (start: number, end: number, hash: number | undefined) => void,
): void {
  for (let start = from; start < to; ) {
    const most = Math.min(to, start + maxUnits)
    let end = start
    let unit = 0
    let hash = fnvBasis
    for (; end < most; end++) {
      unit = text.charCodeAt(end)
      if (unit >= 128 || isWordUnit[unit] === 0) break
      hash = Math.imul(hash ^ unit, fnvPrime)
    }
    if (end < most && unit >= 128) {
      wordHere.lastIndex = start
      const isWord = wordHere.test(text)
      if (isWord) found(start, wordHere.lastIndex, undefined)
      start = isWord ? wordHere.lastIndex : end + 1
      continue
    }
    if (end > start) found(start, end, hash)
    start = Math.max(end, start + 1)
  }
}

/** Tells the numbers of the cached words of a part of a text, and the other words. */
function eachTermed(
  text: string,
  from: number,
  to: number,
  ofCached: (word: number) => void,
  ofOther: (word: string) => void,
) {
  eachWord(text, from, to, wordHere, (start, end, hash) => {
    const word = hash === undefined ? -1 : words.numberOf(text, start, end, hash)
    if (word < 0) ofOther(text.slice(start, end))
    else ofCached(word)
  })
}

/** Caches the terms of a word. */
function addTerms(text: string, word: number): void {
  const hashes = termsOf(text).map(hashOf)
  const start = starts[word] ?? 0
  if (start + hashes.length > pool.length) {
    const larger = new Uint32Array(2 * pool.length)
    larger.set(pool)
    pool = larger
  }
  pool.set(hashes, start)
  starts[word + 1] = start + hashes.length
}

/** Begins the cache again, if it is full. */
function makeRoom(): void {
  if (!words.isFull()) return
  words.clear()
  generation++
}

/**
 * Counts terms in texts, or in parts of them that begin and end between two words, one after the other. In one of some thousand millions of
 * cases two terms have the same hash; they are then counted as one.
 */
export function createTermCount(terms: readonly string[]) {
  const indices = new Map(terms.map((term, index) => [hashOf(term), index] as const))
  /** For each cached word: 0, it was not looked at yet; 1, it has none of the terms; 2, it has some of them. */
  const states = new Uint8Array(cached.words)
  let ofGeneration = generation
  let counts: number[] = []
  let length = 0
  /** Counts the hash of a term. Returns whether it is one of the terms. */
  const count = (hash: number): boolean => {
    const index = indices.get(hash)
    if (index === undefined) return false
    counts[index] = (counts[index] ?? 0) + 1
    return true
  }
  const countCached = (word: number) => {
    const [start, end] = [starts[word] ?? 0, starts[word + 1] ?? 0]
    length += end - start
    if (states[word] === 1) return
    let has = false
    for (let at = start; at < end; at++) if (count(pool[at] ?? 0)) has = true
    states[word] = has ? 2 : 1
  }
  const countOther = (word: string) => {
    for (const term of termsOf(word)) {
      count(hashOf(term))
      length++
    }
  }
  return (text: string, start = 0, end = text.length): TermCounts => {
    makeRoom()
    if (ofGeneration !== generation) {
      states.fill(0)
      ofGeneration = generation
    }
    counts = terms.map(() => 0)
    length = 0
    eachTermed(text, start, end, countCached, countOther)
    return { counts, length }
  }
}

/** The frequencies of the terms of a text: the hashes of its terms in ascending order, and the number of each. */
export interface Bag {
  readonly hashes: Uint32Array
  readonly counts: Uint32Array
  /** The number of all terms. */
  readonly length: number
  /** The length of the text, in UTF-16 units. */
  readonly units: number
}

/** The number of each cached word in a text; 0 between texts. */
const occurrences = new Uint32Array(cached.words)
/** A hash and a number as one number, in the order of the hashes. A larger number is two such pairs. */
const most = 2 ** 20
/** The pairs of a text: memory that all texts share. */
let pairs = new Float64Array(2 ** 12)

export function bagOf(text: string): Bag {
  makeRoom()
  const different: number[] = []
  let used = 0
  let length = 0
  const add = (hash: number, count: number) => {
    length += count
    for (let left = count; left > 0; left -= most - 1) {
      if (used === pairs.length) {
        const larger = new Float64Array(2 * used)
        larger.set(pairs)
        pairs = larger
      }
      pairs[used++] = hash * most + Math.min(left, most - 1)
    }
  }
  const countCached = (word: number) => {
    const before = occurrences[word] ?? 0
    if (before === 0) different.push(word)
    occurrences[word] = before + 1
  }
  eachTermed(text, 0, text.length, countCached, (word) => {
    for (const term of termsOf(word)) add(hashOf(term), 1)
  })
  for (const word of different) {
    for (let at = starts[word] ?? 0; at < (starts[word + 1] ?? 0); at++) add(pool[at] ?? 0, occurrences[word] ?? 0)
    occurrences[word] = 0
  }
  return { ...summed(pairs.subarray(0, used).sort()), length, units: text.length }
}

/** The hashes of sorted pairs, each once, and the sum of its numbers. */
function summed(sorted: Float64Array): Pick<Bag, 'hashes' | 'counts'> {
  const hashes = new Uint32Array(sorted.length)
  const counts = new Uint32Array(sorted.length)
  let last = -1
  for (let index = 0; index < sorted.length; index++) {
    const pair = sorted[index] ?? 0
    const hash = Math.floor(pair / most)
    if (last < 0 || hash !== hashes[last]) hashes[++last] = hash
    counts[last] = (counts[last] ?? 0) + (pair - hash * most)
  }
  return { hashes: hashes.slice(0, last + 1), counts: counts.slice(0, last + 1) }
}

/** Counts terms in bags, as {@link createTermCount} does in texts. */
export function createBagCount(terms: readonly string[]): (bag: Bag) => TermCounts {
  const wanted = terms.map(hashOf)
  return ({ hashes, counts, length }) => ({ counts: wanted.map((hash) => counts[indexOf(hashes, hash)] ?? 0), length })
}

/** Binary search. -1: not found. */
function indexOf(hashes: Uint32Array, wanted: number): number {
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
