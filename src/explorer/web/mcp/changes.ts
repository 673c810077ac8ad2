import { invalid } from '../../../core/errors.ts'
import type { Subscription, ViewChange } from '../../../core/view.ts'
import { type Listening, listen, type Wanted } from './listen.ts'
import type { Endpoint } from './request.ts'

/** A change. `missed`: the stream was interrupted, so everything may have changed. */
export interface PageChange extends ViewChange {
  readonly missed?: true
}

/**
 * State of the stream: `off`, nobody listens; `opening`; `live`; `lost`, the stream has broken off or was refused, and is
 * retried; `paused`, by the page.
 */
export type ChangesState = 'off' | 'opening' | 'live' | 'lost' | 'paused'

/**
 * Everything that the page listens to, over one stream: a browser opens six connections to a server in all its tabs together, and
 * each stream takes one.
 */
export interface Changes {
  open(listener: (change: PageChange) => void): Subscription
  /** Ends the stream while nobody looks. */
  pause(): void
  /** Opens the stream again. All listeners are told of a missed change. */
  resume(): void
  /** Retries a lost stream at once, as when the network has come back. */
  retry(): void
  close(): void
}

interface ChangesOptions {
  onState?(state: ChangesState): void
  /** Delays before the retries of a lost stream, in milliseconds. The last delay repeats. */
  readonly waits?: readonly number[]
  /** Time within which additions share one new stream, in milliseconds. */
  readonly joining?: number
}

/** Maximum number of URIs that our server accepts in one subscription. */
const maxUris = 1000

interface Listener {
  readonly tell: (change: PageChange) => void
  readonly uris: Set<string>
  list: boolean
  prompts: boolean
}

/** The listeners, each with the changes that it asked for. */
interface Listeners {
  open(tell: (change: PageChange) => void): Subscription
  /** Returns the union of the changes that all listeners asked for. */
  wanted(): Wanted
  /** Tells a change to the listeners that asked for it. */
  readonly heard: Parameters<typeof listen>[2]
  /** Tells each that everything that it listens to may have changed. */
  tellMissed(): void
  clear(): void
}

/**
 * @param asked Called when the wanted URIs have changed. Resolves once the stream is open for them.
 * @param told Returns what the server has accepted to tell.
 */
function createListeners(asked: () => Promise<void>, told: () => Listening['told'] | undefined): Listeners {
  const listeners = new Set<Listener>()
  const wanted = (): Wanted => ({
    uris: new Set([...listeners].flatMap(({ uris }) => [...uris])),
    list: [...listeners].some(({ list }) => list),
    prompts: [...listeners].some(({ prompts }) => prompts),
  })
  const tellAll = (changeFor: (listener: Listener) => PageChange | undefined) => {
    for (const listener of [...listeners]) {
      const change = changeFor(listener)
      // One listener that fails does not keep the others from hearing.
      if (change !== undefined) queueMicrotask(() => listeners.has(listener) && listener.tell(change))
    }
  }
  const heard = {
    onUpdated: (uri: string) => tellAll(({ uris }) => (uris.has(uri) ? { uris: [uri], listed: false } : undefined)),
    onListed: () => tellAll(({ list }) => (list ? { uris: [], listed: true } : undefined)),
    onPrompts: () => tellAll(({ prompts }) => (prompts ? { uris: [], listed: false, prompts } : undefined)),
  }
  return {
    wanted,
    heard,
    tellMissed: () =>
      tellAll(({ uris, list, prompts }) => ({
        uris: [...uris],
        listed: list,
        ...(prompts ? { prompts } : {}),
        missed: true,
      })),
    clear: () => listeners.clear(),
    open: (tell) => {
      const own: Listener = { tell, uris: new Set(), list: false, prompts: false }
      listeners.add(own)
      return {
        get uris() {
          return [...own.uris].filter((uri) => told()?.uris.has(uri))
        },
        add: async (added) => {
          const fresh = added.filter((uri) => !own.uris.has(uri))
          if (new Set([...wanted().uris, ...fresh]).size > maxUris)
            throw invalid(`There may be no more than ${maxUris} URIs.`, 'too-many-subscriptions', { limit: maxUris })
          for (const uri of fresh) own.uris.add(uri)
          if (fresh.length > 0) await asked()
          return added.filter((uri) => told()?.uris.has(uri))
        },
        addList: async () => {
          own.list = true
          await asked()
          return told()?.list ?? false
        },
        addPrompts: async () => {
          own.prompts = true
          await asked()
          return told()?.prompts ?? false
        },
        remove: (uri) => {
          if (own.uris.delete(uri)) void asked()
        },
        close: () => {
          if (listeners.delete(own)) void asked()
        },
      }
    },
  }
}

