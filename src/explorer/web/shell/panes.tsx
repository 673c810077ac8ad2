import { type ReadonlySignal, signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useRef, useState } from 'preact/hooks'
import { isResourceError } from '../../../core/errors.ts'
import { treeState } from '../listing/browse.ts'
import { announcement, errorSentence } from '../state/announce.ts'
import { navigate, previewedHit, type RouteChange, route } from '../state/route.ts'
import {
  type AccessRequirement,
  accessRequirement,
  connectionFailure,
  dismissContinued,
  isContinued,
  retryNow,
} from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import { Button } from './fields.tsx'
import { Icon } from './icons.tsx'
import { t } from './words.ts'

export function mediaMatches(text: string): ReadonlySignal<boolean> {
  const query = matchMedia(text)
  const isMatching = signal(query.matches)
  query.addEventListener('change', ({ matches }) => {
    isMatching.value = matches
  })
  return isMatching
}

const isNarrow = mediaMatches('(max-width: 699.9px)')

type Pane = 'left' | 'middle' | 'right'

/**
 * The only pane that a narrow window shows, as the permalink selects it: without a view, the start page. `front` is undefined if there is
 * room for all panes.
 */
export function frontPane(): { readonly front: Pane | undefined; readonly isAway: (pane: Pane) => boolean } {
  const { view, uri, filter, basket } = route.value
  const isStart = view === undefined && filter === undefined
  const selected = basket === '1' ? 'right' : uri !== undefined || isStart ? 'middle' : 'left'
  const front = isNarrow.value ? selected : undefined
  return { front, isAway: (pane) => front !== undefined && front !== pane }
}

/** The back button of a narrow window, which shows one pane at a time. */
export function BackBar({ change }: { readonly change: RouteChange }) {
  return (
    <p class="back">
      <button type="button" class="button" onClick={() => navigate(change)}>
        <Icon name="back" />
        <span class="back-word">{t('back')}</span>
      </button>
    </p>
  )
}

/** The middle pane: the preview of the focused hit or the opened resource, or `nothing` in its place. */
export function Middle({ nothing, preview: Preview }: MiddleProps) {
  const { front, isAway } = frontPane()
  const uri = previewedHit.value ?? route.value.uri
  useKeptFocus(uri)
  // The list of mounts contains the metadata of a mount, so no preview is drawn while it is being loaded.
  const isReady = treeState.value.state !== 'loading'
  return (
    <main class="middle" id="middle" tabIndex={-1} aria-label={t('resource')} hidden={isAway('middle')}>
      {front === 'middle' && uri !== undefined ? <BackBar change={{ uri: undefined }} /> : null}
      {isReady ? (
        <ErrorBoundary key={uri ?? ''}>{uri === undefined ? nothing : <Preview uri={uri} />}</ErrorBoundary>
      ) : null}
    </main>
  )
}

/** Moves the focus to the new preview if the element that had it is gone. */
function useKeptFocus(uri: string | undefined): void {
  const before = useRef(uri)
  useEffect(() => {
    if (before.current === uri) return
    before.current = uri
    if (document.activeElement === document.body && previewedHit.value === undefined)
      document.getElementById('middle')?.focus()
  }, [uri])
}

/** A second preview beside the first, for comparing. */
export function SecondPreview({ preview: Preview }: Pick<MiddleProps, 'preview'>) {
  const { beside } = route.value
  const { front } = frontPane()
  if (beside === undefined || front !== undefined) return null
  return (
    <section class="middle beside" aria-label={t('beside')}>
      <Button
        name={t('besideClose')}
        icon="close"
        class="button-icon beside-close"
        onClick={() => navigate({ beside: undefined })}
      />
      <ErrorBoundary key={beside}>{<Preview uri={beside} />}</ErrorBoundary>
    </section>
  )
}

interface MiddleProps {
  readonly nothing: ComponentChildren
  readonly preview: Component<{ readonly uri: string }>
}

export function LiveRegion() {
  return (
    <div class="unseen" role="status" aria-live="polite">
      {announcement.value}
    </div>
  )
}

type Component<P> = (props: P) => ComponentChildren

