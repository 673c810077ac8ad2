import { followAbortFor, sleep, untilAborted, withResolvers } from './kit/abort.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import { canonicalPath } from './path.ts'
import type { Change, ChangedKind, Degradation, Principal, Provider } from './provider.ts'
import { formatUri } from './uri.ts'
import type { ViewChange } from './view.ts'

export interface Listener {
  readonly principal: Principal
  readonly notify: (change: ViewChange) => void
}

interface Spellings {
  readonly path: string
  readonly uris: Set<string>
  /** Whether the path is a directory of which the listener may see only the contents. */
  readonly within: boolean
}

interface PendingChanges {
  readonly uris: Set<string>
  readonly below: Set<string>
}

/** Maximum number of paths below directories in one notification. */
const maxBelow = 100

/** Creates the registry of the listeners of a mount: to paths, to its lists, or to everything. */
export function createChangeListeners(mount: Mounted, log: Log) {
  const paths = new Map<string, Map<Listener, Spellings>>()
  const lists = new Map<Listener, () => Promise<boolean>>()
  const wholes = new Set<(changes: readonly Change[]) => void>()

  const notify = (listener: Listener, changes: PendingChanges | undefined, isListed: boolean): void => {
    try {
      const [uris, below] = [[...(changes?.uris ?? [])], [...(changes?.below ?? [])]]
      // Leave out a list that is too long: a truncated list would look like a complete one.
      const entryUris = below.length > maxBelow ? [] : below.map((path) => formatUri(mount.address, path))
      listener.notify({ uris, listed: isListed, ...(entryUris.length === 0 ? {} : { below: entryUris }) })
    } catch (error) {
      log('error', 'a change could not be delivered', { error })
    }
  }

  const tellOf = (kind: ChangedKind, changes: ReadonlyMap<string, readonly string[]>): void => {
    const sees = (principal: Principal) =>
      [...changes].some(([path, others]) =>
        path === '' || path.endsWith('/')
          ? mount.reach(principal, path) !== 'none'
          : mount.access(principal, path, others),
      )
    for (const { principal, notify: tell } of lists.keys())
      if (sees(principal)) tell({ uris: [], listed: false, [kind]: true })
  }

  const deliver = (batch: ChangeBatch): void => {
    if (batch.everything || batch.changed.size > 0) {
      const changes = batchedChanges(batch)
      for (const hear of wholes) hear(changes)
    }
    for (const [kind, changes] of batch.of) tellOf(kind, changes)
    if (batch.everything && mount.provider.prompts?.separate === true) tellOf('prompts', new Map([['', []]]))
    if (batch.everything && mount.provider.tools !== undefined) tellOf('tools', new Map([['', []]]))
    const changesByListener = new Map<Listener, PendingChanges>()
    const seesAliases = (principal: Principal, path: string) =>
      [...(batch.aliases.get(path) ?? [])].every((other) => mount.access(principal, other))
    const tell = (at: string, of: string | undefined): void => {
      for (const [listener, { uris, path, within }] of paths.get(at) ?? []) {
        // A change of a whole directory concerns the listeners that may see anything below it. A change of everything
        // concerns those that may still see the URI itself.
        const isWide = of === undefined || of.endsWith('/')
        if (of?.endsWith('/') && mount.reach(listener.principal, of) === 'none') continue
        if (!(isWide && within) && !mount.access(listener.principal, of ?? path)) continue
        if (of !== undefined && !seesAliases(listener.principal, of)) continue
        const changes = changesByListener.get(listener) ?? { uris: new Set(), below: new Set() }
        changesByListener.set(listener, changes)
        for (const uri of uris) changes.uris.add(uri)
        if (of !== undefined && canonicalKey(of) !== at && changes.below.size <= maxBelow) changes.below.add(of)
      }
    }
    if (batch.everything) for (const path of paths.keys()) tell(path, undefined)
    else for (const path of batch.changed) for (const at of selfAndAbove(path)) tell(at, path)
    // A changed directory includes its contents: notify the listeners of paths below it, too, by their own path.
    const directories = new Set([...batch.changed].filter((path) => path.endsWith('/')).map(canonicalKey))
    if (directories.size > 0) for (const at of paths.keys()) if (isBelow(at, directories)) tell(at, undefined)
    const cameOrWent = [...batch.listed]
    const seeing = new Map<Principal, boolean>()
    const sees = (principal: Principal): boolean => {
      const answer =
        seeing.get(principal) ??
        cameOrWent.some(
          (path) =>
            (path.endsWith('/') ? mount.reach(principal, path) !== 'none' : mount.access(principal, path)) &&
            seesAliases(principal, path),
        )
      seeing.set(principal, answer)
      return answer
    }
    const seesAll = (principal: Principal) => mount.access(principal, '') || mount.reach(principal, '') === 'all'
    const hears = ({ principal }: Listener) => (batch.everything && seesAll(principal)) || sees(principal)
    const hear = new Set([...lists.keys()].filter(hears))
    for (const listener of new Set([...changesByListener.keys(), ...hear]))
      notify(listener, changesByListener.get(listener), hear.has(listener))
    if (!batch.everything) return
    // A listener that may see nothing of the change must not be notified: check visibility first.
    for (const [listener, seesNow] of lists)
      if (!hear.has(listener))
        void seesNow().then((now) => void (now && lists.has(listener) && notify(listener, undefined, true)))
  }

  return {
    add: (listener: Listener, path: string, uri: string) => {
      const at = canonicalKey(path)
      const listeners = paths.get(at) ?? new Map<Listener, Spellings>()
      paths.set(at, listeners)
      const spellings = listeners.get(listener)
      const within = spellings?.within === true || !mount.access(listener.principal, path)
      listeners.set(listener, { path, within, uris: (spellings?.uris ?? new Set()).add(uri) })
    },
    remove: (listener: Listener, path: string, uri: string) => {
      const at = canonicalKey(path)
      const uris = paths.get(at)?.get(listener)?.uris
      uris?.delete(uri)
      if (uris?.size === 0) paths.get(at)?.delete(listener)
      if (paths.get(at)?.size === 0) paths.delete(at)
    },
    /** Adds a listener of lists. `sees` returns whether its principal sees anything of the mount now. */
    addList: (listener: Listener, sees: () => Promise<boolean>) => void lists.set(listener, sees),
    removeList: (listener: Listener) => void lists.delete(listener),
    addWhole: (hear: (changes: readonly Change[]) => void) => void wholes.add(hear),
    removeWhole: (hear: (changes: readonly Change[]) => void) => void wholes.delete(hear),
    /** Whether anyone listens to exactly this path. A directory is written without its final `/`. */
    hasPath: (path: string): boolean => paths.has(canonicalPath(path)),
    hasWhole: (): boolean => wholes.size > 0,
    isEmpty: (): boolean => paths.size === 0 && lists.size === 0 && wholes.size === 0,
    deliver,
  }
}

