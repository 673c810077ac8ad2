import type { BigIntStats } from 'node:fs'
import { ResourceError } from '../../core/errors.ts'
import type { Place } from './access.ts'
import type { DirectoryNames } from './names.ts'
import { isSettled, tickMs } from './stats.ts'
import { identityOf, type Position } from './walk.ts'
import type { Handles, OnFileEvent, WatchHandle } from './watch-handles.ts'
import type { Pending, Schedule } from './watch-schedule.ts'
import type { Ledger } from './watch-thread.ts'

/** Change of a file since it was last examined. */
type NameChange = 'came' | 'went' | 'changed' | undefined

/** State of the files of one directory when they were last examined. It takes 33 bytes per name, besides the names. */
interface FileStates {
  readonly names: DirectoryNames
  /**
   * Records the stats of the name at an index (undefined: not served), and returns the change.
   *
   * A file that was never examined is reported as changed if it changed since the watch began: its event may be late, or lost. With `doubt`, it
   * is always reported, and so is a file that was examined so soon after a change that a further change may have left the same times.
   *
   * @param doubt Whether an event reported a change in the directory, or no event would report one.
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
  /** Returns the snapshot with the new names of the directory, and the files that are gone. */
  renew(names: DirectoryNames): { readonly snapshot: FileStates; readonly gone: readonly string[] }
}

/** State of a name: not served, never examined, examined, or examined too soon after a change. Directories are always `absent`. */
const [absent, unknown, settled, fresh] = [0, 1, 2, 3]
/** The names of a directory without known contents. */
const noNames: DirectoryNames = { names: [], links: new Set() }

/**
 * Returns the snapshot of a directory whose files were not examined yet.
 *
 * @param since Time at which the watch of the directory began, in milliseconds since 1970.
 */
export function createSnapshot(names: DirectoryNames, since: number): FileStates {
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
      // The clock of a file system lags behind by at most one tick.
      if (before === unknown) return doubt || Number(stats.ctimeMs) > since - tickMs ? 'changed' : undefined
      return !same || (before === fresh && doubt) ? 'changed' : undefined
    },
    serves: (index) => states[index] !== absent,
    renew: (next) => {
      const nextStates = new Uint8Array(next.names.length)
      const nextStamps = new BigInt64Array(next.names.length * 4)
      const indices = new Map(names.names.map((name, index) => [name, index]))
      for (const [index, name] of next.names.entries()) {
        const from = indices.get(name)
        if (from === undefined) continue
        indices.delete(name)
        nextStates[index] = states[from] ?? absent
        nextStamps.set(stamps.subarray(from * 4, from * 4 + 4), index * 4)
      }
      const gone = [...indices].filter(([, index]) => states[index] !== absent).map(([name]) => name)
      return { snapshot: snapshotOf(next, nextStates, nextStamps, since), gone }
    },
  }
}

/** A directory that is served, with its state at the last scan. */
export interface Directory {
  readonly path: string
  readonly parent: Directory | undefined
  /** Time at which the watch of the directory began, or earlier, in milliseconds since 1970. */
  readonly since: number
  /** Identity of the directory in the file system. */
  readonly identity: string
  /** Child directories by name, with a final `/`. */
  readonly children: Map<string, Directory>
  /** Target paths of the symbolic links in it, by name. */
  readonly targets: Map<string, readonly string[]>
  /** Paths that symbolic links in it lead to, or led to before. */
  readonly linked: Set<string>
  /** Names of symbolic links with a new target, of which clients were not notified yet. */
  readonly turned: Set<string>
  aliases: Position['aliases']
  snapshot: FileStates
  /** The file system watch. Undefined: the directory has none, and is only compared in rounds. */
  handle: WatchHandle | undefined
  /** Names with events that were not examined since. Undefined if any name may have changed. */
  heard: Set<string> | undefined
  /** Whether the next scan examines all names, although only those in `heard` may have changed. */
  whole: boolean
  gone: boolean
}

export type Directories = ReturnType<typeof createDirectories>

interface DirectoriesOptions {
  readonly handles: Handles
  readonly schedule: Schedule<Directory>
  readonly pending: Pending
  readonly ledger: Ledger
  /** Whether the system sends events for a place. */
  readonly speaks: (place: Place) => boolean
  /** Whether events arrive at once: if the event of a change arrives after a file was examined, the change came after that, too. */
  readonly prompt: boolean
  /** Maximum number of names kept in memory, about 110 bytes each. */
  readonly limit: number
}

