import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Change, Principal } from './provider.ts'
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
  /** Tells of a path, or of anything below it, by `uri`. */
  add(listener: Listener, path: string, uri: string): void
  remove(listener: Listener, path: string, uri: string): void
  /** Tells when entries come or go. */
  addList(listener: Listener): void
  removeList(listener: Listener): void
  close(): Promise<void>
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
  const lists = new Set<Listener>()
  let running: Run | undefined
  /** How many wait for the watch to begin. */
  let arming = 0
  let stopping: NodeJS.Timeout | undefined
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
    const told = new Map<Listener, Set<string>>()
    const tell = (at: string, of: string | undefined): void => {
      for (const [listener, { uris, path, within }] of paths.get(at) ?? []) {
        // Of what is below a directory only those hear who may see it; of everything, who still may see the URI itself.
        if (!(of === undefined && within) && !mount.access(listener.principal, of ?? path)) continue
        const known = told.get(listener)
        if (known === undefined) told.set(listener, new Set(uris))
        else for (const uri of uris) known.add(uri)
      }
    }
    if (batch.everything) for (const path of paths.keys()) tell(path, undefined)
    else for (const path of batch.changed) for (const at of selfAndAbove(path)) tell(at, path)
    const seen = new Map<Principal, boolean>()
    const hears = ({ principal }: Listener): boolean => {
      let sees = batch.everything || seen.get(principal)
      if (sees === undefined) {
        sees = false
        for (const path of batch.listed) if (mount.access(principal, path)) sees = true
        seen.set(principal, sees)
      }
      return sees
    }
    const hear = new Set(batch.everything || batch.listed.size > 0 ? [...lists].filter(hears) : [])
    for (const listener of new Set([...told.keys(), ...hear])) {
      try {
        listener.notify({ uris: [...(told.get(listener) ?? [])], listed: hear.has(listener) })
      } catch (error) {
        log('error', 'a change could not be told', { error })
      }
    }
  }

  const run = async (signal: AbortSignal, settle: (armed: boolean) => void): Promise<void> => {
    let wait = firstRetry
    let armed = false
    while (!signal.aborted) {
      try {
        const changes = await provider.watch?.(signal)
        // What happened while nobody watched is not known.
        if (armed) collect({})
        armed = true
        settle(true)
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
      collect({})
      await sleep(wait, signal)
      wait = Math.min(wait * 2, lastRetry)
    }
  }

  const start = (): NonNullable<typeof running> => {
    const controller = new AbortController()
    let settle = (_armed: boolean): void => {}
    const armed = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    const begun = { controller, armed, ended: Promise.resolve() }
    begun.ended = run(controller.signal, settle).finally(() => {
      settle(false)
      if (running === begun) running = undefined
    })
    return begun
  }

  const stop = async (): Promise<void> => {
    const ending = running
    running = undefined
    ending?.controller.abort()
    await ending?.ended
  }

  const stopWhenIdle = (): void => {
    if (paths.size > 0 || lists.size > 0 || running === undefined) return
    clearTimeout(stopping)
    stopping = setTimeout(() => {
      if (paths.size === 0 && lists.size === 0) void stop()
    }, linger)
    stopping.unref()
  }

  return {
    arm: async (signal) => {
      if (closed) return false
      clearTimeout(stopping)
      running ??= start()
      const { armed } = running
      const patience = new AbortController()
      const late = sleep(armTime, AbortSignal.any([signal, patience.signal])).then(() => false)
      const answer = await Promise.race([armed, late])
      patience.abort()
      stopWhenIdle()
      return answer
    },
    add: (listener, path, uri) => {
      const at = keyOf(path)
      const listeners = paths.get(at) ?? new Map<Listener, Set<string>>()
      paths.set(at, listeners)
      const uris = listeners.get(listener) ?? new Set<string>()
      listeners.set(listener, uris.add(uri))
    },
    remove: (listener, path, uri) => {
      const at = keyOf(path)
      const uris = paths.get(at)?.get(listener)
      uris?.delete(uri)
      if (uris?.size === 0) paths.get(at)?.delete(listener)
      if (paths.get(at)?.size === 0) paths.delete(at)
      stopWhenIdle()
    },
    addList: (listener) => void lists.add(listener),
    removeList: (listener) => {
      lists.delete(listener)
      stopWhenIdle()
    },
    close: async () => {
      closed = true
      clearTimeout(stopping)
      clearTimeout(timer)
      await stop()
    },
  }
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
