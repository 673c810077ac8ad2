import { impactOf, rarityOf, type TermCounts } from '../text/relevance.ts'
import { sectionStartsIn } from '../text/structure.ts'
import { createTermCount } from '../text/words.ts'
import type { LineRange } from './types.ts'

/** BM25 over the sections of one text; `least`: minimum rarity of a term. */
const windowBm25 = { k1: 1.2, b: 0.5, least: 0.2 }

interface Windows {
  readonly text: string
  readonly ranges: readonly LineRange[]
  /** Share of the scores of these blocks in the scores of all blocks, from 0 to 1. */
  readonly share: number
}

interface WindowedText extends Sectioned {
  /** The lines of the hits of a search, best first. */
  readonly found: readonly LineRange[]
}

interface Block extends LineRange {
  readonly units: number
  readonly score: number
}

/**
 * For each size in UTF-16 units, the best functions and sections that fit into it, but at least one: those that contain the terms,
 * or that a search found. After the first windows, those that are nearly the whole text are left out.
 */
export function windowsOf(
  text: WindowedText,
  terms: ReadonlySet<string>,
  sizes: readonly number[],
): readonly Windows[] {
  const blocks = scored(sectionsOf(text, terms), terms, text.found)
  const total = blocks.reduce((sum, { score }) => sum + score, 0)
  if (total === 0) return []
  const best = blocks.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.start - b.start)
  const lines = text.text.split('\n')
  const windowLists: Windows[] = []
  let before = 0
  for (const most of sizes) {
    const blocks: Block[] = []
    let units = 0
    for (const block of best) {
      if (blocks.length > 0 && units + block.units > most) continue
      blocks.push(block)
      units += block.units
    }
    if (blocks.length === before || (windowLists.length > 0 && units > 0.8 * text.text.length)) continue
    before = blocks.length
    const ranges = mergeLineRanges(blocks)
    windowLists.push({
      text: written(lines, ranges),
      ranges,
      share: blocks.reduce((sum, { score }) => sum + score, 0) / total,
    })
  }
  return windowLists
}

/** The windows of a text at given lines. `undefined`: such lines do not exist, or are not in order. */
export function windowsAt(text: string, ranges: readonly LineRange[]): string | undefined {
  const lines = text.split('\n')
  let last = 0
  for (const { start, end } of ranges) {
    if (!(Number.isInteger(start) && Number.isInteger(end) && start > last && end >= start && end <= lines.length))
      return undefined
    last = end
  }
  return ranges.length === 0 ? undefined : written(lines, ranges)
}

function written(lines: readonly string[], ranges: readonly LineRange[]): string {
  return ranges
    .map(({ start, end }) => [`[lines ${start}-${end}]`, ...lines.slice(start - 1, end).map(shortenLine)].join('\n'))
    .join('\n…\n')
}

/** Scores the sections of a text against each other. */
function scored(sections: readonly Section[], terms: ReadonlySet<string>, ranges: readonly LineRange[]): Block[] {
  const average = Math.max(
    1,
    sections.reduce((sum, section) => sum + section.found.length, 0) / Math.max(1, sections.length),
  )
  const rarity = [...terms].map((_, term) => {
    const having = sections.filter((each) => (each.found.counts[term] ?? 0) > 0).length
    return windowBm25.least + rarityOf(having, sections.length)
  })
  const scores = sections.map(({ found: { counts, length } }) =>
    counts.reduce((sum, times, term) => sum + (rarity[term] ?? 0) * impactOf(times, length / average, windowBm25), 0),
  )
  const most = scores.reduce((best, score) => Math.max(best, score), 0) || 1
  return sections.map(({ start, end, units }, index) => {
    const hit = ranges.findIndex((range) => range.start <= end && start <= range.end)
    const score = (scores[index] ?? 0) + (hit < 0 ? 0 : most / (hit + 1))
    return { start, end, units: units + 20, score }
  })
}

