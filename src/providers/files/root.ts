import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { promisify } from 'node:util'
import { errorCodeOf, invalid, isResourceError, notFound, ResourceError, unavailable } from '../../core/errors.ts'
import { singleFlight, sleep } from '../../core/kit/abort.ts'
import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { isLocalFileSystem } from '../../core/kit/local-disk.ts'
import { type FolderBounds, LeadsOutError, pathWithin, tryRealPath } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import { gitDirectoryAround } from '../checkout.ts'
import {
  hasSameStamp,
  isSettled,
  type Place,
  type Pool,
  pathErrorAdvice,
  type ReadHandle,
  type RefCounted,
  type RootAccess,
  tickMs,
  toFileError,
} from './place.ts'

/** Characters that Windows does not allow in a name. */
const special = /[\\/:*?"<>|]/

/** Names of devices, with or without an extension. Windows may open the device whatever the directory is. */
const device = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$|clock\$) *(?:[.:]|$)/i

/**
 * Whether the system takes a segment of a path as the name of one file, as it stands. On Windows a backslash leads into a folder, `:` to a stream
 * or a drive, `NUL` to a device, and dots and spaces at the end are dropped, so rules would judge another name than the one that is opened.
 */
export function isFileName(segment: string, platform: NodeJS.Platform): boolean {
  return platform !== 'win32' || !(special.test(segment) || device.test(segment) || /[. ]$/.test(segment))
}

/**
 * Access to files by descriptors. A path is walked one name at a time, each opened relative to the descriptor of its directory
 * (`/proc/self/fd/N/name`, as openat(2) does) with `O_PATH | O_NOFOLLOW`. So no rename, however well timed, leads out of the root.
 */

/** Refers to a file without opening it, see open(2). Not in `fs.constants`; the value is the same on every architecture of Node. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants

const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const readDescriptor = promisify(fs.read)

/** Maximum age of the last check that the root is still mounted at its path, in milliseconds. A call waits for a new check only after that. */
const mountCheckMaxAgeMs = 1000
/** Age from which a new check begins in the background, in milliseconds. */
const mountCheckAgeMs = 500
const mountWaitMs = 50

const never = new AbortController().signal

/**
 * Opens a root by its real path.
 *
 * @param mounts Whether other mounts inside the root are entered.
 * @param at Path of the open root below /proc/self/fd, if it is already open.
 * @throws ResourceError `invalid` when /proc does not work as this module needs it to serve files safely.
 */
export async function openLinuxRoot(real: string, mounts: boolean, pool: Pool, at?: string): Promise<RootAccess> {
  const keeper = createRootKeeper(await openTested(real, pool, at), real, pool)

  /** Returns the place of a descriptor. Closes the descriptor if it throws. */
  const placeOf = async (descriptor: Descriptor, cachedMount: KnownMount, signal: AbortSignal): Promise<Place> => {
    try {
      const { root } = keeper
      // The mount is compared by its number, which the kernel knows without a call to a mount that may not answer.
      const mount = 'mount' in cachedMount || root.mount === undefined ? cachedMount.mount : mountIdOf(descriptor)
      if (!mounts && mount !== root.mount) throw notFound('another mount')
      const local = root.local && mount === root.mount
      const stats = await statDescriptor(descriptor, local, pool, signal)
      const { keep, close, at } = descriptor
      return { at, keep, close, stats, local, mount }
    } catch (error) {
      descriptor.close()
      throw toFileError(error)
    }
  }

  return {
    real,
    root: async (signal) => {
      signal.throwIfAborted()
      if (!keeper.isClosed) await keeper.checkSoon()
      if (keeper.isDetached && !keeper.isClosed) throw goneError()
      for (let isReopened = false; ; isReopened = true) {
        const { root, isClosed } = keeper
        if (isClosed) throw new ResourceError('unavailable', 'The files provider is closed.')
        root.descriptor.keep()
        const place = await placeOf(root.descriptor, root, signal)
        if (place.stats.nlink > 0n || isReopened) return place
        place.close()
        await keeper.reopen().catch(() => {
          throw goneError()
        })
      }
    },

    child: async (parent, name, { directory, only = false, follow = false }, signal) => {
      const flags = O_PATH | (follow ? 0 : O_NOFOLLOW) | (directory && only ? O_DIRECTORY : 0)
      const path = `${parent.at}/${name}`
      if (eventLoopYield.due()) await eventLoopYield.take()
      // A link, or a mount inside the root, may lead to a file system that does not answer.
      const isHere = parent.local && !follow && !keeper.hasMounts
      const descriptor = await openDescriptor(path, flags, pool, { signal, hold: parent, local: true, isHere })
      return placeOf(descriptor, directory || follow ? {} : parent, signal)
    },

    where: async (place) => {
      try {
        // Both paths are current: the root may have been renamed meanwhile.
        const base = fs.readlinkSync(keeper.root.descriptor.at)
        const here = fs.readlinkSync(place.at)
        const prefix = base === '/' ? '/' : `${base}/`
        // The kernel appends " (deleted)" to the path of a deleted file, but a name can also end so: the link count decides.
        if (place.stats.nlink === 0n) return undefined
        if (here === base) return ''
        return here.startsWith(prefix) ? here.slice(prefix.length) : undefined
      } catch (error) {
        throw toFileError(error)
      }
    },

    open: async (place, signal) => {
      // This path is a magic link of /proc: it opens the place itself, without walking a path.
      const flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
      const { local, stats } = place
      // The place is held open, so the kernel has its inode in memory: a local file system opens it without the disk.
      const descriptor = await openDescriptor(place.at, flags, pool, { signal, hold: place, local, isHere: local })
      return createReadHandle(descriptor, pool, local, stats)
    },

    close: keeper.close,
  }
}

