import { isResourceError } from '../../core/errors.ts'
import { indexAfter } from '../../core/kit/sorted.ts'
import type { Log } from '../../core/log.ts'
import type { LeaveOut, Pool } from './access.ts'
import { type NameCache, sameAliases } from './names.ts'
import { kindOf, lookAtAll, type MaybeStats, modeAllows, type PermitOptions } from './stats.ts'
import { identityOf, maxDepth, mayRead, type Position, type Walk } from './walk.ts'
import { createSnapshot, type Directories, type Directory } from './watch-directories.ts'
import type { Schedule } from './watch-schedule.ts'

export type WatchedTree = ReturnType<typeof createTree>

interface TreeOptions {
  readonly directories: Directories
  readonly schedule: Schedule<Directory>
  readonly walk: Walk
  readonly names: NameCache
  readonly permit: PermitOptions
  readonly pool: Pool
  readonly leaveOut: LeaveOut
  readonly log: Log
  readonly signal: AbortSignal
}

/** Why a directory is scanned: the watch begins, an event arrived, or its turn in a round has come. */
type Cause = 'first' | 'heard' | 'round'

/** Number of files examined at once. */
const group = 256
/** Delay of a retry after a failure, in milliseconds. */
const retryDelayMs = 1000
/** Duration of a slow scan, in milliseconds. A directory that takes longer is scanned half of the time at most. */
const slowScanMs = 20

/** Finds the directories that are served, and compares them with their known state. */
export function createTree(options: TreeOptions) {
  const { directories, schedule, walk, log, signal } = options
  const troubled = new WeakSet<Directory>()

  /** Postpones a directory that cannot be scanned now. Its changes are notified later. */
  const putOff = (directory: Directory, error: unknown): void => {
    if (!isResourceError(error, 'unavailable')) throw error
    if (!troubled.has(directory))
      log('warn', 'a directory cannot be looked at now', { path: directory.path, error: error.message })
    troubled.add(directory)
    directory.heard = undefined
    schedule.later(directory, retryDelayMs)
  }

  const add = async (parent: Directory | undefined, position: Position, cause: Cause): Promise<Directory> => {
    // First add the watch, then scan, so that no change is missed.
    const directory = directories.add(parent, position)
    await scan(directory, position, directory, cause)
    return directory
  }

  /** Adds a child directory if it is to be served and not known yet. */
  const visit = async (parent: Directory, position: Position, name: string, stats: MaybeStats, cause: Cause) => {
    const known = parent.children.get(name)
    // Only a walk finds the target of a symbolic link.
    const isLink = parent.snapshot.names.links.has(name.slice(0, -1))
    if (known !== undefined && !isLink && stats?.isDirectory() && known.identity === identityOf({ stats })) return
    let child: Position | undefined
    try {
      child = await walk.enter(position, name.slice(0, -1), true, signal)
      if (known?.identity === identityOf(child.place)) return
      if (known !== undefined) directories.drop(known)
      if (child.aliases[0].path.split('/').length <= maxDepth) await add(parent, child, cause)
    } catch (error) {
      const mine = parent.children.get(name)
      if (!isResourceError(error, 'not-found')) putOff(mine ?? parent, error)
      else if (mine !== undefined) directories.drop(mine)
    } finally {
      child?.place.close()
    }
  }

  const { scan, isLeftToEvents, leaveToEvents } = createScan(options, visit)

  const lookAgain = async (directory: Directory, cause: 'heard' | 'round'): Promise<void> => {
    const { heard, whole, parent } = directory
    directory.heard = new Set()
    directory.whole = false
    let position: Position | undefined
    try {
      position = await walk.to(directory.path, { signal })
      if (identityOf(position.place) === directory.identity) {
        if (heard === undefined || cause === 'round') directories.listen(directory, position.place)
        await scan(directory, position, { heard, whole }, cause)
        troubled.delete(directory)
      } else if (parent !== undefined) {
        directories.drop(directory)
        directories.hear(parent, undefined)
      }
    } catch (error) {
      if (!isResourceError(error, 'not-found')) putOff(directory, error)
      else if (parent !== undefined) directories.drop(directory)
      else {
        // The root is unreadable: it is treated as empty until it can be read again.
        directories.empty(directory)
        schedule.later(directory, retryDelayMs)
      }
    } finally {
      position?.place.close()
    }
  }

  return {
    /** Finds all directories, and returns the root. Does not notify of files that exist already. */
    explore: async (): Promise<Directory> => {
      const position = await walk.root(signal)
      try {
        return await add(undefined, position, 'first')
      } finally {
        position.place.close()
      }
    },
    /** Scans a directory again by its path, with the same rules as a listing, and notifies of the differences. */
    refresh: async (directory: Directory, cause: 'heard' | 'round'): Promise<void> => {
      if (directory.gone) return
      if (cause === 'round' && isLeftToEvents(directory)) return leaveToEvents(directory)
      const start = performance.now()
      await lookAgain(directory, cause)
      const taken = performance.now() - start
      if (taken > slowScanMs) schedule.spare(directory, taken)
    },
  }
}

/** Adds a child directory if it is to be served and not known yet. */
type Visit = (parent: Directory, position: Position, name: string, stats: MaybeStats, cause: Cause) => Promise<void>

