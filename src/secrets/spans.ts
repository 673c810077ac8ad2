import { redactedMark } from '../core/scrub.ts'

/** A part of a text that is secret, in UTF-16 code units. */
export interface Span {
  readonly start: number
  readonly end: number
  /** For a value with a secret name: the position of the name. */
  readonly key?: number
}

/** Sorts spans, joins those that overlap or touch, and leaves out empty ones. */
export function mergeSpans(spans: Iterable<Span>): readonly Span[] {
  const merged: Span[] = []
  for (const { start, end } of [...spans].filter((span) => span.end > span.start).sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last === undefined || start > last.end) merged.push({ start, end })
    else if (end > last.end) merged[merged.length - 1] = { start: last.start, end }
  }
  return merged
}

/** Replaces each span of a text by the mark. The spans must be merged, and lie within the text. */
export function replaceSpans(text: string, spans: readonly Span[]): string {
  const pieces: string[] = []
  let from = 0
  for (const { start, end } of spans) {
    pieces.push(text.slice(from, start), redactedMark)
    from = end
  }
  return from === 0 ? text : pieces.join('') + text.slice(from)
}
