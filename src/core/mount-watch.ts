import { createChangeCollector, createChangeListeners, keyOf, type Listener } from './change-listeners.ts'
import { followFor, sleep, untilAborted, withResolvers } from './kit/abort.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Change, Degradation, Provider } from './provider.ts'

/**
 * The watch of a mount: one watch of the provider while anyone listens, shared by all listeners.
 *
 * Changes are joined (debounce): they are delivered after 50 ms without another one, and at the latest 250 ms after the first.
 * Access is checked at delivery. A watch that ends is restarted, and then everything counts as changed, since the changes in
 * between are unknown.
 */
export interface MountWatch {
  /** Whether changes of the mount's prompts are reported separately from changes of its entries. */
  readonly hasSeparatePrompts: boolean
  /** Starts the watch unless it runs, so that every later change is noticed. Resolves to false when the source cannot be watched now. */
  arm(signal: AbortSignal): Promise<boolean>
  /** Adds a path to the watch of a source that has to know the paths. Resolves to false when the source cannot watch it. */
  follow(path: string): Promise<boolean>
  /** Adds a listener for a path and everything below it. Its notifications name `uri`. */
  add(listener: Listener, path: string, uri: string): void
  remove(listener: Listener, path: string, uri: string): void
  /**
   * Adds a listener for added and removed entries, whether or not the watch is armed. While the source cannot be watched, the watch
   * is retried; when it begins, everything counts as changed.
   *
   * @param sees Whether the principal sees anything of the mount now. Default true. Called when everything counts as changed and
   * the rules do not decide.
   */
  addList(listener: Listener, sees?: () => Promise<boolean>): void
  removeList(listener: Listener): void
  /** Adds a listener for every change, regardless of access, for the indexer; otherwise like `addList`. Returns a function that removes it. */
  addWhole(hear: (changes: readonly Change[]) => void): () => void
  /** Returns why notifications of changes are currently degraded; undefined when they are not. */
  degraded(): Degradation | undefined
  close(): Promise<void>
}

/** A running watch of the provider, which is restarted when it is lost. */
interface WatchRun {
  /** Resolves to whether the watch has begun. */
  readonly armed: Promise<boolean>
  began: boolean
  ended: Promise<void>
  /** Ends the watch. Resolves when it has ended. */
  end(): Promise<void>
}

/** Time for which a watch continues without listeners, in milliseconds: clients often come back. */
const lingerMs = 2000
/** Time-out for a source to begin its watch, in milliseconds. */
const armTimeoutMs = 10_000
/** Exponential backoff before a lost watch is restarted: first and maximum pause, in milliseconds. */
const firstRetryMs = 500
const maxRetryMs = 30_000

/** Events of the watches that {@link keepWatching} begins one after the other. */
interface WatchEvents {
  collect(change: Change): void
  /** Called when a watch has begun: the first one, or (`isAgain`) one that replaces a lost watch. */
  begun(isAgain: boolean): void
  /** Called when a watch that had begun is lost. Another one begins after a pause. */
  lost(): void
}

/** Watches a source until the signal aborts. Ends earlier if the first watch cannot begin: the next caller tries again. */
async function keepWatching(mount: Mounted, events: WatchEvents, log: Log, signal: AbortSignal): Promise<void> {
  let pauseMs = firstRetryMs
  let hasBegun = false
  while (!signal.aborted) {
    try {
      const changes = await (hasBegun
        ? restart(mount.provider, signal, () => events.collect({}))
        : mount.provider.watch?.(signal))
      events.begun(hasBegun)
      hasBegun = true
      for await (const change of changes ?? []) {
        pauseMs = firstRetryMs
        events.collect(change)
      }
    } catch (error) {
      if (signal.aborted) return
      log('warn', 'a mount cannot be watched now', { mount: mount.address.text, error })
    }
    if (signal.aborted || !hasBegun) return
    events.lost()
    await sleep(pauseMs, signal)
    pauseMs = Math.min(pauseMs * 2, maxRetryMs)
  }
}

/** Restarts a lost watch. Calls `overdue` every {@link armTimeoutMs} until the source has answered. */
async function restart(provider: Provider, signal: AbortSignal, overdue: () => void) {
  const timer = setInterval(() => (signal.aborted ? clearInterval(timer) : overdue()), armTimeoutMs)
  timer.unref()
  try {
    return await provider.watch?.(signal)
  } finally {
    clearInterval(timer)
  }
}

