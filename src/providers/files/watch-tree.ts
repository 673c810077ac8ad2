import type { BigIntStats } from 'node:fs'
import { isResourceError, ResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createBreath } from './breath.ts'
import { lookAtAll } from './look.ts'
import { type NameCache, sameAliases } from './names.ts'
import { indexAfter } from './order.ts'
import { kindOf, modeAllows, type PermitOptions } from './permit.ts'
import type { Place } from './place.ts'
import type { Pool } from './pool.ts'
import { identityOf, maxDepth, mayRead, type Position, type Walk } from './walk.ts'
import type { Handle, Handles } from './watch-handles.ts'
import type { Pending } from './watch-pending.ts'
import type { Schedule } from './watch-schedule.ts'
import { createSnapshot, emptySnapshot, type Snapshot } from './watch-snapshot.ts'

/** A directory that is served, as it was when it was last looked at. */
export interface Directory {
  readonly path: string
  readonly parent: Directory | undefined
  /** Which directory of the file system it is. */
  readonly identity: string
  readonly children: Map<string, Directory>
  aliases: Position['aliases']
  snapshot: Snapshot
  /** Where it is left out, nothing is heard of the directory: it is looked at in rounds alone. */
  handle: Handle | undefined
  /** The names that were heard since; `undefined`: not even which. */
  heard: Set<string> | undefined
  /** What the symbolic links in it lead to. */
  targets: Set<string>
  gone: boolean
}

/** Why a directory is looked at: it is new to us, something was heard of it, or its turn has come. */
export type Cause = 'first' | 'heard' | 'round'

/** The directories that are served, and what is known of the files in them. What differs from it is told. */
export interface Tree {
  readonly directories: ReadonlySet<Directory>
  readonly root: Directory | undefined
  /** Finds all directories, and listens to them. What is found is not told. */
  begin(): Promise<void>
  /** Looks at a directory again, by its path, so that it is judged as a listing judges it. */
  refresh(directory: Directory, cause: 'heard' | 'round'): Promise<void>
  /** Something was heard of a directory; `undefined`: nobody knows what. */
  hear(directory: Directory, name: string | undefined): void
  /** Forgets everything, and tells nothing. */
  clear(): void
}

export interface TreeOptions {
  readonly walk: Walk
  readonly names: NameCache
  readonly permit: PermitOptions
  readonly pool: Pool
  readonly handles: Handles
  readonly schedule: Schedule<Directory>
  readonly pending: Pending
  /** Whether the system tells of changes at a place. */
  readonly speaks: (place: Place) => boolean
  readonly log: Log
  /** How many names are kept in mind, about 110 bytes each. */
  readonly limit: number
  readonly signal: AbortSignal
}

/** So many files are looked at in one go. */
const group = 256
/** With more names heard than this, all of a directory is looked at. */
const maxHeard = 64
/** When something that failed is tried again, in milliseconds. */
const retry = 1000

