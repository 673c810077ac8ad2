import { firstIndex } from '../../core/kit/first-index.ts'
import type { Span } from '../../core/kit/spans.ts'
import { redactedMark, replaceSpans } from '../../core/scrub.ts'
import type { Scalar } from './tree.ts'

/** A change of a text. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Binary search for the first span that ends at or after a position. The spans are sorted, and do not overlap. */
export function nearest<S extends { readonly end: number }>(spans: readonly S[], place: number): S | undefined {
  return spans[firstIndex(0, spans.length, (index) => (spans[index]?.end ?? 0) >= place)]
}

/** Replaces a whole value, so that the file can still be read. Returns `undefined` if there is nothing to replace. */
export function replaceScalar({ start, end, writing, json }: Scalar, text: string): Edit | undefined {
  // A key without a value has no place for one.
  if (writing === 'plain' && json === 'null') return undefined
  if (writing === 'inside' || writing === 'plain') return { start, end, text: redactedMark }
  const mark = JSON.stringify(redactedMark)
  if (writing === 'block') return { start, end, text: text.slice(start, end).endsWith('\n') ? `${mark}\n` : mark }
  return { start, end, text: start === end && /\S/.test(text[start - 1] ?? '') ? ` ${mark}` : mark }
}

/**
 * Returns the edits that remove parts of a value. An unquoted value is quoted when the mark could be misread: the mark begins
 * like a list.
 */
export function editScalar(scalar: Scalar, text: string, parts: readonly Span[]): readonly Edit[] {
  const { start, end, writing } = scalar
  const own = parts.map((part) => clip(part, scalar))
  if (writing === 'block' && own.some((part) => part.start <= start))
    return [replaceScalar(scalar, text)].filter((edit) => edit !== undefined)
  if (writing !== 'quoted') return own.map((part) => ({ ...part, text: redactedMark }))
  return [{ start, end, text: JSON.stringify(withoutParts(text, scalar, own)) }]
}

/** Removes parts from the names and values of a JSON text, so that it stays valid JSON. */
export function editJson(text: string, words: readonly Span[], parts: readonly Span[]): readonly Edit[] {
  const mark = JSON.stringify(redactedMark)
  return words.flatMap((word) => {
    const own = within(parts, word)
    if (own.length === 0) return []
    if (text[word.start - 1] !== '"') return [{ ...word, text: mark }]
    const rest = `"${withoutParts(text, word, own)}"`
    return [{ start: word.start - 1, end: word.end + 1, text: isJson(rest) ? rest : mark }]
  })
}

/** Whether a text is valid JSON. A text that lost half of an escape is not. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function withoutParts(text: string, of: Span, parts: readonly Span[]): string {
  const own = parts.map((part) => clip(part, of))
  const relative = own.map(({ start, end }) => ({ start: start - of.start, end: end - of.start }))
  return replaceSpans(text.slice(of.start, of.end), relative)
}

/** Returns the intersection of two spans. */
const clip = ({ start, end }: Span, of: Span): Span => ({
  start: Math.max(start, of.start),
  end: Math.min(end, of.end),
})

/** The parts of spans that are outside of values. Both lists are sorted. */
export function outside(spans: readonly Span[], scalars: readonly Scalar[]): readonly Span[] {
  return spans.flatMap((span) => {
    const pieces: Span[] = []
    let from = span.start
    for (
      let scalar = nearest(scalars, from);
      scalar !== undefined && scalar.start < span.end;
      scalar = nearest(scalars, scalar.end + 1)
    ) {
      if (scalar.start > from) pieces.push({ start: from, end: scalar.start })
      from = Math.max(from, scalar.end)
    }
    if (from < span.end) pieces.push({ start: from, end: span.end })
    return pieces
  })
}

/** Returns the spans that overlap a value. The spans are sorted. */
export function within(spans: readonly Span[], { start, end }: Span): readonly Span[] {
  const found: Span[] = []
  for (
    let span = nearest(spans, start + 1);
    span !== undefined && span.start < end;
    span = nearest(spans, span.end + 1)
  )
    found.push(span)
  return found
}

/** Applies edits, which do not overlap, to a text. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  const pieces: string[] = []
  let from = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    if (edit.start < from) continue
    pieces.push(text.slice(from, edit.start), edit.text)
    from = edit.end
  }
  return pieces.join('') + text.slice(from)
}
