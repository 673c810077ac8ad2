import './palette.css'
import { type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { querySearches } from '../find/finder.ts'
import { groupHits } from '../find/hit.tsx'
import { documentResource } from '../find/hit-link.tsx'
import { readableUri } from '../listing/columns.ts'
import { Button, ServerText } from '../shell/fields.tsx'
import { commandKey, hasSingleKeys, shownDialog, takeTypedAhead } from '../shell/keys.ts'
import { followPrompts } from '../state/live.ts'
import { loadNames, loadTemplates, offeredSearches, prompts, resourceNames, templates } from '../state/offered.ts'
import { requireConnection } from '../state/session.ts'
import { truncateStart } from '../words/texts.ts'
import {
  isUri,
  type PaletteOption,
  paletteActions,
  promptOptions,
  rankOptions,
  resourceOption,
  templateOptions,
  typedOptions,
} from './options.ts'
import { t } from './words.ts'

/** The open dialog: the command palette or the help. */
export function Palette() {
  if (shownDialog.value === 'palette') return <CommandPalette />
  return shownDialog.value === 'help' ? <Help /> : null
}

function CommandPalette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const query = useSignal('')
  const active = useSignal(0)
  const unlistedResources = useSignal<readonly Resource[]>([])
  const isAsking = useSignal(false)

  useEffect(() => {
    dialog.current?.showModal()
    query.value = takeTypedAhead()
    if (templates.value.state !== 'loaded') void loadTemplates()
    if (prompts.value.state !== 'loaded') void followPrompts()
    loadNames(requireConnection().view).catch(() => {})
  }, [])
  useAsking(query, unlistedResources, isAsking)

  const fitting = useComputed(() => {
    const text = query.value
    if (text.trim() === '') return paletteActions()
    const options = [...paletteActions(), ...templateOptions(), ...promptOptions()]
    const ranking = rankOptions([...options, ...resourceNames.value.resources.map(resourceOption)], text, 12)
    const others = [...ranking, ...unlisted(unlistedResources.value, ranking)]
    return isUri(text) ? [...typedOptions(text), ...others] : [...others, ...typedOptions(text)]
  })
  const text = query.value
  const options = fitting.value
  const at = Math.min(active.value, options.length - 1)
  const close = () => {
    shownDialog.value = undefined
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
        {options.map(({ id, label, aside, detail, kind }, index) => (
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
            <ServerText class="palette-label one-line" text={label} />
            <ServerText class="palette-aside one-line" text={aside} />
            {detail === undefined ? null : (
              <ServerText
                class="palette-detail one-line"
                text={truncateStart(kind === 'resource' ? readableUri(detail) : detail, 56)}
              />
            )}
            <span class="palette-kind">{t(kind)}</span>
          </div>
        ))}
      </div>
      <p class="palette-note" role="status">
        {noteOf(options.length, text, isAsking.value)}
      </p>
    </dialog>
  )
}

/** Delay after the last key before the server is queried (debounce), in milliseconds. */
const pauseMs = 150
/** Maximum number of documents that are offered from one answer. */
const maxAsked = 8

/** Queries the server's search, which also knows contents, and names that the page has not loaded. */
function useAsking(
  query: Signal<string>,
  unlistedResources: Signal<readonly Resource[]>,
  isAsking: Signal<boolean>,
): void {
  const text = query.value.trim()
  useEffect(() => {
    unlistedResources.value = []
    isAsking.value = text !== '' && offeredSearches.value.length > 0
    if (!isAsking.value) return
    const controller = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const { hits } = await querySearches(
          requireConnection().view,
          offeredSearches.value,
          { query: text },
          undefined,
          controller.signal,
        )
        const documents = groupHits(hits).flatMap(({ hits: [best] }) =>
          best === undefined ? [] : [documentResource(best)],
        )
        if (!controller.signal.aborted) unlistedResources.value = documents.slice(0, maxAsked)
      } catch {
        // Without an answer, the loaded names are still offered.
      }
      if (!controller.signal.aborted) isAsking.value = false
    }, pauseMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, templates.value.state])
}

/** Returns the hits of the server without the options that are listed by their names. */
function unlisted(unlistedResources: readonly Resource[], options: readonly PaletteOption[]): readonly PaletteOption[] {
  const ids = new Set(options.map(({ id }) => id))
  return unlistedResources.map(resourceOption).filter(({ id }) => !ids.has(id))
}

function noteOf(count: number, text: string, isAsking: boolean): string {
  const { state, isPart, resources } = resourceNames.value
  if (text.trim() === '') return ''
  if (isAsking) return t('asking')
  if (state === 'loading') return t('loading')
  if (isPart) return t(offeredSearches.value.length > 0 ? 'partAsked' : 'part', { count: resources.length })
  if (prompts.value.isPart) return t('promptsPart', { count: prompts.value.items.length })
  return count === 0 ? t('none') : ''
}

type HelpRow = readonly [keys: readonly string[], what: string]

function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    // The focusable button is at the end, so scroll back to the top.
    heading.current?.focus()
    dialog.current?.scrollTo(0, 0)
  }, [])
  const close = () => {
    shownDialog.value = undefined
  }
  const everywhere: readonly HelpRow[] = [
    [[`${commandKey} K`], t('keyPalette')],
    [['/'], t('keySearch')],
    [['?'], t('keyHelp')],
    [['Esc'], t('keyEscape')],
  ]
  const inTree: readonly HelpRow[] = [
    [['↑', '↓'], t('keyMove')],
    [['→'], t('keyOpen')],
    [['←'], t('keyClose')],
    [['Home', 'End'], t('keyEnds')],
    [['*'], t('keySiblings')],
    [[t('letters')], t('keyType')],
    [['Space'], t('keySpace')],
    [['Shift ↑', 'Shift ↓'], t('keyRange')],
    [['Enter'], t('keyEnter')],
  ]
  const inPreview: readonly HelpRow[] = [
    [[`${commandKey} F`], t('keyFind')],
    [['[', ']'], t('keyNeighbours')],
    [['+', '-', '0'], t('keyZoom')],
  ]
  const elsewhere: readonly HelpRow[] = [[['↑', '↓'], t('keyHits')]]
  return (
    <dialog ref={dialog} class="palette help" aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title" ref={heading} tabIndex={-1}>
        {t('helpTitle')}
      </h2>
      <Keys title={t('everywhere')} rows={everywhere} />
      <Keys title={t('inTree')} rows={inTree} />
      <Keys title={t('inPreview')} rows={inPreview} />
      <Keys title={t('search')} rows={elsewhere} />
      <label class="help-single">
        <input
          type="checkbox"
          checked={hasSingleKeys.value}
          onChange={({ currentTarget }) => {
            hasSingleKeys.value = currentTarget.checked
          }}
        />
        <span>{t('single')}</span>
      </label>
      <p class="palette-note">{t('singleHint')}</p>
      <Button name={t('close')} class="button-main" onClick={close} />
    </dialog>
  )
}

function Keys({ title, rows }: { readonly title: string; readonly rows: readonly HelpRow[] }) {
  return (
    <>
      <h3>{title}</h3>
      <dl class="help-keys">
        {rows.map(([keys, what]) => (
          <div key={keys.join()}>
            <dt>
              {keys.map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}
