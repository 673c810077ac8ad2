/**
 * Parameters of the impact of a word in a whole document, quantized to small integers (Anh and Moffat, SIGIR 2006): BM25 without the
 * rarity of the word. `averageLength` is a fixed number of terms, since an index is written before it is known. Figures: decision 12.
 */
const impact = { levels: 8, k1: 1.6, b: 0.75, averageLength: 800, about: 3 }

/** Prefix of the level and the term. No term begins with it. */
const mark = '.'

/**
 * The terms by which a document is found as a whole, those of most impact first.
 *
 * @param counts How often each word stands in it: changed.
 * @param named The words of its title and path.
 */
export function documentTerms(
  counts: Map<string, number>,
  length: number,
  named: ReadonlySet<string>,
): readonly string[] {
  for (const term of named) counts.set(term, (counts.get(term) ?? 0) + impact.about)
  const long = impact.k1 * (1 - impact.b + (impact.b * length) / impact.averageLength)
  const byLevel: string[][] = Array.from({ length: impact.levels }, () => [])
  for (const [term, count] of counts) {
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
