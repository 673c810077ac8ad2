import { isObject } from '../../../core/kit/object.ts'
import { Button } from '../shell/fields.tsx'
import '../style/theme.css'
import '../style/layout.css'
import { effect, untracked, useSignalEffect } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { retryWhenReconnected, startBrowse } from '../listing/browse.ts'
import { focusSearch } from '../shell/keys.ts'
import { followChanges } from '../state/live.ts'
import { followAddress, navigate, route } from '../state/route.ts'
import { connection, startSession } from '../state/session.ts'
import { language } from '../words/texts.ts'
import {
  connectThroughHost,
  hostCapabilities,
  hostContext,
  notifyHost,
  requestHost,
  stepTo,
  toolInput,
} from './connect.ts'
import { handoverForm, sendBasketOnChange } from './export.tsx'
import '../shell/shell.css'
import '../find/find.css'
import './app.css'
import { BasketPane } from '../basket/pane.tsx'
import { AddingDialog } from '../basket/parts.tsx'
import { pendingAdd } from '../basket/picked.ts'
import { startBasket } from '../basket/store.ts'
import { SearchPane } from '../find/search-pane.tsx'
import { BasketButton, SearchField } from '../frame/header.tsx'
import { Preview } from '../preview/preview.tsx'
import { ConnectionScreen, ErrorBoundary, frontPane, LiveRegion, Middle } from '../shell/panes.tsx'
import { t } from '../shell/words.ts'
import { BrowsePane } from '../tree/pane.tsx'
import { t as own } from './words.ts'

function App() {
  // The call of `browse` may name the URI to open first.
  useSignalEffect(() => {
    const { uri } = toolInput.value
    // Untracked, so that the URI is not opened again when the user navigates.
    if (typeof uri === 'string' && uri !== '') untracked(() => navigate({ uri }))
  })
  return (
    <>
      {connection.value === undefined ? <ConnectionScreen /> : <Panes />}
      <LiveRegion />
    </>
  )
}

function Panes() {
  useEffect(startBasket, [])
  const { view = 'tree', basket } = route.value
  const { isAway } = frontPane()
  return (
    <div class={`page app app-${handoverForm.value}`}>
      <header class="top">
        {view === 'tree' ? null : (
          <Button
            name={t('tree')}
            icon="back"
            class="button-quiet"
            onClick={() => navigate({ view: 'tree', q: undefined })}
          />
        )}
        <SearchField />
        <BasketButton />
        <FullscreenButton />
      </header>
      <div class="panes">
        <section class="left" id="left" aria-label={t('browse')} hidden={isAway('left')}>
          <ErrorBoundary key={view}>
            {view === 'tree' || view === 'list' ? <BrowsePane /> : <SearchPane />}
          </ErrorBoundary>
        </section>
        <Middle nothing={<p class="app-hint">{own('hint')}</p>} preview={Preview} />
        {basket === '1' ? (
          <aside class="right" id="right" aria-label={t('basket')}>
            <ErrorBoundary>
              <BasketPane />
            </ErrorBoundary>
          </aside>
        ) : null}
      </div>
      {pendingAdd.value === undefined ? null : <AddingDialog />}
    </div>
  )
}

function FullscreenButton() {
  const { availableDisplayModes, displayMode } = hostContext.value
  const mode = displayMode === 'fullscreen' ? 'inline' : 'fullscreen'
  if (!Array.isArray(availableDisplayModes) || !availableDisplayModes.includes(mode)) return null
  const label = own(mode)
  const change = async () => {
    const answer = await requestHost('ui/request-display-mode', { mode })
    if (isObject(answer) && typeof answer.mode === 'string')
      hostContext.value = { ...hostContext.value, displayMode: answer.mode }
  }
  return (
    <Button
      name={label}
      icon={mode === 'fullscreen' ? 'expand' : 'close'}
      class="button-quiet"
      onClick={() => void change().catch(() => {})}
    />
  )
}

/** Height of the page in pixels, if the host lets the page decide and allows this height. */
const ownHeight = 560

/** The colours of the host that the page uses, each with the colour of the page that it replaces. */
const colours = {
  '--color-background-primary': '--paper',
  '--color-background-secondary': '--paper-2',
  '--color-background-tertiary': '--paper-3',
  '--color-text-primary': '--ink',
  '--color-text-secondary': '--ink-2',
  '--color-border-primary': '--line',
} as const

function followLook(): void {
  effect(() => {
    const { theme, locale, styles } = hostContext.value
    const root = document.documentElement
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
    if (typeof locale === 'string') language.value = /^ja\b/i.test(locale) ? 'ja' : 'en'
    root.lang = language.value
    takeColours(root, isObject(styles) && isObject(styles.variables) ? styles.variables : {})
  })
  effect(() => {
    const { containerDimensions, displayMode } = hostContext.value
    const space = isObject(containerDimensions) ? containerDimensions : {}
    const root = document.documentElement
    const isGiven = typeof space.height === 'number' || displayMode === 'fullscreen'
    const most = typeof space.maxHeight === 'number' && space.maxHeight > 0 ? space.maxHeight : ownHeight
    const height = Math.min(ownHeight, most)
    root.style.height = isGiven ? '100vh' : `${height}px`
    if (!isGiven) notifyHost('ui/notifications/size-changed', { width: root.clientWidth, height })
  })
}

/** Takes all of the colours or none, because colours of two themes may not contrast. */
function takeColours(root: HTMLElement, oldRank: Readonly<Record<string, unknown>>): void {
  const pairs = Object.entries(colours).map(([name, own]) => [own, oldRank[name]] as const)
  const isWhole = pairs.every(([, value]) => typeof value === 'string' && CSS.supports('color', value))
  for (const [own, value] of pairs)
    if (isWhole) root.style.setProperty(own, String(value))
    else root.style.removeProperty(own)
}

const page = document.getElementById('page')
if (page === null) throw new Error('The page has no element with the id "page".')

followAddress()
startBrowse()
retryWhenReconnected()
followChanges()
followKeys()
followLinks()
render(<App />, page)
void startSession(connectThroughHost).then(() => {
  followLook()
  sendBasketOnChange()
})

function followKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, target, isComposing, ctrlKey, metaKey, altKey } = event
    if (key !== '/' || isComposing || ctrlKey || metaKey || altKey || event.defaultPrevented) return
    if (target instanceof Element && target.closest('input, textarea, select') !== null) return
    event.preventDefault()
    focusSearch()
  })
}

/** Follows links within the page, and asks the host to open web addresses. All other links do nothing. */
function followLinks(): void {
  const onClick = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const href = link?.getAttribute('href')
    if (href === null || href === undefined) return
    event.preventDefault()
    if (href.startsWith('#')) {
      if (event.type === 'click' && href.length > 1) stepTo(href)
    } else if (/^https?:/i.test(href) && isObject(hostCapabilities.value.openLinks))
      requestHost('ui/open-link', { url: href }).catch(() => {})
  }
  document.addEventListener('click', onClick)
  document.addEventListener('auxclick', onClick)
}
