/**
 * The part of many rows of one height that is drawn. Browsers have a tallest element (Chromium about 33 million pixels, Firefox about 17):
 * where the rows together are higher than `tallest`, the scroll bar stands for them in a smaller measure.
 */
export interface Window {
  /** Index of the first drawn row, and of the one after the last. */
  readonly first: number
  readonly end: number
  /** Height of the whole, and offset of the first row in it, in pixels. */
  readonly height: number
  readonly top: number
  /** Index of the first visible row, and its part above the edge, in pixels. */
  readonly visible: number
  readonly above: number
}

export interface Scroll {
  readonly top: number
  /** Height of the visible part, in pixels. */
  readonly height: number
}

export const tallest = 8_000_000

/** Number of rows rendered beyond each edge. */
const spare = 12

/** Pixels of rows for one pixel of scrolling: 1, unless the rows exceed the tallest element. */
function measure(count: number, row: number, view: number): number {
  const all = count * row
  return all <= tallest || view >= tallest ? 1 : (all - view) / (tallest - view)
}

export function windowOf(count: number, row: number, scroll: Scroll): Window {
  const ratio = measure(count, row, scroll.height)
  const height = ratio === 1 ? count * row : tallest
  const most = Math.max(0, height - scroll.height)
  const top = Math.min(Math.max(scroll.top, 0), most)
  /** Position of the upper edge within the rows, in their own pixels. */
  const edge = top * ratio
  const visible = Math.min(Math.floor(edge / row), Math.max(0, count - 1))
  const first = Math.max(0, visible - spare)
  const end = Math.min(count, Math.ceil((edge + scroll.height) / row) + spare)
  return { first, end, height, top: first * row - edge + top, visible, above: edge - visible * row }
}

/** Returns the scroll position at which a row is `from` pixels below the upper edge. */
export function scrollTo(count: number, row: number, view: number, index: number, from = 0): number {
  return Math.max(0, (index * row - from) / measure(count, row, view))
}

/** Returns the nearest scroll position at which a whole row is visible; undefined if it is visible already. */
export function scrollInto(count: number, row: number, scroll: Scroll, index: number): number | undefined {
  const ratio = measure(count, row, scroll.height)
  const edge = scroll.top * ratio
  if (index * row < edge) return scrollTo(count, row, scroll.height, index)
  if ((index + 1) * row > edge + scroll.height) return Math.max(0, ((index + 1) * row - scroll.height) / ratio)
  return undefined
}

/** Rows, for computing positions. */
export interface Rows {
  readonly count: number
  keyOf(index: number): string
}

/** Visible rows, by which the scroll position is restored among other rows: each key with its distance from the upper edge, in pixels. */
export type Anchor = readonly { readonly key: string; readonly from: number }[]

/** @param active The active row: if it is visible, it keeps its position before all others. */
export function anchorOf(
  rows: Rows,
  { visible, above, end }: Window,
  row: number,
  view: number,
  active: number,
): Anchor {
  const at = (index: number) => ({ key: rows.keyOf(index), from: (index - visible) * row - above })
  const last = Math.min(end, visible + Math.ceil(view / row))
  const seen = Array.from({ length: Math.max(0, last - visible) }, (_, index) => at(visible + index))
  return active >= visible && active < last ? [at(active), ...seen] : seen
}

/** The row that keeps its position, the first of the anchor that still exists, and its distance from the upper edge. */
export function placeOfAnchor(
  rows: Rows,
  anchor: Anchor,
): { readonly index: number; readonly from: number } | undefined {
  const wanted = new Map<string, number>()
  for (const [at, { key }] of anchor.entries()) if (!wanted.has(key)) wanted.set(key, at)
  let best: { readonly at: number; readonly index: number } | undefined
  for (let index = 0; index < rows.count; index++) {
    const at = wanted.get(rows.keyOf(index))
    if (at === undefined || (best !== undefined && best.at <= at)) continue
    best = { at, index }
    if (at === 0) break
  }
  return best === undefined ? undefined : { index: best.index, from: anchor[best.at]?.from ?? 0 }
}
