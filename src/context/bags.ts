import { type TermCounts, termsOf, uncachedTermsOf } from '../text/relevance.ts'

/** The frequencies of the terms of a text: the hashes of its terms in ascending order, and the number of each. */
export interface Bag {
  readonly hashes: Uint32Array
  readonly counts: Uint32Array
  /** The number of all terms. */
  readonly length: number
  /** The length of the text, in UTF-16 units. */
  readonly units: number
}

/** Maximum length of a word, in UTF-16 units, as `wordsIn` has it; and of a cached word. */
const maxUnits = { word: 64, cached: 24 }
/**
 * Maximum number of cached words; the number of slots of their table, a power of two; and the maximum number of slots that are looked at
 * for one word. A text may be made of words whose hashes are alike: those beyond it are not cached.
 */
const size = { words: 50_000, slots: 2 ** 17, probes: 32 }

/**
 * Cache of the terms of ASCII words, because most words repeat: a hash table with open addressing. A word is compared letter by letter,
 * so no string is made of it.
 */
const wordLengths = new Uint8Array(size.slots)
/** For each slot with a word: the place of its letters. A length of 0 marks an empty slot. */
const wordStarts = new Int32Array(size.slots)
const letters = new Uint8Array(size.words * maxUnits.cached)
/** For each slot: the place of the hashes of its terms in `pool`, and their number. */
const starts = new Int32Array(size.slots)
const lengths = new Uint8Array(size.slots)
/** For each slot: the number of occurrences in a text; 0 between texts. */
const counts = new Int32Array(size.slots)
let pool = new Uint32Array(2 ** 16)
let [words, poolUsed] = [0, 0]

/** 1 at the units of ASCII words: letters, digits, and `_`. */
const isWordUnit = Uint8Array.from({ length: 128 }, (_, unit) => (/\w/.test(String.fromCharCode(unit)) ? 1 : 0))
/** One word, as `wordsIn` has it. */
const wordHere = /[\p{L}\p{N}\p{M}_]{1,64}/uy

/** As a signed number: V8 calculates with it without a conversion. */
const fnvBasis = 0x811c9dc5 | 0
const fnvPrime = 0x01000193

/** FNV-1a over UTF-16 units. */
export function hashOf(term: string): number {
  let hash = fnvBasis
  for (let index = 0; index < term.length; index++) hash = Math.imul(hash ^ term.charCodeAt(index), fnvPrime)
  return hash >>> 0
}

export function bagOf(text: string): Bag {
  if (words >= size.words) forgetWords()
  const found = new Map<number, number>()
  const slots: number[] = []
  let length = 0
  const addUncached = (word: string) => {
    const terms = termsOf(word)
    length += terms.length
    for (const term of terms) add(found, hashOf(term), 1)
  }
  for (let start = 0; start < text.length; ) {
    const most = Math.min(text.length, start + maxUnits.word)
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
      const [word] = wordHere.exec(text) ?? []
      if (word !== undefined) addUncached(word)
      start = word === undefined ? end + 1 : start + word.length
      continue
    }
    if (end > start) {
      const slot = end - start > maxUnits.cached ? -1 : slotOf(text, start, end, hash)
      if (slot < 0) addUncached(text.slice(start, end))
      else {
        const count = counts[slot] ?? 0
        if (count === 0) slots.push(slot)
        counts[slot] = count + 1
      }
    }
    start = Math.max(end, start + 1)
  }
  for (const slot of slots) {
    const [count, from, terms] = [counts[slot] ?? 0, starts[slot] ?? 0, lengths[slot] ?? 0]
    counts[slot] = 0
    length += count * terms
    for (let index = from; index < from + terms; index++) add(found, pool[index] ?? 0, count)
  }
  const hashes = Uint32Array.from(found.keys()).sort()
  return { hashes, counts: hashes.map((hash) => found.get(hash) ?? 0), length, units: text.length }
}

function add(found: Map<number, number>, hash: number, count: number): void {
  found.set(hash, (found.get(hash) ?? 0) + count)
}

/** The slot of an ASCII word. -1: it is not cached. */
function slotOf(text: string, start: number, end: number, hash: number): number {
  for (let probe = 0; probe < size.probes; probe++) {
    const slot = (hash + probe) & (size.slots - 1)
    const known = wordLengths[slot] ?? 0
    if (known === 0) return words < size.words ? addWord(slot, text.slice(start, end)) : -1
    if (known === end - start && isAt(wordStarts[slot] ?? 0, text, start, known)) return slot
  }
  return -1
}

/** Whether the letters at a place are those of a text. */
function isAt(place: number, text: string, start: number, length: number): boolean {
  for (let index = 0; index < length; index++)
    if (letters[place + index] !== text.charCodeAt(start + index)) return false
  return true
}

/** Puts a word into an empty slot. */
function addWord(slot: number, word: string): number {
  const place = words * maxUnits.cached
  for (let index = 0; index < word.length; index++) letters[place + index] = word.charCodeAt(index)
  wordLengths[slot] = word.length
  wordStarts[slot] = place
  words++
  const hashes = uncachedTermsOf(word).map(hashOf)
  starts[slot] = poolUsed
  lengths[slot] = hashes.length
  if (poolUsed + hashes.length > pool.length) {
    const larger = new Uint32Array(2 * pool.length)
    larger.set(pool)
    pool = larger
  }
  pool.set(hashes, poolUsed)
  poolUsed += hashes.length
  return slot
}

function forgetWords(): void {
  wordLengths.fill(0)
  words = 0
  poolUsed = 0
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