/** Maximum number of names in `heard`. Above it, the whole directory is scanned. */
const maxHeard = 64

/** The directories that are served, the known state of their files, and the notifications about them. */
export function createDirectories({ handles, schedule, pending, ledger, speaks, prompt, limit }: DirectoriesOptions) {
  const all = new Set<Directory>()
  /** The directories with a symbolic link to a path, by that path. */
  const linked = new Map<string, Set<Directory>>()
  let known = 0

  /** Handles an event in a directory: the name that changed, or undefined when unknown. Schedules a scan. */
  const hear = (directory: Directory, name: string | undefined): void => {
    if (directory.gone) return
    if (name === undefined || (directory.heard?.size ?? 0) >= maxHeard) directory.heard = undefined
    else directory.heard?.add(name)
    schedule.touch(directory)
  }

  /** Records that lists must not use their cached facts of a directory any more. */
  const touch = ({ identity, handle }: Directory): void => {
    if (prompt && handle !== undefined) ledger.touch(identity)
  }

  /** Watches a directory, again if it was watched before: the system may have dropped the watch. */
  const listen = (directory: Directory, place: Place): void => {
    if (!speaks(place)) return
    const heard: OnFileEvent = (name, lost) => {
      if (lost) lose(directory, ledger)
      else touch(directory)
      hear(directory, name)
    }
    const opened = handles.open(place, heard, directory.handle)
    if (opened === undefined) return
    directory.handle = opened
    touch(directory)
  }

  /** Replaces the snapshot of a directory. @throws ResourceError `too-large` when there are more names in memory than the limit. */
  const know = (directory: Directory, snapshot: FileStates): void => {
    known += snapshot.names.names.length - directory.snapshot.names.names.length
    directory.snapshot = snapshot
    if (known > limit) throw new ResourceError('too-large', `There are more than ${limit} files, too many to watch.`)
  }

  /** Notifies that a file in a directory was created or deleted (`listed`), or changed. */
  const tell = (directory: Directory, name: string, listed: boolean): void => {
    const path = `${directory.path}${name}`
    const { aliases, targets, turned } = directory
    const inLinked = aliases.slice(1).map((alias) => `${alias.path}${name}`)
    // The change may have been found without an event.
    touch(directory)
    // A link with a new target does not change the old target.
    const others = turned.delete(name) ? inLinked : [...inLinked, ...(targets.get(name) ?? [])]
    pending.add({ path, listed, aliases: others })
    for (const other of linked.get(path) ?? []) hear(other, undefined)
  }

  /** Removes all contents of a directory, and notifies of the removal. */
  const empty = (directory: Directory): void => {
    const { children, snapshot, targets } = directory
    know(directory, createSnapshot(noNames, 0))
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

  /** Removes a directory, and notifies that its contents are gone. */
  const drop = (directory: Directory): void => {
    remove(directory)
    directory.parent?.children.delete(nameOf(directory))
    empty(directory)
  }

  return {
    all: all as ReadonlySet<Directory>,
    /** Adds a directory with unknown contents, and watches it if possible. */
    add: (parent: Directory | undefined, position: Position): Directory => {
      const directory = createDirectory(parent, position)
      all.add(directory)
      parent?.children.set(nameOf(directory), directory)
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
      const known = directory.targets.get(name)
      if (known !== undefined && known.join('\0') !== paths.join('\0')) directory.turned.add(name)
      directory.targets.set(name, paths)
      for (const path of paths) {
        directory.linked.add(path)
        linked.set(path, (linked.get(path) ?? new Set()).add(directory))
      }
    },
    empty,
    drop,
    /** Forgets everything, without notifications. */
    clear: (): void => {
      for (const directory of all) remove(directory)
      linked.clear()
      known = 0
    },
  }
}

/** Records that a directory is not watched any more. */
function lose(directory: Directory, ledger: Ledger): void {
  ledger.lose(directory.identity)
  directory.handle = undefined
}

function nameOf({ path, parent }: Directory): string {
  return path.slice(parent?.path.length ?? 0)
}

function createDirectory(parent: Directory | undefined, position: Position): Directory {
  return {
    path: position.aliases[0].path,
    parent,
    since: Date.now(),
    identity: identityOf(position.place),
    children: new Map(),
    targets: new Map(),
    linked: new Set(),
    turned: new Set(),
    aliases: position.aliases,
    snapshot: createSnapshot(noNames, 0),
    handle: undefined,
    heard: new Set(),
    whole: false,
    gone: false,
  }
}
