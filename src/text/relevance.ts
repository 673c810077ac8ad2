import { fold, tokenize } from './analyser.ts'

/** How often a text has each term of a query (`counts`), and how many terms it has in all (`length`). */
export interface TermCounts {
  readonly counts: readonly number[]
  readonly length: number
}

/** Parameters of BM25. `k1`: how much repeated occurrences count. `b`: how much the length of a text lowers its score, from 0 to 1. */
interface Bm25 {
  readonly k1: number
  readonly b: number
}

/** BM25 of the words of a search. Figures: decision 12. */
export const wordBm25: Bm25 = { k1: 1.6, b: 0.75 }

/**
 * The weight of the occurrences of a term in a text, from 0 to `k1 + 1`: Okapi BM25 without the rarity of the term.
 *
 * @param length The length of the text, divided by the average length.
 */
export function impactOf(times: number, length: number, { k1, b } = wordBm25): number {
  return times === 0 ? 0 : (times * (k1 + 1)) / (times + k1 * (1 - b + b * length))
}

const plain: Bm25 = { k1: 1.2, b: 0.75 }

/** The rarity of each term among texts: its inverse document frequency. */
export function rarityIn(texts: readonly TermCounts[]): readonly number[] {
  return (texts[0]?.counts ?? []).map((_, term) => {
    const having = texts.filter(({ counts }) => (counts[term] ?? 0) > 0).length
    return rarityOf(having, texts.length)
  })
}

/** The inverse document frequency of a term that `having` of `all` texts have. */
export function rarityOf(having: number, all: number): number {
  return Math.log(1 + (Math.max(0, all - having) + 0.5) / (having + 0.5))
}

/** Returns the BM25 score of each text. `rarity` has the rarity of each term: by default, among these texts. */
export function bm25(texts: readonly TermCounts[], rarity = rarityIn(texts)): readonly number[] {
  const average = Math.max(1, texts.reduce((sum, { length }) => sum + length, 0) / Math.max(1, texts.length))
  return texts.map(({ counts, length }) =>
    counts.reduce((sum, times, term) => sum + (rarity[term] ?? 0) * impactOf(times, length / average, plain), 0),
  )
}

const name = String.raw`[\p{L}\p{N}_./@-]{1,40}`
const labels = new RegExp(
  String.raw`((?:^|;)\s*)(?:(${name})(\([^()\n]{1,60}\))?!?((?:,\s*${name})*)\s*:(?=\s)|(\[[^\]\n]{1,60}\]))`,
  'gu',
)
/** Types of changes (Conventional Commits). They say nothing about the place of a change. */
const types = /^(?:feat|feature|fix|bug|bugfix|hotfix|chore|refactor|perf|style|revert|wip|deps)$/i

/**
 * Finds the labels of a text. Subjects of commits and issues begin with the name of an area: `store: …`, `store, cli: …`, `fix(store): …`,
 * `[store] …`. Returns ranges of UTF-16 units, without types of changes (`fix`).
 *
 * @param text Folded.
 */
export function labelsIn(text: string): readonly (readonly [start: number, end: number])[] {
  return [...text.matchAll(labels)].map((match) => {
    const [all, before = '', first = ''] = match
    const start = match.index + before.length + (types.test(first) ? first.length : 0)
    return [start, match.index + all.length] as const
  })
}

/** Score of a word of a label that is only a part of a folder or name of a path. */
const ofPart = 0.4

/** Returns a function that scores how well a path fits the labels of a query, from 0 to 1. `undefined`: the query has no labels. */
export function createLabelScore(query: string): ((path: string) => number) | undefined {
  const folded = fold(query.toWellFormed()).text
  const words = new Set<string>()
  for (const [start, end] of labelsIn(folded))
    tokenize(folded.slice(start, end), (term, _start, _end, kind) => {
      if (kind !== 'single') words.add(term)
    })
  if (words.size === 0) return undefined
  return (path) => {
    const counts = new Map<string, number>()
    for (const segment of path.replace(/(?<=[^/])\.[^/]*$/, '').split('/')) {
      const { text } = fold(segment.toWellFormed())
      let score = ofPart
      // A whole identifier comes before its parts, so these score 1, too.
      tokenize(text, (term, start, end) => {
        if (!words.has(term)) return
        if (start === 0 && end === text.length) score = 1
        counts.set(term, Math.max(score, counts.get(term) ?? 0))
      })
    }
    return [...counts.values()].reduce((sum, score) => sum + score, 0) / words.size
  }
}
