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
 * Tells the preview what is before and behind the resource that is shown.
 *
 * @param near Where the resource is, most likely.
 * @param uriAt What can be read in a row. `undefined`: a directory, a note.
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

/** Maximum number of resources subscribed to for their marks: the ones that were visible last. */
const most = 300
/** Delay after the last scroll event, in milliseconds. */
const pause = 400

/** Marks what changes among the rows that are to be seen. */
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
