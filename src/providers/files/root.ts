import * as fs from 'node:fs'
import * as path from 'node:path'
import { errorCodeOf, invalid, isResourceError, notFound, ResourceError } from '../../core/errors.ts'
import { homeFolder } from '../../core/kit/home.ts'
import { LeadsOutError, pathWithin, type Within } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import { gitDirectoryAround } from '../checkout.ts'
import { adviceOn, failure, type Place, type Places, type Pool } from './access.ts'
import { isFileName } from './file-name.ts'
import { handleOf, openDescriptor, openLinuxPlaces, statOf } from './linux.ts'

interface RootOptions {
  readonly root: string
  readonly within?: Within
  readonly allowMounts: boolean
  /** Whether the private files of version control at a path are served. */
  readonly servesPrivate: (path: string) => boolean
  /** Whether to work without /proc, with weaker guarantees: see `openPortablePlaces`. */
  readonly portable?: boolean
  /** The system whose rules names must fit. Default: this one. */
  readonly platform?: NodeJS.Platform | undefined
}

/** Folders of the operating system. They and the folders in them are refused as roots. */
const refused = ['/proc', '/sys', '/dev']

/**
 * Resolves and opens a root. A symbolic link at or above it is followed once, at this call, as far as `within` allows.
 *
 * @throws ResourceError `invalid` (reason `root`) for a root that is relative, missing, not a directory, not readable, or the whole machine.
 */
export async function openRoot(options: RootOptions, pool: Pool, log: Log): Promise<Places> {
  const real = await resolveRoot(options)
  if (!options.servesPrivate('')) await refuseGitDirectory(options.root, real)
  if (real === (await realPath(homeFolder())))
    log('warn', 'the root of a files mount is the home directory: all of it can be read', { root: real })
  const portable = options.portable ?? process.platform !== 'linux'
  return portable ? openPortablePlaces(real, pool, options.platform) : openLinuxPlaces(real, options.allowMounts, pool)
}

/** An open root: its real path, and the path of its place (see `Place.at`). */
export interface OpenedRoot {
  readonly real: string
  readonly at: string
}

/** Opens an open root once more, for another thread of this process: the same directory, even if it was renamed. */
export async function openAgain(
  root: OpenedRoot,
  options: Omit<RootOptions, 'root' | 'within' | 'servesPrivate'>,
  pool: Pool,
): Promise<Places> {
  if (options.portable ?? process.platform !== 'linux') return openPortablePlaces(root.real, pool, options.platform)
  return openLinuxPlaces(root.real, options.allowMounts, pool, root.at)
}

async function resolveRoot({ root, within }: RootOptions): Promise<string> {
  const shown = JSON.stringify(root)
  const fault = (what: string) => invalid(`The root ${shown} of a files mount ${what}`, 'configuration')
  if (root === '') throw fault('is empty. Give the absolute path of a directory.')
  if (root.includes('\0')) throw fault('holds a NUL. Give the absolute path of a directory.')
  if (!path.isAbsolute(root)) throw fault(`is not absolute. Did you mean ${JSON.stringify(path.resolve(root))}?`)
  try {
    // A link that takes the place of a part of the path after this is found when the path is opened.
    const real = within === undefined ? await fs.promises.realpath(root) : await pathWithin(root, within)
    if (path.parse(real).root === real || refused.some((at) => real === at || real.startsWith(`${at}/`)))
      throw fault('is a directory of the system. Give a directory of yours; never /, /proc, /sys or /dev.')
    if (!(await fs.promises.stat(real)).isDirectory())
      throw fault('is not a directory. Give the directory that it is in.')
    await fs.promises.access(real, fs.constants.R_OK | fs.constants.X_OK)
    return real
  } catch (error) {
    if (isResourceError(error)) throw error
    if (error instanceof LeadsOutError) throw fault(`is not served: ${error.message}`)
    throw fault(adviceOn(error) ?? `cannot be opened (${errorCodeOf(error)}).`)
  }
}

/** Throws for a root in which only git writes: its configuration may hold passwords, and its objects are no files for people. */
async function refuseGitDirectory(root: string, real: string): Promise<void> {
  const found = await gitDirectoryAround(real)
  if (found === undefined) return
  const what = found === real ? 'is a git directory' : `lies in the git directory ${JSON.stringify(found)}`
  throw invalid(
    `The root ${JSON.stringify(root)} of a files mount ${what}. Serve its history with the provider "git", or name a working tree.`,
    'configuration',
  )
}

async function realPath(at: string): Promise<string | undefined> {
  try {
    return await fs.promises.realpath(at)
  } catch {
    return undefined
  }
}

/**
 * Access to files by their paths, for systems without `/proc/self/fd` (macOS, Windows).
 *
 * Best effort: a path is resolved and compared with the root before a file is opened, and again afterwards, with the identity of the opened
 * file. A process that swaps directories inside the root at the right moments can still lead a call out of it, so use it only for trees that
 * you trust.
 */
async function openPortablePlaces(
  real: string,
  pool: Pool,
  platform: NodeJS.Platform = process.platform,
): Promise<Places> {
  const prefix = real.endsWith(separator) ? real : `${real}${separator}`

  const call = async <T>(signal: AbortSignal, what: () => Promise<T>): Promise<T> => {
    try {
      return await pool.run(what, { signal })
    } catch (error) {
      throw failure(error)
    }
  }

  const requireInside = async (path: string, signal: AbortSignal): Promise<string> => {
    const found = await call(signal, () => fs.promises.realpath(path))
    if (found !== real && !found.startsWith(prefix)) throw notFound('outside of the root')
    return found
  }

  const look = async (path: string, signal: AbortSignal): Promise<Place> => {
    const stats = await call(signal, () => fs.promises.lstat(path, { bigint: true }))
    return { at: path, stats, local: false, mount: undefined, keep: () => {}, close: () => {} }
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
          'The root directory of the mount is gone. Create it again, or change `root`.',
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
        throw notFound('at another path in truth')
      return place
    },
    where: async (place, signal) => {
      const found = await requireInside(place.at, signal)
      return found === real ? '' : found.slice(prefix.length).split(separator).join('/')
    },
    open: async (place, signal) => {
      const flags = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0) | (fs.constants.O_NOFOLLOW ?? 0)
      const descriptor = await openDescriptor(place.at, flags, pool, { signal, local: true })
      try {
        const stats = await statOf(descriptor, false, pool, signal)
        await requireInside(place.at, signal)
        if (stats.ino !== place.stats.ino || stats.dev !== place.stats.dev)
          throw notFound('replaced while it was opened')
        return handleOf(descriptor, pool, false, stats)
      } catch (error) {
        descriptor.close()
        throw error
      }
    },
    close: () => {},
  }
}

const separator = process.platform === 'win32' ? '\\' : '/'
