import type { TextSet, Texts } from '../store/index.ts'
import { rarityOf } from '../text/relevance.ts'
import type { RatedTerm, WordForm } from './rank.ts'

/** How often a form counts; the length of a word without its ending; the number of passages from which a word is frequent. Figures: decision 12. */
const forms = { share: 0.5, leastLength: 5, mostPassages: 100 }

/** Endings by which English derives words, as the stemmer leaves them, the longer ones first. */
const endings: readonly string[] = (
  'ization ational ability ibility ation ition ement ator ativ ment ness less ful abl ibl anc enc ion ity ism ist ant ent ify ' +
  'iv iz or er al ic ly at y i'
).split(' ')

/** Words that differ from a word in lower case by such an ending: `validator`, `validity` of `validation`. Not all of them are words. */
function derivedFrom(word: string): { readonly base: string; readonly words: readonly string[] } {
  if (!/^[a-z]+$/.test(word) || word.length < forms.leastLength) return { base: word, words: [] }
  const ending = endings.find((one) => word.length - one.length >= forms.leastLength && word.endsWith(one)) ?? ''
  const base = word.slice(0, word.length - ending.length)
  return { base, words: ['', ...endings].map((one) => base + one).filter((one) => one !== word) }
}

/**
 * Adds to each rare word of a query the words of the index that are derived like it. A form that is more frequent than the word
 * counts less.
 *
 * @param counts The number of passages with each term.
 * @param parts The number of all passages.
 */
export async function withForms(
  texts: Texts,
  terms: readonly RatedTerm[],
  counts: readonly number[],
  parts: number,
  among: TextSet | undefined,
): Promise<readonly RatedTerm[]> {
  const own = new Set(terms.map(({ term }) => term))
  const beginnings: string[] = []
  const wanted = terms.map(({ term, prefix, joined = false }, index) => {
    if (prefix || joined || (counts[index] ?? 0) > forms.mostPassages) return []
    const { base, words } = derivedFrom(term)
    if (words.length > 0) beginnings.push(base)
    return words.filter((one) => !own.has(one))
  })
  const all = wanted.flat()
  if (all.length === 0) return terms
  const found = await texts.counts(all, among, beginnings)
  let at = 0
  return terms.map((term, index) => {
    const rarity = rarityOf(counts[index] ?? 0, parts)
    const some = (wanted[index] ?? []).flatMap((form): readonly WordForm[] => {
      const count = found[at++] ?? 0
      if (count === 0) return []
      return [{ term: form, share: forms.share * Math.min(1, rarityOf(count, parts) / rarity), count }]
    })
    return some.length === 0 ? term : { ...term, forms: some }
  })
}
