import type { Change } from '../../core/provider.ts'

/** Changes on their way to who watches, each path once. */
export interface ChangeQueue {
  push(change: Change): void
  /** Yields pushed changes until the signal aborts. */
  changes(): AsyncGenerator<Change>
}

/** Maximum number of waiting changes kept one by one. Above it, the queue counts as "everything changed". */
const maxWaiting = 5000

export function createChangeQueue(signal: AbortSignal): ChangeQueue {
  let waiting = new Map<string, Change>()
  let everything = false
  let wake = (): void => {}
  signal.addEventListener('abort', () => wake(), { once: true })
  return {
    push: (change) => {
      if (change.path === undefined || waiting.size >= maxWaiting) {
        everything = true
        waiting.clear()
      } else if (change.of !== undefined) waiting.set(`\0${change.of} ${change.path}`, change)
      else if (!everything) {
        const listed = change.listed === true || waiting.get(change.path)?.listed === true
        waiting.set(change.path, listed ? { path: change.path, listed } : change)
      }
      wake()
    },
    changes: async function* () {
      while (!signal.aborted) {
        const batch = everything ? [{}] : [...waiting.values()]
        waiting = new Map()
        everything = false
        yield* batch
        if (batch.length > 0 || signal.aborted) continue
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}
