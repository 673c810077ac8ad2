import { constants, type Stats } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { codeOf } from '../files/pool.ts'

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
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw codeOf(error) === 'ELOOP' ? new Error('it is a symbolic link') : error
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
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}
