import { useCallback, useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import { defined } from '../../../core/kit/object.ts'
import { rowHeightPx } from '../shell/fields.tsx'
import { markChanged, onResourceChange } from '../state/live.ts'
import { neighbours } from '../state/offered.ts'
import { route } from '../state/route.ts'

/** Maximum number of rows searched for the previous, and for the next, resource. */
const mostNeighbours = 5000

/**
 * Sets `neighbours` to the resources before and after the shown one.
 *
 * @param near The most likely index of the resource.
 * @param uriAt Returns the URI of a row. `undefined`: the row is a directory or a note.
 */
export function useNeighbours(
  identity: unknown,
  near: number,
  uriAt: (index: number) => string | undefined,
  count: number,
): void {
  const { uri } = route.value
  useEffect(() => {
    if (uri === undefined) return
    const index = uriAt(near) === uri ? near : indexOf(uri, uriAt, count)
    if (index === -1) return
    const previous = search(index, -1, uriAt, count)
    const next = search(index, 1, uriAt, count)
    neighbours.value = defined({ previous, next })
  }, [identity, near, uri])
}

function indexOf(uri: string, uriAt: (index: number) => string | undefined, count: number): number {
  for (let index = 0; index < count; index++) if (uriAt(index) === uri) return index
  return -1
}

function search(
  from: number,
  step: 1 | -1,
  uriAt: (index: number) => string | undefined,
  count: number,
): string | undefined {
  for (
    let position = 0, index = from + step;
    position < mostNeighbours && index >= 0 && index < count;
    position++, index += step
  ) {
    const uri = uriAt(index)
    if (uri !== undefined) return uri
  }
  return undefined
}

interface RowsInUse extends Rows {
  /** A value that changes whenever the rows change. */
  readonly identity: unknown
  /** The active row; -1: none. */
  readonly active: number
  /** A value that changes when the user requests other rows: the view then scrolls to the first. */
  readonly asked: string
  /** Keeps the scroll position while the rows are not rendered. */
  readonly memory: { anchor: ScrollAnchor; top: number }
}

/** Returns the part of many rows that must be drawn, and keeps the scroll position when rows come and go. */
export function useRows({ count, keyOf, identity, active, asked, memory }: RowsInUse) {
  const scroller = useRef<HTMLDivElement>(null)
  const [, draw] = useReducer<number, undefined>((tick) => tick + 1, 0)
  const scroll = useRef({ top: memory.top, height: 600 })
  const before = useRef<{ readonly identity: unknown; readonly asked: string } | undefined>(undefined)
  const rows = { count, keyOf }
  const now = windowOf(count, scroll.current)

  const goTo = (top: number) => {
    const element = scroller.current
    memory.top = top
    // A hidden pane cannot scroll: its position is set when the pane is shown again.
    if (element === null || element.clientHeight === 0) return
    element.scrollTop = top
    memory.top = element.scrollTop
    scroll.current = { ...scroll.current, top: element.scrollTop }
  }

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null) return
    let wasHidden = true
    const measure = () => {
      const isHidden = element.clientHeight === 0
      // A pane that was hidden has lost its scroll position.
      if (!isHidden && wasHidden) element.scrollTop = memory.top
      wasHidden = isHidden
      if (isHidden) return
      scroll.current = { top: element.scrollTop, height: element.clientHeight }
      draw(undefined)
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  useLayoutEffect(() => {
    const last = before.current
    before.current = { identity, asked }
    if (last !== undefined && last.identity === identity && last.asked === asked) return
    if (last !== undefined && last.asked !== asked) {
      goTo(0)
      draw(undefined)
      return
    }
    const anchor = findAnchoredRow(rows, memory.anchor)
    const top =
      anchor === undefined ? memory.top : scrollPositionOf(count, scroll.current.height, anchor.index, anchor.from)
    if (scroller.current === null || Math.abs(top - scroller.current.scrollTop) < 0.5) return
    goTo(top)
    draw(undefined)
  }, [identity, asked])

  // After the next change, the scroll position follows from the rows that are drawn now.
  useLayoutEffect(() => {
    if (count > 0) memory.anchor = anchorOf(rows, now, scroll.current.height, active)
  })

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (element === null || element.clientHeight === 0) return
    scroll.current = { top: element.scrollTop, height: element.clientHeight }
    memory.top = element.scrollTop
    draw(undefined)
  }, [memory])

  const show = (index: number, isCentred = false) => {
    const top = nearestScrollPosition(count, scroll.current, index)
    if (top === undefined) return
    const { height } = scroll.current
    goTo(isCentred ? scrollPositionOf(count, height, index, (height - rowHeightPx) / 2) : top)
    draw(undefined)
  }

  return {
    scroller,
    window: now,
    /** Number of visible rows. */
    page: Math.floor(scroll.current.height / rowHeightPx),
    onScroll,
    show,
  }
}

