import { foldText } from '../../../../core/kit/matching.ts'

/** The lines of a text. A newline at its end does not begin another line. */
export function splitLines(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.length > 1 && lines.at(-1) === '') lines.pop()
  return lines
}

export const linesInChunk = 100

/** Maximum length of a drawn line, in characters: browsers take seconds to lay out a line of megabytes. */
export const maxLineLength = 20_000

/** A part of a resource, as in `_meta`. `lines` and `size` (in bytes) are those of the whole resource, `next` is the query for the next part. */
export interface PreviewPart {
  readonly unit: 'lines' | 'bytes'
  readonly first: number
  readonly last: number
  readonly lines?: number
  readonly size?: number
  readonly next?: string
}

export function parsePreviewPart(value: unknown): PreviewPart | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { unit, first, last, lines, size, next } = value as Readonly<Record<string, unknown>>
  if ((unit !== 'lines' && unit !== 'bytes') || typeof first !== 'number' || typeof last !== 'number') return undefined
  return {
    unit,
    first,
    last,
    ...(typeof lines === 'number' ? { lines } : {}),
    ...(typeof size === 'number' ? { size } : {}),
    // A `next` that is not a query for a part is ignored, because it becomes part of a URI.
    ...(typeof next === 'string' && /^(lines|bytes)=\d{1,15}(-\d{0,15})?$/.test(next) ? { next } : {}),
  }
}

/** Number of lines shown before and after those of a hit. */
const context = 40

/** Returns the query for a range of lines, with the lines before and after the range. */
export function queryAround({ first, last }: { readonly first: number; readonly last?: number }): string {
  const end = last === undefined ? '' : String(last + context)
  return `lines=${Math.max(1, first - context)}-${end}`
}

/** Range of a match in a line. All indexes begin at 0; `end` is excluded. */
export interface LineMatch {
  readonly line: number
  readonly start: number
  readonly end: number
}

export const maxMatches = 10_000

/** Finds a text in lines at most {@link maxMatches} times, ignoring case. If folding keeps the length of a line, the width of characters is ignored, too. */
export function matchesIn(lines: readonly string[], query: string): readonly LineMatch[] {
  const needle = foldText(query)
  const matches: LineMatch[] = []
  if (needle === '') return matches
  for (const [line, text] of lines.entries()) {
    const folded = foldText(text)
    // If folding changed the length, positions in the folded text differ from those in the line.
    const [hay, words] = folded.length === text.length ? [folded, needle] : [text.toLowerCase(), query.toLowerCase()]
    if (hay.length !== text.length) continue
    for (let start = hay.indexOf(words); start !== -1; start = hay.indexOf(words, start + words.length)) {
      matches.push({ line, start, end: start + words.length })
      if (matches.length === maxMatches) return matches
    }
  }
  return matches
}

/**
 * Maximum number of lines between the common beginning and the common end that are compared. If there are more, all are marked as new.
 */
const most = 2000

/**
 * The lines of a text that are new in comparison with the text before: indexes from 0. Removes the common beginning and end of both texts,
 * and finds the longest common subsequence of the rest.
 */
export function addedLines(before: readonly string[], after: readonly string[]): ReadonlySet<number> {
  let head = 0
  const shorter = Math.min(before.length, after.length)
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  const old = before.slice(head, before.length - tail)
  const fresh = after.slice(head, after.length - tail)
  const common = old.length > most || fresh.length > most ? new Set<number>() : commonIn(old, fresh)
  const changedLines = new Set<number>()
  for (const index of fresh.keys()) if (!common.has(index)) changedLines.add(head + index)
  return changedLines
}

/** The indexes in `fresh` of a longest common subsequence. */
function commonIn(old: readonly string[], fresh: readonly string[]): ReadonlySet<number> {
  const width = fresh.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0)
  const commonLines = new Set<number>()
  for (let i = 0, j = 0; i < old.length && j < fresh.length; ) {
    if (old[i] === fresh[j]) {
      commonLines.add(j)
      i++
      j++
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i++
    else j++
  }
  return commonLines
}

/** A piece of a line: text, and its highlighting class, if any. */
type StyledText = readonly [text: string, style: string]

export type HighlightedLine = readonly StyledText[]

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" }

/**
 * Parses the output of highlight.js into lines of pieces. The output contains only `<span class="…">`, `</span>` and text with five
 * escapes. The page creates its own elements from the pieces, and never inserts the HTML.
 */
export function parseHighlightedLines(html: string): readonly HighlightedLine[] {
  const lines: StyledText[][] = [[]]
  const open: string[] = []
  for (const [whole, style, text] of html.matchAll(/<span class="([^"]*)">|<\/span>|([^<]+)/g)) {
    if (style !== undefined) open.push(style)
    else if (text === undefined) {
      if (whole === '</span>') open.pop()
    } else
      for (const [index, piece] of unescaped(text).split('\n').entries()) {
        if (index > 0) lines.push([])
        if (piece !== '') lines.at(-1)?.push([piece, open.at(-1) ?? ''])
      }
  }
  return lines
}

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name: string) => entities[name] ?? '')
}
