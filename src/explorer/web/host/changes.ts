import type { Changes, PageChange } from '../mcp/changes.ts'
import { listChanges } from './bridge.ts'

/** Changes that the host passes on: entries that come and go. Of changed contents it tells nothing. */
export function createHostChanges(): Changes {
  const listeners = new Set<(change: PageChange) => void>()
  listChanges.addEventListener('change', () => {
    for (const listener of [...listeners]) listener({ uris: [], listed: true })
  })
  return {
    open: (listener) => {
      listeners.add(listener)
      return {
        uris: [],
        add: async () => [],
        addList: async () => true,
        remove: () => {},
        close: () => void listeners.delete(listener),
      }
    },
    pause: () => {},
    resume: () => {},
    retry: () => {},
    close: () => listeners.clear(),
  }
}
