import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Change, Degradation, Principal } from './provider.ts'
import { sleep } from './sleep.ts'
import type { ViewChange } from './view.ts'

/** One who listens to a mount, with the paths that it listens to. */
export interface Listener {
  readonly principal: Principal
  readonly notify: (change: ViewChange) => void
}

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

/** How one listens to a path: by which URIs; `within`: it is a directory of which only what is in it may be seen. */
interface Spellings {
  readonly path: string
  readonly uris: Set<string>
  readonly within: boolean
}

const quiet = 50
const latest = 250
/** So many changed paths are kept apart; beyond it, everything has changed. */
const maxPaths = 10_000
/** How long a watch outlives its last listener, since clients come back. */
const linger = 2000
/** How long a source may take to begin. */
const armTime = 10_000
const firstRetry = 500
const lastRetry = 30_000

export function createMountWatch(mount: Mounted, log: Log): MountWatch | undefined {
  const { provider } = mount
  if (provider.watch === undefined) return undefined
  /** Who listens to a path, and how. */
  const paths = new Map<string, Map<Listener, Spellings>>()
  const lists = new Map<Listener, () => Promise<boolean>>()
  const wholes = new Set<(changes: readonly Change[]) => void>()
  let running: Run | undefined
  /** How many wait for the watch to begin. */
  let arming = 0
  let stopping: NodeJS.Timeout | undefined
  /** Whether a watch that somebody wants does not run just now. */
  let lost = false
  let beginning: NodeJS.Timeout | undefined
  let again = firstRetry
  let closed = false

  let changed = new Set<string>()
  let listed = new Set<string>()
  let everything = false
  let first = 0
  let timer: NodeJS.Timeout | undefined

  const collect = ({ path, listed: isListed }: Change): void => {
    if (path === undefined || changed.size >= maxPaths) everything = true
    else {
      changed.add(path)
      if (isListed) listed.add(path)
    }
    const now = performance.now()
    if (timer === undefined) first = now
    // It is due already: another change does not put it off.
    else if (now >= first + latest) return
    clearTimeout(timer)
    timer = setTimeout(flush, Math.max(0, Math.min(quiet, first + latest - now)))
  }

  const flush = (): void => {
    timer = undefined
    const batch = { changed, listed, everything }
    changed = new Set()
    listed = new Set()
    everything = false
    tellWhole(batch)
    const told = new Map<Listener, Set<string>>()
    const tell = (at: string, of: string | undefined): void => {
      for (const [listener, { uris, path, within }] of paths.get(at) ?? []) {
        // Of what is below a directory only those hear who may see it; of everything, who still may see the URI itself.
        const isWide = of === undefined || of.endsWith('/')
        if (of?.endsWith('/') && mount.reach(listener.principal, of) === 'none') continue
        if (!(isWide && within) && !mount.access(listener.principal, of ?? path)) continue
        const known = told.get(listener)
        if (known === undefined) told.set(listener, new Set(uris))
        else for (const uri of uris) known.add(uri)
      }
    }
    if (batch.everything) for (const path of paths.keys()) tell(path, undefined)
    else for (const path of batch.changed) for (const at of selfAndAbove(path)) tell(at, path)
    // A directory stands for what is in it: who listens there is told by the own path.
    const directories = new Set([...batch.changed].filter((path) => path.endsWith('/')).map(keyOf))
    if (directories.size > 0) for (const at of paths.keys()) if (isBelow(at, directories)) tell(at, undefined)
    const cameOrWent = [...batch.listed]
    /** Whether a principal sees any of that: asked once, however many listen for it. */
    const seeing = new Map<Principal, boolean>()
    const sees = (principal: Principal): boolean => {
      const answer =
        seeing.get(principal) ??
        cameOrWent.some((path) =>
          path.endsWith('/') ? mount.reach(principal, path) !== 'none' : mount.access(principal, path),
        )
      seeing.set(principal, answer)
      return answer
    }
    const seesAll = (principal: Principal) => mount.access(principal, '') || mount.reach(principal, '') === 'all'
    const hears = ({ principal }: Listener) => (batch.everything && seesAll(principal)) || sees(principal)
    const hear = new Set([...lists.keys()].filter(hears))
    for (const listener of new Set([...told.keys(), ...hear])) notify(listener, told.get(listener), hear.has(listener))
    if (!batch.everything) return
    // Who sees nothing of it may not hear of it either: it is looked what there is.
    for (const [listener, seesNow] of lists)
      if (!hear.has(listener))
        void seesNow().then((now) => void (now && lists.has(listener) && notify(listener, undefined, true)))
  }

  const tellWhole = (batch: { changed: Set<string>; listed: Set<string>; everything: boolean }): void => {
    const changes = batch.everything
      ? [{}]
      : Array.from(batch.changed, (path) => ({ path, listed: batch.listed.has(path) }))
    for (const hear of wholes) hear(changes)
  }

  const notify = (listener: Listener, uris: ReadonlySet<string> = new Set(), listed: boolean): void => {
    try {
      listener.notify({ uris: [...uris], listed })
    } catch (error) {
      log('error', 'a change could not be told', { error })
    }
  }

  /** Begins to watch again. While the source takes long for it, `overdue` is called now and then. */
  const begin = async (signal: AbortSignal, overdue: () => void) => {
    const timer = setInterval(() => (signal.aborted ? clearInterval(timer) : overdue()), armTime)
    timer.unref()
    try {
      return await provider.watch?.(signal)
    } finally {
      clearInterval(timer)
    }
  }

  const run = async (signal: AbortSignal, settle: (armed: boolean) => void): Promise<void> => {
    let wait = firstRetry
    let armed = false
    while (!signal.aborted) {
      try {
        const changes = await (armed ? begin(signal, () => collect({})) : provider.watch?.(signal))
        // What happened while nobody watched is not known.
        if (armed || lost) collect({})
        if (lost) log('info', 'a mount is watched again', { mount: mount.address.text })
        armed = true
        lost = false
        again = firstRetry
        settle(true)
        followWhole()
        for await (const change of changes ?? []) {
          wait = firstRetry
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
      wait = Math.min(wait * 2, lastRetry)
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
    again = Math.min(again * 2, lastRetry)
  }

  /** A source that cannot say yet is asked again until it can. */
  const keepAsking = (): void => {
    if (closed || running?.began) return
    lost = true
    beginLater()
  }

  /** What indexes the mount wants to hear of every path, as far as the source can tell of them. */
  const followWhole = (): void => {
    if (wholes.size === 0 || running?.began !== true) return
    provider.follow?.('').catch((error: unknown) => log('debug', 'a mount cannot be followed as a whole', { error }))
  }

  const stop = async (): Promise<void> => {
    const ending = running
    running = undefined
    lost = false
    ending?.controller.abort()
    await ending?.ended
  }

  const isIdle = () => paths.size === 0 && lists.size === 0 && wholes.size === 0 && arming === 0
  const stopWhenIdle = (): void => {
    if (!isIdle() || running === undefined) return
    clearTimeout(stopping)
    stopping = setTimeout(() => {
      if (isIdle()) void stop()
    }, linger)
    stopping.unref()
  }

  return {
    arm: async (signal) => {
      if (closed || signal.aborted) return false
      clearTimeout(stopping)
      running ??= start()
      arming++
      const answer = running.began || (await settledWithin(armTime, running.armed, signal))
      arming--
      stopWhenIdle()
      return answer
    },
    follow: async (path) => (await provider.follow?.(keyOf(path))) ?? true,
    add: (listener, path, uri) => {
      const at = keyOf(path)
      const listeners = paths.get(at) ?? new Map<Listener, Spellings>()
      paths.set(at, listeners)
      const known = listeners.get(listener)
      const within = known?.within === true || !mount.access(listener.principal, path)
      listeners.set(listener, { path, within, uris: (known?.uris ?? new Set()).add(uri) })
    },
    remove: (listener, path, uri) => {
      const at = keyOf(path)
      const uris = paths.get(at)?.get(listener)?.uris
      uris?.delete(uri)
      if (uris?.size === 0) paths.get(at)?.delete(listener)
      if (paths.get(at)?.size === 0) {
        paths.delete(at)
        provider.unfollow?.(at)
      }
      stopWhenIdle()
    },
    addList: (listener, sees = async () => true) => {
      lists.set(listener, sees)
      keepAsking()
    },
    removeList: (listener) => {
      lists.delete(listener)
      stopWhenIdle()
    },
    addWhole: (hear) => {
      wholes.add(hear)
      keepAsking()
      followWhole()
      return () => {
        wholes.delete(hear)
        if (wholes.size === 0 && !paths.has('')) provider.unfollow?.('')
        stopWhenIdle()
      }
    },
    degraded: () => (lost ? 'lost' : provider.degraded?.()),
    close: async () => {
      closed = true
      clearTimeout(stopping)
      clearTimeout(beginning)
      clearTimeout(timer)
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

/** One key for a directory with its `/` and without: hosts leave it out. */
function keyOf(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** A path and every directory above it, the root included. */
function* selfAndAbove(path: string): Generator<string> {
  let at = keyOf(path)
  yield at
  while (at !== '') {
    at = at.slice(0, Math.max(0, at.lastIndexOf('/')))
    yield at
  }
}

/** Whether one of these directories, which are written without their `/`, holds a path. */
function isBelow(path: string, directories: ReadonlySet<string>): boolean {
  for (const at of selfAndAbove(path)) if (at !== path && directories.has(at)) return true
  return false
}
