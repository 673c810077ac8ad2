import type { BigIntStats } from 'node:fs'
import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { failure, type Pool, type ReadHandle, type Shared } from './access.ts'

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
}

/** @throws ResourceError `not-found` or `unavailable`, or the reason of the abort. */
export async function openDescriptor(path: string, flags: number, pool: Pool, terms: OpenTerms): Promise<Descriptor> {
  const { local, ...rest } = terms
  try {
    return shared(await pool.run(() => open(path, flags), { ...rest, late: fs.closeSync }), local)
  } catch (error) {
    throw failure(error)
  }
}

/** Opens a path of a local disk on this thread. Throws as {@link openDescriptor} does. */
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

/** Maximum size of a file that is read on this thread, in bytes. */
const maxBytesHere = 64 * 1024

/**
 * Returns a handle that reads from a descriptor.
 *
 * @param local Whether the file is on a local disk. Then a small file is read on this thread, every other one in the pool.
 */
export function handleOf(descriptor: Descriptor, pool: Pool, local: boolean, { size }: BigIntStats): ReadHandle {
  const { fd } = descriptor
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      signal.throwIfAborted()
      try {
        if (local && size <= maxBytesHere) return fs.readSync(fd, buffer, offset, length, position)
        const inPool = async () => (await read(fd, buffer, offset, length, position)).bytesRead
        return await pool.run(inPool, { signal, hold: descriptor })
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
