import type { ChangeBatch } from './change-collector.ts'
import type { Log } from './log.ts'
import type { Mounted } from './mount.ts'
import type { Change, Principal } from './provider.ts'
import { formatUri } from './uri.ts'
import type { ViewChange } from './view.ts'

/** One who listens to a mount, with the paths that it listens to. */
export interface Listener {
  readonly principal: Principal
  readonly notify: (change: ViewChange) => void
}

/** How one listens to a path: by which URIs; `within`: it is a directory of which only what is in it may be seen. */
interface Spellings {
  readonly path: string
  readonly uris: Set<string>
  readonly within: boolean
}

/** What one listener is told: by which URIs, and which paths in directories it is about. */
interface Told {
  readonly uris: Set<string>
  readonly below: Set<string>
}

/** So many paths in directories are told with one batch. */
const maxBelow = 100

/** Who listens to a mount: to paths, to what comes and goes, or to everything. */
export interface ChangeListeners {
  add(listener: Listener, path: string, uri: string): void
  remove(listener: Listener, path: string, uri: string): void
  /** @param sees Whether the principal sees anything of the mount now. */
  addList(listener: Listener, sees: () => Promise<boolean>): void
  removeList(listener: Listener): void
  addWhole(hear: (changes: readonly Change[]) => void): void
  removeWhole(hear: (changes: readonly Change[]) => void): void
  /** Whether anybody listens to a path or to what is below it; a directory is written without its `/`. */
  hasPath(path: string): boolean
  hasWhole(): boolean
  isEmpty(): boolean
  /** Tells each listener of the changes that it may see. */
  deliver(batch: ChangeBatch): void
}

export function createChangeListeners(mount: Mounted, log: Log): ChangeListeners {
  const paths = new Map<string, Map<Listener, Spellings>>()
  const lists = new Map<Listener, () => Promise<boolean>>()
  const wholes = new Set<(changes: readonly Change[]) => void>()

  const tellWhole = (batch: ChangeBatch): void => {
    const changes = batch.everything
      ? [{}]
      : Array.from(batch.changed, (path) => ({ path, listed: batch.listed.has(path) }))
    for (const hear of wholes) hear(changes)
  }

  const notify = (listener: Listener, told: Told | undefined, listed: boolean): void => {
    try {
      const [uris, below] = [[...(told?.uris ?? [])], [...(told?.below ?? [])]]
      // Some of many would be taken for all of them.
      const named = below.length > maxBelow ? [] : below.map((path) => formatUri(mount.address, path))
      listener.notify({ uris, listed, ...(named.length === 0 ? {} : { below: named }) })
    } catch (error) {
      log('error', 'a change could not be told', { error })
    }
  }

  const deliver = (batch: ChangeBatch): void => {
    tellWhole(batch)
    const told = new Map<Listener, Told>()
    /** Whether a principal may see everything that something is, beside its path. */
    const seesAliases = (principal: Principal, path: string) =>
      [...(batch.aliases.get(path) ?? [])].every((other) => mount.access(principal, other))
    const tell = (at: string, of: string | undefined): void => {
      for (const [listener, { uris, path, within }] of paths.get(at) ?? []) {
        // Of what is below a directory only those hear who may see it; of everything, who still may see the URI itself.
        const isWide = of === undefined || of.endsWith('/')
        if (of?.endsWith('/') && mount.reach(listener.principal, of) === 'none') continue
        if (!(isWide && within) && !mount.access(listener.principal, of ?? path)) continue
        if (of !== undefined && !seesAliases(listener.principal, of)) continue
        const known = told.get(listener) ?? { uris: new Set(), below: new Set() }
        told.set(listener, known)
        for (const uri of uris) known.uris.add(uri)
        if (of !== undefined && keyOf(of) !== at && known.below.size <= maxBelow) known.below.add(of)
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
    for (const listener of new Set([...told.keys(), ...hear])) notify(listener, told.get(listener), hear.has(listener))
    if (!batch.everything) return
    // Who sees nothing of it may not hear of it either: it is looked what there is.
    for (const [listener, seesNow] of lists)
      if (!hear.has(listener))
        void seesNow().then((now) => void (now && lists.has(listener) && notify(listener, undefined, true)))
  }

  return {
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
      if (paths.get(at)?.size === 0) paths.delete(at)
    },
    addList: (listener, sees) => void lists.set(listener, sees),
    removeList: (listener) => void lists.delete(listener),
    addWhole: (hear) => void wholes.add(hear),
    removeWhole: (hear) => void wholes.delete(hear),
    hasPath: (path) => paths.has(path),
    hasWhole: () => wholes.size > 0,
    isEmpty: () => paths.size === 0 && lists.size === 0 && wholes.size === 0,
    deliver,
  }
}

/** One key for a directory with its `/` and without: hosts leave it out. */
export function keyOf(path: string): string {
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
