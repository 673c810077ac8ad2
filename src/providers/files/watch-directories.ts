import { ResourceError } from '../../core/errors.ts'
import type { Place } from './place.ts'
import { identityOf, type Position } from './walk.ts'
import type { Ledger } from './watch-confirm.ts'
import type { Handle, Handles, Heard } from './watch-handles.ts'
import type { Pending } from './watch-pending.ts'
import type { Schedule } from './watch-schedule.ts'
import { emptySnapshot, type Snapshot } from './watch-snapshot.ts'

/** A directory that is served, in its state of the last scan. */
export interface Directory {
  readonly path: string
  readonly parent: Directory | undefined
  /** Time at which its watch began or earlier, in milliseconds since 1970. */
  readonly since: number
  /** Identity of the directory in the file system. */
  readonly identity: string
  /** Child directories by name, with a final `/`. */
  readonly children: Map<string, Directory>
  /** Target paths of the symbolic links in it, by name. */
  readonly targets: Map<string, readonly string[]>
  /** Paths that symbolic links in it lead to, or led to before. */
  readonly linked: Set<string>
  /** Symbolic links with a new target that was not notified yet. */
  readonly turned: Set<string>
  aliases: Position['aliases']
  snapshot: Snapshot
  /** The file system watch. Undefined: the directory has none, and is only compared in rounds. */
  handle: Handle | undefined
  /** Names with events that were not examined yet; undefined: any name may have changed. */
  heard: Set<string> | undefined
  /** Whether the next look is at all names, though only those of `heard` may have changed. */
  whole: boolean
  gone: boolean
}

/** The directories that are served, the known state of their files, and the notifications about them. */
export interface Directories {
  readonly all: ReadonlySet<Directory>
  /** Adds a directory with unknown contents, and watches it if possible. */
  add(parent: Directory | undefined, position: Position): Directory
  /** Watches a directory, again if it was watched before: the system may have dropped the watch. */
  listen(directory: Directory, place: Place): void
  /** Whether an event for every change in it arrives before a look at it can show the change. */
  isHeard(directory: Directory): boolean
  /** Handles an event in a directory: the name that changed, or undefined when unknown. Schedules a scan. */
  hear(directory: Directory, name: string | undefined): void
  /** @throws ResourceError `too-large` when more names would have to be kept in memory than the limit. */
  know(directory: Directory, snapshot: Snapshot): void
  /** Notifies that a file in a directory was created or deleted (`listed`), or changed. */
  tell(directory: Directory, name: string, listed: boolean): void
  /** Records the target paths of a symbolic link: a notification about one of those then counts as an event of the link. */
  link(directory: Directory, name: string, paths: readonly string[]): void
  /** Removes all contents of a directory, and notifies of the removal. */
  empty(directory: Directory): void
  /** Removes a directory, and notifies that its contents are gone. */
  drop(directory: Directory): void
  /** Forgets everything, without notifications. */
  clear(): void
}

interface DirectoriesOptions {
  readonly handles: Handles
  readonly schedule: Schedule<Directory>
  readonly pending: Pending
  readonly ledger: Ledger
  /** Whether the system sends events for a place. */
  readonly speaks: (place: Place) => boolean
  /** Whether events arrive at once: a change whose event has not arrived when a file is examined happens after that look. */
  readonly prompt: boolean
  /** Maximum number of names kept in memory, about 110 bytes each. */
  readonly limit: number
}

/** Maximum number of names with events kept one by one. Above it, the whole directory is scanned. */
const maxHeard = 64

export function createDirectories(options: DirectoriesOptions): Directories {
  const { handles, schedule, pending, ledger, speaks, prompt, limit } = options
  const all = new Set<Directory>()
  /** The directories with a symbolic link to a path, by that path. */
  const linked = new Map<string, Set<Directory>>()
  let known = 0

  const hear: Directories['hear'] = (directory, name) => {
    if (directory.gone) return
    if (name === undefined || (directory.heard?.size ?? 0) >= maxHeard) directory.heard = undefined
    else directory.heard?.add(name)
    schedule.touch(directory)
  }

  /** Records that lists must not use their cached facts of a directory any more. */
  const touch = ({ identity, handle }: Directory): void => {
    if (prompt && handle !== undefined) ledger.touch(identity)
  }

  const listen: Directories['listen'] = (directory, place) => {
    if (!speaks(place)) return
    const { identity } = directory
    const heard: Heard = (name, lost) => {
      if (lost) ledger.lose(identity)
      else touch(directory)
      hear(directory, name)
    }
    const opened = handles.open(place, heard, directory.handle)
    if (opened === undefined) return
    directory.handle = opened
    touch(directory)
  }

  const know: Directories['know'] = (directory, snapshot) => {
    known += snapshot.names.names.length - directory.snapshot.names.names.length
    directory.snapshot = snapshot
    if (known > limit) throw new ResourceError('too-large', `There are more than ${limit} files, too many to watch.`)
  }

  const tell: Directories['tell'] = (directory, name, listed) => {
    const path = `${directory.path}${name}`
    const { aliases, targets, turned } = directory
    const inLinked = aliases.slice(1).map((alias) => `${alias.path}${name}`)
    // The change may have been found without an event.
    touch(directory)
    // A new target of a link is no change of the old target.
    pending.add(path, listed, turned.delete(name) ? inLinked : [...inLinked, ...(targets.get(name) ?? [])])
    for (const other of linked.get(path) ?? []) hear(other, undefined)
  }

  const empty: Directories['empty'] = (directory) => {
    const { children, snapshot, targets } = directory
    know(directory, emptySnapshot())
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

  const drop: Directories['drop'] = (directory) => {
    remove(directory)
    directory.parent?.children.delete(nameOf(directory))
    empty(directory)
  }

  return {
    all,
    add: (parent, position) => {
      const directory = createDirectory(parent, position)
      all.add(directory)
      parent?.children.set(nameOf(directory), directory)
      listen(directory, position.place)
      return directory
    },
    listen,
    isHeard: ({ handle }) => prompt && handle !== undefined,
    hear,
    know,
    tell,
    link: (directory, name, paths) => {
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
    clear: () => {
      for (const directory of all) remove(directory)
      linked.clear()
      known = 0
    },
  }
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
    snapshot: emptySnapshot(),
    handle: undefined,
    heard: new Set(),
    whole: false,
    gone: false,
  }
}
