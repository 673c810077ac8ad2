import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import { isResourceError } from '../../core/errors.ts'
import { breath } from '../../core/kit/breath.ts'
import { failure, type LeaveOut, type Place, type Pool } from './access.ts'

/** Options that decide, besides the name of a file, whether it is served. */
export interface PermitOptions {
  readonly hardlinks: boolean
  readonly allowMounts: boolean
}

/**
 * Returns the kind of a file that may be served: `file` for a regular file with one name on the root's device, `directory` for a directory on
 * it. Undefined for devices, sockets and FIFOs.
 */
export function kindOf(stats: BigIntStats, device: bigint, options: PermitOptions): 'file' | 'directory' | undefined {
  if (stats.dev !== device && !options.allowMounts) return undefined
  if (stats.isDirectory()) return 'directory'
  if (!stats.isFile() || stats.nlink === 0n) return undefined
  // A second name may lie anywhere on the device, under other permissions.
  return stats.nlink === 1n || options.hardlinks ? 'file' : undefined
}

export type MaybeStats = fs.BigIntStats | undefined

/**
 * Returns the stats of one child of a directory, without following links; undefined when it is missing or inaccessible.
 *
 * @throws ResourceError `unavailable` when the file system fails.
 */
export async function lookAt(place: Place, name: string, pool: Pool, signal: AbortSignal): Promise<MaybeStats> {
  signal.throwIfAborted()
  return place.local ? lookNow(place, name) : lookInPool(place, [name], pool, signal).then(([found]) => found)
}

/**
 * Returns the stats of several children of a directory. On a local file system the calls run on this thread, which is faster,
 * until they turn out to be slow. The pool then does the rest.
 *
 * @param leaveOut Called with a name that the file system fails on. Its stats are then undefined. Default: it throws the error.
 */
export async function lookAtAll(
  place: Place,
  names: readonly string[],
  pool: Pool,
  signal: AbortSignal,
  leaveOut: LeaveOut = rethrow,
): Promise<readonly MaybeStats[]> {
  const found: MaybeStats[] = []
  const start = performance.now()
  while (place.local && found.length < names.length) {
    // A thousand cached files take 5 ms, so calls that take longer wait for the disk.
    if (found.length % 8 === 0 && performance.now() - start > 5) break
    const name = names[found.length] ?? ''
    try {
      found.push(lookNow(place, name))
    } catch (error) {
      leaveOut(name, error)
      found.push(undefined)
    }
  }
  if (breath.due()) await breath.take()
  signal.throwIfAborted()
  if (found.length === names.length) return found
  return found.concat(await lookInPool(place, names.slice(found.length), pool, signal, leaveOut))
}

function rethrow(_: string, error: unknown): never {
  throw error
}

