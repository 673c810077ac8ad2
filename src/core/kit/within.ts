import { constants } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'

/**
 * Limits of a path that no person named: one that was found in a folder, or stands in a configuration that nobody
 * trusts.
 */
export interface FolderBounds {
  /** Links at and above the folder are followed, because a person named it. */
  readonly folder: string
  /** `deny`: no symbolic link below the folder is followed; `beneath`: those whose target lies in the folder are. */
  readonly symlinks: 'deny' | 'beneath'
}

/** A file or directory that is held open. */
export interface HeldFile {
  /**
   * On Linux, a path that opens this file or directory, whatever its name leads to by now. Elsewhere, the same as
   * `real`.
   */
  readonly at: string
  /** Path of the file or directory, without symbolic links. */
  readonly real: string
}

export class LeadsOutError extends Error {
  constructor(path: string, folder: string) {
    super(
      `${path} leads through a symbolic link, or out of ${folder}. Name its target instead: in a configuration that you trust, or as the folder to serve.`,
    )
  }
}

/** Refers to a file without opening it, see open(2). Not in `fs.constants`. */
const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = constants

/**
 * Opens a path in a folder, and holds it open until `use` has ended. On Linux it opens one name after the other, each
 * from the descriptor of its directory and without following a link, so that no change of the folder leads elsewhere.
 * On other systems the path is only compared with its real path.
 * @throws LeadsOutError; errors of the file system.
 */
export async function openWithin<T>(
  path: string,
  within: FolderBounds,
  use: (held: HeldFile) => Promise<T>,
): Promise<T> {
  const base = await realpath(within.folder)
  const plain = join(base, relative(within.folder, path))
  const real = within.symlinks === 'beneath' ? await realpath(plain) : plain
  const below = relative(base, real)
  if (isAbsolute(below) || below === '..' || below.startsWith(`..${sep}`)) throw new LeadsOutError(path, base)
  const names = below === '' ? [] : below.split(sep)
  if (process.platform !== 'linux') {
    if ((await lstat(real)).isSymbolicLink() || (await realpath(real)) !== real) throw new LeadsOutError(path, base)
    return use({ at: real, real })
  }
  let handle: FileHandle = await open(base, O_PATH | O_DIRECTORY)
  try {
    for (const name of names) {
      const parent = handle
      handle = await open(`/proc/self/fd/${parent.fd}/${name}`, O_PATH | O_NOFOLLOW)
      await parent.close()
      if ((await handle.stat()).isSymbolicLink()) throw new LeadsOutError(path, base)
    }
    return await use({ at: `/proc/self/fd/${handle.fd}`, real })
  } finally {
    await handle.close()
  }
}

/**
 * Returns the path without symbolic links, for callers that check it again when they open it. Throws as {@link
 * openWithin} does.
 */
export function pathWithin(path: string, within: FolderBounds): Promise<string> {
  return openWithin(path, within, async ({ real }) => real)
}

/** Undefined if the path cannot be resolved. */
export async function tryRealPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path)
  } catch {
    return undefined
  }
}
