import { useEffect, useRef } from 'preact/hooks'
import { Shape } from '../shell/icons.tsx'
import { go, place } from '../state/place.ts'
import { t } from './words.ts'

/** The filter: what is typed in it narrows the rows with every key. */
export function FilterBar() {
  const field = useRef<HTMLInputElement>(null)
  const { filter = '', view = 'tree' } = place.value
  useEffect(() => {
    // Text in composition by an input method is not replaced.
    if (field.current !== null && document.activeElement !== field.current) field.current.value = filter
  }, [filter])
  const clear = () => {
    if (field.current !== null) field.current.value = ''
    go({ filter: undefined }, { replace: true })
  }
  return (
    <div class="filter">
      <Shape name="filter" />
      <input
        ref={field}
        id="filter"
        class="field"
        type="text"
        defaultValue={filter}
        autocomplete="off"
        spellcheck={false}
        aria-label={t('filter')}
        aria-controls={view === 'list' ? 'list' : 'tree'}
        placeholder={t('filterHint')}
        onInput={({ currentTarget }) => go({ filter: currentTarget.value || undefined }, { replace: true })}
        onKeyDown={(event) => {
          // Keys that belong to the input of Japanese, Chinese or Korean are not for us.
          if (event.isComposing || event.keyCode === 229) return
          if (event.key === 'Escape' && filter !== '') {
            event.preventDefault()
            event.stopPropagation()
            clear()
          }
          if (event.key === 'ArrowDown' || event.key === 'Enter') {
            event.preventDefault()
            document.getElementById(view === 'list' ? 'list' : 'tree')?.focus()
          }
        }}
      />
      {filter === '' ? null : (
        <button
          type="button"
          class="filter-clear"
          aria-label={t('clearFilter')}
          title={t('clearFilter')}
          onClick={() => {
            clear()
            field.current?.focus()
          }}
        >
          <Shape name="close" />
        </button>
      )}
    </div>
  )
}