/** Compares the known state of directories with the file system. `visit` is called for each directory in them. */
function createScan(options: TreeOptions, visit: Visit) {
  const { directories, schedule, walk, names, permit, pool, leaveOut, signal } = options

  /** Returns the stats of the served file at a name; for a symbolic link, those of its target. */
  const servedAt = async (
    directory: Directory,
    position: Position,
    name: string,
    stats: MaybeStats,
  ): Promise<MaybeStats> => {
    if (!directory.snapshot.names.links.has(name)) {
      if (stats === undefined || kindOf(stats, position.device, permit) !== 'file') return undefined
      return modeAllows(stats) || (await mayRead(position.place, stats, name, pool, signal)) ? stats : undefined
    }
    try {
      const found = await walk.enter(position, name, false, signal)
      found.place.close()
      directories.link(
        directory,
        name,
        found.aliases.slice(1).map(({ path }) => path),
      )
      return found.place.stats
    } catch (error) {
      if (!isResourceError(error, 'not-found')) leaveOut(`${directory.path}${name}`, error)
      return undefined
    }
  }

  /**
   * Examines some of the names of a directory. In a round, it first waits for the events of all changes that it can see, so that no such change
   * is taken for the initial state.
   *
   * @param heard Names in events. Other names are not in doubt, since no event reported them. Undefined if any name may have changed.
   */
  const look = async (
    directory: Directory,
    position: Position,
    indices: readonly number[],
    cause: Cause,
    heard?: Directory['heard'],
  ) => {
    const { snapshot } = directory
    const nameAt = (index: number) => snapshot.names.names[index] ?? ''
    const doubt = cause === 'heard' || (cause === 'round' && !directories.isHeard(directory))
    for (let start = 0; start < indices.length; start += group) {
      const part = indices.slice(start, start + group)
      const from = Date.now()
      const bare = part.map((index) => nameAt(index).replace(/\/$/, ''))
      const found = await lookAtAll(position.place, bare, pool, signal, (name, error) =>
        leaveOut(`${directory.path}${name}`, error),
      )
      if (cause === 'round') {
        await everythingHeard()
        if (isLeftToEvents(directory)) return leaveToEvents(directory)
      }
      for (const [i, index] of part.entries()) {
        const name = nameAt(index)
        if (name.endsWith('/')) await visit(directory, position, name, found[i], cause)
        else {
          const stats = await servedAt(directory, position, name, found[i])
          const verdict = snapshot.note(index, stats, doubt && heard?.has(name) !== false, { from, until: Date.now() })
          if (verdict !== undefined) directories.tell(directory, name, verdict !== 'changed')
        }
      }
    }
  }

  /** Whether events have scheduled a scan of a directory, or will: after a lost event, the state of its names is unknown until then. */
  const isLeftToEvents = (directory: Directory): boolean => schedule.has(directory) || directory.heard === undefined

  /** Leaves all names of a directory to the scan that its events have scheduled. */
  const leaveToEvents = (directory: Directory): void => {
    // Without a reliable watch, any name may have changed without an event.
    if (directories.isHeard(directory)) directory.whole = true
    else directories.hear(directory, undefined)
  }

  const scan = async (
    directory: Directory,
    position: Position,
    { heard, whole }: Pick<Directory, 'heard' | 'whole'>,
    cause: Cause,
  ) => {
    const found = await names.of(position, signal)
    const all = [...found.names.keys()]
    if (cause === 'first') {
      directories.know(directory, createSnapshot(found, directory.since))
      if (!directories.isHeard(directory)) return look(directory, position, all, cause)
      // Files can wait for the first round, since an event before it reports them as changed. Links cannot: their targets raise no events here.
      const urgent = (name = '') => name.endsWith('/') || found.links.has(name)
      const first = all.filter((index) => urgent(found.names[index]))
      return look(directory, position, first, cause)
    }
    if (cause === 'heard') await tellPassed(options, directory, position, found.names, heard)
    const sameRules = sameAliases(directory, position)
    directory.aliases = position.aliases
    if (found === directory.snapshot.names && heard !== undefined && !whole && cause === 'heard') {
      const some = [...heard].flatMap((name) => [indexOf(found.names, name), indexOf(found.names, `${name}/`)])
      const indices = some.filter((index) => index !== -1)
      await look(directory, position, indices, cause)
    } else {
      if (found !== directory.snapshot.names) rename(directories, directory, found)
      await look(directory, position, all, cause, cause === 'heard' ? heard : undefined)
    }
    // The ignore rules of the child directories have changed too.
    if (!sameRules) for (const child of directory.children.values()) directories.hear(child, undefined)
  }

  return { scan, isLeftToEvents, leaveToEvents }
}

/** Notifies of names that were created and deleted again before the scan: a client may have read them. */
async function tellPassed(
  { directories, names, pool, leaveOut, signal }: TreeOptions,
  directory: Directory,
  position: Position,
  found: readonly string[],
  heard: Directory['heard'] = new Set(),
): Promise<void> {
  const lists = [found, directory.snapshot.names.names]
  const isThere = (name: string) => lists.some((list) => [name, `${name}/`].some((one) => indexOf(list, one) !== -1))
  const passed = [...heard].filter((name) => !isThere(name) && names.shows(position, name))
  // A name that exists but is in no list is not served, for example a symbolic link.
  const there = await lookAtAll(position.place, passed, pool, signal, leaveOut)
  // They are not notified as changes of the list, or every client would list again whenever a file is replaced.
  for (const [i, name] of passed.entries()) if (there[i] === undefined) directories.tell(directory, name, false)
}

/** Replaces the known names of a directory, and notifies of the files and directories that are gone. */
function rename(directories: Directories, directory: Directory, found: Directory['snapshot']['names']): void {
  const { snapshot, gone } = directory.snapshot.renew(found)
  directories.know(directory, snapshot)
  for (const name of gone) directories.tell(directory, name, true)
  for (const [name, child] of directory.children) if (indexOf(found.names, name) === -1) directories.drop(child)
}

/** Waits until all events up to the call have arrived: for two turns of the event loop, because the current one may be half over. */
export async function everythingHeard(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function indexOf(names: readonly string[], name: string): number {
  const index = indexAfter(names, name) - 1
  return names[index] === name ? index : -1
}