/** Returns a component whose code is loaded when it is first drawn. Until then a note is drawn in its place, but none in place of a dialog. */
export function lazyComponent<P extends object>(load: () => Promise<Component<P>>, isDialog = false): Component<P> {
  let loaded: Component<P> | undefined
  return (props: P) => {
    const [state, setState] = useState<{ component?: Component<P>; failed?: true }>(
      loaded === undefined ? {} : { component: loaded },
    )
    const [tries, setTries] = useState(0)
    useEffect(() => {
      if (state.component !== undefined) return
      load().then(
        (component) => {
          loaded = component
          setState({ component })
        },
        () => setState({ failed: true }),
      )
    }, [tries])
    const { component: Found, failed } = state
    if (Found !== undefined) return <Found {...props} />
    if (failed !== true) return isDialog ? null : <p class="preview-note">{t('loading')}</p>
    return (
      <p class="preview-note">
        {t('paneFailed')} <Button name={t('drawAgain')} onClick={() => setTries(tries + 1)} />
      </p>
    )
  }
}

/** A part of the page whose failure does not affect the others. */
export function ErrorBoundary({ children }: { readonly children: ComponentChildren }) {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{children}</>
  return (
    <div class="pane-failed" role="alert">
      <p>
        {t('paneFailed')} {errorSentence(error)}
      </p>
      <Button name={t('drawAgain')} onClick={again} />
    </div>
  )
}

/** The screen until there is a connection. */
export function ConnectionScreen() {
  if (accessRequirement.value !== undefined)
    return <main class="gate">{<AccessCard requirement={accessRequirement.value} />}</main>
  return (
    <main class="gate">
      {connectionFailure.value === undefined ? <p class="gate-waiting">{t('connecting')}</p> : <FailureCard />}
    </main>
  )
}

function FailureCard() {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now()
    }, 500)
    return () => clearInterval(timer)
  }, [])
  if (connectionFailure.value === undefined) return null
  const { error, at } = connectionFailure.value
  const seconds = Math.max(0, Math.ceil((at - now.value) / 1000))
  return (
    <div class="card">
      <div role="alert">
        <h1>{t('cannotConnect')}</h1>
        {isResourceError(error) && error.cause !== undefined ? null : <p>{whyOf(error)}</p>}
        <p>{t('cannotConnectDo')}</p>
      </div>
      <p class="card-row">
        <Button name={t('retry')} class="button-main" onClick={retryNow} />
        <span class="quiet">{seconds > 0 ? t('retryIn', { seconds }) : t('connecting')}</span>
      </p>
    </div>
  )
}

function whyOf(error: unknown): string {
  return isResourceError(error, 'unavailable') ? escapeInvisible(error.message) : errorSentence(error)
}

/** Asks for what the server requires: a field for a token, or the advice to open the address that `hikidashi ui` prints. */
function AccessCard({ requirement: { what, isRefused, give } }: { readonly requirement: AccessRequirement }) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  if (what === 'address')
    return (
      <div class="card" role="alert">
        <h1>{t(isRefused ? 'addressReused' : 'wantsAddress')}</h1>
        <p>{t(isRefused ? 'addressReusedDo' : 'wantsAddressDo')}</p>
      </div>
    )
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault()
        const token = field.current?.value.trim().replace(/^Bearer\s+/i, '') ?? ''
        if (field.current !== null) field.current.value = ''
        // A header may contain no other characters (RFC 6750).
        if (/^[\x21-\x7e]+$/.test(token)) give(token)
      }}
    >
      <h1>{t('asksWho')}</h1>
      <p id="token-do">{t('asksWhoDo')}</p>
      {isRefused ? (
        <p class="bad" role="alert">
          {t('proofRefused')}
        </p>
      ) : null}
      <label>
        <span>{t('proof')}</span>
        <input
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-describedby="token-do"
          class="field"
        />
      </label>
      <p class="card-row">
        <Button name={t('goOn')} type="submit" class="button-main" />
      </p>
    </form>
  )
}

/** A harmless notice: the user opened the one-time address again in the browser that already has the session. */
export function ContinuedNotice() {
  if (!isContinued.value) return null
  return (
    <p class="continued" role="status">
      {t('continued')} <Button name={t('understood')} onClick={dismissContinued} />
    </p>
  )
}

/** {@link AccessCard} as a dialog above the page, because a token may expire while the page is in use. */
export function AccessDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const sortOrder = accessRequirement.value
  useEffect(() => {
    if (sortOrder !== undefined && dialog.current?.open === false) dialog.current.showModal()
  }, [sortOrder])
  if (sortOrder === undefined) return null
  return (
    <dialog ref={dialog} class="gate-dialog" onCancel={(event) => event.preventDefault()}>
      <AccessCard requirement={sortOrder} />
    </dialog>
  )
}
