import { signal, useSignalEffect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import './shell/shell.css'
import { lastSegment } from '../../client/wire.ts'
import { BasketPane } from './basket/pane.tsx'
import { startBasket } from './basket/store.ts'
import { FindPane } from './find/pane.tsx'
import { Palette } from './palette/palette.tsx'
import { Preview } from './preview/preview.tsx'
import { Gate, WishDialog } from './shell/gates.tsx'
import { Header } from './shell/header.tsx'
import { Shape } from './shell/icons.tsx'
import { Guarded } from './shell/pane.tsx'
import { Split } from './shell/split.tsx'
import { t } from './shell/words.ts'
import { announce, announced } from './state/announce.ts'
import { treeState } from './state/browse.ts'
import { widths } from './state/choices.ts'
import { type Change, go, place } from './state/place.ts'
import { connection, liveness } from './state/session.ts'
import { shown } from './state/shown.ts'
import { BrowsePane } from './tree/pane.tsx'

const narrowQuery = matchMedia('(max-width: 699.9px)')
/** Whether there is room for one pane only. */
const isNarrow = signal(narrowQuery.matches)
narrowQuery.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches
})

/** The whole page: what there is on the left, one resource of it in the middle, the basket on the right. */
export function App() {
  useSignalEffect(() => {
    document.title = titleOf()
  })
  useSignalEffect(() => {
    if (liveness.value === 'lost') announce(t('lost'))
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

/** In a narrow window, the pane that the place is about. */
function frontOf(): 'left' | 'middle' | 'right' {
  const { uri, basket } = place.value
  if (basket === '1') return 'right'
  return uri === undefined ? 'left' : 'middle'
}

function Panes() {
  useEffect(startBasket, [])
  const { view = 'tree', uri, basket } = place.value
  const front = isNarrow.value ? frontOf() : undefined
  const isAway = (pane: 'left' | 'middle' | 'right') => front !== undefined && front !== pane
  const { left, right } = widths.value
  return (
    <div class="page">
      <button type="button" class="skip" onClick={() => document.getElementById('middle')?.focus()}>
        {t('skip')}
      </button>
      <Header />
      <div class="panes">
        <section
          class={`left left-${view}`}
          id="left"
          aria-label={t('browse')}
          hidden={isAway('left')}
          style={left === undefined || front !== undefined ? {} : { width: `${left}px` }}
        >
          <Guarded key={view}>{view === 'tree' || view === 'list' ? <BrowsePane /> : <FindPane />}</Guarded>
        </section>
        {front === undefined ? <Split side="left" label={t('resizeLeft')} controls="left" /> : null}
        <main class="middle" id="middle" tabIndex={-1} aria-label={t('resource')} hidden={isAway('middle')}>
          {front === 'middle' ? <BackBar change={{ uri: undefined }} /> : null}
          <Middle uri={uri} />
        </main>
        {basket === '1' ? (
          <>
            {front === undefined ? <Split side="right" label={t('resizeRight')} controls="right" /> : null}
            <aside
              class="right"
              id="right"
              aria-label={t('basket')}
              style={right === undefined || front !== undefined ? {} : { width: `${right}px` }}
            >
              {front === 'right' ? <BackBar change={{ basket: undefined }} /> : null}
              <Guarded>{<BasketPane />}</Guarded>
            </aside>
          </>
        ) : null}
      </div>
      <Palette />
      <WishDialog />
    </div>
  )
}

function Middle({ uri }: { readonly uri: string | undefined }) {
  if (uri === undefined) return <Nothing />
  // What a mount is, only the list of them says: it is on its way.
  if (treeState.value.state === 'loading') return null
  return (
    <Guarded key={uri}>
      <Preview uri={uri} />
    </Guarded>
  )
}

function BackBar({ change }: { readonly change: Change }) {
  return (
    <p class="back">
      <button type="button" class="button" onClick={() => go(change)}>
        <Shape name="back" />
        {t('back')}
      </button>
    </p>
  )
}

function Nothing() {
  return (
    <div class="nothing">
      <p>{t('nothingPicked')}</p>
      <p class="quiet">{t('nothingPickedDo')}</p>
    </div>
  )
}

function titleOf(): string {
  const { server } = connection.value ?? {}
  const { uri, view = 'tree', q } = place.value
  const where =
    uri !== undefined ? lastSegment(uri) : view === 'search' && q !== undefined ? q : view === 'tree' ? '' : t(view)
  return [where, server?.title ?? server?.name ?? 'hikidashi']
    .filter((part) => part !== '')
    .map(shown)
    .join(' · ')
}
