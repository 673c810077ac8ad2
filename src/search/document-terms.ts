import { fold } from './fold.ts'
import { tokenize } from './tokens.ts'

/**
 * Parameters of the impact of a word in a whole document, quantized to small integers (Anh and Moffat, SIGIR 2006): BM25 without the
 * rarity of the word. `averageLength` is a fixed number of terms, since an index is written before it is known. Figures: decision 12.
 */
const impact = { levels: 8, k1: 1.6, b: 0.75, averageLength: 800, about: 3 }

/** Prefix of the level and the term. No term begins with it. */
const mark = '.'

/** The terms by which a document is found as a whole, those of most impact first. `about`: its title and path. */
export function documentTerms(
  counts: ReadonlyMap<string, number>,
  length: number,
  about: readonly string[],
): readonly string[] {
  const times = new Map(counts)
  const named = new Set<string>()
  for (const text of about)
    tokenize(fold(text.toWellFormed()).text, (term, _start, _end, kind) => {
      if (kind === 'word' || kind === 'part') named.add(term)
    })
  for (const term of named) times.set(term, (times.get(term) ?? 0) + impact.about)
  const long = impact.k1 * (1 - impact.b + (impact.b * length) / impact.averageLength)
  const byLevel: string[][] = Array.from({ length: impact.levels }, () => [])
  for (const [term, count] of times) {
    const level = Math.max(1, Math.round((impact.levels * count) / (count + long)))
    byLevel[level - 1]?.push(`${mark}${level}${term}`)
  }
  return byLevel.reverse().flat()
}

/** All forms in which documents may have a term, with what each counts for beside its rarity: as BM25 does, up to k1 + 1. */
export function documentForms(term: string): readonly { readonly term: string; readonly share: number }[] {
  return Array.from({ length: impact.levels }, (_, index) => ({
    term: `${mark}${index + 1}${term}`,
    share: ((impact.k1 + 1) * (index + 1)) / impact.levels,
  }))
}