function batchedChanges({ everything, changed, listed, aliases: allAliases }: ChangeBatch): readonly Change[] {
  if (everything) return [{}]
  return Array.from(changed, (path) => {
    const aliases = allAliases.get(path)
    return { path, listed: listed.has(path), ...(aliases && { aliases: [...aliases] }) }
  })
}

/** Hosts write the path of a directory with and without a final `/`. */
export function withoutFinalSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** Returns the key of a path that all canonically equivalent spellings share: a source may list another one than the listener has. */
function canonicalKey(path: string): string {
  return canonicalPath(withoutFinalSlash(path))
}

function* selfAndAbove(path: string): Generator<string> {
  let at = canonicalKey(path)
  yield at
  while (at !== '') {
    at = at.slice(0, Math.max(0, at.lastIndexOf('/')))
    yield at
  }
}

function isBelow(path: string, directories: ReadonlySet<string>): boolean {
  for (const at of selfAndAbove(path)) if (at !== path && directories.has(at)) return true
  return false
}

type ChangeBatch = ReturnType<typeof createBatch>

const createBatch = () => ({
  changed: new Set<string>(),
  /** The changed paths that were added or removed, or whose listed facts changed. */
  listed: new Set<string>(),
  /** Whether every path of the mount may have changed, beyond those in `changed`. */
  everything: false,
  /** The changed paths of prompts and of tools, each with its other paths. */
  of: new Map<ChangedKind, Map<string, readonly string[]>>(),
  /** Other paths of the same file, by the path that changed: several links may lead to one file. */
  aliases: new Map<string, ReadonlySet<string>>(),
})