const goneError = () =>
  new ResourceError(
    'unavailable',
    'The root directory of the mount no longer exists, or cannot be opened. Create it again, or change `root`.',
  )

type KnownMount = { readonly mount?: string | undefined }

interface Root {
  readonly descriptor: Descriptor
  readonly mount: string | undefined
  readonly local: boolean
}

/** Keeps a root open, and opens it again when another file system is mounted at its path, or its own is unmounted. */
function createRootKeeper(first: Root, real: string, pool: Pool) {
  let checkedAt = performance.now()
  let checking: Promise<void> | undefined

  const reopen = singleFlight(async () => {
    const next = await openTested(real, pool)
    const last = keeper.isClosed ? next : keeper.root
    if (!keeper.isClosed) keeper.root = next
    last.descriptor.close()
  }).run

  const check = async () => {
    const there = await pool.run(() => fs.promises.lstat(real, { bigint: true }).catch(() => undefined), {
      signal: never,
    })
    if (keeper.isClosed) return
    const { descriptor, local, mount } = keeper.root
    const own = await statDescriptor(descriptor, local, pool, never)
    const isSame = there !== undefined && there.dev === own.dev && there.ino === own.ino
    const table = mountTable()
    const here = fs.readlinkSync(descriptor.at)
    keeper.hasMounts = hasMountsInside(here, table)
    const isGone = mount !== undefined && !isMounted(mount, table)
    // A root that was renamed has another path, and is still served.
    const isCovered = there !== undefined && !isSame && here === real
    if (keeper.isClosed || isSame || !(isGone || isCovered)) return
    keeper.isDetached = isGone
    await reopen()
    keeper.isDetached = false
  }

  const keeper = {
    root: first,
    isClosed: false,
    /** Whether the file system of the root was unmounted, and the root could not be opened again. */
    isDetached: false,
    hasMounts: hasMountsInside(real, mountTable()),
    reopen,
    /** Checks the mount if the last check is old. Does not wait long for a mount that does not answer: the open root stays usable. */
    checkSoon: async (): Promise<void> => {
      const ageMs = performance.now() - checkedAt
      if (ageMs < mountCheckAgeMs) return
      checking ??= check()
        .catch(() => {})
        .finally(() => {
          checking = undefined
          checkedAt = performance.now()
        })
      if (ageMs < mountCheckMaxAgeMs) return
      let timer: NodeJS.Timeout | undefined
      const waited = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, mountWaitMs)
      })
      await Promise.race([checking, waited])
      clearTimeout(timer)
    },
    close: () => {
      if (keeper.isClosed) return
      keeper.isClosed = true
      keeper.root.descriptor.close()
    },
  }
  return keeper
}

