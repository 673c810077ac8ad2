import * as fs from 'node:fs'
import { notFound, ResourceError } from '../../core/errors.ts'
import { type Descriptor, handleOf, openDescriptor, statOf } from './descriptor.ts'
import type { Place, Places } from './place.ts'
import { failure, type Pool } from './pool.ts'

/**
 * Places as descriptors. A path is walked one name at a time, each opened relative to the descriptor of its directory
 * (`/proc/self/fd/N/name`, which is what openat(2) does) with `O_PATH | O_NOFOLLOW`. So no rename, however well timed,
 * leads out of the root, and nothing is opened for reading before it is known to be a regular file.
 */

/** Names a file without opening it, see open(2). Not in `fs.constants`; one value for every architecture of Node. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants

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
 * @param at Where it is open already: a path below /proc/self/fd.
 * @throws ResourceError `invalid` where /proc does not work as this needs it, so that nothing would be safe.
 */
export async function openLinuxPlaces(real: string, mounts: boolean, pool: Pool, at?: string): Promise<Places> {
  let root = await openTested(real, pool, at)
  let reopening: Promise<void> | undefined
  let closed = false

  /** Takes over the descriptor: it is closed here where no place comes of it. */
  const placeOf = async (descriptor: Descriptor, known: Known, signal: AbortSignal): Promise<Place> => {
    try {
      // A mount that does not answer is told by its number, which the kernel knows without asking it.
      const mount = 'mount' in known || root.mount === undefined ? known.mount : mountOf(descriptor)
      if (!mounts && mount !== root.mount) throw notFound('another mount')
      const local = root.local && mount === root.mount
      const stats = await statOf(descriptor, local, pool, signal)
      return { at: pathOf(descriptor), keep: descriptor.keep, close: descriptor.close, stats, local, mount }
    } catch (error) {
      descriptor.close()
      throw failure(error)
    }
  }

  const rootPlace = async (signal: AbortSignal): Promise<Place> => {
    if (closed) throw new ResourceError('unavailable', 'The files provider is closed.')
    root.descriptor.keep()
    return placeOf(root.descriptor, root, signal)
  }

  const reopen = async () => {
    const next = await openTested(real, pool)
    const last = closed ? next : root
    if (!closed) root = next
    last.descriptor.close()
  }

  return {
    real,
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

    child: async (parent, name, { directory, only = false, follow = false }, signal) => {
      const flags = O_PATH | (follow ? 0 : O_NOFOLLOW) | (directory && only ? O_DIRECTORY : 0)
      const terms = { signal, hold: parent, local: true }
      const descriptor = await openDescriptor(`${parent.at}/${name}`, flags, pool, terms)
      return placeOf(descriptor, directory || follow ? {} : parent, signal)
    },

    where: async (place) => {
      try {
        // Both as they are now: the root may have been renamed meanwhile.
        const base = fs.readlinkSync(pathOf(root.descriptor))
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
      const terms = { signal, hold: place, local: place.local }
      return handleOf(await openDescriptor(place.at, flags, pool, terms), place.local, pool)
    },

    close: () => {
      if (closed) return
      closed = true
      root.descriptor.close()
    },
  }
}

function gone(): ResourceError {
  return new ResourceError('unavailable', 'The root directory of the mount is gone. Create it again, or change `root`.')
}

/** The mount of something, where it needs not be asked for. */
type Known = { readonly mount?: string | undefined }

interface Root {
  readonly descriptor: Descriptor
  readonly mount: string | undefined
  readonly local: boolean
}

async function openTested(real: string, pool: Pool, at?: string): Promise<Root> {
  const flags = O_PATH | O_DIRECTORY | (at === undefined ? O_NOFOLLOW : 0)
  const descriptor = await openDescriptor(at ?? real, flags, pool, { signal: never, local: true })
  try {
    // What is open already was tested, and may have another name by now.
    if (at === undefined) selfTest(descriptor, real)
    const mount = mountOf(descriptor)
    const { type } = await pool.run(() => fs.promises.statfs(pathOf(descriptor)), { signal: never, hold: descriptor })
    return { descriptor, mount, local: mount !== undefined && localTypes.has(type) }
  } catch (error) {
    descriptor.close()
    throw failure(error)
  }
}

function pathOf({ fd }: Descriptor): string {
  return `/proc/self/fd/${fd}`
}

/** The number of the mount that a descriptor lies on, from /proc, without a call to that file system. */
function mountOf(descriptor: Descriptor): string | undefined {
  const info = fs.readFileSync(`/proc/self/fdinfo/${descriptor.fd}`, 'latin1')
  return /^mnt_id:\s*(\d+)/m.exec(info)?.[1]
}

function selfTest(root: Descriptor, real: string): void {
  const fault = (what: string) =>
    new ResourceError('invalid', `Files cannot be served safely here: ${what}. Mount a usual /proc.`)
  let link: string
  try {
    link = fs.readlinkSync(pathOf(root))
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
