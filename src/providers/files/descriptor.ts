import * as fs from 'node:fs'
import { promisify } from 'node:util'
import type { Handle } from './place.ts'
import { failure, type Pool, type Shared } from './pool.ts'

const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const read = promisify(fs.read)

/** An open descriptor. Its number is given back once its last user has closed it, and never while a call uses it. */
export interface Descriptor extends Shared {
  readonly fd: number
}

export interface OpenTerms {
  readonly signal: AbortSignal
  readonly hold?: Shared
  /** Whether calls on it answer at once, so that they may be made on this thread. */
  readonly local: boolean
}

/** @throws ResourceError `not-found` or `unavailable`, or what an abort says. */
export async function openDescriptor(path: string, flags: number, pool: Pool, terms: OpenTerms): Promise<Descriptor> {
  const { local, ...rest } = terms
  try {
    return shared(await pool.run(() => open(path, flags), { ...rest, late: fs.closeSync }), local)
  } catch (error) {
    throw failure(error)
  }
}

/** On this thread: for what is in memory, on a local file system. Throws as {@link openDescriptor} does. */
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
      // Closing a file on a mount that hangs waits for it.
      if (local) fs.closeSync(fd)
      else fs.close(fd, () => {})
    },
  }
}

/** What a descriptor stands for, at this moment. */
export async function statOf(descriptor: Descriptor, local: boolean, pool: Pool, signal: AbortSignal) {
  try {
    if (local) return fs.fstatSync(descriptor.fd, { bigint: true })
    return await pool.run(() => fstat(descriptor.fd, { bigint: true }), { signal, hold: descriptor })
  } catch (error) {
    throw failure(error)
  }
}

/** A descriptor as a file to read from. What is hot is read on this thread. */
export function handleOf(
  descriptor: Descriptor,
  pool: Pool,
  { local, hot }: { readonly local: boolean; readonly hot: boolean },
): Handle {
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      const call = () => read(descriptor.fd, buffer, offset, length, position)
      try {
        signal.throwIfAborted()
        if (hot) return fs.readSync(descriptor.fd, buffer, offset, length, position)
        return (await pool.run(call, { signal, hold: descriptor })).bytesRead
      } catch (error) {
        throw failure(error)
      }
    },
    stat: (signal) => statOf(descriptor, local, pool, signal),
    close: descriptor.close,
  }
}
