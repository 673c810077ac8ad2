import { effect, signal, untracked } from '@preact/signals'
import { browse } from './browse.ts'
import { loadTemplates, templates } from './known.ts'
import { liveness } from './session.ts'

/** How often the connection came back. A pane that shows a failure retries when this number grows. */
export const healed = signal(0)

/** Makes every failed pane retry once the server is back. */
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
