import './schema.css'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from '../shell/fields.tsx'
import { linkTo, navigate } from '../state/route.ts'
import { escapeInvisible } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { type DatabaseOverview, type SchemaLink, tableUri } from './model/documents.ts'
import { placeTables, type TableBox } from './model/layout.ts'
import { t } from './words.ts'

const [least, most] = [0.08, 2.5]

/** The tables of a database and their foreign keys. The diagram can be moved and zoomed, and a click opens a table. */
export function TablesDiagram({ overview, uri }: { readonly overview: DatabaseOverview; readonly uri: string }) {
  const box = useRef<HTMLElement>(null)
  const drawing = useMemo(() => placeTables(overview), [overview])
  const [frame, setFrame] = useState({ x: 0, y: 0, scale: 1 })
  const [selection, setPicked] = useState<string>()
  const fitAll = () => {
    const element = box.current
    if (element === null) return
    const scale = Math.min(1, (element.clientWidth - 40) / drawing.width, (element.clientHeight - 40) / drawing.height)
    // The scale has a minimum, so that text stays readable: a larger diagram must be moved.
    setFrame({ x: 20, y: 20, scale: Math.max(0.5, scale) })
  }
  useLayoutEffect(fitAll, [drawing])
  const move = (x: number, y: number) => setFrame((now) => ({ ...now, x: now.x + x, y: now.y + y }))
  const zoom = (by: number, at?: Point) =>
    setFrame((now) => {
      const scale = Math.min(most, Math.max(least, now.scale * by))
      const center = at ?? { x: (box.current?.clientWidth ?? 0) / 2, y: (box.current?.clientHeight ?? 0) / 2 }
      const ratio = scale / now.scale
      return { scale, x: center.x - (center.x - now.x) * ratio, y: center.y - (center.y - now.y) * ratio }
    })
  useDragging(box, move, zoom)
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [60, 0],
      ArrowRight: [-60, 0],
      ArrowUp: [0, 60],
      ArrowDown: [0, -60],
    }
    const step = moves[event.key]
    if (step !== undefined) move(...step)
    else if (event.key === '+' || event.key === '-') zoom(event.key === '+' ? 1.25 : 0.8)
    else if (event.key === '0') fitAll()
    else return
    event.preventDefault()
  }
  return (
    <div class="column">
      <div class="preview-bar thin" role="toolbar" aria-label={t('view')}>
        <Button name={t('fit')} onClick={fitAll} />
        <Button name={t('zoomOut')} sign="−" onClick={() => zoom(0.8)} />
        <Button name={t('zoomIn')} sign="+" onClick={() => zoom(1.25)} />
        <span class="quiet">
          {t('diagramSize', { tables: overview.tables.length, relations: overview.links.length })}
        </span>
        <span class="spring" />
        <span class="quiet diagram-help">{t('diagramHelp')}</span>
      </div>
      <Region box={box} class="diagram-box" label={t('diagram')} onKeyDown={onKeyDown}>
        <svg
          class="diagram-drawing"
          width={drawing.width}
          height={drawing.height}
          style={{ transform: `translate(${frame.x}px, ${frame.y}px) scale(${frame.scale})` }}
          role="presentation"
        >
          {overview.links.map((link, index) => (
            <Link key={index} link={link} boxes={drawing.boxes} picked={selection} />
          ))}
          {[...drawing.boxes.values()].map((one) => (
            <DiagramTable
              key={one.table.id}
              box={one}
              uri={tableUri(uri, one.table, overview.schema)}
              onPick={setPicked}
              isBeside={isBeside(overview.links, selection, one.table.id)}
            />
          ))}
        </svg>
      </Region>
    </div>
  )
}

function isBeside(links: readonly SchemaLink[], selection: string | undefined, id: string): boolean {
  if (selection === undefined) return false
  return (
    selection === id ||
    links.some(({ from, to }) => (from === selection && to === id) || (to === selection && from === id))
  )
}

interface TableProps {
  readonly box: TableBox
  readonly uri: string
  readonly isBeside: boolean
  readonly onPick: (id: string | undefined) => void
}

