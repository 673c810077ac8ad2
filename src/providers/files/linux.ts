import * as fs from 'node:fs'
import { promisify } from 'node:util'
import { notFound, ResourceError } from '../../core/errors.ts'
import type { Handle, Place, Places } from './place.ts'
import { failure, type Pool, type Shared } from './pool.ts'

/**
 * Places as descriptors. A path is walked one name at a time, each opened relative to the descriptor of its directory
 * (`/proc/self/fd/N/name`, which is what openat(2) does) with `O_PATH | O_NOFOLLOW`. So no rename, however well timed,
 * leads out of the root, and nothing is opened for reading before it is known to be a regular file.
 */

/** Names a file without opening it, see open(2). Not in `fs.constants`; one value for every architecture of Node. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants

const open = promisify(fs.open)
const fstat = promisify(fs.fstat)
const read = promisify(fs.read)

interface Descriptor extends Shared {
  readonly fd: number
  readonly at: string
}

/** Local file systems by their `f_type`, see statfs(2). A call on any other may never answer. */
const localTypes = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x2fc12fc1, // ZFS
  0xf2f52010, // F2FS
  0xca451a4e, // bcachefs
  0x73717368, // SquashFS
  0xe0f5e1e2, // EROFS
  0x4d44, // FAT
  0x2011bab0, // exFAT
])

const never = new AbortController().signal

/**
 * Opens a root by its real path.
 *
 * @param mounts Whether other mounts inside the root are entered.
 * @throws ResourceError `invalid` where /proc does not work as this needs it, so that nothing would be safe.
 */
export async function openLinuxPlaces(real: string, mounts: boolean, pool: Pool): Promise<Places> {
  let root = await openRoot(real, pool)
  try {
    selfTest(root, real)
  } catch (error) {
    root.close()
    throw error
  }
  let { rootMount, local } = await systemOf(root, pool)
  let reopening: Promise<void> | undefined
  let closed = false

  const look = (descriptor: Descriptor, quick: boolean, signal: AbortSignal) =>
    quick
      ? fs.fstatSync(descriptor.fd, { bigint: true })
      : pool.run(() => fstat(descriptor.fd, { bigint: true }), { signal, hold: descriptor })

  /**
   * Takes over the descriptor: it is closed here where no place comes of it.
   *
   * @param elsewhere Whether it may lie on another mount than its parent.
   */
  const placeOf = async (
    descriptor: Descriptor,
    elsewhere: boolean,
    parent: Place | undefined,
    signal: AbortSignal,
  ) => {
    try {
      // A mount that does not answer is told by its number, which the kernel knows without asking it.
      const mount = elsewhere && rootMount !== undefined ? mountOf(descriptor) : parent?.mount
      if (!mounts && mount !== (parent === undefined ? mount : rootMount)) throw notFound('another mount')
      const here = local && mount === rootMount
      const stats = await look(descriptor, here, signal)
      const { at, keep, close } = descriptor
      return { at, keep, close, stats, local: here, mount }
    } catch (error) {
      descriptor.close()
      throw failure(error)
    }
  }

  const reopen = async () => {
    const next = await openRoot(real, pool)
    if (closed || fs.readlinkSync(next.at) !== real) {
      next.close()
      throw gone()
    }
    const system = await systemOf(next, pool)
    root.close()
    root = next
    ;({ rootMount, local } = system)
  }

  const rootPlace = async (signal: AbortSignal): Promise<Place> => {
    if (closed) throw new ResourceError('unavailable', 'The files provider is closed.')
    root.keep()
    return placeOf(root, true, undefined, signal)
  }

  return {
    root: async (signal) => {
      signal.throwIfAborted()
      const place = await rootPlace(signal)
      if (place.stats.nlink > 0n) return place
      place.close()
      reopening ??= reopen().finally(() => {
        reopening = undefined
      })
      try {
        await reopening
      } catch {
        throw gone()
      }
      return rootPlace(signal)
    },

    child: async (parent, name, { directory, follow = false }, signal) => {
      const flags = O_PATH | (follow ? 0 : O_NOFOLLOW)
      const descriptor = await openShared(`${parent.at}/${name}`, flags, pool, { signal, hold: parent })
      return placeOf(descriptor, directory || follow, parent, signal)
    },

    where: async (place) => {
      try {
        // Both as they are now: the root may have been renamed meanwhile.
        const base = fs.readlinkSync(root.at)
        const here = fs.readlinkSync(place.at)
        const prefix = base === '/' ? '/' : `${base}/`
        // The text says " (deleted)" of a deleted file, and of one whose name ends so: the link count tells.
        if (place.stats.nlink === 0n) return undefined
        if (here === base) return ''
        return here.startsWith(prefix) ? here.slice(prefix.length) : undefined
      } catch (error) {
        throw failure(error)
      }
    },

    open: async (place, signal) => {
      // A magic link: this opens the place itself and walks no path.
      const flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
      const descriptor = await openShared(place.at, flags, pool, { signal, hold: place }, place.local)
      return handleOf(descriptor, pool, (signal) => look(descriptor, place.local, signal) as Promise<fs.BigIntStats>)
    },

    close: () => {
      if (closed) return
      closed = true
      root.close()
    },
  }
}

function gone(): ResourceError {
  return new ResourceError('unavailable', 'The root directory of the mount is gone. Create it again, or change `root`.')
}

async function openRoot(real: string, pool: Pool): Promise<Descriptor> {
  return openShared(real, O_PATH | O_DIRECTORY | O_NOFOLLOW, pool, { signal: never })
}

async function openShared(
  path: string,
  flags: number,
  pool: Pool,
  terms: { readonly signal: AbortSignal; readonly hold?: Shared },
  quickClose = true,
): Promise<Descriptor> {
  try {
    return shared(await pool.run(() => open(path, flags), { ...terms, late: fs.closeSync }), quickClose)
  } catch (error) {
    throw failure(error)
  }
}

/** @param quick Whether closing answers at once. A file on a mount that hangs is closed in the pool. */
function shared(fd: number, quick: boolean): Descriptor {
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
      if (quick) fs.closeSync(fd)
      else fs.close(fd, () => {})
    },
  }
}

function handleOf(descriptor: Descriptor, pool: Pool, stat: (signal: AbortSignal) => Promise<fs.BigIntStats>): Handle {
  return {
    read: async (buffer, { offset, length, position }, signal) => {
      try {
        const call = () => read(descriptor.fd, buffer, offset, length, position)
        return (await pool.run(call, { signal, hold: descriptor })).bytesRead
      } catch (error) {
        throw failure(error)
      }
    },
    stat: async (signal) => {
      try {
        return await stat(signal)
      } catch (error) {
        throw failure(error)
      }
    },
    close: descriptor.close,
  }
}

/** The number of the mount that a descriptor lies on, from /proc, without a call to that file system. */
function mountOf(descriptor: Descriptor): string | undefined {
  const info = fs.readFileSync(`/proc/self/fdinfo/${descriptor.fd}`, 'latin1')
  return /^mnt_id:\s*(\d+)/m.exec(info)?.[1]
}

async function systemOf(root: Descriptor, pool: Pool) {
  const rootMount = mountOf(root)
  const { type } = await pool.run(() => fs.promises.statfs(root.at), { signal: never, hold: root })
  return { rootMount, local: rootMount !== undefined && localTypes.has(type) }
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
    // A directory that is really open says EISDIR.
    if (error instanceof Error && 'code' in error && error.code === 'EBADF') return
  }
  throw fault('the kernel does not know O_PATH')
}