function startRun(mount: Mounted, log: Log, events: WatchEvents): WatchRun {
  const controller = new AbortController()
  const { promise: armed, resolve: settle } = withResolvers<boolean>()
  const end = () => {
    controller.abort()
    return run.ended
  }
  const run: WatchRun = { armed, began: false, ended: Promise.resolve(), end }
  const begun = (isAgain: boolean) => {
    run.began = true
    events.begun(isAgain)
    settle(true)
  }
  run.ended = keepWatching(mount, { ...events, begun }, log, controller.signal).finally(() => settle(false))
  return run
}

/** Creates a retry: `later` schedules an attempt after a pause, which doubles each time until `reset`. */
function createRetry(attempt: () => void) {
  let timer: NodeJS.Timeout | undefined
  let pauseMs = firstRetryMs
  return {
    later: () => {
      clearTimeout(timer)
      timer = setTimeout(attempt, pauseMs)
      timer.unref()
      pauseMs = Math.min(pauseMs * 2, maxRetryMs)
    },
    reset: () => {
      pauseMs = firstRetryMs
    },
    cancel: () => clearTimeout(timer),
  }
}

/** Creates an idle time-out: calls `end` after {@link lingerMs}, unless the time-out is cancelled before. */
function createLinger(end: () => void) {
  let timer: NodeJS.Timeout | undefined
  return {
    begin: () => {
      clearTimeout(timer)
      timer = setTimeout(end, lingerMs)
      timer.unref()
    },
    end: () => clearTimeout(timer),
  }
}

export function createMountWatch(mount: Mounted, log: Log): MountWatch | undefined {
  const { provider } = mount
  if (provider.watch === undefined) return undefined
  const listeners = createChangeListeners(mount, log)
  const { collect, close: dropChanges } = createChangeCollector(listeners.deliver)
  let running: WatchRun | undefined
  /** Number of callers that wait for the watch to begin. */
  let arming = 0
  /** Whether there are listeners, but the watch does not run. */
  let lost = false
  let closed = false

  const start = (): WatchRun => {
    const begun = startRun(mount, log, {
      collect,
      begun: (isAgain) => {
        // The changes that happened while there was no watch are unknown, so everything counts as changed.
        if (isAgain || lost) collect({})
        if (lost) log('info', 'a mount is watched again', { mount: mount.address.text })
        lost = false
        retry.reset()
        followWhole()
      },
      lost: () => {
        if (!lost) log('warn', 'the watch of a mount was lost, and is started again', { mount: mount.address.text })
        lost = true
        collect({})
      },
    })
    begun.ended = begun.ended.finally(() => {
      if (running === begun) running = undefined
      if (lost) beginLater()
    })
    return begun
  }

  const retry = createRetry(() => {
    if (isIdle()) lost = false
    else running ??= start()
  })
  /** Schedules another attempt to watch a source that has listeners. */
  const beginLater = (): void => {
    if (!closed && running === undefined) retry.later()
  }

  /** Retries the watch of a source that cannot be watched yet. */
  const keepAsking = (): void => {
    if (closed || running?.began) return
    lost = true
    beginLater()
  }

  /** Asks the source to watch every path, as far as it can, for the indexer. */
  const followWhole = (): void => {
    if (!listeners.hasWhole() || running?.began !== true) return
    provider.follow?.('').catch((error: unknown) => log('debug', 'a mount cannot be followed as a whole', { error }))
  }

  const stop = async (): Promise<void> => {
    const ending = running
    running = undefined
    lost = false
    await ending?.end()
  }

  const isIdle = () => listeners.isEmpty() && arming === 0
  const linger = createLinger(() => void (isIdle() && stop()))
  const stopWhenIdle = (): void => {
    if (isIdle() && running !== undefined) linger.begin()
  }

  return {
    hasSeparatePrompts: provider.prompts?.separate === true,
    arm: async (signal) => {
      if (closed || signal.aborted) return false
      linger.end()
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
      linger.end()
      retry.cancel()
      dropChanges()
      await stop()
    },
  }
}

/** Returns the result of a promise; false after a time-out, or when the signal aborts. */
function settledWithin(ms: number, promise: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const own = followFor(signal, ms)
  return untilAborted(promise, own.signal)
    .catch(() => false)
    .finally(own.release)
}
