import type { RefObject } from 'preact'
import { useCallback, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import {
  type Anchor,
  anchorOf,
  placeOfAnchor,
  type Rows,
  scrollInto,
  scrollTo,
  type Window,
  windowOf,
} from './window.ts'

/** The height of a row, in pixels: `--row` of theme.css. */
export const rowHeight = 24

export interface DrawnRows {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly window: Window
  /** How many rows are to be seen at once. */
  readonly page: number
  onScroll(): void
  /** Scrolls so that a row is to be seen. `isCentred`: in the middle, where it was not. */
  show(index: number, isCentred?: boolean): void
}

export interface RowsInUse extends Rows {
  /** Another value whenever they are other rows. */
  readonly identity: unknown
  /** The row that the reader stands on; -1: none. */
  readonly active: number
  /** Another value where the reader asked for other rows: they are shown from the first. */
  readonly asked: string
  /** Keeps the scroll position while the rows are not rendered. */
  readonly memory: { anchor: Anchor; top: number }
}

/** Draws the part of many rows that is to be seen, and keeps its place when rows come and go. */
export function useRows({ count, keyOf, identity, active, asked, memory }: RowsInUse): DrawnRows {
  const scroller = useRef<HTMLDivElement>(null)
  const [, draw] = useReducer<number, undefined>((tick) => tick + 1, 0)
  const scroll = useRef({ top: memory.top, height: 600 })
  const before = useRef<{ readonly identity: unknown; readonly asked: string } | undefined>(undefined)
  const rows = { count, keyOf }
  const now = windowOf(count, rowHeight, scroll.current)
  const drawn = useRef(now)

  const goTo = (top: number) => {
    const element = scroller.current
    memory.top = top
    // Of a pane that is hidden, this is done when it is to be seen again.
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
      // A pane that was hidden has forgotten its place.
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
    const found = placeOfAnchor(rows, memory.anchor)
    const top =
      found === undefined ? memory.top : scrollTo(count, rowHeight, scroll.current.height, found.index, found.from)
    if (scroller.current === null || Math.abs(top - scroller.current.scrollTop) < 0.5) return
    goTo(top)
    draw(undefined)
  }, [identity, asked])

  // The rendered rows determine the scroll position for the next time.
  useLayoutEffect(() => {
    drawn.current = now
    if (count > 0) memory.anchor = anchorOf(rows, now, rowHeight, scroll.current.height, active)
  })

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (element === null || element.clientHeight === 0) return
    scroll.current = { top: element.scrollTop, height: element.clientHeight }
    memory.top = element.scrollTop
    draw(undefined)
  }, [memory])

  const show = (index: number, isCentred = false) => {
    const top = scrollInto(count, rowHeight, scroll.current, index)
    if (top === undefined) return
    const { height } = scroll.current
    goTo(isCentred ? scrollTo(count, rowHeight, height, index, (height - rowHeight) / 2) : top)
    draw(undefined)
  }

  return { scroller, window: now, page: Math.floor(scroll.current.height / rowHeight), onScroll, show }
}