/** Maximum number of resources that are watched for their marks. Those that were visible least recently are dropped. */
const most = 300
/** Delay after the last change of the visible rows before they are watched (debounce), in milliseconds. */
const debounceMs = 400

export function useChangeMarks(uris: readonly string[]): void {
  const watched = useRef(new Map<string, () => void>()).current
  const key = uris.join(' ')
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const uri of uris) {
        const end =
          watched.get(uri) ??
          onResourceChange(uri, (missed) => {
            // After missed changes, the list is loaded again, which also finds changed resources.
            if (!missed && route.value.uri !== uri) markChanged([uri])
          })
        watched.delete(uri)
        watched.set(uri, end)
      }
      for (const [uri, end] of watched) {
        if (watched.size <= most) break
        end()
        watched.delete(uri)
      }
    }, debounceMs)
    return () => clearTimeout(timer)
  }, [key])
  useEffect(
    () => () => {
      for (const end of watched.values()) end()
      watched.clear()
    },
    [],
  )
}

/**
 * The part of many rows of equal height that is drawn. Browsers limit the height of an element (Chromium to about 33 million pixels,
 * Firefox to about 17 million). If the rows are higher than `maxHeightPx`, the scroll positions are scaled down.
 */
interface Window {
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

interface Scroll {
  readonly top: number
  /** Height of the visible part, in pixels. */
  readonly height: number
}

/** Maximum height of the element that contains the rows, below the limits of browsers. */
export const maxHeightPx = 8_000_000

const spare = 12

/** Pixels of rows for one pixel of scrolling: 1, unless the rows exceed the tallest element. */
function scrollRatio(count: number, view: number): number {
  const all = count * rowHeightPx
  return all <= maxHeightPx || view >= maxHeightPx ? 1 : (all - view) / (maxHeightPx - view)
}

/** Returns the rows to render at a scroll position, and where. */
export function windowOf(count: number, scroll: Scroll): Window {
  const ratio = scrollRatio(count, scroll.height)
  const height = ratio === 1 ? count * rowHeightPx : maxHeightPx
  const most = Math.max(0, height - scroll.height)
  const top = Math.min(Math.max(scroll.top, 0), most)
  /** Position of the upper edge within the rows, in their own pixels. */
  const edge = top * ratio
  const visible = Math.min(Math.floor(edge / rowHeightPx), Math.max(0, count - 1))
  const first = Math.max(0, visible - spare)
  const end = Math.min(count, Math.ceil((edge + scroll.height) / rowHeightPx) + spare)
  return { first, end, height, top: first * rowHeightPx - edge + top, visible, above: edge - visible * rowHeightPx }
}

/** Returns the scroll position at which a row is `from` pixels below the upper edge. */
export function scrollPositionOf(count: number, view: number, index: number, from = 0): number {
  return Math.max(0, (index * rowHeightPx - from) / scrollRatio(count, view))
}

/** Returns the nearest scroll position at which a whole row is visible; undefined if it is visible already. */
export function nearestScrollPosition(count: number, scroll: Scroll, index: number): number | undefined {
  const ratio = scrollRatio(count, scroll.height)
  const edge = scroll.top * ratio
  if (index * rowHeightPx < edge) return scrollPositionOf(count, scroll.height, index)
  if ((index + 1) * rowHeightPx > edge + scroll.height)
    return Math.max(0, ((index + 1) * rowHeightPx - scroll.height) / ratio)
  return undefined
}

interface Rows {
  readonly count: number
  keyOf(index: number): string
}

/** Visible rows, by which the scroll position is restored among other rows: each key with its distance from the upper edge, in pixels. */
export type ScrollAnchor = readonly { readonly key: string; readonly from: number }[]

/** Returns the visible rows as an anchor. If the active row is visible, its position takes precedence. */
export function anchorOf(rows: Rows, { visible, above, end }: Window, view: number, active: number): ScrollAnchor {
  const at = (index: number) => ({ key: rows.keyOf(index), from: (index - visible) * rowHeightPx - above })
  const last = Math.min(end, visible + Math.ceil(view / rowHeightPx))
  const placeholders = Array.from({ length: Math.max(0, last - visible) }, (_, index) => at(visible + index))
  return active >= visible && active < last ? [at(active), ...placeholders] : placeholders
}

/** Returns the index of the first row of the anchor that still exists, and its distance from the upper edge, in pixels. */
export function findAnchoredRow(
  rows: Rows,
  anchor: ScrollAnchor,
): { readonly index: number; readonly from: number } | undefined {
  const heights = new Map<string, number>()
  for (const [at, { key }] of anchor.entries()) if (!heights.has(key)) heights.set(key, at)
  let best: { readonly at: number; readonly index: number } | undefined
  for (let index = 0; index < rows.count; index++) {
    const at = heights.get(rows.keyOf(index))
    if (at === undefined || (best !== undefined && best.at <= at)) continue
    best = { at, index }
    if (at === 0) break
  }
  return best === undefined ? undefined : { index: best.index, from: anchor[best.at]?.from ?? 0 }
}
