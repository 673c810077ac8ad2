/** Keys that may have changed; undefined means "everything". */
export type Change = readonly string[] | undefined

/** Listeners by collection. Changes are merged until a listener takes them, so a slow listener cannot make the queue grow. */
interface News {
  /** Yields changes from now on. Ends when the signal aborts. */
  listen(collection: string, signal: AbortSignal): AsyncIterable<Change>
  tell(collection: string, change: Change): void
  /** Tells all listeners that everything may have changed. */
  tellAll(): void
  /** Collections that have listeners. */
  readonly collections: readonly string[]
  /** Ends all listeners. */
  close(): void
}

/** Maximum number of single keys. Above it, the change counts as "everything". */
const most = 1000

interface Listener {
  readonly collection: string
  keys: Set<string>
  anything: boolean
  ended: boolean
  wake: () => void
}

/** @param onChange Called when the first listener begins or the last one ends. */
export function createNews(onChange: () => void): News {
  const listeners = new Set<Listener>()

  const tellOne = (listener: Listener, change: Change) => {
    if (change === undefined) listener.anything = true
    else for (const key of change) listener.keys.add(key)
    if (listener.keys.size > most) listener.anything = true
    if (listener.anything) listener.keys.clear()
    listener.wake()
  }
  const end = (listener: Listener) => {
    listener.ended = true
    listener.wake()
    if (listeners.delete(listener)) onChange()
  }

  return {
    listen: (collection, signal) => {
      const listener: Listener = { collection, keys: new Set(), anything: false, ended: signal.aborted, wake: () => {} }
      const stop = () => end(listener)
      if (!listener.ended) {
        listeners.add(listener)
        signal.addEventListener('abort', stop, { once: true })
        onChange()
      }
      return changesOf(listener, () => {
        signal.removeEventListener('abort', stop)
        stop()
      })
    },
    tell: (collection, change) => {
      for (const listener of listeners) if (listener.collection === collection) tellOne(listener, change)
    },
    tellAll: () => {
      for (const listener of listeners) tellOne(listener, undefined)
    },
    get collections() {
      return [...new Set([...listeners].map(({ collection }) => collection))]
    },
    close: () => {
      for (const listener of listeners) end(listener)
    },
  }
}

async function* changesOf(listener: Listener, stop: () => void): AsyncGenerator<Change> {
  try {
    while (!listener.ended) {
      if (listener.anything || listener.keys.size > 0) {
        const change = listener.anything ? undefined : [...listener.keys]
        listener.anything = false
        listener.keys = new Set()
        yield change
      } else {
        await new Promise<void>((resolve) => {
          listener.wake = resolve
        })
      }
    }
  } finally {
    stop()
  }
}