/** Sorts blocks, and joins adjacent ones. */
function mergeLineRanges(blocks: readonly LineRange[]): readonly LineRange[] {
  const ranges: { start: number; end: number }[] = []
  for (const { start, end } of [...blocks].sort((a, b) => a.start - b.start)) {
    const range = ranges.at(-1)
    if (range !== undefined && start <= range.end + 1) range.end = end
    else ranges.push({ start, end })
  }
  return ranges
}

/**
 * `section`: maximum length of a section in lines. `enough`: length in lines from which a section ends at an empty line. `line`: maximum
 * number of UTF-16 units of a line.
 */
const size = { section: 60, enough: 20, line: 400 }
/** BM25 of a section among the sections of all texts; the average length is a fixed number of terms. Figures: decision 21. */
const sectionBm25 = { k1: 1.2, b: 0.75, averageLength: 120 }
/** Lines above a declaration that belong to it: comments, attributes, decorators. */
const above = /^\s*(?:\/\/|\/\*|\*|#(?!\s*(?:include|define|if|end))|@|"""|--)/

export interface Section extends LineRange {
  readonly units: number
  readonly found: TermCounts
}

interface Sectioned {
  readonly text: string
  readonly path: string
  readonly mimeType: string | undefined
}

/** Caches for the terms of one query: words repeat in other texts. */
interface QueryCaches {
  readonly count: ReturnType<typeof createTermCount>
  readonly sections: Map<string, { readonly of: Sectioned; readonly sections: readonly Section[] }>
}

const cachesByTerms = new WeakMap<ReadonlySet<string>, QueryCaches>()

/** The functions and sections of a text, with the frequencies of the terms in each. */
export function sectionsOf(of: Sectioned, terms: ReadonlySet<string>): readonly Section[] {
  const { count, sections: remembered }: QueryCaches = cachesByTerms.get(terms) ?? {
    count: createTermCount([...terms]),
    sections: new Map(),
  }
  cachesByTerms.set(terms, { count, sections: remembered })
  const last = remembered.get(of.text)
  if (last !== undefined && last.of.path === of.path && last.of.mimeType === of.mimeType) return last.sections
  const lines = of.text.split('\n')
  const sections = splitSections(lines, of).map(({ start, end }) => {
    const ofLines = lines.slice(start - 1, end)
    const excerpt = ofLines.map(shortenLine).join('\n')
    const counts = terms.size === 0 ? { counts: [], length: 1 } : count(excerpt)
    return { start, end, units: excerpt.length, found: counts }
  })
  remembered.set(of.text, { of, sections })
  return sections
}

/** The score of the best section: BM25, with the rarity of each term among all texts. */
export function bestSectionScore(sections: readonly Section[], rarity: readonly number[]): number {
  const scoreOf = ({ counts, length }: TermCounts) => {
    const relative = length / sectionBm25.averageLength
    return counts.reduce((sum, times, term) => sum + (rarity[term] ?? 0) * impactOf(times, relative, sectionBm25), 0)
  }
  return sections.reduce((best, { found }) => Math.max(best, scoreOf(found)), 0)
}

/** Cuts a line to the length that is shown. */
function shortenLine(line: string): string {
  return line.length <= size.line ? line : `${line.slice(0, size.line - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Splits a text before headings and declarations, and long parts at empty lines. */
function splitSections(lines: readonly string[], { path, mimeType }: Sectioned): readonly LineRange[] {
  const starts = sectionStartsIn(lines, path, mimeType)
  const sections: { start: number; end: number }[] = []
  let start = 0
  const addSection = (end: number) => {
    if (end > start) sections.push({ start: start + 1, end })
    start = end
  }
  for (let at = 1; at < lines.length; at++) {
    if (starts[at] === true) {
      let first = at
      while (first > start && above.test(lines[first - 1] ?? '')) first--
      addSection(first)
    } else if (at - start >= size.section || (at - start >= size.enough && lines[at - 1]?.trim() === '')) addSection(at)
  }
  addSection(lines.length)
  return sections
}