/** Debounce: changes are delivered after this time without another one, in milliseconds. */
const quietMs = 20
/** Maximum delay after the first change, in milliseconds. */
const maxDelayMs = 250
/** Maximum number of changed paths that a batch holds one by one. Above it, everything counts as changed. */
const maxPaths = 10_000

export function createChangeCollector(take: (batch: ChangeBatch) => void) {
  let batch = createBatch()
  let firstAt = 0
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    timer = undefined
    const full = batch
    batch = createBatch()
    take(full)
  }

  return {
    collect: ({ path, listed: isListed, of, aliases: others = [] }: Change) => {
      const { changed, listed, of: kinds, aliases } = batch
      if (of !== undefined) kinds.set(of, (kinds.get(of) ?? new Map()).set(path ?? '', others))
      else if (path === undefined || changed.size >= maxPaths) batch.everything = true
      else {
        // A change without aliases is visible to everyone who may see the path.
        if (others.length === 0) aliases.delete(path)
        else if (!changed.has(path) || aliases.has(path))
          aliases.set(path, new Set([...(aliases.get(path) ?? []), ...others]))
        changed.add(path)
        if (isListed) listed.add(path)
      }
      const now = performance.now()
      if (timer === undefined) firstAt = now
      // The batch is already due: another change does not delay it.
      else if (now >= firstAt + maxDelayMs) return
      clearTimeout(timer)
      timer = setTimeout(flush, Math.max(0, Math.min(quietMs, firstAt + maxDelayMs - now)))
    },
    flush: () => {
      if (timer === undefined) return
      clearTimeout(timer)
      flush()
    },
    close: () => clearTimeout(timer),
  }
}

/**
 * The watch of a mount: one watch of the provider while anyone listens, shared by all listeners. Changes are delivered
 * after 20 ms without another one, and at the latest 250 ms after the first. Access is checked at delivery. A watch
 * that ends is restarted, and then everything counts as changed.
 */
export interface MountWatch {
  /** Whether changes of the mount's prompts are reported separately from changes of its entries. */
  readonly hasSeparatePrompts: boolean
  /** Starts the watch unless it runs. Resolves to false when the source cannot be watched now. */
  arm(signal: AbortSignal): Promise<boolean>
  /** Adds a path to the watch of a source that has to know the paths. Resolves to false when the source cannot watch it. */
  follow(path: string): Promise<boolean>
  /** Adds a listener for a path and everything below it. Its notifications name `uri`. */
  add(listener: Listener, path: string, uri: string): void
  remove(listener: Listener, path: string, uri: string): void
  /**
   * Adds a listener for changes of the mount's lists, whether or not the watch is armed. While the source cannot be watched, the watch
   * is retried; when it begins, everything counts as changed.
   *
   * @param sees Whether the principal sees anything of the mount now. Default true. Called when everything counts as changed and
   * the rules do not decide.
   */
  addList(listener: Listener, sees?: () => Promise<boolean>): void
  removeList(listener: Listener): void
  /**
   * Adds a listener for changes regardless of access, for the indexer; otherwise like `addList`. Returns a function
   * that removes it.
   */
  addWhole(hear: (changes: readonly Change[]) => void): () => void
  /**
   * Looks at the source now, and delivers the changes so far. The result is that of `Provider.catchUp`; `false` while
   * the watch does not run.
   */
  catchUp(signal: AbortSignal): Promise<boolean>
  /** Undefined when notifications of changes are not degraded. */
  degraded(): Degradation | undefined
  close(): Promise<void>
}

