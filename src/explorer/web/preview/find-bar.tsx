import { type Signal, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Shape } from '../shell/icons.tsx'
import { go } from '../state/place.ts'
import { maxMatches } from './model/lines.ts'
import { t } from './words.ts'

/** Whether the find bar is open. */
export const isFinding = signal(false)
/** The searched text. It stays from one document to the next. */
export const needle = signal('')

interface FindBarProps {
  readonly count: number
  /** Index of the shown match, from 0. */
  readonly current: Signal<number>
  /** The numbers of the first and the last loaded line. */
  readonly lines: readonly [first: number, last: number]
}

/** Finds a text in the shown one, and goes to a line by its number. */
export function FindBar({ count, current, lines: [first, last] }: FindBarProps) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    field.current?.focus()
    field.current?.select()
  }, [])
  const step = (by: number) => {
    if (count > 0) current.value = (current.value + by + count) % count
  }
  return (
    <search class="preview-bar thin find-bar">
      <input
        ref={field}
        type="search"
        class="field"
        aria-label={t('findIn')}
        placeholder={t('findIn')}
        value={needle.value}
        spellcheck={false}
        autoComplete="off"
        onInput={({ currentTarget }) => {
          needle.value = currentTarget.value
          current.value = 0
        }}
        onKeyDown={(event) => {
          if (event.isComposing || event.keyCode === 229) return
          if (event.key === 'Enter') step(event.shiftKey ? -1 : 1)
          else if (event.key === 'Escape') isFinding.value = false
          else return
          event.preventDefault()
          event.stopPropagation()
        }}
      />
      <span class="find-bar-count" role="status">
        {needle.value === ''
          ? ''
          : count === 0
            ? t('findNone')
            : t(count === maxMatches ? 'findMany' : 'findCount', { at: current.value + 1, count })}
      </span>
      <button type="button" class="button" aria-label={t('findBefore')} disabled={count === 0} onClick={() => step(-1)}>
        <Shape name="up" />
      </button>
      <button type="button" class="button" aria-label={t('findNext')} disabled={count === 0} onClick={() => step(1)}>
        <Shape name="down" />
      </button>
      <label>
        {t('goToLine')}{' '}
        <input
          type="number"
          class="field find-bar-line"
          min={first}
          max={last}
          onChange={({ currentTarget }) => {
            const line = Math.round(currentTarget.valueAsNumber)
            if (line >= first && line <= last) go({ line: String(line) })
          }}
        />
      </label>
      <span class="spring" />
      <button
        type="button"
        class="button"
        aria-label={t('findClose')}
        onClick={() => {
          isFinding.value = false
        }}
      >
        <Shape name="close" />
      </button>
    </search>
  )
}
