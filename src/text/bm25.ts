import { termsIn, termsOf, wordsIn } from './terms.ts'

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

/** Maximum number of words whose terms are cached. */
const remembered = 50_000

/** Counts terms in texts, one after the other. */
export function createTermCount(terms: readonly string[]): (text: string) => TermCounts {
  const places = new Map(terms.map((term, index) => [term, index] as const))
  const effects = new Map<string, Effect>()
  const effectOf = (word: string): Effect => {
    const known = effects.get(word)
    if (known !== undefined) return known
    const all = termsOf(word)
    const effect = { length: all.length, places: all.flatMap((term) => places.get(term) ?? []) }
    if (effects.size >= remembered) effects.clear()
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
