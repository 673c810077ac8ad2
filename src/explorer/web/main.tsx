import './style/theme.css'
import './style/layout.css'
import { useSignalEffect } from '@preact/signals'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { retryWhenReconnected, startBrowse } from './listing/browse.ts'
import { connectToServer } from './mcp/connect.ts'
import type { Endpoint } from './mcp/request.ts'
import { followChanges } from './state/live.ts'
import { keepChoices, paneWidths } from './state/remembered.ts'
import { followAddress, route } from './state/route.ts'
import {
  accessRequirement,
  connection,
  exchangeToken,
  liveness,
  pauseChangesWhileHidden,
  startSession,
} from './state/session.ts'
import './shell/shell.css'
import { lastSegment } from '../../client/wire.ts'
import { pendingAdd } from './basket/picked.ts'
import { startBasket } from './basket/store.ts'
import { Header } from './frame/header.tsx'
import { shownDialog, startKeys } from './shell/keys.ts'
import {
  AccessDialog,
  BackBar,
  ConnectionScreen,
  ContinuedNotice,
  ErrorBoundary,
  frontPane,
  LiveRegion,
  lazyComponent,
  Middle,
  SecondPreview,
} from './shell/panes.tsx'
import { t } from './shell/words.ts'
import { announce } from './state/announce.ts'
import { BrowsePane } from './tree/pane.tsx'
import { escapeInvisible } from './words/texts.ts'

// The screen before there is a connection does not need these components, so each is loaded when it is first drawn.
const AddingDialog = lazyComponent(async () => (await import('./basket/parts.tsx')).AddingDialog, true)
const BasketPane = lazyComponent(async () => (await import('./basket/pane.tsx')).BasketPane)
const FindPane = lazyComponent(async () => (await import('./find/pane.tsx')).FindPane)
const Overview = lazyComponent(async () => (await import('./home/overview.tsx')).StartPage)
const Palette = lazyComponent(async () => (await import('./palette/palette.tsx')).Palette, true)
const Preview = lazyComponent(async () => (await import('./preview/preview.tsx')).Preview)

function App() {
  useSignalEffect(() => {
    document.title = pageTitle()
  })
  useSignalEffect(() => {
    if (liveness.value === 'lost') announce(t('lost'))
  })
  return (
    <>
      {connection.value === undefined ? <ConnectionScreen /> : <Panes />}
      <LiveRegion />
    </>
  )
}

/** On the left the tree, list, search or prompts; in the middle the start page or a resource; on the right the basket. */
function Panes() {
  useEffect(startBasket, [])
  useEffect(startKeys, [])
  const { view = 'tree', basket } = route.value
  const { front, isAway } = frontPane()
  const { left, right } = paneWidths.value
  return (
    <div class="page">
      <button type="button" class="skip" onClick={() => document.getElementById('middle')?.focus()}>
        {t('skip')}
      </button>
      <Header />
      <ContinuedNotice />
      <div class="panes">
        <section
          class={`left left-${view}`}
          id="left"
          aria-label={t('browse')}
          hidden={isAway('left')}
          style={left === undefined || front !== undefined ? {} : { width: `${left}px` }}
        >
          <ErrorBoundary key={view}>{view === 'tree' || view === 'list' ? <BrowsePane /> : <FindPane />}</ErrorBoundary>
        </section>
        {front === undefined ? <Split side="left" /> : null}
        <Middle nothing={<Overview />} preview={Preview} />
        <SecondPreview preview={Preview} />
        {basket === '1' ? (
          <>
            {front === undefined ? <Split side="right" /> : null}
            <aside
              class="right"
              id="right"
              aria-label={t('basket')}
              style={right === undefined || front !== undefined ? {} : { width: `${right}px` }}
            >
              {front === 'right' ? <BackBar change={{ basket: undefined }} /> : null}
              <ErrorBoundary>{<BasketPane />}</ErrorBoundary>
            </aside>
          </>
        ) : null}
      </div>
      {shownDialog.value === undefined ? null : <Palette />}
      {pendingAdd.value === undefined ? null : <AddingDialog />}
      <AccessDialog />
    </div>
  )
}

function pageTitle(): string {
  const { server } = connection.value ?? {}
  const { uri, view = 'tree', q } = route.value
  const where =
    uri !== undefined ? lastSegment(uri) : view === 'search' && q !== undefined ? q : view === 'tree' ? '' : t(view)
  return [where, server?.title ?? server?.name ?? 'hikidashi']
    .filter((part) => part !== '')
    .map(escapeInvisible)
    .join(' · ')
}

const least = 180
/** Minimum width that the neighbouring panes keep, in pixels. */
const rest = 280
const step = 16

const mostOf = () => Math.max(least, innerWidth - rest)
const clamp = (width: number) => Math.round(Math.min(Math.max(width, least), mostOf()))

/** The line that resizes the pane `side`, by mouse, finger or keyboard. A double click or Enter resets the width. */
function Split({ side }: { readonly side: 'left' | 'right' }) {
  const from = useRef<{ readonly x: number; readonly width: number } | undefined>(undefined)
  const release = () => {
    from.current = undefined
  }
  const measured = () => document.getElementById(side)?.getBoundingClientRect().width ?? least
  const now = paneWidths.value[side]
  const set = (width: number) => {
    paneWidths.value = { ...paneWidths.value, [side]: clamp(width) }
  }
  const reset = () => {
    const { [side]: _, ...others } = paneWidths.value
    paneWidths.value = others
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
      aria-label={t(side === 'left' ? 'resizeLeft' : 'resizeRight')}
      aria-orientation="vertical"
      aria-controls={side}
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
      onPointerUp={release}
      onPointerCancel={release}
    />
  )
}

const page = document.getElementById('page')
if (page === null) throw new Error('The page has no element with the id "page".')

const admitted = exchangeToken(new URL('session', document.baseURI).href)
keepChoices()
followAddress()
pauseChangesWhileHidden()
followChanges()
startBrowse()
retryWhenReconnected()
render(<App />, page)
await admitted

// The server writes the name of the MCP endpoint into the page. The endpoint is in the folder of the page: `/` and `/mcp`.
const mcp = document.querySelector<HTMLMetaElement>('meta[name=mcp]')?.content ?? 'mcp'
const isPrivate = document.querySelector<HTMLMetaElement>('meta[name=private]')?.content === 'yes'
const endpoint = createKeeper(new URL(mcp, document.baseURI).href, isPrivate)
await startSession((options) => connectToServer(endpoint, options))

/** Asks the user for the access token, and holds it in memory only. */
function createKeeper(url: string, isPrivate: boolean): Endpoint {
  let token: string | undefined
  let renewing: Promise<void> | undefined
  return {
    url,
    isPrivate,
    token: () => token,
    renew: (challenge, error) => {
      renewing ??= new Promise<void>((resolve) => {
        accessRequirement.value = {
          what: challenge === 'Session' ? 'address' : 'token',
          isRefused: token !== undefined || error === 'reused',
          give: (newToken) => {
            token = newToken
            accessRequirement.value = undefined
            renewing = undefined
            resolve()
          },
        }
      })
      return renewing
    },
  }
}
