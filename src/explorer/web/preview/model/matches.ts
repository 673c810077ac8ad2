import { fold } from '../../state/fold.ts'

/** Range of a match in a line: from 0, `end` excluded. */
export interface Match {
  readonly line: number
  readonly start: number
  readonly end: number
}

/** The most matches that are counted. */
export const maxMatches = 10_000

/**
 * Finds a text in lines, whatever its case; where folding keeps the length of a line, whatever the width of its characters too.
 */
export function matchesIn(lines: readonly string[], query: string): readonly Match[] {
  const needle = fold(query)
  const found: Match[] = []
  if (needle === '') return found
  for (const [line, text] of lines.entries()) {
    const folded = fold(text)
    // If folding changed the length, positions in the folded text differ from those in the line.
    const [hay, wanted] = folded.length === text.length ? [folded, needle] : [text.toLowerCase(), query.toLowerCase()]
    if (hay.length !== text.length) continue
    for (let start = hay.indexOf(wanted); start !== -1; start = hay.indexOf(wanted, start + wanted.length)) {
      found.push({ line, start, end: start + wanted.length })
      if (found.length === maxMatches) return found
    }
  }
  return found
}
