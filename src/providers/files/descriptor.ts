import * as fs from 'node:fs'
import { promisify } from 'node:util'
import type { Handle } from './place.ts'
import { failure, type Pool, type Shared } from './pool.ts'

const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const read = promisify(fs.read)

/** Reference-counted file descriptor. It is closed after its last user has closed it, and never while a call uses it. */
export interface Descriptor extends Shared {
  readonly fd: number
}

export interface OpenTerms {
  readonly signal: AbortSignal
  readonly hold?: Shared
  /** Whether calls on the path answer at once, so that they may run on this thread. */
  readonly local: boolean
  /**
   * Whether the kernel has the name in memory now. A call that waited for a slot of the pool asks again: if another call reached the name
   * meanwhile, the path is opened on this thread, and the slot is free at once for the next.
   */
  readonly hot?: () => boolean
}

/** @throws ResourceError `not-found` or `unavailable`, or the reason of the abort. */
export async function openDescriptor(path: string, flags: number, pool: Pool, terms: OpenTerms): Promise<Descriptor> {
  const { local, hot, ...rest } = terms
  const call = async () => (hot?.() === true ? fs.openSync(path, flags) : open(path, flags))
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
    keep: () => {
      users++
    },
    close: () => {
      users--
      if (users > 0) return
      // Closing a file blocks on a mount that hangs.
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

/** Returns a descriptor as a file to read from. Reads run on this thread while `hot` says that the kernel has the bytes in memory. */
export function handleOf(
  descriptor: Descriptor,
  pool: Pool,
  { local, hot }: { readonly local: boolean; readonly hot: () => boolean },
): Handle {
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      const readNow = () => fs.readSync(descriptor.fd, buffer, offset, length, position)
      // As in `openDescriptor`, a call that waited asks again.
      const call = async () =>
        hot() ? readNow() : (await read(descriptor.fd, buffer, offset, length, position)).bytesRead
      try {
        signal.throwIfAborted()
        return hot() ? readNow() : await pool.run(call, { signal, hold: descriptor })
      } catch (error) {
        throw failure(error)
      }
    },
    stat: (signal) => statOf(descriptor, local, pool, signal),
    close: descriptor.close,
  }
}
