import { createTermCount } from './bm25.ts'
import { startsIn } from './outline.ts'
import type { LineRange } from './types.ts'

/** Blocks in lines: the longest one, and the length from which one ends at an empty line. UTF-16 units of a line at most. */
const size = { block: 60, enough: 20, line: 400 }
/** BM25 over the blocks of one text; a search's best passage counts as much as the best block, the next half as much. */
const bm25 = { k1: 1.2, b: 0.5, least: 0.2 }
/** Lines above a declaration that belong to it: comments, attributes, decorators. */
const above = /^\s*(?:\/\/|\/\*|\*|#(?!\s*(?:include|define|if|end))|@|"""|--)/

export interface Windows {
  readonly text: string
  readonly ranges: readonly LineRange[]
  /** The share of the scores of all blocks that these have, from 0 to 1. */
  readonly share: number
}

/** A text of which windows are shown. */
export interface Shown {
  readonly text: string
  readonly path: string
  readonly mimeType: string | undefined
  /** The lines that a search found, best first. */
  readonly found: readonly LineRange[]
}

interface Block extends LineRange {
  readonly units: number
  readonly score: number
}

/**
 * The functions and sections of a text that hold the terms, or that a search found: for each size in UTF-16 units the best that fit into it.
 * None of those that are nearly the whole text.
 */
export function windowsOf(shown: Shown, terms: ReadonlySet<string>, sizes: readonly number[]): readonly Windows[] {
  const lines = shown.text.split('\n')
  const blocks = scored(lines, blocksOf(lines, shown), terms, shown.found)
  const total = blocks.reduce((sum, { score }) => sum + score, 0)
  if (total === 0) return []
  const best = blocks.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.start - b.start)
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

/** The windows of a text at lines that are named. `undefined`: there are no such lines, or not in order. */
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

/** Cuts a text before headings and declarations, and where a part is long at empty lines. */
function blocksOf(lines: readonly string[], { path, mimeType }: Shown): readonly LineRange[] {
  const starts = startsIn(lines, path, mimeType)
  const blocks: { start: number; end: number }[] = []
  let start = 0
  const cut = (end: number) => {
    if (end > start) blocks.push({ start: start + 1, end })
    start = end
  }
  for (let at = 1; at < lines.length; at++) {
    if (starts[at] === true) {
      let first = at
      while (first > start && above.test(lines[first - 1] ?? '')) first--
      cut(first)
    } else if (at - start >= size.block || (at - start >= size.enough && lines[at - 1]?.trim() === '')) cut(at)
  }
  cut(lines.length)
  return blocks
}

/** Of the terms of a query, since words come again in one text after the other. */
const counts = new WeakMap<ReadonlySet<string>, ReturnType<typeof createTermCount>>()

function scored(
  lines: readonly string[],
  blocks: readonly LineRange[],
  terms: ReadonlySet<string>,
  found: readonly LineRange[],
): Block[] {
  const count = counts.get(terms) ?? createTermCount([...terms])
  counts.set(terms, count)
  const texts = blocks.map(({ start, end }) =>
    lines
      .slice(start - 1, end)
      .map(shorten)
      .join('\n'),
  )
  const all = texts.map((text) => (terms.size === 0 ? { counts: [], length: 1 } : count(text)))
  const average = Math.max(1, all.reduce((sum, { length }) => sum + length, 0) / Math.max(1, all.length))
  const rarity = [...terms].map((_, term) => {
    const having = all.filter((each) => (each.counts[term] ?? 0) > 0).length
    return bm25.least + Math.log(1 + (all.length - having + 0.5) / (having + 0.5))
  })
  const scores = all.map(({ counts: times, length }) => {
    const long = bm25.k1 * (1 - bm25.b + (bm25.b * length) / average)
    return times.reduce((sum, each, term) => sum + ((rarity[term] ?? 0) * each) / (each + long), 0)
  })
  const most = scores.reduce((best, score) => Math.max(best, score), 0) || 1
  return blocks.map((block, index) => {
    const place = found.findIndex(({ start, end }) => start <= block.end && block.start <= end)
    const score = (scores[index] ?? 0) + (place < 0 ? 0 : most / (place + 1))
    return { ...block, units: (texts[index] ?? '').length + 20, score }
  })
}

/** In order, none touching another. */
function joined(blocks: readonly LineRange[]): readonly LineRange[] {
  const ranges: { start: number; end: number }[] = []
  for (const { start, end } of [...blocks].sort((a, b) => a.start - b.start)) {
    const range = ranges.at(-1)
    if (range !== undefined && start <= range.end + 1) range.end = end
    else ranges.push({ start, end })
  }
  return ranges
}

function shorten(line: string): string {
  return line.length <= size.line ? line : `${line.slice(0, size.line - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
