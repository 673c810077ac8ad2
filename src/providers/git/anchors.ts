import { ResourceError } from '../../core/errors.ts'
import { codeOf } from '../files/pool.ts'
import { type Folder, LinkError, lookIn, openFolder } from './folder.ts'
import type { Location } from './locate.ts'

/** The directories that a repository is read from, held open. */
export interface Anchors {
  /** Where `HEAD` and the index are. */
  readonly gitDir: Folder
  /** Where refs, objects and the configuration are. */
  readonly commonDir: Folder
  /** The files that are checked out, where there are any. */
  readonly workTree?: Folder
}

/** Holds the directories of a repository open, and follows it where it is deleted and made again. */
export interface Anchored {
  /**
   * The directories, which are still those that the paths lead to.
   *
   * @throws ResourceError `unavailable` where one is gone, or a part of its path is a symbolic link by now.
   */
  current(): Promise<Anchors>
  /** Whether the paths lead to the directories that {@link current} answered the last time. */
  isSame(): Promise<boolean>
  close(): void
}

/** @throws ResourceError `unavailable`, as {@link Anchored.current} does. */
export async function anchor(location: Location): Promise<Anchored> {
  let anchors = await open(location)
  let closed = false

  return {
    current: async () => {
      const next = await open(location)
      if (closed || identityOf(next) === identityOf(anchors)) {
        close(next)
        return anchors
      }
      const before = anchors
      anchors = next
      // What still reads through the old ones is at work for no longer than this.
      setTimeout(() => close(before), 60_000).unref()
      return anchors
    },
    isSame: async () => {
      try {
        const now = await open(location)
        close(now)
        return identityOf(now) === identityOf(anchors)
      } catch {
        return false
      }
    },
    close: () => {
      closed = true
      close(anchors)
    },
  }
}

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
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' || codeOf(error) === 'ELOOP') throw gone()
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
  return new ResourceError('unavailable', 'The repository is gone: it has no objects or no refs.')
}

function linked(name: string): ResourceError {
  return new ResourceError(
    'unavailable',
    `The repository has a symbolic link, or no regular file, in place of its ${name}.`,
  )
}