async function openTested(real: string, pool: Pool, at?: string): Promise<Root> {
  const flags = O_PATH | O_DIRECTORY | (at === undefined ? O_NOFOLLOW : 0)
  const descriptor = await openDescriptor(at ?? real, flags, pool, { signal: never, local: true })
  try {
    // A root that is already open was tested, and may have another name by now.
    if (at === undefined) selfTest(descriptor, real)
    const mount = mountIdOf(descriptor)
    const { type } = await pool.run(() => fs.promises.statfs(descriptor.at), { signal: never, hold: descriptor })
    return { descriptor, mount, local: mount !== undefined && isLocalFileSystem(type) }
  } catch (error) {
    descriptor.close()
    throw toFileError(error)
  }
}

function selfTest(root: Descriptor, real: string): void {
  const fault = (what: string) =>
    new ResourceError('invalid', `Files cannot be served safely here: ${what}. Mount a usual /proc.`)
  let link: string
  try {
    link = fs.readlinkSync(root.at)
  } catch {
    throw fault('/proc/self/fd cannot be read')
  }
  if (link !== real) throw fault('/proc/self/fd does not say where a descriptor leads (or the root was just moved)')
  try {
    fs.readSync(root.fd, new Uint8Array(1))
  } catch (error) {
    // A descriptor of a directory that is really open for reading fails with EISDIR.
    if (errorCodeOf(error) === 'EBADF') return
  }
  throw fault('the kernel does not know O_PATH')
}

export interface Descriptor extends RefCounted {
  readonly fd: number
  /** A path below /proc that opens the object of the descriptor. */
  readonly at: string
}

interface OpenTerms {
  readonly signal: AbortSignal
  readonly hold?: RefCounted
  /** Whether calls on the open file answer at once, so that they may run on this thread. */
  readonly local: boolean
  /** Whether the path itself answers at once, so that it is opened on this thread. Default false. */
  readonly isHere?: boolean
}

/** @throws ResourceError `not-found` or `unavailable`, or the reason of the abort. */
export async function openDescriptor(path: string, flags: number, pool: Pool, terms: OpenTerms): Promise<Descriptor> {
  const { local, isHere = false, ...rest } = terms
  try {
    if (isHere) {
      rest.signal.throwIfAborted()
      return shared(fs.openSync(path, flags), local)
    }
    return shared(await pool.run(() => open(path, flags), { ...rest, late: fs.closeSync }), local)
  } catch (error) {
    throw toFileError(error)
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

export async function statDescriptor(descriptor: Descriptor, local: boolean, pool: Pool, signal: AbortSignal) {
  try {
    if (local) return fs.fstatSync(descriptor.fd, { bigint: true })
    return await pool.run(() => fstat(descriptor.fd, { bigint: true }), { signal, hold: descriptor })
  } catch (error) {
    throw toFileError(error)
  }
}

const maxSyncReadBytes = 64 * 1024

/** @param local Whether the file is on a local disk, so that a small one is read on this thread. */
export function createReadHandle(
  descriptor: Descriptor,
  pool: Pool,
  local: boolean,
  { size }: BigIntStats,
): ReadHandle {
  const { fd } = descriptor
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      signal.throwIfAborted()
      try {
        if (local && size <= maxSyncReadBytes) return fs.readSync(fd, buffer, offset, length, position)
        const inPool = async () => (await readDescriptor(fd, buffer, offset, length, position)).bytesRead
        return await pool.run(inPool, { signal, hold: descriptor })
      } catch (error) {
        throw toFileError(error)
      }
    },
    stat: (signal) => statDescriptor(descriptor, local, pool, signal),
    close: descriptor.close,
  }
}

