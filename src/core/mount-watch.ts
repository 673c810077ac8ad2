import { createChangeCollector } from './change-collector.ts'
import { createChangeListeners, keyOf, type Listener } from './change-listeners.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Change, Degradation } from './provider.ts'
import { sleep } from './sleep.ts'

/**
 * What a mount tells of its changes: one watch of the provider while anybody listens, however many do.
 *
 * Changes are joined: they go out once it was quiet for 50 ms, and at the latest 250 ms after the first. Access is checked
 * when they go out. A watch that ends is begun again, and everything then counts as changed, since nobody knows what
 * happened in between.
 */
export interface MountWatch {
  /** Makes sure that every change from now on is heard. `false`: the source cannot say. */
  arm(signal: AbortSignal): Promise<boolean>
  /** Has the source tell of a path, where it has to be told which. `false`: it does not. */
  follow(path: string): Promise<boolean>
  /** Tells of a path, or of anything below it, by `uri`. */
  add(listener: Listener, path: string, uri: string): void
  remove(listener: Listener, path: string, uri: string): void
  /**
   * Tells when entries come or go, armed or not: a source that cannot say yet is asked again until it can, and then
   * everything counts as changed.
   *
   * @param sees Whether the principal sees anything there now, which it does otherwise: asked where everything counts as
   * changed and the rules do not say.
   */
  addList(listener: Listener, sees?: () => Promise<boolean>): void
  removeList(listener: Listener): void
  /** Tells of every change, whoever may see it, as `addList` does: for what indexes the mount. Answers how to end that. */
  addWhole(hear: (changes: readonly Change[]) => void): () => void
  /** Why changes are told less well than they should be, just now. */
  degraded(): Degradation | undefined
  close(): Promise<void>
}

/** One watch of the provider, from its beginning to its end. */
interface Run {
  readonly controller: AbortController
  /** Whether it began. */
  readonly armed: Promise<boolean>
  began: boolean
  ended: Promise<void>
}

/** How long a watch outlives its last listener, in milliseconds, since clients come back. */
const lingerMs = 2000
/** How long a source may take to begin, in milliseconds. */
const armTimeoutMs = 10_000
/** The pause before a lost watch begins again, in milliseconds: it doubles up to the last one. */
const firstRetryMs = 500
const lastRetryMs = 30_000

