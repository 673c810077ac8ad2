import * as fs from 'node:fs'
import { notFound, ResourceError } from '../../core/errors.ts'
import { handleOf, openDescriptor, statOf } from './descriptor.ts'
import type { Place, Places } from './place.ts'
import { failure, type Pool } from './pool.ts'

/**
 * Places as paths, for systems without `/proc/self/fd` (macOS, Windows).
 *
 * Best effort: a path is resolved and compared with the root before a file is opened, and again afterwards, with the identity of the opened
 * file. A process that swaps directories inside the root at the right moments can still lead a call out of it, so use it only for trees that
 * you trust.
 */
export async function openPortablePlaces(real: string, pool: Pool): Promise<Places> {
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
        return handleOf(descriptor, pool, { local: false, hot: () => false })
      } catch (error) {
        descriptor.close()
        throw error
      }
    },
    close: () => {},
  }
}

const separator = process.platform === 'win32' ? '\\' : '/'
