import * as fs from 'node:fs'
import { ResourceError } from '../../core/errors.ts'
import { breath, sortInSlices } from '../../core/kit/breath.ts'
import { createRecent } from '../../core/kit/lru.ts'
import { comparePaths } from '../../core/path.ts'
import { failure, isSettled, lookAt, type Place, type Pool, stampOf, untilAbort } from './place.ts'
import type { DirectoryNames, Position, Visibility } from './walk.ts'

/** Number of names between two readings of the clock. */
const namesPerLook = 256

/**
 * Sorts the names of one directory in path order and removes duplicates. It yields on the way, so that a directory of a million names does not
 * block the event loop.
 */
export async function sortNames(names: readonly string[]): Promise<readonly string[]> {
  let count = 0
  // The clock is read once for many names: comparing two of them takes less time than reading it.
  const slices = { due: () => ++count % namesPerLook === 0 && breath.due(), rest: breath.take }
  const unique: string[] = []
  for (const name of await sortInSlices(names, comparePaths, slices, sortRun)) {
    if (name !== unique.at(-1)) unique.push(name)
    if (slices.due()) await slices.rest()
  }
  return unique
}

function sortRun(names: string[]): string[] {
  // Up to U+D7FF, JavaScript's own order of UTF-16 units is that of UTF-8 bytes, and sorting by it is faster.
  const plain = names.every((name) => !/[\ud800-\uffff]/.test(name))
  return names.sort(plain ? undefined : comparePaths)
}

interface NamesSnapshot {
  readonly stamp: string
  readonly position: Pick<Position, 'aliases'>
  /** Time after which the snapshot is stale, in milliseconds, as `performance.now()` returns it. */
  readonly until: number
  readonly names: DirectoryNames
}

/** Maximum number of cached names of all directories: about 30 MB. One directory may have more. */
const maxNames = 500_000
/** How long a snapshot is used, in milliseconds, on a file system that may not update the times of its directories. */
const maxForeignAgeMs = 1000

const never = new AbortController().signal
const noLinks: ReadonlySet<string> = new Set()

/**
 * Reads the names in directories, and caches them until the directories change.
 *
 * @param links Whether the names of symbolic links are included.
 * @param mine Whether this thread has no other work, and so may block on a local file system, which takes half the time.
 */
export function createNameCache(visible: Visibility, links: boolean, pool: Pool, mine = false) {
  const snapshots = createRecent<NamesSnapshot>(maxNames, ({ names }) => names.names.length + 8)
  const reading = new Map<string, { readonly position: Position; readonly snapshot: Promise<NamesSnapshot> }>()

  /** Whether a name in a directory is visible, judged by the name alone. */
  const shows = ({ aliases }: Pick<Position, 'aliases'>, name: string): boolean =>
    aliases.every(({ path, ignores }) => visible(`${path}${name}`, ignores))

  const read = async (position: Position): Promise<NamesSnapshot> => {
    const { place } = position
    const time = Date.now()
    const inPool = () => readNames(place, pool)
    const found = mine && place.local ? readNamesNow(place) : await (place.steady?.(inPool, never) ?? inPool())
    const names = await selectNames(found, position)
    // A change during the read changes the stamp, unless another change came so shortly before that both have the same time.
    const settled = isSettled(place.stats, time)
    const until = settled ? (place.local ? Number.POSITIVE_INFINITY : performance.now() + maxForeignAgeMs) : 0
    return { stamp: stampOf(place.stats), position: { aliases: position.aliases }, until, names }
  }

  const selectNames = async ({ names, linked }: FoundNames, position: Position): Promise<DirectoryNames> => {
    const selected: string[] = []
    const isShown = (name: string) => shows(position, name)
    for (const name of names) {
      // Bytes that are not UTF-8 also become U+FFFD. Such a name leads to nothing, or to another file.
      const real = name.includes('\ufffd') ? await spelling(position.place, name) : name
      if (real !== undefined && isShown(real)) selected.push(real)
      if (breath.due()) await breath.take()
    }
    if (links) for (const name of linked) selected.push(...[name, `${name}/`].filter(isShown))
    const sorted = await sortNames(selected)
    return { names: sorted, links: links && linked.length > 0 ? new Set(linked) : noLinks }
  }

  const spelling = async (place: Place, name: string): Promise<string | undefined> => {
    const bare = name.endsWith('/') ? name.slice(0, -1) : name
    const stats = await lookAt(place, bare, pool, never)
    return stats?.isDirectory() === true ? `${bare}/` : stats?.isFile() === true ? bare : undefined
  }

  return {
    of: async (position: Position, signal: AbortSignal): Promise<DirectoryNames> => {
      signal.throwIfAborted()
      const { path } = position.aliases[0]
      const stamp = stampOf(position.place.stats)
      const known = snapshots.get(path)
      if (known?.stamp === stamp && performance.now() < known.until && sameAliases(known.position, position))
        return known.names

      const other = reading.get(path)
      if (other !== undefined && stampOf(other.position.place.stats) === stamp && sameAliases(other.position, position))
        return (await untilAbort(other.snapshot, signal)).names

      // The read runs to its end even if this caller aborts: others may wait for it, and the next caller uses it.
      position.place.keep()
      const snapshot = read(position).finally(() => {
        position.place.close()
        if (reading.get(path) === mine) reading.delete(path)
      })
      const mine = { position, snapshot }
      reading.set(path, mine)
      snapshot.then(
        (value) => snapshots.set(path, value),
        () => {},
      )
      return (await untilAbort(snapshot, signal)).names
    },
    shows,
    clear: (): void => snapshots.clear(),
  }
}

