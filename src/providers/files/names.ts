import * as fs from 'node:fs'
import { ResourceError } from '../../core/errors.ts'
import { createRecent } from '../../core/recent.ts'
import { createBreath } from './breath.ts'
import { lookAt } from './look.ts'
import { sortNames } from './order.ts'
import { isSettled, stampOf } from './permit.ts'
import type { Place } from './place.ts'
import { failure, type Pool, untilAbort } from './pool.ts'
import type { Visibility } from './visibility.ts'
import type { Position } from './walk.ts'

/** What a directory holds that is visible by name, in path order. A directory's name ends in `/`. */
export interface Names {
  readonly names: readonly string[]
  /** Names of symbolic links. Each stands among `names` twice, as a file and as a directory: either may be there. */
  readonly links: ReadonlySet<string>
}

/** Finds the names in directories, and remembers them for as long as the directories have not changed. */
export interface NameCache {
  of(position: Position, signal: AbortSignal): Promise<Names>
  /** Whether a name in a directory is visible, as far as it goes. */
  shows(position: Pick<Position, 'aliases'>, name: string): boolean
  clear(): void
}

interface Snapshot {
  readonly stamp: string
  readonly position: Pick<Position, 'aliases'>
  /** When it may no longer be trusted, in milliseconds since 1970. */
  readonly until: number
  readonly names: Names
}

/** How many names are remembered, over all directories: about 30 MB. One directory may have more. */
const maxNames = 500_000
/** How long a snapshot of a file system that may not keep the times of its directories is trusted. */
const foreignAge = 1000

const never = new AbortController().signal
const noLinks: ReadonlySet<string> = new Set()

/**
 * @param links Whether symbolic links are looked at.
 * @param mine Whether this thread has nothing else to do, and may wait for a local file system: it takes half the time.
 */
export function createNameCache(visible: Visibility, links: boolean, pool: Pool, mine = false): NameCache {
  const snapshots = createRecent<Snapshot>(maxNames, ({ names }) => names.names.length + 8)
  const reading = new Map<string, { readonly position: Position; readonly snapshot: Promise<Snapshot> }>()

  const shows: NameCache['shows'] = ({ aliases }, name) =>
    aliases.every(({ path, ignores }) => visible(`${path}${name}`, ignores))

  const read = async (position: Position): Promise<Snapshot> => {
    const { place } = position
    const time = Date.now()
    const found = await (mine && place.local ? readNamesNow(place) : readNames(place, pool))
    const names = await selectNames(found, position)
    // What changed while it was read has another stamp the next time, and what changed just before may have the same.
    const settled = isSettled(place.stats, time)
    const until = settled ? (place.local ? Number.POSITIVE_INFINITY : time + foreignAge) : 0
    return { stamp: stampOf(place.stats), position: { aliases: position.aliases }, until, names }
  }

  const selectNames = async ({ names, linked }: FoundNames, position: Position): Promise<Names> => {
    const breath = createBreath()
    const selected: string[] = []
    const isShown = (name: string) => shows(position, name)
    for (const name of names) {
      // U+FFFD is also what bytes that are not UTF-8 turn into. Such a name leads to nothing, or to another file.
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
    of: async (position, signal) => {
      signal.throwIfAborted()
      const { path } = position.aliases[0]
      const stamp = stampOf(position.place.stats)
      const known = snapshots.get(path)
      if (known?.stamp === stamp && Date.now() < known.until && sameAliases(known.position, position))
        return known.names

      const other = reading.get(path)
      if (other !== undefined && stampOf(other.position.place.stats) === stamp && sameAliases(other.position, position))
        return (await untilAbort(other.snapshot, signal)).names

      // It is read to the end whatever becomes of this caller: others may wait for it, and the next one comes back.
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
    clear: () => snapshots.clear(),
  }
}

/** Whether something was reached by the same names, and the same rules hold in it. */
export function sameAliases(a: Pick<Position, 'aliases'>, b: Pick<Position, 'aliases'>): boolean {
  return (
    a.aliases.length === b.aliases.length &&
    a.aliases.every(({ path, ignores }, i) => path === b.aliases[i]?.path && ignores === b.aliases[i]?.ignores)
  )
}

interface FoundNames {
  /** Files, and directories with a `/`. */
  readonly names: string[]
  readonly linked: string[]
}

/**
 * All names in a directory. Not by `recursive`, which loses files on Node 20, and in chunks, between which other work has
 * its turn.
 *
 * @throws ResourceError `not-found` where it cannot be opened, `unavailable` where reading it breaks off.
 */
async function readNames(place: Place, pool: Pool): Promise<FoundNames> {
  const found: FoundNames = { names: [], linked: [] }
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
