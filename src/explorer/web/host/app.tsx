import { untracked, useSignalEffect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import '../shell/shell.css'
import '../find/find.css'
import './app.css'
import { adding } from '../basket/adding.ts'
import { AddingDialog } from '../basket/adding-dialog.tsx'
import { BasketPane } from '../basket/pane.tsx'
import { startBasket } from '../basket/store.ts'
import { SearchPane } from '../find/search-pane.tsx'
import { Preview } from '../preview/preview.tsx'
import { Gate } from '../shell/gates.tsx'
import { BasketButton, SearchField } from '../shell/header.tsx'
import { Shape } from '../shell/icons.tsx'
import { BackBar, Guarded, isNarrow } from '../shell/lazily.tsx'
import { t } from '../shell/words.ts'
import { announced } from '../state/announce.ts'
import { treeState } from '../state/browse.ts'
import { go, peek, place } from '../state/place.ts'
import { connection } from '../state/session.ts'
import { BrowsePane } from '../tree/pane.tsx'
import { ask, hostContext, isObject, toolInput } from './bridge.ts'
import { givenAs } from './given.ts'
import { t as own } from './words.ts'

/** The explorer inside of a host: tree and search, preview and basket. */
export function App() {
  // The call of the tool may name where to begin.
  useSignalEffect(() => {
    const { uri } = toolInput.value
    // The URI is opened once. From there the reader navigates.
    if (typeof uri === 'string' && uri !== '') untracked(() => go({ uri }))
  })
  return (
    <>
      {connection.value === undefined ? <Gate /> : <Panes />}
      <div class="unseen" role="status" aria-live="polite">
        {announced.value}
      </div>
    </>
  )
}

function Panes() {
  useEffect(startBasket, [])
  const { view = 'tree', uri: opened, basket } = place.value
  const uri = peek.value ?? opened
  const front = !isNarrow.value ? undefined : basket === '1' ? 'right' : opened === undefined ? 'left' : 'middle'
  const isAway = (pane: 'left' | 'middle' | 'right') => front !== undefined && front !== pane
  return (
    <div class={`page app app-${givenAs.value}`}>
      <header class="top">
        {view === 'tree' ? null : (
          <button
            type="button"
            class="button button-quiet"
            aria-label={t('tree')}
            title={t('tree')}
            onClick={() => go({ view: undefined, q: undefined })}
          >
            <Shape name="back" />
          </button>
        )}
        <SearchField />
        <BasketButton />
        <FullscreenButton />
      </header>
      <div class="panes">
        <section class="left" id="left" aria-label={t('browse')} hidden={isAway('left')}>
          <Guarded key={view}>{view === 'tree' || view === 'list' ? <BrowsePane /> : <SearchPane />}</Guarded>
        </section>
        <main class="middle" id="middle" tabIndex={-1} aria-label={t('resource')} hidden={isAway('middle')}>
          {front === 'middle' ? <BackBar change={{ uri: undefined }} /> : null}
          <Middle uri={uri} />
        </main>
        {basket === '1' ? (
          <aside class="right" id="right" aria-label={t('basket')}>
            <Guarded>
              <BasketPane />
            </Guarded>
          </aside>
        ) : null}
      </div>
      {adding.value === undefined ? null : <AddingDialog />}
    </div>
  )
}

function Middle({ uri }: { readonly uri: string | undefined }) {
  // The facts of a mount are in the list of mounts, which is being loaded.
  if (treeState.value.state === 'loading') return null
  if (uri === undefined) return <p class="app-hint">{own('hint')}</p>
  return (
    <Guarded key={uri}>
      <Preview uri={uri} />
    </Guarded>
  )
}

/** Asks the host for the whole window or for the place in the conversation, if it has both. */
function FullscreenButton() {
  const { availableDisplayModes, displayMode } = hostContext.value
  const mode = displayMode === 'fullscreen' ? 'inline' : 'fullscreen'
  if (!Array.isArray(availableDisplayModes) || !availableDisplayModes.includes(mode)) return null
  const label = own(mode)
  const change = async () => {
    const answer = await ask('ui/request-display-mode', { mode })
    if (isObject(answer) && typeof answer.mode === 'string')
      hostContext.value = { ...hostContext.value, displayMode: answer.mode }
  }
  return (
    <button
      type="button"
      class="button button-quiet"
      aria-label={label}
      title={label}
      onClick={() => void change().catch(() => {})}
    >
      <Shape name={mode === 'fullscreen' ? 'expand' : 'close'} />
    </button>
  )
}
