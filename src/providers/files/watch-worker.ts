import { type BigIntStats, readlinkSync } from 'node:fs'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { isResourceError, ResourceError, unavailable } from '../../core/errors.ts'
import { createAutoResetEvent } from '../../core/kit/abort.ts'
import { defined } from '../../core/kit/object.ts'
import { indexAfter } from '../../core/kit/sorted.ts'
import type { Log } from '../../core/log.ts'
import type { Degradation } from '../../core/provider.ts'
import { createIgnoreFiles } from './ignore-files.ts'
import {
  createLeaveOut,
  createPool,
  isSettled,
  type LeaveOut,
  type MaybeStats,
  modeAllowsReading,
  type PermitOptions,
  type Place,
  type Pool,
  type RootAccess,
  servableKind,
  statFiles,
  tickMs,
} from './place.ts'
import { reopenRoot } from './root.ts'
import {
  createNameCache,
  createVisibility,
  createWalk,
  type DirectoryNames,
  fileIdentity,
  ignoreFileOptions,
  maxDepth,
  mayRead,
  type NameCache,
  type OpenedEntry,
  sameAliases,
  type Walker,
} from './walk.ts'

import {
  type ComparisonRounds,
  createHandles,
  createPendingChanges,
  createRounds,
  createSchedule,
  createTurnQueue,
  createUpdateCollector,
  type DirectoryUpdates,
  type OnFileEvent,
  type PendingChanges,
  type Schedule,
  type UpdateCollector,
  type WatchFile,
  type WatchHandle,
  type WatchHandles,
  type WatchOptions,
  type WatchRequest,
  type WatchStart,
  type WatchThreadMessage,
} from './watch.ts'

type NameChange = 'came' | 'went' | 'changed' | undefined

interface FileStates {
  readonly names: DirectoryNames
  /**
   * Records the stats of the name at an index (undefined: not served), and returns the change. A file that was never examined counts as changed if it
   * changed since the watch began.
   *
   * @param doubt Whether to report a file also if it was never examined, or examined so soon after a change that a further change may have left the
   * same times.
   * @param look Period in which the stats were taken, in milliseconds since 1970.
   */
  note(
    index: number,
    stats: BigIntStats | undefined,
    doubt: boolean,
    look: { readonly from: number; readonly until: number },
  ): NameChange
  /** Whether a file is served at the index, as far as known. False for directories. */
  serves(index: number): boolean
  /** Returns the snapshot with the new names of the directory, the names that it did not have, and the files that are gone. */
  renew(names: DirectoryNames): {
    readonly snapshot: FileStates
    readonly came: readonly string[]
    readonly gone: readonly string[]
  }
}

/** State of a name: not served, never examined, examined, or examined too soon after a change. Directories are always `absent`. */
const [absent, unknown, settled, fresh] = [0, 1, 2, 3]
const noNames: DirectoryNames = { names: [], links: new Set() }

/**
 * Returns the snapshot of a directory whose files were not examined yet.
 *
 * @param since Time at which the watch of the directory began, in milliseconds since 1970.
 */
export function createFileStates(names: DirectoryNames, since: number): FileStates {
  const states = Uint8Array.from(names.names, (name) => (name.endsWith('/') ? absent : unknown))
  return snapshotOf(names, states, new BigInt64Array(states.length * 4), since)
}

const now = new BigInt64Array(4)

