import { effect, signal, untracked } from '@preact/signals'
import { browse } from './browse.ts'
import { liveness } from './session.ts'
import { loadTemplates, templates } from './templates.ts'

/** How often the connection came back: whoever shows a failure tries again when this grows. */
export const healed = signal(0)

/** Has every pane that failed try again once the server is back. */
export function followHealing(): void {
  let wasLost = false
  effect(() => {
    const state = liveness.value
    if (state === 'lost') wasLost = true
    if (state !== 'live' || !wasLost) return
    wasLost = false
    untracked(() => {
      healed.value++
      if (templates.value.state === 'failed') void loadTemplates()
      browse.value?.forest.retry()
      if (browse.value?.listed.state === 'failed') browse.value.listed.load()
    })
  })
}
