import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { failure, type Pool, type ReadHandle, type Shared } from './access.ts'
import type { Clock, PageCache } from './page-cache.ts'
import { hasStamp } from './stats.ts'

const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const read = promisify(fs.read)

/** Reference-counted file descriptor. It is closed after its last user has closed it, and never while a call uses it. */
export interface Descriptor extends Shared {
  readonly fd: number
  /** A path below /proc that opens the object of the descriptor. */
  readonly at: string
}

interface OpenTerms {
  readonly signal: AbortSignal
  readonly hold?: Shared
  /** Whether calls on the path answer at once, so that they may run on this thread. */
  readonly local: boolean
  /**
   * Whether the kernel has the name in memory now. It is checked after the wait for a slot of the pool: if another call has looked up the name
   * meanwhile, the path is opened on this thread, which frees the slot at once.
   */
  readonly hot?: () => boolean
  /** Records whether the call needed the disk. */
  readonly pageCache?: PageCache | undefined
}

/** @throws ResourceError `not-found` or `unavailable`, or the reason of the abort. */
export async function openDescriptor(path: string, flags: number, pool: Pool, terms: OpenTerms): Promise<Descriptor> {
  const { local, hot, pageCache, ...rest } = terms
  const inPool = () => open(path, flags)
  const call = async () => (hot?.() === true ? fs.openSync(path, flags) : (pageCache?.inPool(inPool) ?? inPool()))
  try {
    return shared(await pool.run(call, { ...rest, late: fs.closeSync }), local)
  } catch (error) {
    throw failure(error)
  }
}

/** Opens a path on this thread: for cached data on a local file system. Throws as {@link openDescriptor} does. */
export function openNow(path: string, flags: number, signal: AbortSignal): Descriptor {
  signal.throwIfAborted()
  try {
    return shared(fs.openSync(path, flags), true)
  } catch (error) {
    throw failure(error)
  }
}

function shared(fd: number, local: boolean): Descriptor {
  let users = 1
  return {
    fd,
    at: `/proc/self/fd/${fd}`,
    keep: () => {
      users++
    },
    close: () => {
      users--
      if (users > 0) return
      // On a mount that hangs, close(2) would block this thread.
      if (local) fs.closeSync(fd)
      else fs.close(fd, () => {})
    },
  }
}

/** Returns the current stats of a descriptor. */
export async function statOf(descriptor: Descriptor, local: boolean, pool: Pool, signal: AbortSignal) {
  try {
    if (local) return fs.fstatSync(descriptor.fd, { bigint: true })
    return await pool.run(() => fstat(descriptor.fd, { bigint: true }), { signal, hold: descriptor })
  } catch (error) {
    throw failure(error)
  }
}

interface HandleTerms {
  readonly local: boolean
  readonly stats: BigIntStats
  /** The files that the kernel probably has in memory, which are read on this thread. Undefined if this file is never one of them. */
  readonly hot?: ReturnType<typeof createHot<bigint>> | undefined
  /** Predicts whether the kernel has other files in memory. Undefined if this file is never read on this thread. */
  readonly pageCache?: PageCache | undefined
}

/** Returns a handle that reads from a descriptor. */
export function handleOf(
  descriptor: Descriptor,
  pool: Pool,
  { local, stats, hot, pageCache }: HandleTerms,
): ReadHandle {
  const { fd } = descriptor
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      const now = () => fs.readSync(fd, buffer, offset, length, position)
      const inPool = async () => (await read(fd, buffer, offset, length, position)).bytesRead
      // As in `openDescriptor`, a call that waited for a slot checks again.
      const call = async () => (hot?.has(stats.ino, stats) ? now() : (pageCache?.inPool(inPool) ?? inPool()))
      try {
        signal.throwIfAborted()
        let taken: number
        if (hot?.has(stats.ino, stats)) taken = fs.readSync(fd, buffer, offset, length, position)
        else if (pageCache?.isWarm()) taken = pageCache.here(now)
        else taken = await pool.run(call, { signal, hold: descriptor })
        if (position === 0 && taken >= stats.size) hot?.add(stats.ino, stats)
        return taken
      } catch (error) {
        throw failure(error)
      }
    },
    stat: (signal) => statOf(descriptor, local, pool, signal),
    close: descriptor.close,
  }
}

