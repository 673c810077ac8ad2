import { createTermCount } from './bm25.ts'
import type { LineRange } from './types.ts'

/** Lines around what matches, how many places, and how many lines and UTF-16 units of one there are at most. */
const size = { around: 4, places: 10, lines: 100, line: 400 }

export interface Windows {
  readonly text: string
  readonly ranges: readonly LineRange[]
}

/** What of a text stands around what was found in it, or around what matches the terms. `undefined`: nothing does. */
export function windowsOf(text: string, terms: ReadonlySet<string>, found: readonly LineRange[]): Windows | undefined {
  const lines = text.split('\n')
  const places = found.length > 0 ? found : matching(lines, terms)
  const ranges = joined(places.slice(0, size.places), lines.length)
  if (ranges.length === 0) return undefined
  const shown = ranges.map(({ start, end }) =>
    [`[lines ${start}-${end}]`, ...lines.slice(start - 1, end).map(shorten)].join('\n'),
  )
  return { text: shown.join('\n…\n'), ranges }
}

/** Of the terms of a query, since words come again in one text after the other. */
const counts = new WeakMap<ReadonlySet<string>, ReturnType<typeof createTermCount>>()

/** The lines that hold most of the terms, best first. */
function matching(lines: readonly string[], terms: ReadonlySet<string>): readonly LineRange[] {
  if (terms.size === 0) return []
  const count = counts.get(terms) ?? createTermCount([...terms])
  counts.set(terms, count)
  const scores = lines.map((line) => count(line.slice(0, 4 * size.line)).counts.filter((times) => times > 0).length)
  return scores
    .map((score, index) => ({ score, line: index + 1 }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.line - b.line)
    .map(({ line }) => ({ start: line, end: line }))
}

/** Widened, in order, none touching another, and no more lines than there may be: the best places have their lines first. */
function joined(places: readonly LineRange[], count: number): readonly LineRange[] {
  const chosen = new Set<number>()
  for (const { start, end } of places) {
    const last = Math.min(count, end + size.around)
    for (let line = Math.max(1, start - size.around); line <= last && chosen.size < size.lines; line++) chosen.add(line)
  }
  const ranges: { start: number; end: number }[] = []
  for (const line of [...chosen].sort((a, b) => a - b)) {
    const range = ranges.at(-1)
    if (range !== undefined && line <= range.end + 1) range.end = line
    else ranges.push({ start: line, end: line })
  }
  return ranges
}

function shorten(line: string): string {
  return line.length <= size.line ? line : `${line.slice(0, size.line - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