/** Returns a function that runs the work. Calls during a run cause one further run after it, until `isOver`. */
function oneAtATime(work: () => Promise<void>, isOver: () => boolean): () => Promise<void> {
  let isRunning = false
  let isAskedAgain = false
  return async () => {
    if (isRunning) {
      isAskedAgain = true
      return
    }
    isRunning = true
    try {
      do {
        isAskedAgain = false
        await work()
      } while (isAskedAgain && !isOver())
    } finally {
      isRunning = false
    }
  }
}

export function createChanges(endpoint: Endpoint, options: ChangesOptions = {}): Changes {
  const { onState = () => {}, waits = [500, 1000, 2000, 4000], joining = 50 } = options
  /** Callers that wait until the latest additions are subscribed. */
  let waiting: (() => void)[] = []
  let current: Listening | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  /** Whether a retry is waiting. New listeners do not shorten the delay. */
  let isBackingOff = false
  let isPaused = false
  let isClosed = false
  /** Whether something may have changed that nobody was told of. */
  let isGap = false
  let state: ChangesState = 'off'

  const setState = (next: ChangesState) => {
    if (next === state) return
    state = next
    onState(next)
  }
  const plan = (wait: number) => {
    clearTimeout(timer)
    if (isClosed) return
    timer = setTimeout(() => {
      isBackingOff = false
      void settle()
    }, wait)
  }
  const backOff = () => {
    isBackingOff = true
    failures++
    plan(waits[Math.min(failures, waits.length) - 1] ?? 4000)
    if (current !== undefined) return
    isGap = true
    setState('lost')
  }
  const release = (those: readonly (() => void)[]) => {
    for (const resolve of those) resolve()
  }
  const drop = () => {
    const last = current
    current = undefined
    last?.close()
  }

  const reopen = async () => {
    if (isPaused || isClosed) return drop()
    const those = waiting
    waiting = []
    const want = listeners.wanted()
    if (want.uris.size === 0 && !want.list && !want.prompts) {
      drop()
      setState('off')
      return release(those)
    }
    if (current !== undefined && suffices(current, want)) return release(those)
    if (state !== 'lost' && current === undefined) setState('opening')
    try {
      const next = await listen(endpoint, want, listeners.heard)
      // The old stream ran until the new one was open, so no change is missed.
      drop()
      if (isPaused || isClosed) return next.close()
      current = next
      failures = 0
      void next.ended.then(() => void (current === next && lose()))
      setState('live')
      if (isGap) listeners.tellMissed()
      isGap = false
    } catch {
      if (!isPaused) backOff()
    } finally {
      release(those)
    }
  }
  const lose = () => {
    current = undefined
    if (!isPaused && !isClosed) backOff()
  }

  /** Opens a stream for the wanted URIs. Additions meanwhile are handled right after. */
  const settle = oneAtATime(reopen, () => isClosed)

  const asked = (): Promise<void> => {
    const settled = new Promise<void>((resolve) => waiting.push(resolve))
    if (!isBackingOff && !isPaused) plan(joining)
    return settled
  }
  const listeners = createListeners(asked, () => current?.told)

  return {
    open: listeners.open,
    pause: () => {
      isPaused = true
      isGap = isGap || current !== undefined
      clearTimeout(timer)
      drop()
      setState('paused')
    },
    resume: () => {
      if (!isPaused) return
      isPaused = false
      setState('opening')
      plan(0)
    },
    retry: () => {
      if (isBackingOff) plan(0)
    },
    close: () => {
      isClosed = true
      clearTimeout(timer)
      drop()
      listeners.clear()
      release(waiting)
    },
  }
}

/** Whether a stream tells enough. One that tells of a little too much costs less than another one. */
function suffices({ asked }: Listening, { uris, list, prompts }: Wanted): boolean {
  if ((list && !asked.list) || (prompts && !asked.prompts)) return false
  if (asked.uris.size > 2 * uris.size + 50) return false
  return [...uris].every((uri) => asked.uris.has(uri))
}
