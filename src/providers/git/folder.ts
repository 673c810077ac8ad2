import * as fs from 'node:fs'
import { type BigIntStats, constants, type Dirent, type Stats } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCodeOf } from '../../core/errors.ts'
import { isLocalDisk } from '../../core/kit/local-disk.ts'

/**
 * A directory of a repository, held open, so that paths through it stay in the same directory when its name changes. On Linux it is a
 * descriptor, and paths go through /proc; elsewhere it is a path, which was checked when it was opened and can be replaced later.
 */
export interface Folder {
  /** Path prefix of the directory's entries, for this process. */
  readonly at: string
  /** Path prefix of the directory's entries, for a child process. */
  readonly shared: string
  /** Real path of the directory when it was opened. */
  readonly path: string
  /** Identity of the directory, which does not depend on its name. */
  readonly identity: string
  /** Whether the directory is on a local disk, so that calls on it answer at once. */
  readonly local: boolean
  close(): void
}

/** Refers to a file without opening it, see open(2). Not in `fs.constants`. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = fs.constants
const isLinux = process.platform === 'linux'

/** Thrown for a symbolic link in place of a directory or a file. */
export class LinkError extends Error {}

/**
 * Opens a directory by its real path.
 *
 * @throws LinkError when a part of the path has become a symbolic link; errors of the file system.
 */
export async function openFolder(path: string): Promise<Folder> {
  if (!isLinux) return portable(path, path)
  const fd = await openDescriptor(path)
  try {
    if (fs.readlinkSync(`/proc/self/fd/${fd}`) !== path) throw new LinkError(path)
    return described(fd, path)
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}

/** Opens a subdirectory. Returns undefined when it does not exist. @throws LinkError for a symbolic link. */
export async function openIn(folder: Folder, name: string): Promise<Folder | undefined> {
  try {
    if (!isLinux) return await portable(`${folder.at}/${name}`, join(folder.path, name))
    const fd = await openDescriptor(`${folder.at}/${name}`)
    return described(fd, join(folder.path, name), folder.local)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined
    if ((await lookIn(folder, name))?.isSymbolicLink() === true) throw new LinkError(name)
    if (errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

/**
 * Opens the subdirectories along a path, one in the other, until `use` has ended. Resolves to undefined when one of them does not exist.
 *
 * @throws LinkError for a symbolic link.
 */
export async function withFolder<T>(
  folder: Folder,
  segments: readonly string[],
  use: (inner: Folder) => Promise<T>,
): Promise<T | undefined> {
  const opened: Folder[] = []
  try {
    let inner = folder
    for (const segment of segments) {
      const next = await openIn(inner, segment)
      if (next === undefined) return undefined
      opened.push(next)
      inner = next
    }
    return await use(inner)
  } finally {
    for (const one of opened) one.close()
  }
}

function openDescriptor(path: string): Promise<number> {
  return openAs(path, O_PATH | O_DIRECTORY | O_NOFOLLOW)
}

function described(fd: number, path: string, local?: boolean): Folder {
  const at = `/proc/self/fd/${fd}`
  const { dev, ino } = fs.fstatSync(fd, { bigint: true })
  let open = true
  return {
    at,
    shared: `/proc/${process.pid}/fd/${fd}`,
    path,
    identity: `${dev}:${ino}`,
    local: local ?? isLocalDisk(fs.statfsSync(at).type),
    close: () => {
      if (open) fs.closeSync(fd)
      open = false
    },
  }
}

async function portable(at: string, path: string): Promise<Folder> {
  const stats = await fs.promises.lstat(at, { bigint: true })
  if (stats.isSymbolicLink() || (await fs.promises.realpath(at)) !== path) throw new LinkError(path)
  if (!stats.isDirectory()) throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
  return { at, shared: at, path, identity: `${stats.dev}:${stats.ino}`, local: false, close: () => {} }
}

/** Returns the stats of an entry of a directory, without following links; undefined when it does not exist. */
export async function lookIn(folder: Folder, name: string): Promise<BigIntStats | undefined> {
  const path = `${folder.at}/${name}`
  try {
    if (folder.local) return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return await fs.promises.lstat(path, { bigint: true })
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}

/** Reads the entries of a directory with their types. */
export async function entriesOf(folder: Folder): Promise<readonly Dirent[]> {
  const entries: Dirent[] = []
  // Read in chunks: creating all entries of a huge directory at once would block the event loop.
  for await (const entry of await fs.promises.opendir(folder.at, { bufferSize: 1024 })) entries.push(entry)
  return entries
}

/** Does the same as {@link readSmallFile} for a file in a directory. */
export function readIn(folder: Folder, name: string, limit: number): Promise<Buffer | undefined> {
  return readSmallFile(`${folder.at}/${name}`, limit)
}

function openAs(path: string, flags: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, (error, fd) => (error === null ? resolve(fd) : reject(error)))
  })
}

/**
 * Reads the bytes of a regular file of at most `limit` bytes; undefined when none exists at the path. Does not follow a symbolic link as the
 * last part of the path, and does not wait for a FIFO or a device.
 *
 * @throws Error for anything but a regular file, and for one that is too large.
 */
export async function readSmallFile(path: string, limit: number): Promise<Buffer | undefined> {
  let handle: Awaited<ReturnType<typeof open>>
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw errorCodeOf(error) === 'ELOOP' ? new Error('it is a symbolic link') : error
  }
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > limit) throw new Error(`it has more than ${limit} bytes`)
    const bytes = Buffer.alloc(stats.size)
    let length = 0
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = (await handle.read(bytes, length, bytes.length - length, length)).bytesRead
    return bytes.subarray(0, length)
  } finally {
    await handle.close()
  }
}

/** Returns the stats at a path, without following a link; undefined when nothing exists. */
export async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}
