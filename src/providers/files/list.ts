import type { BigIntStats } from 'node:fs'
import { isResourceError } from '../../core/errors.ts'
import { comparePaths } from '../../core/path.ts'
import type { Entry, ListQuery } from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { createBreath } from './breath.ts'
import { describeDirectory, describeFile, type Headings } from './describe.ts'
import { lookAtAll } from './look.ts'
import type { NameCache, Names } from './names.ts'
import { indexAfter } from './order.ts'
import { kindOf, modeAllows, type PermitOptions } from './permit.ts'
import type { Pool } from './pool.ts'
import type { RuleFacts, Rules } from './rules.ts'
import { type Allows, maxDepth, mayRead, type Position, type Walk } from './walk.ts'

/** Lists files, and describes one file or directory. Both return the same entry for a file. */
export interface Lister {
  stat(path: string, signal: AbortSignal, allows?: Allows): Promise<Entry>
  list(query: ListQuery, signal: AbortSignal, allows?: Allows): AsyncGenerator<Entry>
}

export interface ListerOptions {
  readonly walk: Walk
  readonly names: NameCache
  readonly permit: PermitOptions
  readonly rules: Rules
  readonly headings: Headings
  readonly pool: Pool
}

/** A directory that is being listed. */
interface Frame {
  readonly position: Position
  readonly names: Names
  /** Index of the next name. */
  index: number
  /** The rest of the path to resume after, relative to this directory. */
  readonly after: string
}

/** Sizes of the groups in which files are examined. They grow, because the caller may want only the first file. */
const [firstGroup, lastGroup] = [4, 64]
/** Maximum number of names tried before other work gets its turn. */
const maxTried = 1000

export function createLister({ walk, names, permit, rules, headings, pool }: ListerOptions): Lister {
  const open = async (position: Position, after: string, signal: AbortSignal): Promise<Frame> => {
    const found = await names.of(position, signal)
    const index = after === '' ? 0 : indexAfter(found.names, after)
    // The directory that contains `after` sorts before it, and holds the names after it.
    const inside = found.names[index - 1]
    const enters = inside?.endsWith('/') === true && after.startsWith(inside)
    return { position, names: found, index: enters ? index - 1 : index, after }
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
      if (isResourceError(error, 'not-found')) return undefined
      throw error
    }
  }

  /** Cache of the rules' facts for each name of a directory, kept as long as its names: globs are slow. */
  const told = new WeakMap<Names, (RuleFacts | undefined)[]>()

  const factsOf = (frame: Frame, index: number, path: string): RuleFacts => {
    if (!rules.any) return rules.of(path)
    const known = told.get(frame.names) ?? new Array<RuleFacts | undefined>(frame.names.names.length)
    const facts = known[index] ?? rules.of(path)
    known[index] = facts
    told.set(frame.names, known)
    return facts
  }

  const entryOf = async (frame: Frame, index: number, stats: BigIntStats | undefined, signal: AbortSignal) => {
    const { position } = frame
    const name = frame.names.names[index]
    if (name === undefined) return undefined
    if (frame.names.links.has(name)) return entryAt(position, name, signal)
    if (stats === undefined || kindOf(stats, position.device, permit) !== 'file') return undefined
    if (!modeAllows(stats) && !(await mayRead(position.place, stats, name, pool, signal))) return undefined
    const path = `${position.aliases[0].path}${name}`
    const facts = factsOf(frame, index, path)
    const entry = describeFile(path, stats, facts)
    if (!facts.heading) return entry
    return headings.title(entry, async () => (await walk.enter(position, name, false, signal)).place, signal)
  }

  /** Returns the entry of a symbolic link's target. */
  const entryAt = async (directory: Position, name: string, signal: AbortSignal): Promise<Entry | undefined> => {
    try {
      return await describe(await walk.enter(directory, name, false, signal), signal)
    } catch (error) {
      if (isResourceError(error, 'not-found')) return undefined
      throw error
    }
  }

  /** Takes ownership of the position of a file. */
  const describe = async ({ place, aliases }: Position, signal: AbortSignal): Promise<Entry> => {
    try {
      const { path } = aliases[0]
      const facts = rules.of(path)
      const entry = describeFile(path, place.stats, facts)
      const open = async () => {
        place.keep()
        return place
      }
      return facts.heading ? await headings.title(entry, open, signal) : entry
    } finally {
      place.close()
    }
  }

  const stat = async (path: string, signal: AbortSignal, allows?: Allows): Promise<Entry> => {
    const position = await walk.to(path, signal, allows)
    if (position.place.stats.isFile()) return describe(position, signal)
    position.place.close()
    return describeDirectory(path, position.place.stats)
  }

  return {
    stat,
    list: async function* ({ prefix = '', after, shallow = false, skim }, signal, allows) {
      /** Whether one entry of each directory is enough. */
      const isSparing = shallow || skim !== undefined
      const rest = resumeIn(prefix, after)
      if (rest === undefined) return
      const frames: Frame[] = []
      /** Leaves the directories below the first: one entry found in them is enough. */
      const leave = () => {
        for (const { position } of frames.splice(1)) position.place.close()
      }
      const breath = createBreath()
      let size = firstGroup
      try {
        const start = await walk.to(prefix, signal, allows)
        try {
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
            const names = group.map((index) => frame.names.names[index] ?? '')
            const found = await lookAtAll(frame.position.place, names, pool, signal, breath)
            for (const [i, stats] of found.entries()) {
              const entry = await entryOf(frame, group[i] ?? -1, stats, signal)
              signal.throwIfAborted()
              if (entry === undefined) continue
              const isEnough = isSparing && frames.length > 1
              if (shallow && isEnough) {
                const path = entry.path.slice(0, entry.path.indexOf('/', prefix.length) + 1)
                if (after === undefined || comparePaths(path, after) > 0) yield { path, mimeType: directoryMimeType }
              } else yield entry
              signal.throwIfAborted()
              if (!isEnough) continue
              leave()
              size = firstGroup
              break
            }
          }
          if (breath.due()) await breath.take()
        }
      } catch (error) {
        // The prefix does not exist (any more): nothing is below it.
        if (!isResourceError(error, 'not-found')) throw error
      } finally {
        for (const { position } of frames) position.place.close()
      }
    },
  }
}

/** Returns the rest of `after` relative to the prefix; `''` when everything is still to come, undefined when nothing is. */
function resumeIn(prefix: string, after: string | undefined): string | undefined {
  if (after === undefined) return ''
  if (after.startsWith(prefix)) return after.slice(prefix.length)
  return comparePaths(after, prefix) < 0 ? '' : undefined
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
