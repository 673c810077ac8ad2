import { createListeners, type Told } from '../../../client/listeners.ts'
import type { Subscription, ViewChange } from '../../../core/view.ts'
import { type Listening, listen } from './listen.ts'
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

const none: Told = { uris: new Set(), list: false, prompts: false, tools: false }

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

/** The timer of the next attempt. */
interface Timer {
  /** Whether a retry is waiting. New listeners do not shorten the delay. */
  readonly isBackingOff: boolean
  plan(wait: number): void
  /** Plans a retry, later after each failure. */
  backOff(): void
  /** Forgets the failures. */
  reset(): void
  cancel(): void
}

function createTimer(run: () => void, waits: readonly number[]): Timer {
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isBackingOff = false
  const plan = (wait: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      isBackingOff = false
      run()
    }, wait)
  }
  return {
    get isBackingOff() {
      return isBackingOff
    },
    plan,
    backOff: () => {
      isBackingOff = true
      failures++
      plan(waits[Math.min(failures, waits.length) - 1] ?? 4000)
    },
    reset: () => {
      failures = 0
    },
    cancel: () => clearTimeout(timer),
  }
}

/** Throws an error where the page reports it, so that it stops nothing else. */
function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}

export function createChanges(endpoint: Endpoint, options: ChangesOptions = {}): Changes {
  const { onState = () => {}, waits = [500, 1000, 2000, 4000], joining = 50 } = options
  /** Callers that wait until the latest additions are subscribed, to learn what the server agreed to. */
  let waiting: ((told: Told) => void)[] = []
  let current: Listening | undefined
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
  const timer = createTimer(() => void settle(), waits)
  const backOff = () => {
    if (!isClosed) timer.backOff()
    if (current !== undefined) return
    isGap = true
    setState('lost')
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
    // A stream that is lost is opened again: until then, everything counts as agreed.
    let told = want
    const release = () => {
      for (const resolve of those) resolve(told)
    }
    if (want.uris.size === 0 && !want.list && !want.prompts) {
      drop()
      setState('off')
      return release()
    }
    if (current !== undefined && suffices(current, want)) {
      told = current.told
      return release()
    }
    if (state !== 'lost' && current === undefined) setState('opening')
    try {
      const next = await listen(endpoint, want, listeners)
      // The old stream ran until the new one was open, so no change is missed.
      drop()
      if (isPaused || isClosed) return next.close()
      current = next
      told = next.told
      timer.reset()
      void next.ended.then(() => void (current === next && lose()))
      setState('live')
      if (isGap) listeners.tell({ uris: [...want.uris], listed: true, prompts: true, missed: true })
      isGap = false
    } catch {
      if (!isPaused) backOff()
    } finally {
      release()
    }
  }
  const lose = () => {
    current = undefined
    if (!isPaused && !isClosed) backOff()
  }

  /** Opens a stream for the wanted URIs. Additions meanwhile are handled right after. */
  const settle = oneAtATime(reopen, () => isClosed)

  const ask = (): Promise<Told> => {
    const settled = new Promise<Told>((resolve) => waiting.push(resolve))
    if (!timer.isBackingOff && !isPaused && !isClosed) timer.plan(joining)
    return settled
  }
  const listeners = createListeners({
    ask,
    agreed: () => current?.told ?? none,
    shrink: () => void ask(),
    maxUris,
    onFault: throwLater,
  })

  return {
    open: listeners.open,
    pause: () => {
      isPaused = true
      isGap = isGap || current !== undefined
      timer.cancel()
      drop()
      setState('paused')
    },
    resume: () => {
      if (!isPaused) return
      isPaused = false
      setState('opening')
      timer.plan(0)
    },
    retry: () => {
      if (timer.isBackingOff) timer.plan(0)
    },
    close: () => {
      isClosed = true
      timer.cancel()
      drop()
      listeners.clear()
      for (const resolve of waiting) resolve(none)
    },
  }
}

/** Whether a stream tells enough. One that tells of a little too much costs less than another one. */
function suffices({ asked }: Listening, { uris, list, prompts }: Told): boolean {
  if ((list && !asked.list) || (prompts && !asked.prompts)) return false
  if (asked.uris.size > 2 * uris.size + 50) return false
  return [...uris].every((uri) => asked.uris.has(uri))
}