export function createMountWatch(mount: Mounted, log: Log): MountWatch | undefined {
  const { provider } = mount
  if (provider.watch === undefined) return undefined
  const listeners = createChangeListeners(mount, log)
  const { collect, close: dropChanges } = createChangeCollector(listeners.deliver)
  let running: Run | undefined
  /** How many wait for the watch to begin. */
  let arming = 0
  let stopping: NodeJS.Timeout | undefined
  /** Whether a watch that somebody wants does not run just now. */
  let lost = false
  let beginning: NodeJS.Timeout | undefined
  let again = firstRetryMs
  let closed = false

  /** Begins to watch again. While the source takes long for it, `overdue` is called now and then. */
  const begin = async (signal: AbortSignal, overdue: () => void) => {
    const timer = setInterval(() => (signal.aborted ? clearInterval(timer) : overdue()), armTimeoutMs)
    timer.unref()
    try {
      return await provider.watch?.(signal)
    } finally {
      clearInterval(timer)
    }
  }

  const run = async (signal: AbortSignal, settle: (armed: boolean) => void): Promise<void> => {
    let wait = firstRetryMs
    let armed = false
    while (!signal.aborted) {
      try {
        const changes = await (armed ? begin(signal, () => collect({})) : provider.watch?.(signal))
        // What happened while nobody watched is not known.
        if (armed || lost) collect({})
        if (lost) log('info', 'a mount is watched again', { mount: mount.address.text })
        armed = true
        lost = false
        again = firstRetryMs
        settle(true)
        followWhole()
        for await (const change of changes ?? []) {
          wait = firstRetryMs
          collect(change)
        }
      } catch (error) {
        if (signal.aborted) return
        log('warn', 'a mount cannot be watched just now', { mount: mount.address.text, error })
      }
      // Whoever asked first is told that it does not work; the next one tries again.
      if (signal.aborted || !armed) return
      if (!lost) log('warn', 'the watch of a mount is lost: it begins anew', { mount: mount.address.text })
      lost = true
      collect({})
      await sleep(wait, signal)
      wait = Math.min(wait * 2, lastRetryMs)
    }
  }

  const start = (): Run => {
    const controller = new AbortController()
    let settle = (_armed: boolean): void => {}
    const armed = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    const begun: Run = { controller, armed, began: false, ended: Promise.resolve() }
    const answer = (works: boolean) => {
      begun.began ||= works
      settle(works)
    }
    begun.ended = run(controller.signal, answer).finally(() => {
      settle(false)
      if (running === begun) running = undefined
      if (lost) beginLater()
    })
    return begun
  }

  /** Asks a source again that could not be watched when it was asked, though somebody listens to it. */
  const beginLater = (): void => {
    if (closed || running !== undefined) return
    clearTimeout(beginning)
    beginning = setTimeout(() => {
      if (isIdle()) lost = false
      else running ??= start()
    }, again)
    beginning.unref()
    again = Math.min(again * 2, lastRetryMs)
  }

  /** A source that cannot say yet is asked again until it can. */
  const keepAsking = (): void => {
    if (closed || running?.began) return
    lost = true
    beginLater()
  }

  /** What indexes the mount wants to hear of every path, as far as the source can tell of them. */
  const followWhole = (): void => {
    if (!listeners.hasWhole() || running?.began !== true) return
    provider.follow?.('').catch((error: unknown) => log('debug', 'a mount cannot be followed as a whole', { error }))
  }

  const stop = async (): Promise<void> => {
    const ending = running
    running = undefined
    lost = false
    ending?.controller.abort()
    await ending?.ended
  }

  const isIdle = () => listeners.isEmpty() && arming === 0
  const stopWhenIdle = (): void => {
    if (!isIdle() || running === undefined) return
    clearTimeout(stopping)
    stopping = setTimeout(() => {
      if (isIdle()) void stop()
    }, lingerMs)
    stopping.unref()
  }

  return {
    arm: async (signal) => {
      if (closed || signal.aborted) return false
      clearTimeout(stopping)
      running ??= start()
      arming++
      const answer = running.began || (await settledWithin(armTimeoutMs, running.armed, signal))
      arming--
      stopWhenIdle()
      return answer
    },
    follow: async (path) => (await provider.follow?.(keyOf(path))) ?? true,
    add: listeners.add,
    remove: (listener, path, uri) => {
      const at = keyOf(path)
      const wasHeard = listeners.hasPath(at)
      listeners.remove(listener, path, uri)
      if (wasHeard && !listeners.hasPath(at)) provider.unfollow?.(at)
      stopWhenIdle()
    },
    addList: (listener, sees = async () => true) => {
      listeners.addList(listener, sees)
      keepAsking()
    },
    removeList: (listener) => {
      listeners.removeList(listener)
      stopWhenIdle()
    },
    addWhole: (hear) => {
      listeners.addWhole(hear)
      keepAsking()
      followWhole()
      return () => {
        listeners.removeWhole(hear)
        if (!listeners.hasWhole() && !listeners.hasPath('')) provider.unfollow?.('')
        stopWhenIdle()
      }
    },
    degraded: () => (lost ? 'lost' : provider.degraded?.()),
    close: async () => {
      closed = true
      clearTimeout(stopping)
      clearTimeout(beginning)
      dropChanges()
      await stop()
    },
  }
}

/** What a promise says; `false` when it has not after so many milliseconds, or once the signal aborts. */
function settledWithin(ms: number, promise: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  // Not with `AbortSignal.any`: a signal that lives long would remember each of them.
  return new Promise((resolve) => {
    const settle = (answer: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
      resolve(answer)
    }
    const giveUp = () => settle(false)
    const timer = setTimeout(giveUp, ms)
    timer.unref()
    signal.addEventListener('abort', giveUp)
    void promise.then(settle)
  })
}