/** @param stamps For each name: inode, size, mtime and ctime in nanoseconds. */
function snapshotOf(names: DirectoryNames, states: Uint8Array, stamps: BigInt64Array, since: number): FileStates {
  /** Whether the stamp is unchanged. Stores the new one. */
  const stamp = (at: number, { ino, size, mtimeNs, ctimeNs }: BigIntStats): boolean => {
    // Stored in an array of the same type first, so that an inode above 63 bits is compared in its truncated form.
    now.set([ino, size, mtimeNs, ctimeNs])
    const same = now.every((value, i) => value === stamps[at + i])
    if (!same) stamps.set(now, at)
    return same
  }

  return {
    names,
    note: (index, stats, doubt, { from, until }) => {
      const before = states[index]
      if (stats === undefined) {
        states[index] = absent
        return before === absent || (before === unknown && !doubt) ? undefined : 'went'
      }
      const same = stamp(index * 4, stats)
      states[index] = isSettled(stats, from, tickMs, until) ? settled : fresh
      if (before === absent) return 'came'
      // The clock of a file system may lag behind by a tick.
      if (before === unknown) return doubt || Number(stats.ctimeMs) > since - tickMs ? 'changed' : undefined
      return !same || (before === fresh && doubt) ? 'changed' : undefined
    },
    serves: (index) => states[index] !== absent,
    renew: (next) => {
      const nextStates = new Uint8Array(next.names.length)
      const nextStamps = new BigInt64Array(next.names.length * 4)
      const indices = new Map(names.names.map((name, index) => [name, index]))
      const came: string[] = []
      for (const [index, name] of next.names.entries()) {
        const from = indices.get(name)
        if (from === undefined) {
          came.push(name)
          continue
        }
        indices.delete(name)
        nextStates[index] = states[from] ?? absent
        nextStamps.set(stamps.subarray(from * 4, from * 4 + 4), index * 4)
      }
      const goneNames = [...indices].filter(([, index]) => states[index] !== absent).map(([name]) => name)
      return { snapshot: snapshotOf(next, nextStates, nextStamps, since), came, gone: goneNames }
    },
  }
}

export interface Directory {
  readonly path: string
  readonly parent: Directory | undefined
  /** Time at which the watch of the directory began, or earlier, in milliseconds since 1970. */
  readonly since: number
  readonly identity: string
  /** Child directories by name, with a final `/`. */
  readonly children: Map<string, Directory>
  /** Target paths of the symbolic links in it, by name. */
  readonly targets: Map<string, readonly string[]>
  /** Paths that symbolic links in it lead to, or led to before. */
  readonly linked: Set<string>
  /** Names of symbolic links with a new target, of which clients were not notified yet. */
  readonly turned: Set<string>
  aliases: OpenedEntry['aliases']
  snapshot: FileStates
  /** The file system watch. Undefined: the directory has none, and is only compared in rounds. */
  handle: WatchHandle | undefined
  /** Names with events that were not examined since. Undefined if any name may have changed. */
  heard: Set<string> | undefined
  /** Whether the next scan examines all names, although only those in `heard` may have changed. */
  whole: boolean
  gone: boolean
}

export type Directories = ReturnType<typeof createDirectoryTracker>

interface DirectoriesOptions {
  readonly handles: WatchHandles
  readonly schedule: Schedule<Directory>
  readonly pending: PendingChanges
  readonly ledger: UpdateCollector
  /** Whether the system sends events for a place. */
  readonly speaks: (place: Place) => boolean
  /** Whether events arrive at once: if the event of a change arrives after a file was examined, the change came after that, too. */
  readonly prompt: boolean
  readonly limit: number
}

const maxHeard = 64