export function createTree(options: TreeOptions): Tree {
  const { walk, names, permit, pool, handles, schedule, pending, speaks, log, limit, signal } = options
  const directories = new Set<Directory>()
  /** The directories with a symbolic link to a path. */
  const linked = new Map<string, Set<Directory>>()
  const troubled = new WeakSet<Directory>()
  let root: Directory | undefined
  let entries = 0

  const tell = (path: string, listed: boolean): void => {
    pending.add(path, listed)
    for (const directory of linked.get(path) ?? []) hear(directory, undefined)
  }

  const hear = (directory: Directory, name: string | undefined): void => {
    if (directory.gone) return
    if (name === undefined || (directory.heard?.size ?? 0) >= maxHeard) directory.heard = undefined
    else directory.heard?.add(name)
    schedule.touch(directory)
  }

  const arm = (directory: Directory, place: Place): void => {
    if (!speaks(place)) return
    directory.handle = handles.open(place, (name) => hear(directory, name), directory.handle) ?? directory.handle
  }

  /** Puts off what cannot be looked at just now. Until then nothing is known of it, and so nothing is lost. */
  const putOff = (directory: Directory, error: unknown): void => {
    if (!isResourceError(error, 'unavailable')) throw error
    if (!troubled.has(directory))
      log('warn', 'a directory cannot be looked at just now', { path: directory.path, error: error.message })
    troubled.add(directory)
    directory.heard = undefined
    schedule.later(directory, retry)
  }

  const adopt = (directory: Directory, snapshot: Snapshot): void => {
    entries += snapshot.names.names.length - directory.snapshot.names.names.length
    directory.snapshot = snapshot
    if (entries > limit) throw new ResourceError('too-large', `There are more than ${limit} files, too many to watch.`)
  }

  /** Takes everything out of a directory, and tells that it is gone. */
  const empty = (directory: Directory): void => {
    const { path, children, snapshot, targets } = directory
    for (const target of targets) {
      linked.get(target)?.delete(directory)
      if (linked.get(target)?.size === 0) linked.delete(target)
    }
    targets.clear()
    adopt(directory, emptySnapshot())
    for (const [index, name] of snapshot.names.names.entries()) if (snapshot.serves(index)) tell(`${path}${name}`, true)
    for (const child of children.values()) drop(child)
  }

  const drop = (directory: Directory): void => {
    const { path, parent, handle } = directory
    directory.gone = true
    handle?.close()
    schedule.drop(directory)
    directories.delete(directory)
    parent?.children.delete(path.slice(parent.path.length))
    empty(directory)
  }

  const explore = async (parent: Directory | undefined, position: Position, cause: Cause): Promise<Directory> => {
    const { place, aliases } = position
    const { path } = aliases[0]
    const directory: Directory = {
      path,
      parent,
      identity: identityOf(place),
      children: new Map(),
      aliases,
      snapshot: emptySnapshot(),
      handle: undefined,
      heard: new Set(),
      targets: new Set(),
      gone: false,
    }
    parent?.children.set(path.slice(parent.path.length), directory)
    directories.add(directory)
    // From here on changes are heard; only now it is looked what there is.
    arm(directory, place)
    await scan(directory, position, new Set(), cause)
    return directory
  }

  /** Sees to it that a child directory is in the tree, if it is to be served. */
  const visit = async (
    directory: Directory,
    position: Position,
    name: string,
    stats: BigIntStats | undefined,
    cause: Cause,
  ) => {
    const known = directory.children.get(name)
    const link = directory.snapshot.names.links.has(name.slice(0, -1))
    if (known !== undefined && !link && stats?.isDirectory() && known.identity === `${stats.dev}:${stats.ino}`) return
    let child: Position | undefined
    try {
      child = await walk.enter(position, name.slice(0, -1), true, signal)
      if (known?.identity === identityOf(child.place)) return
      if (known !== undefined) drop(known)
      if (child.aliases[0].path.split('/').length <= maxDepth) await explore(directory, child, cause)
    } catch (error) {
      const mine = directory.children.get(name)
      if (!isResourceError(error, 'not-found')) putOff(mine ?? directory, error)
      else if (mine !== undefined) drop(mine)
    } finally {
      child?.place.close()
    }
  }

  /** What is served at a file's name; of a symbolic link, what it leads to. */
  const servedAt = async (directory: Directory, position: Position, name: string, stats: BigIntStats | undefined) => {
    if (!directory.snapshot.names.links.has(name)) {
      if (stats === undefined || kindOf(stats, position.device, permit) !== 'file') return undefined
      return modeAllows(stats) || (await mayRead(position.place, stats, name, pool, signal)) ? stats : undefined
    }
    try {
      const found = await walk.enter(position, name, false, signal)
      found.place.close()
      for (const { path } of found.aliases.slice(1)) {
        directory.targets.add(path)
        linked.set(path, (linked.get(path) ?? new Set()).add(directory))
      }
      return found.place.stats
    } catch (error) {
      if (!isResourceError(error, 'not-found')) throw error
      return undefined
    }
  }

  /**
   * Looks at some of the names of a directory. In a round, what was heard up to the moment of the look comes first: it
   * must not be taken for what had been there all the time.
   */
  const look = async (directory: Directory, position: Position, indices: readonly number[], cause: Cause) => {
    const { path, snapshot, handle } = directory
    const { names } = snapshot.names
    const doubt = cause === 'heard' || (cause === 'round' && handle === undefined)
    const breath = createBreath()
    for (let start = 0; start < indices.length; start += group) {
      const part = indices.slice(start, start + group)
      const time = Date.now()
      const bare = part.map((index) => (names[index] ?? '').replace(/\/$/, ''))
      const found = await lookAtAll(position.place, bare, pool, signal, breath)
      if (cause === 'round') {
        await whatWasHeard()
        if (schedule.has(directory)) return hear(directory, undefined)
      }
      for (const [i, index] of part.entries()) {
        const name = names[index] ?? ''
        if (name.endsWith('/')) await visit(directory, position, name, found[i], cause)
        else {
          const stats = await servedAt(directory, position, name, found[i])
          const verdict = snapshot.note(index, stats, doubt, time)
          if (verdict !== undefined) tell(`${path}${name}`, verdict !== 'changed')
        }
      }
    }
  }

  const scan = async (directory: Directory, position: Position, heard: Directory['heard'], cause: Cause) => {
    const found = await names.of(position, signal)
    const sameRules = sameAliases(directory, position)
    const sameNames = directory.snapshot.names === found
    directory.aliases = position.aliases
    if (cause === 'first') {
      adopt(directory, createSnapshot(found))
      // With a handle, the files are looked at in the first round, and count as changed where something is heard before.
      const folders = [...found.names.keys()].filter(
        (i) => directory.handle === undefined || found.names[i]?.endsWith('/'),
      )
      return look(directory, position, folders, cause)
    }
    if (!sameNames) {
      const { snapshot, gone } = directory.snapshot.renew(found)
      adopt(directory, snapshot)
      for (const name of gone) tell(`${directory.path}${name}`, true)
      for (const [name, child] of directory.children) if (indexOf(found.names, name) === -1) drop(child)
    }
    const some = sameNames && heard !== undefined && cause === 'heard' ? [...heard] : undefined
    const indices = some?.flatMap((name) => [name, `${name}/`]).map((name) => indexOf(found.names, name))
    await look(directory, position, indices?.filter((index) => index !== -1) ?? [...found.names.keys()], cause)
    // Other rules hold below too.
    if (!sameRules) for (const child of directory.children.values()) hear(child, undefined)
  }

  const refresh = async (directory: Directory, cause: 'heard' | 'round'): Promise<void> => {
    if (directory.gone) return
    if (cause === 'round' && schedule.has(directory)) return hear(directory, undefined)
    const { heard } = directory
    directory.heard = new Set()
    const start = performance.now()
    let position: Position | undefined
    try {
      position = await walk.to(directory.path, signal)
      if (identityOf(position.place) === directory.identity) {
        if (heard === undefined || cause === 'round') arm(directory, position.place)
        await scan(directory, position, heard, cause)
        troubled.delete(directory)
      } else if (directory.parent !== undefined) {
        drop(directory)
        hear(directory.parent, undefined)
      }
    } catch (error) {
      if (!isResourceError(error, 'not-found')) putOff(directory, error)
      else if (directory.parent !== undefined) drop(directory)
      else {
        // The root may not be read any more: there is nothing, until it may.
        empty(directory)
        schedule.later(directory, retry)
      }
    } finally {
      position?.place.close()
    }
    // A directory that takes long is looked at half of the time at most.
    const taken = performance.now() - start
    if (taken > retry / 50) schedule.spare(directory, taken)
  }

  return {
    directories,
    get root() {
      return root
    },
    begin: async () => {
      const position = await walk.root(signal)
      try {
        root = await explore(undefined, position, 'first')
      } finally {
        position.place.close()
      }
    },
    refresh,
    hear,
    clear: () => {
      for (const directory of directories) {
        directory.gone = true
        directory.handle?.close()
        schedule.drop(directory)
      }
      directories.clear()
      linked.clear()
      root = undefined
      entries = 0
    },
  }
}

/** Waits until what had happened at the time of the call was heard. The first turn of the event loop may be half over. */
async function whatWasHeard(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function indexOf(names: readonly string[], name: string): number {
  const index = indexAfter(names, name) - 1
  return names[index] === name ? index : -1
}