interface WatchRun {
  readonly armed: Promise<boolean>
  began: boolean
  ended: Promise<void>
  /** Resolves when the watch has ended. */
  end(): Promise<void>
}

/** Time for which a watch continues without listeners, in milliseconds: clients often come back. */
const lingerMs = 2000
/** Time-out for a source to begin its watch, in milliseconds. */
const armTimeoutMs = 10_000
/** Exponential backoff before a lost watch is restarted: first and maximum pause, in milliseconds. */
const firstRetryMs = 500
const maxRetryMs = 30_000

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
  const onBegin = (isAgain: boolean) => {
    run.began = true
    events.begun(isAgain)
    settle(true)
  }
  run.ended = keepWatching(mount, { ...events, begun: onBegin }, log, controller.signal).finally(() => settle(false))
  return run
}

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
  const { collect, flush, close: dropChanges } = createChangeCollector(listeners.deliver)
  let running: WatchRun | undefined
  let arming = 0
  /** Whether there are listeners, but the watch does not run. */
  let isLost = false
  let closed = false

  const start = (): WatchRun => {
    const run = startRun(mount, log, {
      collect,
      begun: (isAgain) => {
        // The changes that happened while there was no watch are unknown, so everything counts as changed.
        if (isAgain || isLost) collect({})
        if (isLost) log('info', 'a mount is watched again', { mount: mount.address.text })
        isLost = false
        retry.reset()
        followWhole()
      },
      lost: () => {
        if (!isLost) log('warn', 'the watch of a mount was lost, and is started again', { mount: mount.address.text })
        isLost = true
        collect({})
      },
    })
    run.ended = run.ended.finally(() => {
      if (running === run) running = undefined
      if (isLost) beginLater()
    })
    return run
  }

  const retry = createRetry(() => {
    if (isIdle()) isLost = false
    else running ??= start()
  })
  const beginLater = (): void => {
    if (!closed && running === undefined) retry.later()
  }

  const keepAsking = (): void => {
    if (closed || running?.began) return
    isLost = true
    beginLater()
  }

  /** For the indexer. A source that cannot watch everything watches what it can. */
  const followWhole = (): void => {
    if (!listeners.hasWhole() || running?.began !== true) return
    provider.follow?.('').catch((error: unknown) => log('debug', 'a mount cannot be watched as a whole', { error }))
  }

  const stop = async (): Promise<void> => {
    const ending = running
    running = undefined
    isLost = false
    await ending?.end()
  }

  const isIdle = () => listeners.isEmpty() && arming === 0
  const linger = createLinger(() => void (isIdle() && stop()))
  const stopWhenIdle = () => void (isIdle() && running !== undefined && linger.begin())

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
    follow: async (path) => (await provider.follow?.(withoutFinalSlash(path))) ?? true,
    add: listeners.add,
    remove: (listener, path, uri) => {
      const at = withoutFinalSlash(path)
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
    catchUp: async (signal) => running?.began === true && catchUpWith(provider, flush, signal),
    degraded: () => (isLost ? 'lost' : provider.degraded?.()),
    close: async () => {
      closed = true
      linger.end()
      retry.cancel()
      dropChanges()
      await stop()
    },
  }
}

/** Makes the watch of a provider look at the source now, and then delivers the changes that it has found, even if this fails. */
async function catchUpWith(provider: Provider, flush: () => void, signal: AbortSignal): Promise<boolean> {
  try {
    return (await untilAborted(Promise.resolve(provider.catchUp?.(signal)), signal)) ?? false
  } finally {
    flush()
  }
}

function settledWithin(ms: number, promise: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const own = followAbortFor(signal, ms)
  return untilAborted(promise, own.signal)
    .catch(() => false)
    .finally(own.release)
}
