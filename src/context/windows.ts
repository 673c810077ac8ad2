import { type Section, type Sectioned, sectionsOf, shorten } from './sections.ts'
import type { LineRange } from './types.ts'

/**
 * BM25 over the sections of one text. A search's best passage counts as much as the best section, the next one half as much, and
 * so on.
 */
const bm25 = { k1: 1.2, b: 0.5, least: 0.2 }

interface Windows {
  readonly text: string
  readonly ranges: readonly LineRange[]
  /** Their share of the scores of all blocks, from 0 to 1. */
  readonly share: number
}

/** A text for which windows are made. */
interface Shown extends Sectioned {
  /** The lines of the hits of a search, best first. */
  readonly found: readonly LineRange[]
}

interface Block extends LineRange {
  readonly units: number
  readonly score: number
}

/**
 * For each size in UTF-16 units, the best functions and sections that fit into it: those that contain the terms, or that a search
 * found. Windows that are nearly the whole text are left out.
 */
export function windowsOf(shown: Shown, terms: ReadonlySet<string>, sizes: readonly number[]): readonly Windows[] {
  const blocks = scored(sectionsOf(shown, terms), terms, shown.found)
  const total = blocks.reduce((sum, { score }) => sum + score, 0)
  if (total === 0) return []
  const best = blocks.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.start - b.start)
  const lines = shown.text.split('\n')
  const made: Windows[] = []
  let before = 0
  for (const most of sizes) {
    const chosen: Block[] = []
    let units = 0
    for (const block of best) {
      if (chosen.length > 0 && units + block.units > most) continue
      chosen.push(block)
      units += block.units
    }
    if (chosen.length === before || (made.length > 0 && units > 0.8 * shown.text.length)) continue
    before = chosen.length
    const ranges = joined(chosen)
    made.push({
      text: written(lines, ranges),
      ranges,
      share: chosen.reduce((sum, { score }) => sum + score, 0) / total,
    })
  }
  return made
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
    .map(({ start, end }) => [`[lines ${start}-${end}]`, ...lines.slice(start - 1, end).map(shorten)].join('\n'))
    .join('\n…\n')
}

/** Scores the sections against each other: the rarity of a word among the sections tells which of them are about it. */
function scored(sections: readonly Section[], terms: ReadonlySet<string>, found: readonly LineRange[]): Block[] {
  const average = Math.max(
    1,
    sections.reduce((sum, section) => sum + section.found.length, 0) / Math.max(1, sections.length),
  )
  const rarity = [...terms].map((_, term) => {
    const having = sections.filter((each) => (each.found.counts[term] ?? 0) > 0).length
    return bm25.least + Math.log(1 + (sections.length - having + 0.5) / (having + 0.5))
  })
  const scores = sections.map(({ found: { counts: times, length } }) => {
    const long = bm25.k1 * (1 - bm25.b + (bm25.b * length) / average)
    return times.reduce((sum, each, term) => sum + ((rarity[term] ?? 0) * each) / (each + long), 0)
  })
  const most = scores.reduce((best, score) => Math.max(best, score), 0) || 1
  return sections.map(({ start, end, units }, index) => {
    const place = found.findIndex((range) => range.start <= end && start <= range.end)
    const score = (scores[index] ?? 0) + (place < 0 ? 0 : most / (place + 1))
    return { start, end, units: units + 20, score }
  })
}

/** Sorted, and not adjacent. */
function joined(blocks: readonly LineRange[]): readonly LineRange[] {
  const ranges: { start: number; end: number }[] = []
  for (const { start, end } of [...blocks].sort((a, b) => a.start - b.start)) {
    const range = ranges.at(-1)
    if (range !== undefined && start <= range.end + 1) range.end = end
    else ranges.push({ start, end })
  }
  return ranges
}
