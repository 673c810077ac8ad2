import { isResourceError, notFound } from '../../core/errors.ts'
import { breath } from '../../core/kit/breath.ts'
import { inGroups } from '../../core/kit/groups.ts'
import { indexAfter } from '../../core/kit/sorted.ts'
import { comparePaths, resumeIn } from '../../core/path.ts'
import type { Context, Entry, ListQuery } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { createEntries, describeDirectory, type EntriesOptions } from './entries.ts'
import { createLookedCache, type DirectoryNames, type FactsByName, type LookedCache, type NameCache } from './names.ts'
import { type Allows, identityOf, maxDepth, type Position } from './walk.ts'
import type { Confirmed } from './watch.ts'

interface ListerOptions extends EntriesOptions {
  readonly names: NameCache
  /** Asks a running watch which directories are unchanged: the facts in them are not read from the disk again. */
  readonly confirm?: (files: number) => Promise<Confirmed | undefined>
  /** How long confirmed facts are cached, in milliseconds. */
  readonly keptMs: number
  /** Throws when the provider is closed, or the signal has aborted. */
  readonly check: (signal: AbortSignal) => void
}

/** A directory that is being listed. */
interface Frame {
  readonly position: Position
  readonly names: DirectoryNames
  /** Index of the next name. */
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
  readonly identity: string
}

/** Number of files in the first and in the largest group to examine. Groups grow, because the caller may want only the first file. */
const [firstGroup, lastGroup] = [4, 64]
/** Maximum number of names that are tested for one group, so that other work gets its turn. */
const maxTried = 1000
/**
 * Number of files that a listing examines itself before it asks the watch, because asking takes as long as examining about 20
 * files. The first number is for directories that no listing has examined yet. The second one is for directories that a listing
 * has examined under the same watch: completion of names lists them again and again.
 */
const [unasked, unaskedAgain] = [64, 8]
/** How long an answer of the watch is used, in milliseconds: a list shows no state older than that. */
const confirmedMs = 20

/** Lists files, and describes one file or directory. Both return the same entry for a file. */
export function createLister(options: ListerOptions) {
  const { walk, names, confirm, keptMs, check, leaveOut } = options
  const open = async (position: Position, after: string, signal: AbortSignal): Promise<Frame> => {
    const found = await names.of(position, signal)
    const index = after === '' ? 0 : indexAfter(found.names, after)
    // The directory that contains `after` sorts before it, and holds the names after it.
    const inside = found.names[index - 1]
    const enters = inside?.endsWith('/') === true && after.startsWith(inside)
    return { position, names: found, index: enters ? index - 1 : index, after, identity: identityOf(position.place) }
  }

  /** Opens a child directory; undefined when it is gone or not served. */
  const descend = async (frame: Frame, name: string, signal: AbortSignal): Promise<Frame | undefined> => {
    const after = frame.after.startsWith(name) ? frame.after.slice(name.length) : ''
    let position: Position | undefined
    try {
      position = await walk.enter(frame.position, name.slice(0, -1), true, signal)
      return await open(position, after, signal)
    } catch (error) {
      position?.place.close()
      if (!isResourceError(error, 'not-found')) leaveOut(pathIn(frame, name), error)
      return undefined
    }
  }

  const cache = createLookedCache(keptMs)
  const entriesIn = createEntries(options)

  const stat = async (path: string, context: Context): Promise<Entry> => {
    const position = await walk.to(path, context)
    if (position.place.stats.isFile()) return entriesIn.describe(position, context.signal)
    position.place.close()
    return describeDirectory(position.aliases[0].path, position.place.stats)
  }

  const groups = async function* (
    { prefix = '', after, shallow = false, skim }: ListQuery,
    signal: AbortSignal,
    allows: Allows | undefined,
  ): AsyncGenerator<readonly Entry[], void> {
    /** Whether one entry of each directory is enough. */
    const isSparing = shallow || skim !== undefined
    check(signal)
    const rest = resumeIn(prefix, after)
    if (rest === undefined) return
    const frames: Frame[] = []
    /** Closes all directories but the first, because one entry found in them is enough. */
    const leave = () => {
      for (const { position } of frames.splice(1)) position.place.close()
    }
    let size = firstGroup
    const lookedIn = createKnown(confirm, cache)
    try {
      const start = await walk.to(prefix, { signal, allows })
      try {
        // Entries begin with the prefix: a directory that is listed in another spelling has none.
        if (start.aliases[0].path !== prefix) throw notFound('listed in another spelling')
        frames.push(await open(start, rest, signal))
      } catch (error) {
        start.place.close()
        throw error
      }
      for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
        const name = frame.names.names[frame.index]
        if (name === undefined) {
          frames.pop()
          frame.position.place.close()
        } else if (name.endsWith('/')) {
          frame.index++
          const isWanted = frames.length + depthOf(prefix) < maxDepth && (skim?.(pathIn(frame, name)) ?? true)
          const child = isWanted ? await descend(frame, name, signal) : undefined
          if (child !== undefined) frames.push(child)
          if (isSparing) size = 1
        } else {
          const group = takeGroup(frame, size, skim)
          size = Math.min(size * 2, lastGroup)
          const looked = await lookedIn(frame, group.length)
          const entries = await entriesIn.of(frame, group, looked, signal)
          check(signal)
          const [first] = entries
          if (first !== undefined && isSparing && frames.length > 1) {
            if (shallow) {
              const path = first.path.slice(0, first.path.indexOf('/', prefix.length) + 1)
              if (after === undefined || comparePaths(path, after) > 0) yield [{ path, mimeType: directoryMimeType }]
            } else yield [first]
            leave()
            size = firstGroup
          } else if (first !== undefined) yield entries
          check(signal)
        }
        if (breath.due()) await breath.take()
      }
    } catch (error) {
      // The prefix does not exist (any more): nothing is below it.
      if (!isResourceError(error, 'not-found')) throw error
    } finally {
      for (const { position } of frames) position.place.close()
    }
  }

  return {
    stat,
    list: (query: ListQuery, signal: AbortSignal, allows?: Allows): AsyncIterable<Entry> =>
      inGroups(() => groups(query, signal, allows), signal),
  }
}

/** Creates a function for one list that returns the known facts of a directory, if a watch confirms that they are unchanged. */
function createKnown(confirm: ListerOptions['confirm'], cache: LookedCache) {
  let count = 0
  let confirmed: Confirmed | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  return async ({ identity, names, index }: Frame, more: number): Promise<FactsByName | undefined> => {
    count += more
    if (confirm === undefined) return undefined
    if (count < (cache.knows(names) ? unaskedAgain : unasked)) return cache.comparing(names)
    if (performance.now() - askedAt > confirmedMs) {
      askedAt = performance.now()
      confirmed = await confirm(names.names.length - index)
    }
    const state = confirmed?.(identity)
    return state === undefined ? cache.comparing(names) : cache.of(names, state)
  }
}

function depthOf(prefix: string): number {
  return prefix.split('/').length - 1
}

function pathIn({ position }: Frame, name: string): string {
  return `${position.aliases[0].path}${name}`
}

/** Advances over the next files, up to a directory, and returns the indices of those to examine. */
function takeGroup(frame: Frame, size: number, skim: ListQuery['skim']): readonly number[] {
  const { names } = frame.names
  const group: number[] = []
  for (let tried = 0; tried < maxTried && group.length < size; tried++) {
    const name = names[frame.index]
    if (name === undefined || name.endsWith('/')) break
    if (skim?.(pathIn(frame, name)) ?? true) group.push(frame.index)
    frame.index++
  }
  return group
}
