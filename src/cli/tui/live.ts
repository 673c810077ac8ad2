import type { View } from '../../core/view.ts'

/** Subscribes to changes of the resources on the screen. */
export interface Live {
  /** Replaces the watched URIs. */
  watch(uris: readonly string[]): void
  close(): void
}

/** Delay before a subscription, in milliseconds, so that scrolling does not subscribe to every line. */
const patience = 250

export function createLive(view: View, changed: (uris: readonly string[]) => void): Live {
  const subscription = view.subscribe?.(({ uris }) => changed(uris))
  if (subscription === undefined) return { watch: () => {}, close: () => {} }
  let wanted: readonly string[] = []
  let heard = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let work = Promise.resolve()

  const sync = async (): Promise<void> => {
    const next = new Set(wanted)
    for (const uri of heard) if (!next.has(uri)) subscription.remove(uri)
    const added = [...next].filter((uri) => !heard.has(uri))
    heard = next
    // If there are too many, or the server has no subscriptions, only the marks of changes are missing.
    if (added.length > 0) await subscription.add(added).catch(() => [])
  }

  return {
    watch: (uris) => {
      if (uris.length === wanted.length && uris.every((uri, index) => wanted[index] === uri)) return
      wanted = uris
      clearTimeout(timer)
      timer = setTimeout(() => {
        work = work.then(sync)
      }, patience)
    },
    close: () => {
      clearTimeout(timer)
      subscription.close()
    },
  }
}
