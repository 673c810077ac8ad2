import './palette.css'
import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { connected } from '../state/session.ts'
import { shown, tailOf } from '../state/shown.ts'
import { loadTemplates, templates } from '../state/templates.ts'
import { readableUri } from '../tree/columns.ts'
import { Help } from './help.tsx'
import { open, startKeys } from './keys.ts'
import { actions, loadNames, resourceOption, templateOptions, typedOptions } from './options.ts'
import { ranked } from './rank.ts'
import { t } from './words.ts'

/** What opens above the page: the command palette, and the help. */
export function Palette() {
  useEffect(startKeys, [])
  if (open.value === 'palette') return <CommandPalette />
  return open.value === 'help' ? <Help /> : null
}

function CommandPalette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const query = useSignal('')
  const active = useSignal(0)
  const names = useSignal<readonly Resource[]>([])
  const isLoading = useSignal(true)

  useEffect(() => {
    dialog.current?.showModal()
    const controller = new AbortController()
    if (templates.value.state !== 'loaded') void loadTemplates()
    loadNames(
      connected().view,
      (found) => {
        names.value = found
      },
      controller.signal,
    )
      .catch(() => {})
      .finally(() => {
        isLoading.value = false
      })
    return () => controller.abort()
  }, [])

  // Not with each arrow: there may be many names.
  const fitting = useComputed(() => {
    const text = query.value
    return text.trim() === ''
      ? actions()
      : [
          ...ranked([...actions(), ...templateOptions(), ...names.value.map(resourceOption)], text, 12),
          ...typedOptions(text),
        ]
  })
  const text = query.value
  const options = fitting.value
  const at = Math.min(active.value, options.length - 1)
  const close = () => {
    open.value = undefined
  }
  const run = (index: number) => {
    const option = options[index]
    if (option === undefined) return
    close()
    option.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }
    const step = steps[event.key]
    if (step !== undefined) {
      event.preventDefault()
      const next = Math.abs(step) === 1 ? (at + step + options.length) % options.length : at + step
      active.value = Math.max(0, Math.min(options.length - 1, next))
      document.getElementById(`palette-${active.value}`)?.scrollIntoView({ block: 'nearest' })
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(at)
    }
  }
  return (
    <dialog ref={dialog} class="palette" aria-label={t('palette')} onClose={close} onKeyDown={onKeyDown}>
      <input
        type="text"
        role="combobox"
        aria-label={t('field')}
        aria-expanded="true"
        aria-controls="palette-list"
        aria-autocomplete="list"
        aria-activedescendant={options.length > 0 ? `palette-${at}` : undefined}
        placeholder={t('field')}
        autoComplete="off"
        spellcheck={false}
        autoFocus
        value={text}
        onInput={({ currentTarget }) => {
          query.value = currentTarget.value
          active.value = 0
        }}
      />
      <div role="listbox" id="palette-list" class="palette-list" aria-label={t('palette')}>
        {options.map(({ id, label, detail, kind }, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys.
          <div
            key={id}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            class="palette-option"
            onClick={() => run(index)}
          >
            <span class="palette-label">
              <bdi>{shown(label)}</bdi>
            </span>
            {detail === undefined ? null : (
              <span class="palette-detail">
                <bdi>{tailOf(kind === 'resource' ? readableUri(detail) : detail, 56)}</bdi>
              </span>
            )}
            <span class="palette-kind">{t(kind)}</span>
          </div>
        ))}
      </div>
      <p class="palette-note" role="status">
        {options.length === 0 ? t('none') : isLoading.value && text !== '' ? t('loading') : ''}
      </p>
    </dialog>
  )
}