/** Keeps the directories that are served and the known state of their files, and notifies of changes. */
export function createDirectoryTracker(options: DirectoriesOptions) {
  const { handles, schedule, pending, ledger, speaks, prompt, limit } = options
  const all = new Set<Directory>()
  const linked = new Map<string, Set<Directory>>()
  let count = 0

  const hear = (directory: Directory, name: string | undefined): void => {
    if (directory.gone) return
    if (name === undefined || (directory.heard?.size ?? 0) >= maxHeard) directory.heard = undefined
    else directory.heard?.add(name)
    schedule.touch(directory)
  }

  const touch = ({ identity, handle }: Directory): void => {
    if (prompt && handle !== undefined) ledger.touch(identity)
  }

  /** Watches a directory, again if it was watched before: the system may have dropped the watch. */
  const listen = (directory: Directory, place: Place): void => {
    if (!speaks(place)) return
    const onEvent: OnFileEvent = (name, isLost) => {
      if (isLost) lose(directory, ledger)
      else touch(directory)
      hear(directory, name)
    }
    const watchHandle = handles.open(place, onEvent, directory.handle)
    if (watchHandle === undefined) return
    directory.handle = watchHandle
    touch(directory)
  }

  /** Replaces the snapshot of a directory. @throws ResourceError `too-large` when there are more names in memory than the limit. */
  const know = (directory: Directory, snapshot: FileStates): void => {
    count += snapshot.names.names.length - directory.snapshot.names.names.length
    directory.snapshot = snapshot
    if (count > limit) throw tooManyToWatch(limit)
  }

  /** Notifies that a file in a directory was created or deleted (`listed`), or changed. */
  const tell = (directory: Directory, name: string, isListed: boolean): void => {
    const path = `${directory.path}${name}`
    const { aliases, targets, turned } = directory
    const inLinked = aliases.slice(1).map((alias) => `${alias.path}${name}`)
    // The change may have been found without an event.
    touch(directory)
    // A link with a new target does not change the old target.
    const others = turned.delete(name) ? inLinked : [...inLinked, ...(targets.get(name) ?? [])]
    pending.add({ path, listed: isListed, aliases: others })
    for (const other of linked.get(path) ?? []) hear(other, undefined)
  }

  const empty = (directory: Directory): void => {
    const { children, snapshot, targets } = directory
    know(directory, createFileStates(noNames, 0))
    for (const [index, name] of snapshot.names.names.entries()) if (snapshot.serves(index)) tell(directory, name, true)
    for (const target of directory.linked) {
      const others = linked.get(target)
      others?.delete(directory)
      if (others?.size === 0) linked.delete(target)
    }
    targets.clear()
    directory.linked.clear()
    for (const child of children.values()) drop(child)
  }

  const remove = (directory: Directory): void => {
    directory.gone = true
    directory.handle?.close()
    ledger.lose(directory.identity)
    schedule.drop(directory)
    all.delete(directory)
  }

  const drop = (directory: Directory): void => {
    remove(directory)
    directory.parent?.children.delete(directoryName(directory))
    empty(directory)
  }

  return {
    all: all as ReadonlySet<Directory>,
    add: (parent: Directory | undefined, position: OpenedEntry): Directory => {
      const directory = createDirectory(parent, position)
      all.add(directory)
      parent?.children.set(directoryName(directory), directory)
      listen(directory, position.place)
      return directory
    },
    listen,
    /** Whether every change in a directory raises an event that arrives before a scan can show the change. */
    isHeard: ({ handle }: Directory): boolean => prompt && handle !== undefined,
    hear,
    know,
    tell,
    /** Records the target paths of a symbolic link. A change of one of them is then handled as an event in the link's directory. */
    link: (directory: Directory, name: string, paths: readonly string[]): void => {
      const targetNames = directory.targets.get(name)
      if (targetNames !== undefined && targetNames.join('\0') !== paths.join('\0')) directory.turned.add(name)
      directory.targets.set(name, paths)
      for (const path of paths) {
        directory.linked.add(path)
        linked.set(path, (linked.get(path) ?? new Set()).add(directory))
      }
    },
    empty,
    drop,
    clear: (): void => {
      for (const directory of all) remove(directory)
      linked.clear()
      count = 0
    },
  }
}

function tooManyToWatch(limit: number): ResourceError {
  const message = `There are more than ${limit} files, too many to watch. Exclude some, or set "watch" to false.`
  return new ResourceError('too-large', message)
}

function lose(directory: Directory, ledger: UpdateCollector): void {
  ledger.lose(directory.identity)
  directory.handle = undefined
}

function directoryName({ path, parent }: Directory): string {
  return path.slice(parent?.path.length ?? 0)
}

