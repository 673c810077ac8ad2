import { errorCodeOf, type ResourceError, unavailable } from '../../core/errors.ts'
import { type Folder, LinkError, lookIn, openFolder } from './folder.ts'
import type { Location } from './locate.ts'

/** The directories of a repository, held open. */
export interface Anchors {
  /** Directory of `HEAD` and the index. */
  readonly gitDir: Folder
  /** Directory of refs, objects and the configuration. */
  readonly commonDir: Folder
  /** Directory of the checked-out files, if any. */
  readonly workTree?: Folder
}

/**
 * Holds the directories of a repository open, and opens them again when it is deleted and recreated.
 *
 * @throws ResourceError `unavailable`, as `current` does.
 */
export async function anchor(location: Location) {
  let anchors = await open(location)
  let closed = false

  return {
    /**
     * Returns the directories to which the paths of the repository lead now.
     *
     * @throws ResourceError `unavailable` when one is gone, or a part of its path has become a symbolic link.
     */
    current: async (): Promise<Anchors> => {
      const next = await open(location)
      if (closed || identityOf(next) === identityOf(anchors)) {
        close(next)
        return anchors
      }
      const before = anchors
      anchors = next
      // Calls that still read through the old directories end within this time.
      setTimeout(() => close(before), 60_000).unref()
      return anchors
    },
    /** Whether the paths still lead to the directories that {@link current} last returned. */
    isSame: async (): Promise<boolean> => {
      try {
        const now = await open(location)
        close(now)
        return identityOf(now) === identityOf(anchors)
      } catch {
        return false
      }
    },
    close: (): void => {
      closed = true
      close(anchors)
    },
  }
}

export type Anchored = Awaited<ReturnType<typeof anchor>>

async function open({ gitDir, commonDir, workTree }: Location): Promise<Anchors> {
  const opened: Folder[] = []
  try {
    const at = async (path: string) => {
      const folder = await openFolder(path)
      opened.push(folder)
      return folder
    }
    const common = await at(commonDir)
    const anchors = {
      commonDir: common,
      gitDir: gitDir === commonDir ? common : await at(gitDir),
      ...(workTree === undefined ? {} : { workTree: await at(workTree) }),
    }
    for (const name of ['objects', 'refs']) {
      const stats = await lookIn(common, name)
      if (stats === undefined) throw gone()
      if (!stats.isDirectory()) throw linked(name)
    }
    return anchors
  } catch (error) {
    for (const folder of opened) folder.close()
    if (error instanceof LinkError) throw linked('folder')
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR' || errorCodeOf(error) === 'ELOOP')
      throw gone()
    throw error
  }
}

function close({ gitDir, commonDir, workTree }: Anchors): void {
  for (const folder of new Set([gitDir, commonDir, workTree])) folder?.close()
}

function identityOf({ gitDir, commonDir, workTree }: Anchors): string {
  return `${gitDir.identity} ${commonDir.identity} ${workTree?.identity ?? ''}`
}

function gone(): ResourceError {
  return unavailable('The repository is gone: it has no objects or no refs.')
}

/** Returns the error for a symbolic link in place of a part of the repository. */
export function linked(name: string): ResourceError {
  return unavailable(`The repository has a symbolic link, or no regular file, in place of its ${name}.`)
}