/** Returns the mount number of a descriptor, from /proc and without a call to its file system; undefined if /proc does not tell it. */
export function mountIdOf(descriptor: Descriptor): string | undefined {
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

/** Whether a mount is in the table. True without a table. */
export function isMounted(mount: string, table: string | undefined): boolean {
  return table === undefined || `\n${table}`.includes(`\n${mount} `)
}

/** Whether the table may have a mount inside a directory. True without a table. */
export function hasMountsInside(directory: string, table: string | undefined): boolean {
  if (table === undefined) return true
  const octal = (character: string) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
  const escaped = Buffer.from(directory)
    .toString('latin1')
    .replace(/[\\ \t\n]/g, octal)
  return table.includes(escaped.endsWith('/') ? ` ${escaped}` : ` ${escaped}/`)
}

interface RootOptions {
  readonly root: string
  readonly within?: FolderBounds
  readonly allowMounts: boolean
  readonly servesPrivate: (path: string) => boolean
  /** Whether to work without /proc, with weaker guarantees: see `openPortablePlaces`. */
  readonly portable?: boolean
  readonly platform?: NodeJS.Platform | undefined
}

const forbiddenRoots = ['/proc', '/sys', '/dev']

/**
 * Resolves and opens a root. A symbolic link at or above it is followed once, at this call, as far as `within` allows.
 *
 * @throws ResourceError `invalid` (reason `configuration`) for a root that cannot or must not be served, such as a missing one, a git directory or `/`.
 */
export async function openRoot(options: RootOptions, pool: Pool, log: Log): Promise<RootAccess> {
  const real = await resolveRoot(options)
  if (!options.servesPrivate('')) await refuseGitDirectory(options.root, real)
  if (real === (await tryRealPath(homeFolder())))
    log('warn', 'the root of a files mount is the home directory: all of it can be read', { root: real })
  const portable = options.portable ?? process.platform !== 'linux'
  return portable ? openPortablePlaces(real, pool, options.platform) : openLinuxRoot(real, options.allowMounts, pool)
}

export interface OpenedRoot {
  readonly real: string
  /** The path of the place of the root, as in `Place.at`. */
  readonly at: string
}

/** Opens an open root once more, for another thread of this process. On Linux it is the same directory, even if it was renamed. */
export async function reopenRoot(
  root: OpenedRoot,
  options: Omit<RootOptions, 'root' | 'within' | 'servesPrivate'>,
  pool: Pool,
): Promise<RootAccess> {
  if (options.portable ?? process.platform !== 'linux') return openPortablePlaces(root.real, pool, options.platform)
  return openLinuxRoot(root.real, options.allowMounts, pool, root.at)
}

async function resolveRoot({ root, within }: RootOptions): Promise<string> {
  const quotedRoot = JSON.stringify(root)
  const fault = (what: string) => invalid(`The root ${quotedRoot} of a files mount ${what}`, 'configuration')
  if (root === '') throw fault('is empty. Give the absolute path of a directory.')
  if (root.includes('\0')) throw fault('contains a NUL character. Give the absolute path of a directory.')
  if (!path.isAbsolute(root)) throw fault(`is not absolute. Did you mean ${JSON.stringify(path.resolve(root))}?`)
  try {
    // A link that replaces a part of the path after this line is detected when the path is opened.
    const real = within === undefined ? await fs.promises.realpath(root) : await pathWithin(root, within)
    if (path.parse(real).root === real || forbiddenRoots.some((at) => real === at || real.startsWith(`${at}/`)))
      throw fault('is a directory of the system, such as /, /proc, /sys or /dev. Give a directory with your files.')
    if (!(await fs.promises.stat(real)).isDirectory())
      throw fault('is not a directory. Give the directory that contains it.')
    await fs.promises.access(real, fs.constants.R_OK | fs.constants.X_OK)
    return real
  } catch (error) {
    if (isResourceError(error)) throw error
    if (error instanceof LeadsOutError) throw fault(`is not served: ${error.message}`)
    throw fault(pathErrorAdvice(error) ?? `cannot be opened (${errorCodeOf(error)}).`)
  }
}

/** Throws for a root that is or lies in a git directory, whose configuration may hold passwords. */
async function refuseGitDirectory(root: string, real: string): Promise<void> {
  const gitDirectory = await gitDirectoryAround(real)
  if (gitDirectory === undefined) return
  const what =
    gitDirectory === real ? 'is a git directory' : `lies in the git directory ${JSON.stringify(gitDirectory)}`
  throw invalid(
    `The root ${JSON.stringify(root)} of a files mount ${what}. Serve its history with the provider "git", or name a working tree.`,
    'configuration',
  )
}

/**
 * Access to files by their paths, for systems without `/proc/self/fd` (macOS, Windows).
 *
 * The times of the directories on the way are compared before and after a file is opened or a directory is read: replacing a directory changes the
 * times of its parent, if the file system keeps these times as POSIX demands.
 */
async function openPortablePlaces(
  real: string,
  pool: Pool,
  platform: NodeJS.Platform = process.platform,
): Promise<RootAccess> {
  const prefix = real.endsWith(separator) ? real : `${real}${separator}`

  const call = async <T>(signal: AbortSignal, what: () => Promise<T>): Promise<T> => {
    try {
      return await pool.run(what, { signal })
    } catch (error) {
      throw toFileError(error)
    }
  }

  const requireInside = async (path: string, signal: AbortSignal): Promise<string> => {
    const realPath = await call(signal, () => fs.promises.realpath(path))
    if (realPath !== real && !realPath.startsWith(prefix)) throw notFound('outside of the root')
    return realPath
  }

  const statsOf = (path: string, signal: AbortSignal) => call(signal, () => fs.promises.lstat(path, { bigint: true }))

  /**
   * Runs a call on a path. Returns its result only if no directory on the way was replaced meanwhile; else tries again, with at most six attempts.
   *
   * @param depth Number of names of the path, from the root, that must not be replaced; -1 for all but the last.
   * @param discard Receives a result that is not returned.
   */
  const steadily = async <T>(
    path: string,
    depth: number,
    run: () => Promise<T>,
    signal: AbortSignal,
    discard: (result: T) => void = () => {},
  ): Promise<T> => {
    const names = path === real ? [] : path.slice(prefix.length).split(separator)
    const holders = names.slice(0, depth).map((_, index) => [real, ...names.slice(0, index)].join(separator))
    const look = () => Promise.all(holders.map((at) => statsOf(at, signal)))
    for (let attempt = 0; attempt < 6; attempt++) {
      const time = Date.now()
      const before = await look()
      // Another change within the same tick of the clock would leave the same times.
      if (!before.every((stats) => isSettled(stats, time, tickMs, Date.now()))) {
        await sleep(tickMs + 1, signal)
        continue
      }
      if ((await requireInside(path, signal)) !== path) throw notFound('the file was opened at another path')
      const result = await run()
      const after = await look().catch((error: unknown) => {
        discard(result)
        throw error
      })
      if (after.every((stats, index) => stats.isDirectory() && hasSameStamp(stats, before[index] ?? stats)))
        return result
      discard(result)
    }
    throw unavailable('The directories of a path change faster than the path can be opened. Try again later.')
  }

  const look = async (path: string, signal: AbortSignal): Promise<Place> => {
    const stats = await statsOf(path, signal)
    const steady: Place['steady'] = (run, signal) => steadily(path, Number.POSITIVE_INFINITY, run, signal)
    return { at: path, stats, local: false, mount: undefined, steady, keep: () => {}, close: () => {} }
  }

  return {
    real,
    root: async (signal) => {
      try {
        return await look(real, signal)
      } catch {
        signal.throwIfAborted()
        throw new ResourceError(
          'unavailable',
          'The root directory of the mount no longer exists, or cannot be opened. Create it again, or change `root`.',
        )
      }
    },
    child: async (parent, name, { follow = false }, signal) => {
      if (!isFileName(name, platform)) throw notFound('no name of a file')
      const path = `${parent.at}${separator}${name}`
      if (follow) return look(await requireInside(path, signal), signal)
      const place = await look(path, signal)
      // The parent has its real path, so this path is real too, unless a directory was swapped or the name is spelled differently.
      if (!place.stats.isSymbolicLink() && (await requireInside(path, signal)) !== path)
        throw notFound('the file was opened at another path')
      return place
    },
    where: async (place, signal) => {
      const target = await requireInside(place.at, signal)
      return target === real ? '' : target.slice(prefix.length).split(separator).join('/')
    },
    open: async (place, signal) => {
      // Windows does not know these flags.
      const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = fs.constants
      const open = () => openDescriptor(place.at, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, pool, { signal, local: true })
      // A link in the place of the file is not followed, so the directory that contains it may change.
      const depth = O_NOFOLLOW === 0 ? Number.POSITIVE_INFINITY : -1
      const descriptor = await steadily(place.at, depth, open, signal, (descriptor) => descriptor.close())
      try {
        const stats = await statDescriptor(descriptor, false, pool, signal)
        if (stats.ino !== place.stats.ino || stats.dev !== place.stats.dev)
          throw notFound('replaced while it was opened')
        return createReadHandle(descriptor, pool, false, stats)
      } catch (error) {
        descriptor.close()
        throw error
      }
    },
    close: () => {},
  }
}

const separator = process.platform === 'win32' ? '\\' : '/'
