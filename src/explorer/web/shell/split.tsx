import { useRef } from 'preact/hooks'
import { widths } from '../state/choices.ts'

interface SplitProps {
  readonly side: 'left' | 'right'
  readonly label: string
  /** The id of the pane whose width it sets. */
  readonly controls: string
}

const least = 180
/** So much stays for what is beside it. */
const rest = 280
const step = 16

const mostOf = () => Math.max(least, innerWidth - rest)
const clamp = (width: number) => Math.round(Math.min(Math.max(width, least), mostOf()))

/** The line between two panes, to be moved by mouse, finger or keyboard. A double click gives it back its own width. */
export function Split({ side, label, controls }: SplitProps) {
  const from = useRef<{ readonly x: number; readonly width: number } | undefined>(undefined)
  const measured = () => document.getElementById(controls)?.getBoundingClientRect().width ?? least
  const now = widths.value[side]
  const set = (width: number) => {
    widths.value = { ...widths.value, [side]: clamp(width) }
  }
  const reset = () => {
    const { [side]: _, ...others } = widths.value
    widths.value = others
  }
  const sign = side === 'left' ? 1 : -1

  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => set(measured() - sign * step),
      ArrowRight: () => set(measured() + sign * step),
      Home: () => set(least),
      End: () => set(mostOf()),
      Enter: reset,
    }
    const move = moves[event.key]
    if (move === undefined) return
    event.preventDefault()
    move()
  }

  return (
    <div
      class="split"
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation="vertical"
      aria-controls={controls}
      aria-valuemin={least}
      aria-valuemax={mostOf()}
      aria-valuenow={now ?? Math.round(measured())}
      onKeyDown={onKeyDown}
      onDblClick={reset}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        from.current = { x: event.clientX, width: measured() }
        event.currentTarget.setPointerCapture(event.pointerId)
      }}
      onPointerMove={(event) => {
        if (from.current !== undefined) set(from.current.width + sign * (event.clientX - from.current.x))
      }}
      onPointerUp={() => {
        from.current = undefined
      }}
      onPointerCancel={() => {
        from.current = undefined
      }}
    />
  )
}
