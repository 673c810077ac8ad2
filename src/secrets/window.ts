import { findSecrets } from './detect.ts'
import type { FindOptions } from './find.ts'
import { mergeSpans, replaceSpans, type Span } from './spans.ts'

/** A part of a text, with what lies around it. */
export interface Window {
  readonly text: string
  /** Index of the requested part, in UTF-16 code units; text before it is only context. */
  readonly from: number
  /** Whether the text ends with this. */
  readonly final: boolean
  /** The first line of the text, if it may name the columns of a table and is not in the window. */
  readonly head?: string
}

export interface CleanPart {
  readonly text: string
  /** End of the part in the window; the next part begins there. */
  readonly cut: number
  readonly changed: boolean
}

/** How much is gone through at once, in bytes, and how much more is looked at on either side: no secret is longer. */
export const windowBytes = 512 * 1024
export const contextBytes = 64 * 1024

/**
 * Takes the secrets out of a part of a text, and chooses where it ends: at the end of a line if there is one, never within a
 * secret. So the parts of a text make up the whole, wherever they were torn apart.
 */
export async function redactWindow({ text, from, final, head }: Window, options: FindOptions): Promise<CleanPart> {
  const spans = mergeSpans(await findSecrets(text, head === undefined ? options : { ...options, head }))
  const cut = final ? text.length : cutOf(text, from, spans)
  const inside = spans.flatMap(({ start, end }) =>
    end <= from || start >= cut ? [] : [{ start: Math.max(start, from) - from, end: Math.min(end, cut) - from }],
  )
  return { text: replaceSpans(text.slice(from, cut), inside), cut, changed: inside.length > 0 }
}

function cutOf(text: string, from: number, spans: readonly Span[]): number {
  const last = Math.max(from + 1, text.length - contextBytes)
  const newline = text.lastIndexOf('\n', last) + 1
  let cut = newline > from ? newline : last
  // Before a secret that lies across the cut; behind it, where the part would be empty.
  const across = spans.find((span) => span.start < cut && span.end > cut)
  if (across !== undefined) cut = across.start > from ? across.start : across.end
  return cut < text.length && /[\udc00-\udfff]/.test(text[cut] ?? '') ? cut + 1 : cut
}