function createDirectory(parent: Directory | undefined, position: OpenedEntry): Directory {
  return {
    path: position.aliases[0].path,
    parent,
    since: Date.now(),
    identity: fileIdentity(position.place),
    children: new Map(),
    targets: new Map(),
    linked: new Set(),
    turned: new Set(),
    aliases: position.aliases,
    snapshot: createFileStates(noNames, 0),
    handle: undefined,
    heard: new Set(),
    whole: false,
    gone: false,
  }
}

type WatchedTree = ReturnType<typeof createTree>

interface TreeOptions {
  readonly directories: Directories
  readonly schedule: Schedule<Directory>
  readonly walk: Walker
  readonly names: NameCache
  readonly permit: PermitOptions
  readonly pool: Pool
  readonly leaveOut: LeaveOut
  readonly log: Log
  readonly signal: AbortSignal
}

/** Why a directory is scanned: the watch begins, an event arrived, or its turn in a round has come. */
type Cause = 'first' | 'heard' | 'round'

const group = 256
const retryDelayMs = 1000
/** Duration above which a scan is slow, in milliseconds. Events do not schedule another scan for as long as a slow one took. */
const slowScanMs = 20

function createTree(options: TreeOptions) {
  const { directories, schedule, walk, log, signal } = options
  const troubled = new Set<Directory>()

  const putOff = (directory: Directory, error: unknown): void => {
    if (!isResourceError(error, 'unavailable')) throw error
    if (!troubled.has(directory))
      log('warn', 'a directory cannot be read now', { path: directory.path, error: error.message })
    troubled.add(directory)
    directory.heard = undefined
    schedule.later(directory, retryDelayMs)
  }

  const add = async (parent: Directory | undefined, position: OpenedEntry, cause: Cause): Promise<Directory> => {
    // First add the watch, then scan, so that no change is missed.
    const directory = directories.add(parent, position)
    await scan(directory, position, directory, cause)
    return directory
  }

  /** Adds a child directory that is served and not known yet. Drops the known one if it was replaced, or is not served any more. */
  const visit = async (parent: Directory, position: OpenedEntry, name: string, stats: MaybeStats, cause: Cause) => {
    const directory = parent.children.get(name)
    // Only a walk finds the target of a symbolic link.
    const isLink = parent.snapshot.names.links.has(name.slice(0, -1))
    if (directory !== undefined && !isLink && stats?.isDirectory() && directory.identity === fileIdentity({ stats }))
      return
    let child: OpenedEntry | undefined
    try {
      child = await walk.enter(position, name.slice(0, -1), true, signal)
      if (directory?.identity === fileIdentity(child.place)) return
      if (directory !== undefined) directories.drop(directory)
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
    let position: OpenedEntry | undefined
    try {
      position = await walk.to(directory.path, { signal })
      if (fileIdentity(position.place) === directory.identity) {
        if (heard === undefined || cause === 'round') directories.listen(directory, position.place)
        await scan(directory, position, { heard, whole }, cause)
        troubled.delete(directory)
      } else if (parent !== undefined) {
        directories.drop(directory)
        directories.hear(parent, undefined)
      } else {
        // Another directory is at the root's path: the next check of the root handles it.
        directory.heard = undefined
        schedule.later(directory, retryDelayMs)
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
    isPutOff: (): boolean => {
      for (const directory of troubled) if (directory.gone) troubled.delete(directory)
      return troubled.size > 0
    },
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
      const durationMs = performance.now() - start
      if (durationMs > slowScanMs) schedule.spare(directory, durationMs)
    },
  }
}

type Visit = (parent: Directory, position: OpenedEntry, name: string, stats: MaybeStats, cause: Cause) => Promise<void>

function createScan(options: TreeOptions, visit: Visit) {
  const { directories, schedule, walk, names, permit, pool, leaveOut, signal } = options

  const servedAt = async (
    directory: Directory,
    position: OpenedEntry,
    name: string,
    stats: MaybeStats,
  ): Promise<MaybeStats> => {
    if (!directory.snapshot.names.links.has(name)) {
      if (stats === undefined || servableKind(stats, position.device, permit) !== 'file') return undefined
      return modeAllowsReading(stats) || (await mayRead(position.place, stats, name, pool, signal)) ? stats : undefined
    }
    try {
      const entry = await walk.enter(position, name, false, signal)
      entry.place.close()
      directories.link(
        directory,
        name,
        entry.aliases.slice(1).map(({ path }) => path),
      )
      return entry.place.stats
    } catch (error) {
      if (!isResourceError(error, 'not-found')) leaveOut(`${directory.path}${name}`, error)
      return undefined
    }
  }

  /**
   * Examines some of the names of a directory. In a round, the new stats are judged only after the events of all changes in them have arrived,
   * so that no change is taken for the initial state.
   *
   * @param names Names in events. Other names are not in doubt, since no event reported them. Undefined if any name may have changed.
   */
  const look = async (
    directory: Directory,
    position: OpenedEntry,
    indices: readonly number[],
    cause: Cause,
    names?: Directory['heard'],
  ) => {
    const { snapshot } = directory
    const nameAt = (index: number) => snapshot.names.names[index] ?? ''
    const doubt = cause === 'heard' || (cause === 'round' && !directories.isHeard(directory))
    for (let start = 0; start < indices.length; start += group) {
      const part = indices.slice(start, start + group)
      const from = Date.now()
      const bare = part.map((index) => nameAt(index).replace(/\/$/, ''))
      const fileStats = await statFiles(position.place, bare, pool, signal, (name, error) =>
        leaveOut(`${directory.path}${name}`, error),
      )
      if (cause === 'round') {
        await everythingHeard()
        if (isLeftToEvents(directory)) return leaveToEvents(directory)
      }
      for (const [i, index] of part.entries()) {
        const name = nameAt(index)
        if (name.endsWith('/')) await visit(directory, position, name, fileStats[i], cause)
        else {
          const stats = await servedAt(directory, position, name, fileStats[i])
          const verdict = snapshot.note(index, stats, doubt && names?.has(name) !== false, { from, until: Date.now() })
          if (verdict !== undefined) directories.tell(directory, name, verdict !== 'changed')
        }
      }
    }
  }

  /** Whether events have scheduled a scan of a directory, or will: after a lost event, the state of its names is unknown until then. */
  const isLeftToEvents = (directory: Directory): boolean => schedule.has(directory) || directory.heard === undefined

  const leaveToEvents = (directory: Directory): void => {
    // Without a reliable watch, any name may have changed without an event.
    if (directories.isHeard(directory)) directory.whole = true
    else directories.hear(directory, undefined)
  }

  const scan = async (
    directory: Directory,
    position: OpenedEntry,
    { heard, whole }: Pick<Directory, 'heard' | 'whole'>,
    cause: Cause,
  ) => {
    const directoryNames = await names.of(position, signal)
    const all = [...directoryNames.names.keys()]
    if (cause === 'first') {
      directories.know(directory, createFileStates(directoryNames, directory.since))
      if (!directories.isHeard(directory)) return look(directory, position, all, cause)
      // Files can wait for the first round, since an event before it reports them as changed. Links cannot: their targets raise no events here.
      const urgent = (name = '') => name.endsWith('/') || directoryNames.links.has(name)
      const first = all.filter((index) => urgent(directoryNames.names[index]))
      return look(directory, position, first, cause)
    }
    if (cause === 'heard') await tellPassed(options, directory, position, directoryNames.names, heard)
    const sameRules = sameAliases(directory, position)
    directory.aliases = position.aliases
    const came = directoryNames === directory.snapshot.names ? [] : rename(directories, directory, directoryNames)
    if (heard !== undefined && !whole && cause === 'heard') {
      const names = new Set([...heard].flatMap((name) => [name, `${name}/`]).concat(came))
      const indices = Array.from(names, (name) => indexOf(directoryNames.names, name)).filter((index) => index !== -1)
      await look(directory, position, indices, cause, heard)
    } else await look(directory, position, all, cause, cause === 'heard' ? heard : undefined)
    // The ignore rules of the child directories have changed too.
    if (!sameRules) for (const child of directory.children.values()) directories.hear(child, undefined)
  }

  return { scan, isLeftToEvents, leaveToEvents }
}

/** Notifies of names that were created and deleted again before the scan: a client may have read them. */
async function tellPassed(
  { directories, names, pool, leaveOut, signal }: TreeOptions,
  directory: Directory,
  position: OpenedEntry,
  passedNames: readonly string[],
  heardNames: Directory['heard'] = new Set(),
): Promise<void> {
  const lists = [passedNames, directory.snapshot.names.names]
  const isThere = (name: string) => lists.some((list) => [name, `${name}/`].some((one) => indexOf(list, one) !== -1))
  const passed = [...heardNames].filter((name) => !isThere(name) && names.shows(position, name))
  // A name that exists but is in no list is not served, for example a symbolic link.
  const there = await statFiles(position.place, passed, pool, signal, leaveOut)
  // A name that came and went is no change of the list.
  for (const [i, name] of passed.entries()) if (there[i] === undefined) directories.tell(directory, name, false)
}

/** Replaces the known names of a directory, and notifies of the files and directories that are gone. Returns the new names. */
function rename(
  directories: Directories,
  directory: Directory,
  names: Directory['snapshot']['names'],
): readonly string[] {
  const { snapshot, came, gone } = directory.snapshot.renew(names)
  directories.know(directory, snapshot)
  for (const name of gone) directories.tell(directory, name, true)
  for (const [name, child] of directory.children) if (indexOf(names.names, name) === -1) directories.drop(child)
  return came
}

/** Waits until all events up to the call have arrived: for two turns of the event loop, because the current one may be half over. */
async function everythingHeard(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function indexOf(names: readonly string[], name: string): number {
  const index = indexAfter(names, name) - 1
  return names[index] === name ? index : -1
}

/** The watch thread for the files mounts of a process. Each watch has its own port, and ends when the port is closed. */
parentPort?.on('message', ({ options, port }: WatchStart) => void serve(options, port))

async function serve(options: WatchStart['options'], port: MessagePort): Promise<void> {
  const endController = new AbortController()
  const send = (message: WatchThreadMessage) => port.postMessage(message)
  const log: Log = (level, message, fields) => send({ log: [level, message, fields] })
  const resetEvent = createAutoResetEvent()
  let dues = async (): Promise<DirectoryUpdates> => []
  let look = async (): Promise<boolean> => false
  port.on('message', (request: WatchRequest) => {
    if (request === 'dues') void dues().then((updates) => send({ dues: updates }))
    else if (request === 'look') void look().then((isWhole) => send({ looked: { isWhole } }))
    else resetEvent.set()
  })
  port.on('close', () => {
    endController.abort()
    resetEvent.set()
  })
  try {
    const watched = await watchFiles(options, log, endController.signal, (degraded) => send({ degraded }))
    const { batches, closed } = watched
    dues = watched.dues
    look = watched.look
    send({ armed: true })
    for await (const changes of batches) {
      // Sends one batch at a time. Changes that occur meanwhile are merged here, where their amount is bounded.
      send({ changes })
      await resetEvent.wait()
    }
    await closed
  } catch (error) {
    const { kind, message } = isResourceError(error) ? error : { kind: 'internal' as const, message: watchFailed }
    const cause = error instanceof Error && error.cause instanceof Error ? (error.cause.stack ?? '') : ''
    if (!endController.signal.aborted) send({ failed: { kind, message, cause } })
  } finally {
    port.close()
  }
}

const watchFailed = 'The watch of a files mount failed.'

const maxEntries = 1_000_000
/** Interval of checks that the root still exists, in milliseconds: the deletion of an open directory raises no event. */
const rootIntervalMs = 1000
/** Maximum number of turns of one call of `look`. Each examines the directories that the turn before has scheduled. */
const mostTurns = 8
/** Minimum time between two unscheduled full comparisons, in milliseconds. */
const suspectIntervalMs = 5000

/**
 * Watches the served files below a root. On an event, or when its turn in a round comes, a directory is compared with its known state.
 *
 * @param report Called when the quality of the watch changes (undefined: as good as it can be).
 * @param watch Replaces `fs.watch` in tests.
 * @throws ResourceError `unavailable` when the root is gone, or has too many files.
 */
export async function watchFiles(
  options: WatchOptions,
  log: Log,
  signal: AbortSignal,
  report: (degraded: Degradation | undefined) => void = () => {},
  watch?: WatchFile,
) {
  const { symlinks, hardlinks, allowMounts, portable } = options
  const permit = { hardlinks, allowMounts }
  const pool = createPool(1)
  const visible = createVisibility(options)
  const places = await reopenRoot(options.root, { allowMounts, portable }, pool)
  const ignoreFiles = createIgnoreFiles({ places, pool, log, ...ignoreFileOptions(options) })
  const names = createNameCache(visible, symlinks === 'beneath', pool, true)
  const walk = createWalk({ places, pool, visible, permit, names, symlinks, ignoreFiles })
  const schedule = createSchedule<Directory>()
  const pending = createPendingChanges()
  const looks = createTurnQueue(schedule.wake, pending.drained)
  let suspected = false
  let suspectAt = 0
  const overflown = () => {
    suspected = true
    doubtAll(directories, portable ? undefined : ledger)
    schedule.wake()
  }
  const handles = createHandles(places.real, options, { log, overflown, ...defined({ watch }) })
  // With access by path, it is unknown whether the file system of a place is local, so a watch is tried.
  const speaks = ({ local }: Place) => local || portable
  const ledger = createUpdateCollector()
  const parts = { handles, schedule, pending, ledger, speaks }
  const directories = createDirectoryTracker({ ...parts, prompt: !portable, limit: maxEntries })
  const leaveOut = createLeaveOut(log)
  const tree = createTree({ directories, schedule, walk, names, permit, pool, leaveOut, log, signal })
  const rounds = createRounds({
    directories: directories.all,
    look: (directory) => tree.refresh(directory, 'round'),
    begun: handles.retry,
    intervalMs: options.reconcile,
    // After the first round, a round uses about a fifth of the time.
    rest: 4,
  })
  const root = createRootWatch({ options, places, tree, rounds, directories, pending, log, signal })

  const suspect = () => {
    suspected = false
    suspectAt = performance.now() + suspectIntervalMs
    log('info', 'many files changed at once: everything is compared, because notifications may have been lost')
    for (const directory of directories.all) directories.hear(directory, undefined)
  }

  const reportChanged = createReport(report)
  const assess = () => reportChanged(!root.isThere ? 'unavailable' : handles.limited ? 'limited' : undefined)

  const lookNow = async (): Promise<boolean> => {
    await root.check()
    if (suspected) suspect()
    await refreshAll({ directories, schedule, tree })
    return root.isThere && !tree.isPutOff()
  }

  const run = async () => {
    let rootAt = performance.now() + rootIntervalMs
    while (!signal.aborted) {
      await looks.answer(lookNow)
      if (suspected && performance.now() >= suspectAt) suspect()
      for (const directory of schedule.take()) await tree.refresh(directory, 'heard')
      if (performance.now() >= rootAt) {
        await root.check()
        rootAt = performance.now() + rootIntervalMs
      }
      if (performance.now() >= rounds.due) await rounds.go()
      assess()
      await schedule.idle(Math.min(rootAt, rounds.due, suspected ? suspectAt : rootAt))
    }
  }

  const close = () => {
    root.forget()
    names.clear()
    places.close()
  }
  const end = () => {
    pending.end()
    schedule.wake()
  }
  signal.addEventListener('abort', end, { once: true })
  try {
    signal.throwIfAborted()
    await root.begin()
    const place = await places.root(signal)
    place.close()
    if (!speaks(place)) logSilence(log, options)
    assess()
  } catch (error) {
    close()
    throw signal.aborted ? error : outward(error)
  }
  const closed = run()
    .catch((error: unknown) => {
      if (!signal.aborted) pending.end(outward(error))
    })
    .finally(() => {
      close()
      looks.end()
    })
  /** Examines everything that may have changed, waits until the changes were taken, and resolves to whether every directory could be examined. */
  const look = async (): Promise<boolean> => {
    await everythingHeard()
    return looks.ask()
  }
  /** Returns the updates about directories since the last call, once all queued events are handled. */
  const dues = async (): Promise<DirectoryUpdates> => {
    await everythingHeard()
    return ledger.take()
  }
  // `batches` yields the changes from now on. It ends with the signal, and throws when the watch is lost.
  return { batches: pending.batches(), dues, look, closed }
}

function createReport(report: (degraded: Degradation | undefined) => void) {
  let reported: Degradation | undefined
  return (degraded: Degradation | undefined): void => {
    if (degraded !== reported) report(degraded)
    reported = degraded
  }
}

function logSilence(log: Log, { reconcile }: WatchOptions): void {
  log('info', 'the file system of a mount does not report changes: it is compared periodically', { reconcile })
}

interface RefreshOptions {
  readonly directories: Directories
  readonly schedule: Schedule<Directory>
  readonly tree: WatchedTree
}

async function refreshAll({ directories, schedule, tree }: RefreshOptions): Promise<void> {
  for (const directory of directories.all) if (!directories.isHeard(directory)) directories.hear(directory, undefined)
  // An examination can schedule further directories, such as those below a changed rule.
  for (let turn = 0; turn < mostTurns && schedule.size > 0; turn++)
    for (const directory of schedule.takeAll()) await tree.refresh(directory, 'heard')
}

function doubtAll(directories: Directories, ledger: UpdateCollector | undefined): void {
  for (const directory of directories.all) {
    if (directory.handle === undefined) continue
    directory.heard = undefined
    ledger?.touch(directory.identity)
  }
}

function outward(error: unknown): ResourceError {
  if (!isResourceError(error)) return new ResourceError('internal', watchFailed, {}, { cause: error })
  return error.kind === 'unavailable' ? error : unavailable(error.message, {}, error)
}

interface RootWatchOptions {
  readonly options: WatchOptions
  readonly places: RootAccess
  readonly tree: WatchedTree
  readonly rounds: ComparisonRounds
  readonly directories: Directories
  readonly pending: PendingChanges
  readonly log: Log
  readonly signal: AbortSignal
}

function createRootWatch(watch: RootWatchOptions) {
  const { places, tree, rounds, directories, pending, log, signal } = watch
  const { portable, root: openedRoot } = watch.options
  let root: Directory | undefined
  let isMoved = false

  const begin = async () => {
    root = await tree.explore()
    rounds.reset()
  }

  const forget = () => {
    directories.clear()
    root = undefined
  }

  const noteMove = ({ at }: Place) => {
    if (portable) return
    const here = readlinkSync(at)
    if (here !== openedRoot.real && !isMoved)
      log('warn', 'the root of a files mount was moved, and is served from there', { root: openedRoot.real, here })
    isMoved = here !== openedRoot.real
  }

  const check = async () => {
    let now: string | undefined
    try {
      const place = await places.root(signal)
      now = fileIdentity(place)
      noteMove(place)
      place.close()
    } catch {
      signal.throwIfAborted()
    }
    if (now !== undefined && now === root?.identity) return
    if (root !== undefined) {
      log('warn', 'the root of a files mount no longer exists, or was replaced', { root: openedRoot.real })
      pending.add({})
    }
    forget()
    if (now === undefined) return
    try {
      await begin()
      pending.add({})
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'unavailable') && !isResourceError(error, 'not-found')) throw error
      forget()
    }
  }

  return {
    get isThere() {
      return root !== undefined
    },
    begin,
    forget,
    check,
  }
}
