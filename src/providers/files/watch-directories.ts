import { ResourceError } from '../../core/errors.ts'
import type { Place } from './place.ts'
import { identityOf, type Position } from './walk.ts'
import type { Handle, Handles } from './watch-handles.ts'
import type { Pending } from './watch-pending.ts'
import type { Schedule } from './watch-schedule.ts'
import { emptySnapshot, type Snapshot } from './watch-snapshot.ts'

/** A directory that is served, as it was when it was last looked at. */
export interface Directory {
  readonly path: string
  readonly parent: Directory | undefined
  /** Which directory of the file system it is. */
  readonly identity: string
  /** By their names, with a `/`. */
  readonly children: Map<string, Directory>
  /** What symbolic links in it lead to, by their names. */
  readonly targets: Map<string, readonly string[]>
  /** What symbolic links in it lead to, or led to before. */
  readonly linked: Set<string>
  /** The symbolic links that lead elsewhere by now, which was not told yet. */
  readonly turned: Set<string>
  aliases: Position['aliases']
  snapshot: Snapshot
  /** Where it is left out, nothing is heard of the directory: it is looked at in rounds alone. */
  handle: Handle | undefined
  /** The names that were heard and not looked at yet; `undefined`: it may be any of them. */
  heard: Set<string> | undefined
  gone: boolean
}

/** The directories that are served, what is known of the files in them, and what is told of those. */
export interface Directories {
  readonly all: ReadonlySet<Directory>
  /** A directory of which nothing is known yet. Where it can be listened to, it is from now on. */
  add(parent: Directory | undefined, position: Position): Directory
  /** Listens to a directory, once more where that was done before: the system may have dropped it. */
  listen(directory: Directory, place: Place): void
  /** Whether every change in it is heard before a look at it can show it. */
  isHeard(directory: Directory): boolean
  /** Something was heard of a directory: of a name in it, or (`undefined`) of nobody knows what. It is to be looked at. */
  hear(directory: Directory, name: string | undefined): void
  /** @throws ResourceError `too-large` when too much would have to be kept in mind. */
  know(directory: Directory, snapshot: Snapshot): void
  /** A file in a directory came or went (`listed`), or has changed. */
  tell(directory: Directory, name: string, listed: boolean): void
  /** A symbolic link in a directory leads to paths: what is told of those is then heard of the link. */
  link(directory: Directory, name: string, paths: readonly string[]): void
  /** Takes everything out of a directory, and tells that it is gone. */
  empty(directory: Directory): void
  /** Takes a directory away, and tells that what was in it is gone. */
  drop(directory: Directory): void
  /** Forgets everything, and tells nothing. */
  clear(): void
}

export interface DirectoriesOptions {
  readonly handles: Handles
  readonly schedule: Schedule<Directory>
  readonly pending: Pending
  /** Whether the system tells of changes at a place. */
  readonly speaks: (place: Place) => boolean
  /** Whether it does so at once: what it has not told by the time a file is looked at comes after that look. */
  readonly prompt: boolean
  /** How many names are kept in mind, about 110 bytes each. */
  readonly limit: number
}

/** With more names heard than this, all of a directory is looked at. */
const maxHeard = 64

export function createDirectories(options: DirectoriesOptions): Directories {
  const { handles, schedule, pending, speaks, prompt, limit } = options
  const all = new Set<Directory>()
  /** The directories with a symbolic link to a path. */
  const linked = new Map<string, Set<Directory>>()
  let known = 0

  const hear: Directories['hear'] = (directory, name) => {
    if (directory.gone) return
    if (name === undefined || (directory.heard?.size ?? 0) >= maxHeard) directory.heard = undefined
    else directory.heard?.add(name)
    schedule.touch(directory)
  }

  const listen: Directories['listen'] = (directory, place) => {
    if (!speaks(place)) return
    directory.handle = handles.open(place, (name) => hear(directory, name), directory.handle) ?? directory.handle
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
    // That a link leads elsewhere is no news of the places that it leads to.
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
      const directory: Directory = {
        path: position.aliases[0].path,
        parent,
        identity: identityOf(position.place),
        children: new Map(),
        targets: new Map(),
        linked: new Set(),
        turned: new Set(),
        aliases: position.aliases,
        snapshot: emptySnapshot(),
        handle: undefined,
        heard: new Set(),
        gone: false,
      }
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
