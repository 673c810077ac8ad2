import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import { announced, reasonOf } from '../state/announce.ts'
import { type Change, go } from '../state/place.ts'
import { Shape } from './icons.tsx'
import { t } from './words.ts'

const narrowQuery = matchMedia('(max-width: 699.9px)')
/** Whether there is room for one pane only. */
export const isNarrow = signal(narrowQuery.matches)
narrowQuery.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches
})

/** The way back to the other panes, where there is room for one only. */
export function BackBar({ change }: { readonly change: Change }) {
  return (
    <p class="back">
      <button type="button" class="button" onClick={() => go(change)}>
        <Shape name="back" />
        <span class="back-word">{t('back')}</span>
      </button>
    </p>
  )
}

/** Speaks to screen readers. */
export function Announced() {
  return (
    <div class="unseen" role="status" aria-live="polite">
      {announced.value}
    </div>
  )
}

type Component<P> = (props: P) => ComponentChildren

/** A component that is loaded when it is first drawn. */
export function lazily<P extends object>(load: () => Promise<Component<P>>): Component<P> {
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
    if (failed !== true) return <p class="preview-note">{t('loading')}</p>
    return (
      <p class="preview-note">
        {t('paneFailed')}{' '}
        <button type="button" class="button" onClick={() => setTries(tries + 1)}>
          {t('drawAgain')}
        </button>
      </p>
    )
  }
}

/** A part of the page whose failure does not affect the others. */
export function Guarded({ children }: { readonly children: ComponentChildren }) {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{children}</>
  return (
    <div class="pane-failed" role="alert">
      <p>
        {t('paneFailed')} {reasonOf(error)}
      </p>
      <button type="button" class="button" onClick={again}>
        {t('drawAgain')}
      </button>
    </div>
  )
}