export type NameCache = ReturnType<typeof createNameCache>

/** Whether two positions have the same aliases: the same paths with the same ignore rules. */
export function sameAliases(a: Pick<Position, 'aliases'>, b: Pick<Position, 'aliases'>): boolean {
  return (
    a.aliases.length === b.aliases.length &&
    a.aliases.every(({ path, ignores }, i) => path === b.aliases[i]?.path && ignores === b.aliases[i]?.ignores)
  )
}

interface FoundNames {
  /** The names of files, and those of directories with a final `/`. */
  readonly names: string[]
  readonly linked: string[]
}

/**
 * Maximum size of a directory whose names are read with one call, in bytes, according to its stats. Such a directory has about
 * 500 names on ext4, and at most 16,384 on any file system.
 */
const smallBytes = 16 * 1024

/**
 * Reads all names in a directory. Does not use `recursive`, which loses files on Node 20. Reads a large one in chunks, between which other work
 * gets its turn.
 *
 * @throws ResourceError `not-found` when it cannot be opened, `unavailable` when reading fails midway.
 */
async function readNames(place: Place, pool: Pool): Promise<FoundNames> {
  const found: FoundNames = { names: [], linked: [] }
  if (place.local && place.stats.size <= smallBytes) return readNamesNow(place)
  const readAll = async () => {
    const directory = await fs.promises.opendir(place.at, { bufferSize: 1024 })
    try {
      for (;;) {
        const entry = await directory.read()
        if (entry === null) return
        add(entry, found)
      }
    } catch (error) {
      throw new ResourceError('unavailable', 'A directory could not be read to its end.', {}, { cause: error })
    } finally {
      await directory.close()
    }
  }
  try {
    await pool.run(readAll, { signal: never, hold: place })
    return found
  } catch (error) {
    throw failure(error)
  }
}

function readNamesNow(place: Place): FoundNames {
  const found: FoundNames = { names: [], linked: [] }
  try {
    for (const entry of fs.readdirSync(place.at, { withFileTypes: true })) add(entry, found)
    return found
  } catch (error) {
    throw failure(error)
  }
}

function add(entry: fs.Dirent, { names, linked }: FoundNames): void {
  if (entry.isFile()) names.push(entry.name)
  else if (entry.isDirectory()) names.push(`${entry.name}/`)
  else if (entry.isSymbolicLink()) linked.push(entry.name)
}

/** Facts of a served file that its entry shows. */
export interface FileFacts {
  readonly size: number
  /** Time of the last modification, in milliseconds since 1970. */
  readonly modified: number
  readonly version: string
}

/** Facts of the files of one directory, by the indices of their names: 80 bytes each, with the version. */
export interface FactsByName {
  /** Returns the facts of a file, `nothing` for a name that is not served, undefined for one that was not examined. */
  at(index: number): FileFacts | 'nothing' | undefined
  /** Records the facts of a file. Undefined removes them, for facts that may change without an event in the directory. */
  note(index: number, facts: FileFacts | 'nothing' | undefined): void
}

/**
 * Cache of the facts of examined files, for each directory. The facts are dropped with the names of the directory.
 *
 * @param keptMs How long facts are cached, in milliseconds. A change without an event is shown after that: a write through a memory map or
 * another hard link.
 */
export function createLookedCache(keptMs: number) {
  const known = new WeakMap<
    DirectoryNames,
    { readonly state: number; readonly until: number; readonly looked: FactsByName }
  >()
  return {
    /** Whether facts of the directory are cached, even if they are out of date. */
    knows: (names: DirectoryNames): boolean => known.has(names),
    /**
     * Returns a recorder for files that are examined although their facts are known: it forgets facts that differ, so that no
     * later list shows an older state. Undefined when nothing is known.
     */
    comparing: (names: DirectoryNames): FactsByName | undefined => {
      const looked = known.get(names)?.looked
      return looked === undefined ? undefined : createComparing(looked)
    },
    /** @param state State of the directory, which differs after any change in it. Facts of another state are dropped. */
    of: (names: DirectoryNames, state: number): FactsByName => {
      const last = known.get(names)
      const now = performance.now()
      if (last?.state === state && now < last.until) return last.looked
      const looked = createFactsByName(names.names.length)
      known.set(names, { state, until: now + keptMs, looked })
      return looked
    },
  }
}

export type LookedCache = ReturnType<typeof createLookedCache>

function createComparing(known: FactsByName): FactsByName {
  return {
    at: () => undefined,
    note: (index, facts) => {
      const last = known.at(index)
      if (last !== undefined && versionOf(last) !== versionOf(facts)) known.note(index, undefined)
    },
  }
}

const versionOf = (facts: FileFacts | 'nothing' | undefined) => (typeof facts === 'object' ? facts.version : facts)

function createFactsByName(length: number): FactsByName {
  const sizes = new Float64Array(length)
  const times = new Float64Array(length)
  /** The versions of the files. Undefined: not examined. Empty: not served. */
  const versions = new Array<string | undefined>(length)
  return {
    at: (index) => {
      const version = versions[index]
      if (version === undefined) return undefined
      return version === '' ? 'nothing' : { size: sizes[index] ?? 0, modified: times[index] ?? 0, version }
    },
    note: (index, facts) => {
      versions[index] = facts === 'nothing' ? '' : facts?.version
      if (facts === 'nothing' || facts === undefined) return
      sizes[index] = facts.size
      times[index] = facts.modified
    },
  }
}
