import './adding.css'
import { useEffect, useRef } from 'preact/hooks'
import { reasonOf } from '../state/announce.ts'
import { shown } from '../words/texts.ts'
import { type Adding, adding, cancelAdding, confirmAdding, mostPicked, offerOf, removeBelow } from './picked.ts'
import { t } from './words.ts'

/** Shows how many resources are about to be added, before they are. */
export function AddingDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const now = adding.value
  useEffect(() => {
    if (now !== undefined && dialog.current?.open === false) dialog.current.showModal()
  }, [now])
  if (now === undefined) return null
  return (
    <dialog ref={dialog} class="adding" aria-labelledby="adding-title" onClose={cancelAdding}>
      <h2 id="adding-title">{t(now.folder === undefined ? 'addMany' : 'addFolder', { name: shown(now.name) })}</h2>
      <AddingBody now={now} />
    </dialog>
  )
}

function AddingBody({ now }: { readonly now: Adding }) {
  const { state, below, error, folder } = now
  const offer = below === undefined ? undefined : offerOf(below.files)
  const count = offer?.fresh.length ?? 0
  return (
    <>
      <div role="status">
        {state === 'counting' ? <p class="quiet">{t('countingFiles')}</p> : null}
        {state === 'failed' ? <p class="bad">{reasonOf(error)}</p> : null}
        {offer === undefined ? null : (
          <>
            <p class="adding-sum">
              {offer.unknown > 0 || offer.tokens === 0
                ? t('files', { count })
                : t('filesAbout', { count, tokens: offer.tokens })}
            </p>
            {offer.alreadyIn > 0 ? <p class="quiet">{t('alreadyIn', { count: offer.alreadyIn })}</p> : null}
            {offer.tooMany > 0 || below?.isPart === true ? (
              <p class="basket-note">{t('limited', { count, most: mostPicked })}</p>
            ) : null}
          </>
        )}
      </div>
      <p class="adding-acts">
        {offer !== undefined && offer.alreadyIn > 0 && folder !== undefined ? (
          <button
            type="button"
            class="button adding-out"
            onClick={() => {
              removeBelow(folder)
              cancelAdding()
            }}
          >
            {t('takeOut', { count: offer.alreadyIn })}
          </button>
        ) : null}
        <button type="button" class="button" onClick={cancelAdding}>
          {t('cancel')}
        </button>
        <button type="button" class="button button-main" disabled={count === 0} onClick={() => confirmAdding(now)}>
          {t('addFiles', { count })}
        </button>
      </p>
    </>
  )
}
