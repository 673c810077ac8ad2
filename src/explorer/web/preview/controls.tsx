import type { ComponentChildren, HTMLAttributes, RefObject } from 'preact'
import { Button, type ButtonProps } from '../shell/fields.tsx'
import './data.css'
import type { Signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface RegionProps extends Omit<HTMLAttributes<HTMLElement>, 'ref' | 'children'> {
  readonly label: string
  readonly box?: RefObject<HTMLElement | null>
  readonly children?: ComponentChildren
}

/** A part of the page that scrolls separately: it has a name, and the keyboard can reach it. */
export function Region({ label, box, children, ...attributes }: RegionProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable part must be reachable by keys
    <section {...(box === undefined ? {} : { ref: box })} tabIndex={0} aria-label={label} {...attributes}>
      {children}
    </section>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly options: readonly (readonly [value: T, name: string])[]
  readonly value: T
  readonly onChoose: (value: T) => void
}

/** A button for each of a few options, of which one is chosen. */
export function Choice<T extends string>({ label, options, value, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset class="switch" aria-label={label}>
      {options.map(([option, name]) => (
        <Button key={option} name={name} aria-pressed={option === value} onClick={() => onChoose(option)} />
      ))}
    </fieldset>
  )
}

export function TableHead({ names }: { readonly names: readonly string[] }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}

export function Toggle({
  state,
  ...named
}: Pick<ButtonProps, 'name' | 'class' | 'sign'> & { readonly state: Signal<boolean> }) {
  const toggle = () => {
    state.value = !state.value
  }
  return <Button {...named} aria-pressed={state.value} onClick={toggle} />
}

/** Height of a row without links and buttons, in pixels. */
const readHeight = 24

const maxRowsPx = 17_000_000

/** Number of rows drawn above and below the visible ones. */
const spare = 12

interface Props extends Omit<HTMLAttributes<HTMLDivElement>, 'children' | 'ref'> {
  readonly count: number
  /** The height of a row, in pixels. Default: {@link readHeight}. */
  readonly height?: number
  /** Index of a row, which is scrolled into view when the index changes. */
  readonly active?: number
  /** Fixed content above the rows. */
  readonly head?: ComponentChildren
  /** CSS width of the rows, if they are wider than the box. */
  readonly wide?: string
  readonly row: (index: number) => ComponentChildren
}

/** Rows of equal height. The rows near the visible ones are drawn. */
export function VirtualRows(props: Props) {
  const { count, height: rowHeight = readHeight, active, head, wide, row, class: name, ...attributes } = props
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
  const rowCount = Math.min(count, Math.floor(maxRowsPx / rowHeight))
  const first = Math.max(0, Math.floor(view.top / rowHeight) - spare)
  const last = Math.min(rowCount, Math.ceil((view.top + view.height) / rowHeight) + spare)
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => row(first + index))
  return (
    <div ref={box} class={`virtual ${typeof name === 'string' ? name : ''}`} {...attributes}>
      {head === undefined ? null : (
        <div ref={header} class="virtual-head" role="presentation" style={{ minWidth: wide }}>
          {head}
        </div>
      )}
      <div role="presentation" style={{ height: `${rowCount * rowHeight}px`, minWidth: wide, position: 'relative' }}>
        <div role="presentation" class="virtual-rows" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  )
}