/** Returns the mount number of a descriptor from /proc of Linux, without a call to its file system. */
export function mountOf(descriptor: Descriptor): string | undefined {
  const info = fs.openSync(`/proc/self/fdinfo/${descriptor.fd}`, 'r')
  try {
    const length = fs.readSync(info, infoBytes)
    return /^mnt_id:\s*(\d+)/m.exec(infoBytes.toString('latin1', 0, length))?.[1]
  } finally {
    fs.closeSync(info)
  }
}

/** Buffer for the beginning of a file of /proc/self/fdinfo, whose third line has the number of the mount. */
const infoBytes = Buffer.alloc(512)

/**
 * Returns the mounts that this process sees, a line for each: its number, parent, device, root and path; see proc_pid_mountinfo(5). Undefined if
 * the table cannot be read.
 */
export function mountTable(): string | undefined {
  try {
    return fs.readFileSync('/proc/self/mountinfo', 'latin1')
  } catch {
    return undefined
  }
}

/** Whether a mount is still in the table, which has no unmounted ones (also by `umount -l`). True without a table. */
export function isMounted(mount: string, table: string | undefined): boolean {
  return table === undefined || `\n${table}`.includes(`\n${mount} `)
}

/** Whether the table may have a mount inside a directory. If so, a name in it may lead to a file system that does not answer. */
export function hasMountsInside(directory: string, table: string | undefined): boolean {
  if (table === undefined) return true
  const octal = (character: string) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
  const escaped = Buffer.from(directory)
    .toString('latin1')
    .replace(/[\\ \t\n]/g, octal)
  return table.includes(escaped.endsWith('/') ? ` ${escaped}` : ` ${escaped}/`)
}

/** Maximum age of a record, in milliseconds: later, the kernel may have freed the memory, or another file system may be mounted. */
const maxAgeMs = 2000
const most = 20_000

/**
 * Recently used names or files, which the kernel probably still has in memory. A call for one on a local file system answers in microseconds, while a
 * round trip to the thread pool takes ten times that, plus a wait for a processor. Every call that may wait for a disk, or for a mount that
 * hangs, goes to the pool.
 *
 * Files have their inode number as the key, because formatting a 64-bit number as text is slow.
 */
export function createHot<K>(clock: Clock = performance) {
  /** The records of names or files, the oldest first. */
  const records = new Map<K, { readonly until: number; readonly stats: BigIntStats | undefined }>()
  return {
    /** Whether a call for the key may run on this thread; with stats, a call for this version of a file. */
    has: (key: K, stats?: BigIntStats): boolean => {
      const known = records.get(key)
      if (known === undefined || known.until <= clock.now()) return false
      if (stats === undefined || known.stats === undefined) return true
      return known.stats.dev === stats.dev && hasStamp(known.stats, stats)
    },
    /** Records that the key has just been accessed. */
    add: (key: K, stats?: BigIntStats): void => {
      records.delete(key)
      records.set(key, { until: clock.now() + maxAgeMs, stats })
      if (records.size <= most) return
      for (const oldest of records.keys()) {
        records.delete(oldest)
        return
      }
    },
  }
}

/**
 * How long calls run on this thread within one turn of the event loop, in milliseconds. After that they wait for the next turn,
 * because a task that reads one file after the other would never yield.
 */
const maxTurnMs = 20

/**
 * Makes callers wait for the next turn of the event loop once calls on this thread have used up the current one.
 *
 * @param nextTurn Calls back in the next turn of the event loop.
 */
export function createTurns(clock: Clock = performance, nextTurn: (then: () => void) => void = setImmediate) {
  /** Time of the first call in this turn. Undefined if there was none yet. */
  let begun: number | undefined
  /** The callers that wait for the next turn, in the order in which they came. */
  let waiting: (() => void)[] = []

  const end = () => {
    begun = undefined
    const next = waiting
    waiting = []
    for (const go of next) go()
  }

  return {
    /** Returns undefined if the caller may go on, else a promise that resolves in a later turn of the event loop. */
    over: (): Promise<void> | undefined => {
      if (begun === undefined) {
        begun = clock.now()
        nextTurn(end)
        return undefined
      }
      return clock.now() - begun < maxTurnMs ? undefined : new Promise((resolve) => waiting.push(resolve))
    },
  }
}
