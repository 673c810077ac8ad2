import { useEffect, useRef } from 'preact/hooks'
import { commandKey, hasSingleKeys, open } from './keys.ts'
import { t } from './words.ts'

type Row = readonly [keys: readonly string[], what: string]

/** Every key, in the reader's language. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    // The first thing to press is at the end: the reader begins at the top.
    heading.current?.focus()
    dialog.current?.scrollTo(0, 0)
  }, [])
  const close = () => {
    open.value = undefined
  }
  const everywhere: readonly Row[] = [
    [[`${commandKey} K`], t('keyPalette')],
    [['/'], t('keySearch')],
    [['?'], t('keyHelp')],
    [['Esc'], t('keyEscape')],
  ]
  const inTree: readonly Row[] = [
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
  const inPreview: readonly Row[] = [
    [[`${commandKey} F`], t('keyFind')],
    [['[', ']'], t('keyNeighbours')],
    [['+', '-', '0'], t('keyZoom')],
  ]
  const elsewhere: readonly Row[] = [[['↑', '↓'], t('keyHits')]]
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
      <button type="button" class="button button-main" onClick={close}>
        {t('close')}
      </button>
    </dialog>
  )
}

function Keys({ title, rows }: { readonly title: string; readonly rows: readonly Row[] }) {
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