function DiagramTable({ box, uri, isBeside: beside, onPick }: TableProps) {
  const { table, x, y, width, height, lines } = box
  const rest = table.columns - lines.length
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.button !== 0) return
    event.preventDefault()
    navigate({ uri, source: undefined })
  }
  return (
    <a
      href={linkTo({ uri, source: undefined })}
      class={`diagram-table ${beside ? 'beside' : ''}`}
      onClick={open}
      onPointerEnter={() => onPick(table.id)}
      onPointerLeave={() => onPick(undefined)}
      onFocus={() => onPick(table.id)}
      onBlur={() => onPick(undefined)}
    >
      <title>{escapeInvisible([table.name, table.comment].filter((one) => one !== undefined).join(': '))}</title>
      <rect x={x} y={y} width={width} height={height} rx="5" />
      <path class="diagram-rule" d={`M${x} ${y + 28}h${width}`} />
      <text class="diagram-title" x={x + 10} y={y + 19}>
        {truncateLabel(table.name, 24)}
      </text>
      {lines.map(({ name, isKey }, index) => (
        <text key={name} class={isKey ? 'diagram-key' : ''} x={x + 10} y={y + 44 + index * 18}>
          {isKey ? 'PK ' : 'FK '}
          {truncateLabel(name, 21)}
        </text>
      ))}
      {rest <= 0 ? null : (
        <text class="diagram-rest" x={x + 10} y={y + 44 + lines.length * 18}>
          {t(lines.length === 0 ? 'columnsCount' : 'moreColumns', { count: rest })}
        </text>
      )}
    </a>
  )
}

function truncateLabel(text: string, length: number): string {
  const characters = [...escapeInvisible(text)]
  return characters.length <= length ? characters.join('') : `${characters.slice(0, length - 1).join('')}…`
}

interface LinkProps {
  readonly link: SchemaLink
  readonly boxes: ReadonlyMap<string, TableBox>
  readonly picked: string | undefined
}

function Link({ link, boxes, picked }: LinkProps) {
  const [from, to] = [boxes.get(link.from), boxes.get(link.to)]
  if (from === undefined || to === undefined) return null
  const isPicked = picked === link.from || picked === link.to
  const line = Math.max(
    0,
    from.lines.findIndex(({ name }) => name === link.columns[0]),
  )
  const start = { x: from.x + from.width, y: from.y + 40 + line * 18 }
  const end = { x: to.x, y: to.y + 14 }
  return <path class={`diagram-link ${isPicked ? 'picked' : ''}`} d={curve(start, end, from, to)} marker-end="" />
}

type Point = { readonly x: number; readonly y: number }

/** Returns the path of an arrow between the facing sides of two tables; between tables in the same column, between their right sides. */
function curve(start: Point, end: Point, from: TableBox, to: TableBox): string {
  const arrow = (x: number, y: number, way: 1 | -1) => `M${x - 7 * way} ${y - 4}L${x} ${y}L${x - 7 * way} ${y + 4}`
  if (end.x > start.x) {
    const bend = Math.max(30, (end.x - start.x) / 2)
    return `M${start.x} ${start.y}C${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}${arrow(end.x, end.y, 1)}`
  }
  if (from.x === to.x) {
    const out = from.x + from.width + 34
    const right = to.x + to.width
    return `M${start.x} ${start.y}C${out} ${start.y} ${out} ${end.y} ${right} ${end.y}${arrow(right, end.y, -1)}`
  }
  const right = to.x + to.width
  return `M${from.x} ${start.y}C${from.x - 40} ${start.y} ${right + 40} ${end.y} ${right} ${end.y}${arrow(right, end.y, -1)}`
}

/** Moves the diagram by dragging and by the wheel. With Ctrl or Cmd, the wheel zooms at the pointer. */
function useDragging(
  box: { readonly current: HTMLElement | null },
  move: (x: number, y: number) => void,
  zoom: (by: number, at: Point) => void,
): void {
  const actions = useRef({ move, zoom })
  actions.current = { move, zoom }
  useEffect(() => {
    const element = box.current
    if (element === null) return
    let last: Point | undefined
    const down = (event: PointerEvent) => {
      if (event.button !== 0 || (event.target as Element).closest('a') !== null) return
      last = { x: event.clientX, y: event.clientY }
      element.setPointerCapture(event.pointerId)
    }
    const drag = (event: PointerEvent) => {
      if (last === undefined) return
      actions.current.move(event.clientX - last.x, event.clientY - last.y)
      last = { x: event.clientX, y: event.clientY }
    }
    const up = () => {
      last = undefined
    }
    const wheel = (event: WheelEvent) => {
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      if (event.ctrlKey || event.metaKey)
        actions.current.zoom(Math.exp(-event.deltaY / 300), { x: event.clientX - left, y: event.clientY - top })
      else actions.current.move(-event.deltaX, -event.deltaY)
    }
    const controller = new AbortController()
    const { signal } = controller
    element.addEventListener('pointerdown', down, { signal })
    element.addEventListener('pointermove', drag, { signal })
    element.addEventListener('pointerup', up, { signal })
    element.addEventListener('pointercancel', up, { signal })
    element.addEventListener('wheel', wheel, { signal, passive: false })
    return () => controller.abort()
  }, [box])
}