/** Does the same as {@link lookAt} on this thread: for a place on a local file system. */
export function lookNow(place: Place, name: string): MaybeStats {
  try {
    return fs.lstatSync(`${place.at}/${name}`, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return nothingOr(error)
  }
}

async function lookInPool(
  place: Place,
  names: readonly string[],
  pool: Pool,
  signal: AbortSignal,
  leaveOut: LeaveOut = rethrow,
) {
  // At most four tasks, each of which examines its names in sequence, so that one abort listener serves many names.
  const size = Math.ceil(names.length / 4)
  const parts = Array.from({ length: Math.ceil(names.length / size) }, (_, i) => names.slice(i * size, (i + 1) * size))
  const one = (name: string): Promise<MaybeStats> =>
    fs.promises
      .lstat(`${place.at}/${name}`, { bigint: true })
      .catch(nothingOr)
      .catch((error: unknown) => {
        leaveOut(name, error)
        return undefined
      })
  const all = async (part: readonly string[]) => {
    const found: MaybeStats[] = []
    for (const name of part) found.push(await one(name))
    return found
  }
  const found = await Promise.all(parts.map((part) => pool.run(() => all(part), { signal, hold: place })))
  return found.flat()
}

function nothingOr(error: unknown): undefined {
  const meaning = failure(error)
  if (!isResourceError(meaning, 'not-found')) throw meaning
}

let identity = { user: -1, groups: new Set<bigint>() }

/** Returns the user and groups of this process, which may drop privileges while it runs. */
function currentIdentity(): typeof identity {
  const user = process.geteuid?.() ?? 0
  if (user !== identity.user) {
    const ids = [...(process.getgroups?.() ?? []), process.getegid?.() ?? 0]
    identity = { user, groups: new Set(ids.map(BigInt)) }
  }
  return identity
}

/**
 * Whether the mode of a file lets this process read it (a directory: read and search it). If not, an access control list may still allow it,
 * which only access(2) can tell.
 */
export function modeAllows(stats: BigIntStats): boolean {
  const rights = stats.isDirectory() ? 0o5n : 0o4n
  const everybody = rights * 0o111n
  // True for most files, without a look-up of the user of this process.
  if ((stats.mode & everybody) === everybody) return true
  const { user, groups } = currentIdentity()
  if (user === 0) return true
  const shift = stats.uid === BigInt(user) ? 6n : groups.has(stats.gid) ? 3n : 0n
  return ((stats.mode >> shift) & rights) === rights
}

/** Returns a version stamp of a file or directory. Different states have different stamps, within the resolution of the file system's clock. */
export function stampOf(stats: BigIntStats): string {
  const { mtimeNs, ctimeNs, size, ino } = stats
  return `${mtimeNs.toString(36)}.${ctimeNs.toString(36)}.${size.toString(36)}.${ino.toString(36)}`
}

/** Whether two stats have the same stamp. It is cheaper than making both stamps. */
export function hasStamp(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.size === b.size && a.ino === b.ino
}

/** Upper bound of the clock tick of file systems, in milliseconds: two changes within one tick (4 to 10 ms) leave the same stamp. */
export const tickMs = 20

/**
 * Whether the last change was long enough before a time (ms since 1970) that any later change gives another stamp. Content read before that
 * may be stale although the stamp is unchanged. A time in the future was set by hand, and no change produces it.
 *
 * @param time Time at which the stats were taken, or when that is not known, a time before it.
 * @param until Time after the stats were taken. A thread that waits for the processor may take them much later than `time`.
 */
export function isSettled(stats: BigIntStats, time: number, withinMs = tickMs, until = time): boolean {
  for (const changed of [Number(stats.mtimeMs), Number(stats.ctimeMs)])
    if (changed >= time - withinMs && changed <= until + withinMs) return false
  return true
}

/** Maximum number of directories with facts, and of facts of one directory. */
const maxDirectories = 2000
const maxFacts = 10_000
/** How long a directory must be unchanged, in milliseconds: file systems such as FAT count time in steps of 2 s. */
const settledMs = 3000

/**
 * Cache of facts about the names in directories of local file systems, such as that there is no `.gitignore`. A fact is valid until the times of
 * the directory change, as they do when a name is added. This saves each small read two look-ups, a sixth of its work.
 */
export function createDirectoryFacts(clock: Pick<DateConstructor, 'now'> = Date) {
  const directories = new Map<bigint, { readonly stats: BigIntStats; readonly facts: Set<string> }>()

  /** Returns the facts that were recorded since the directory last changed; undefined when there are none. */
  const of = ({ stats, local }: Place): Set<string> | undefined => {
    const known = local ? directories.get(stats.ino) : undefined
    return known !== undefined && known.stats.dev === stats.dev && hasStamp(known.stats, stats)
      ? known.facts
      : undefined
  }

  return {
    of,
    /** Records a fact that was found after the stats of the place were taken. */
    note: (directory: Place, fact: string): void => {
      const { stats, local } = directory
      if (!local || !isSettled(stats, clock.now(), settledMs)) return
      const facts = of(directory) ?? new Set()
      if (directories.size >= maxDirectories) directories.clear()
      // Clients can request any name, so the set must be bounded.
      if (facts.size >= maxFacts) facts.clear()
      directories.set(stats.ino, { stats, facts: facts.add(fact) })
    },
  }
}
