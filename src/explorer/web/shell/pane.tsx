import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import { reasonOf } from '../state/reason.ts'
import { t } from './words.ts'

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
