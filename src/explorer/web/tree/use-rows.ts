import type { RefObject } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import { defined } from '../../../core/kit/defined.ts'
import { neighbours } from '../state/known.ts'
import { markChanged, onChange } from '../state/live.ts'
import { place } from '../state/place.ts'
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

/** Maximum number of rows searched for the next resource. */
const mostNeighbours = 5000

/**
 * Tells the preview its previous and next resource.
 *
 * @param near The most likely index of the resource.
 * @param uriAt Returns the readable URI of a row. `undefined`: a directory or a note.
 */
export function useNeighbours(
  identity: unknown,
  near: number,
  uriAt: (index: number) => string | undefined,
  count: number,
): void {
  const { uri } = place.value
  useEffect(() => {
    if (uri === undefined) return
    const index = uriAt(near) === uri ? near : indexOf(uri, uriAt, count)
    if (index === -1) return
    const previous = search(index, -1, uriAt, count)
    const next = search(index, 1, uriAt, count)
    neighbours.value = {
      ...defined({ previous, next }),
    }
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
  for (let done = 0, index = from + step; done < mostNeighbours && index >= 0 && index < count; done++, index += step) {
    const uri = uriAt(index)
    if (uri !== undefined) return uri
  }
  return undefined
}

/** The height of a row, in pixels: `--row` of theme.css. */
export const rowHeight = 24

export interface DrawnRows {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly window: Window
  /** Number of visible rows. */
  readonly page: number
  onScroll(): void
  /** Scrolls until a row is visible. `isCentred`: to the middle, if it was not visible. */
  show(index: number, isCentred?: boolean): void
}

export interface RowsInUse extends Rows {
  /** A value that changes whenever the rows do. */
  readonly identity: unknown
  /** The active row; -1: none. */
  readonly active: number
  /** A value that changes when the reader requests other rows: the view then scrolls to the first. */
  readonly asked: string
  /** Keeps the scroll position while the rows are not rendered. */
  readonly memory: { anchor: Anchor; top: number }
}

/** Draws the visible part of many rows, and keeps its scroll position when rows come and go. */
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
    // For a hidden pane, this is done when it is shown again.
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

/** Maximum number of resources subscribed to for their marks: the ones that were visible last. */
const most = 300
/** Delay after the last scroll event, in milliseconds. */
const pause = 400

/** Marks changes among the visible rows. */
export function useWatched(uris: readonly string[]): void {
  const watched = useRef(new Map<string, () => void>()).current
  const key = uris.join(' ')
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const uri of uris) {
        const end =
          watched.get(uri) ??
          onChange(uri, (missed) => {
            // Missed changes show when the list is loaded again.
            if (!missed && place.value.uri !== uri) markChanged([uri])
          })
        watched.delete(uri)
        watched.set(uri, end)
      }
      for (const [uri, end] of watched) {
        if (watched.size <= most) break
        end()
        watched.delete(uri)
      }
    }, pause)
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
