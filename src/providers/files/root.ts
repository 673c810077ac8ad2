import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { invalid, isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { openLinuxPlaces } from './linux.ts'
import type { Places } from './place.ts'
import { codeOf, type Pool } from './pool.ts'
import { openPortablePlaces } from './portable.ts'

export interface RootOptions {
  readonly root: string
  readonly allowMounts: boolean
  /** Whether to work without /proc, with weaker guarantees: see `openPortablePlaces`. */
  readonly portable?: boolean
}

/** Folders of the operating system, which nobody means to serve as a whole. */
const refused = ['/proc', '/sys', '/dev']

/**
 * Resolves and opens a root. A symbolic link at or above it is followed once, at this call.
 *
 * @throws ResourceError `invalid` (reason `root`) for a root that is relative, missing, not a directory, not readable, or the whole machine.
 */
export async function openRoot(options: RootOptions, pool: Pool, log: Log): Promise<Places> {
  const real = await resolveRoot(options.root)
  if (real === (await realPath(os.homedir())))
    log('warn', 'the root of a files mount is the home directory: all of it can be read', { root: real })
  const portable = options.portable ?? process.platform !== 'linux'
  return portable ? openPortablePlaces(real, pool) : openLinuxPlaces(real, options.allowMounts, pool)
}

/** An open root: its real path, and the path of its place (see `Place.at`). */
export interface OpenedRoot {
  readonly real: string
  readonly at: string
}

/** Opens an open root once more, for another thread of this process: the same directory, even if it was renamed. */
export async function openAgain(root: OpenedRoot, options: Omit<RootOptions, 'root'>, pool: Pool): Promise<Places> {
  if (options.portable ?? process.platform !== 'linux') return openPortablePlaces(root.real, pool)
  return openLinuxPlaces(root.real, options.allowMounts, pool, root.at)
}

async function resolveRoot(root: string): Promise<string> {
  const shown = JSON.stringify(root)
  const fault = (what: string) => invalid(`The root ${shown} of a files mount ${what}`, 'root')
  if (root === '') throw fault('is empty. Give the absolute path of a directory.')
  if (root.includes('\0')) throw fault('holds a NUL. Give the absolute path of a directory.')
  if (!path.isAbsolute(root)) throw fault(`is not absolute. Did you mean ${JSON.stringify(path.resolve(root))}?`)
  try {
    const real = await fs.promises.realpath(root)
    if (path.parse(real).root === real || refused.some((at) => real === at || real.startsWith(`${at}/`)))
      throw fault('is a directory of the system. Give a directory of yours; never /, /proc, /sys or /dev.')
    if (!(await fs.promises.stat(real)).isDirectory())
      throw fault('is not a directory. Give the directory that it is in.')
    await fs.promises.access(real, fs.constants.R_OK | fs.constants.X_OK)
    return real
  } catch (error) {
    if (isResourceError(error)) throw error
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') throw fault('does not exist. Create it, or give another path.')
    if (code === 'EACCES' || code === 'EPERM')
      throw fault('may not be read by this user. Change its mode or its owner.')
    throw fault(`cannot be opened (${code}).`)
  }
}

async function realPath(at: string): Promise<string | undefined> {
  try {
    return await fs.promises.realpath(at)
  } catch {
    return undefined
  }
}
