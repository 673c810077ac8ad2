/** The lines of a text. A newline at its end begins no other line. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.length > 1 && lines.at(-1) === '') lines.pop()
  return lines
}

/** How many lines are drawn at a time. */
export const linesInChunk = 100

/** A line longer than this is drawn in part: browsers lay out a line of megabytes for seconds. */
export const longestLine = 20_000

/** Description of a part of a resource in `_meta` (docs/providers/documents.md). */
export interface Part {
  readonly unit: 'lines' | 'bytes'
  readonly first: number
  readonly last: number
  readonly lines?: number
  readonly size?: number
  readonly next?: string
}

export function partOf(value: unknown): Part | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { unit, first, last, lines, size, next } = value as Readonly<Record<string, unknown>>
  if ((unit !== 'lines' && unit !== 'bytes') || typeof first !== 'number' || typeof last !== 'number') return undefined
  return {
    unit,
    first,
    last,
    ...(typeof lines === 'number' ? { lines } : {}),
    ...(typeof size === 'number' ? { size } : {}),
    // The next part must have the form of a part.
    ...(typeof next === 'string' && /^(lines|bytes)=\d{1,15}(-\d{0,15})?$/.test(next) ? { next } : {}),
  }
}

/** Number of lines shown before and after those of a hit. */
export const context = 40

/** The range of lines to ask for so that some of them are seen with what is around them. */
export function around({ first, last }: { readonly first: number; readonly last?: number }): string {
  const end = last === undefined ? '' : String(last + context)
  return `lines=${Math.max(1, first - context)}-${end}`
}
