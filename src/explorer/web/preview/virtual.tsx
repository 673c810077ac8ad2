import './data.css'
import type { ComponentChildren, HTMLAttributes } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** The height of a row, equal to `--row` in the style sheet. */
export const rowHeight = 24

/** Browsers draw no element taller than some 33 million pixels. */
const mostRows = 1_300_000

/** Number of rows drawn above and below the visible ones. */
const spare = 12

interface Props extends Omit<HTMLAttributes<HTMLDivElement>, 'children' | 'ref'> {
  readonly count: number
  /** The row to scroll to when it changes. */
  readonly active?: number
  /** Fixed content above the rows. */
  readonly head?: ComponentChildren
  /** Width of the rows, if they are wider than the box. */
  readonly wide?: string
  readonly row: (index: number) => ComponentChildren
}

/** Rows of equal height, of which only the visible ones are drawn. */
export function VirtualRows({ count, active, head, wide, row, class: name, ...attributes }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const header = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    measure()
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  useEffect(() => {
    const element = box.current
    if (element === null || active === undefined) return
    const above = header.current?.offsetHeight ?? 0
    const top = active * rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowHeight > element.scrollTop + element.clientHeight - above)
      element.scrollTop = top + rowHeight - element.clientHeight + above
  }, [active])
  const shown = Math.min(count, mostRows)
  const first = Math.max(0, Math.floor(view.top / rowHeight) - spare)
  const last = Math.min(shown, Math.ceil((view.top + view.height) / rowHeight) + spare)
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => row(first + index))
  return (
    <div ref={box} class={`virtual ${typeof name === 'string' ? name : ''}`} {...attributes}>
      {head === undefined ? null : (
        <div ref={header} class="virtual-head" role="presentation" style={{ minWidth: wide }}>
          {head}
        </div>
      )}
      <div role="presentation" style={{ height: `${shown * rowHeight}px`, minWidth: wide, position: 'relative' }}>
        <div role="presentation" class="virtual-rows" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  )
}
