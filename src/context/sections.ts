import { createTermCount, type TermCounts } from '../text/bm25.ts'
import { startsIn } from '../text/declarations.ts'
import type { LineRange } from './types.ts'

/**
 * Limits of sections in lines: the maximum length, and the length from which a section ends at an empty line. Maximum number of
 * UTF-16 units of a line.
 */
const size = { section: 60, enough: 20, line: 400 }
/** BM25 of a section among the sections of all texts; the average length is a fixed number of terms. Figures: decision 21. */
const bm25 = { k1: 1.2, b: 0.75, averageLength: 120 }
/** Lines above a declaration that belong to it: comments, attributes, decorators. */
const above = /^\s*(?:\/\/|\/\*|\*|#(?!\s*(?:include|define|if|end))|@|"""|--)/

export interface Section extends LineRange {
  /** Length of its shown text, in UTF-16 units. */
  readonly units: number
  readonly found: TermCounts
}

export interface Sectioned {
  readonly text: string
  readonly path: string
  readonly mimeType: string | undefined
}

/** Caches for the terms of one query: words repeat in other texts, and a text is ranked before its windows are made. */
interface Known {
  readonly count: (text: string) => TermCounts
  readonly sections: Map<string, { readonly of: Sectioned; readonly sections: readonly Section[] }>
}

const known = new WeakMap<ReadonlySet<string>, Known>()

/** The functions and sections of a text, with the frequencies of the terms in each. */
export function sectionsOf(of: Sectioned, terms: ReadonlySet<string>): readonly Section[] {
  const { count, sections: remembered }: Known = known.get(terms) ?? {
    count: createTermCount([...terms]),
    sections: new Map(),
  }
  known.set(terms, { count, sections: remembered })
  const last = remembered.get(of.text)
  if (last !== undefined && last.of.path === of.path && last.of.mimeType === of.mimeType) return last.sections
  const lines = of.text.split('\n')
  const sections = cutOf(lines, of).map(({ start, end }) => {
    const shown = lines
      .slice(start - 1, end)
      .map(shorten)
      .join('\n')
    return { start, end, units: shown.length, found: terms.size === 0 ? { counts: [], length: 1 } : count(shown) }
  })
  remembered.set(of.text, { of, sections })
  return sections
}

/** The score of the best section: BM25, with the rarity of each term among all texts. */
export function bestSection(sections: readonly Section[], rarity: readonly number[]): number {
  const { k1, b, averageLength } = bm25
  let best = 0
  for (const { found } of sections) {
    const long = k1 * (1 - b + (b * found.length) / averageLength)
    const score = found.counts.reduce(
      (sum, times, term) => sum + ((rarity[term] ?? 0) * times * (k1 + 1)) / (times + long),
      0,
    )
    best = Math.max(best, score)
  }
  return best
}

/** A line as it is shown. */
export function shorten(line: string): string {
  return line.length <= size.line ? line : `${line.slice(0, size.line - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Splits a text before headings and declarations, and long parts at empty lines. */
function cutOf(lines: readonly string[], { path, mimeType }: Sectioned): readonly LineRange[] {
  const starts = startsIn(lines, path, mimeType)
  const sections: { start: number; end: number }[] = []
  let start = 0
  const cut = (end: number) => {
    if (end > start) sections.push({ start: start + 1, end })
    start = end
  }
  for (let at = 1; at < lines.length; at++) {
    if (starts[at] === true) {
      let first = at
      while (first > start && above.test(lines[first - 1] ?? '')) first--
      cut(first)
    } else if (at - start >= size.section || (at - start >= size.enough && lines[at - 1]?.trim() === '')) cut(at)
  }
  cut(lines.length)
  return sections
}
