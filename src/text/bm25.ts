/** The frequency of each term of a query in a text, and the number of all its terms. */
export interface TermCounts {
  readonly counts: readonly number[]
  readonly length: number
}

/** The terms of a query, each once. */
export function queryTerms(query: string): readonly string[] {
  return [...new Set(termsIn(query))].slice(0, 64)
}

/** Cache of the terms of each word, and the number of all terms: most words repeat. */
interface Effect {
  readonly length: number
  readonly places: readonly number[]
}

/** Maximum number of words in each cache. */
const maxCachedWords = 50_000

/** Counts terms in texts, one after the other. */
export function createTermCount(terms: readonly string[]): (text: string) => TermCounts {
  const places = new Map(terms.map((term, index) => [term, index] as const))
  const effects = new Map<string, Effect>()
  const effectOf = (word: string): Effect => {
    const known = effects.get(word)
    if (known !== undefined) return known
    const all = termsOf(word)
    const effect = { length: all.length, places: all.flatMap((term) => places.get(term) ?? []) }
    if (effects.size >= maxCachedWords) effects.clear()
    effects.set(word, effect)
    return effect
  }
  return (text) => {
    const counts = terms.map(() => 0)
    let length = 0
    for (const word of wordsIn(text)) {
      const effect = effectOf(word)
      length += effect.length
      for (const place of effect.places) counts[place] = (counts[place] ?? 0) + 1
    }
    return { counts, length }
  }
}

export function countTerms(text: string, terms: readonly string[]): TermCounts {
  return createTermCount(terms)(text)
}

const k1 = 1.2
const b = 0.75

/** The rarity of each term among texts. */
export function rarityIn(texts: readonly TermCounts[]): readonly number[] {
  return (texts[0]?.counts ?? []).map((_, term) => {
    const having = texts.filter(({ counts }) => (counts[term] ?? 0) > 0).length
    return rarityOf(having, texts.length)
  })
}

/** The rarity of a term that a number of all texts have. */
export function rarityOf(having: number, all: number): number {
  return Math.log(1 + (all - having + 0.5) / (having + 0.5))
}

/** The score of each text: BM25, with the rarity of a term among these texts. */
export function bm25(texts: readonly TermCounts[], rarity = rarityIn(texts)): readonly number[] {
  const average = Math.max(1, texts.reduce((sum, { length }) => sum + length, 0) / Math.max(1, texts.length))
  return texts.map(({ counts, length }) => {
    const long = k1 * (1 - b + (b * length) / average)
    return counts.reduce((sum, times, term) => sum + ((rarity[term] ?? 0) * times * (k1 + 1)) / (times + long || 1), 0)
  })
}

/** Scripts without spaces between words: their text is split into pairs of characters. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々〆]+/gu
const han = /^\p{Script=Han}$/u
// Bounded, because normalisation takes quadratic time in the number of marks after a character.
const words = /[\p{L}\p{N}\p{M}_]{1,64}/gu
const parts = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{M}]+|\p{N}+/gu

/**
 * The terms of a text, in order: words in small letters and without their endings, the parts of identifiers, and of scripts without
 * spaces each pair of characters and each Han character.
 */
export function termsIn(text: string): readonly string[] {
  return wordsIn(text).flatMap(termsOf)
}

/** The words of a text. `termsOf` returns the terms of each. */
export function wordsIn(text: string): readonly string[] {
  return text.match(words) ?? []
}

/** Cache of the terms of words, because most words repeat. Longer words are not cached. */
const termCache = new Map<string, readonly string[]>()
const maxCachedLength = 24

export function termsOf(word: string): readonly string[] {
  const known = termCache.get(word)
  if (known !== undefined) return known
  const terms = [...allTerms(word)]
  if (word.length > maxCachedLength) return terms
  if (termCache.size >= maxCachedWords) termCache.clear()
  termCache.set(word, terms)
  return terms
}

function* allTerms(found: string): Generator<string> {
  const word = /^[a-z]+$/.test(found) ? found : found.normalize('NFKC')
  let rest = word
  for (const [run] of word.matchAll(unspaced)) {
    yield* pairsOf(run)
    rest = rest.replace(run, ' ')
  }
  for (const [one] of rest.matchAll(/[^ ]+/g)) yield* wordTerms(one)
}

function* wordTerms(word: string): Generator<string> {
  const pieces = [...word.matchAll(parts)].map(([part]) => part)
  if (pieces.length > 1) yield stem(word.replaceAll('_', '').toLowerCase())
  for (const piece of pieces) yield stem(piece.toLowerCase())
}

function* pairsOf(run: string): Generator<string> {
  const characters = [...run]
  for (const [index, character] of characters.entries()) {
    if (han.test(character)) yield character
    const next = characters[index + 1]
    if (next !== undefined) yield character + next
  }
}

/** Removes the most frequent endings of English words, so that different forms of a word are equal. */
function stem(word: string): string {
  if (word.length < 5 || !/^[a-z]+$/.test(word)) return word
  const bare = word.replace(/(?:ing|ies|ed|es|s)$/, '')
  return bare.length < 3 ? word : bare.replace(/(.)\1$/, '$1').replace(/[ey]$/, '')
}
