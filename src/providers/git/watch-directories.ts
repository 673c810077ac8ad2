import { join } from 'node:path'
import type { Handle, Handles } from '../files/watch-handles.ts'
import type { Anchored } from './anchors.ts'
import { entriesOf, type Folder, LinkError, openIn } from './folder.ts'
import type { Location } from './locate.ts'

/** Kind of an event: a file that refs are read from, or the index. */
export type Heard = 'refs' | 'index'

/** The watched directories of a repository: those of `HEAD`, refs and the index. */
export interface Directories {
  /** Watches all directories that exist now. Drops the watches of deleted or replaced ones. */
  follow(): Promise<void>
  /** Whether the watched git directory is still the current one. */
  isSame(): Promise<boolean>
  close(): void
}

export interface DirectoriesOptions {
  readonly location: Location
  readonly anchors: Anchored
  /** The served ref directories: those above and below them are watched. */
  readonly patterns: readonly string[]
  readonly handles: Handles
  readonly heard: (what: Heard) => void
}

interface Listened {
  readonly identity: string
  readonly handle: Handle | undefined
}

/** Names besides the refs that affect them: git replaces each of these files as a whole. */
const telling = new Set(['HEAD', 'packed-refs', 'shallow', 'refs'])
/** Maximum number of ref directories to watch. */
const maxDirectories = 4096

export function createDirectories({ location, anchors, patterns, handles, heard }: DirectoriesOptions): Directories {
  const { gitDir, commonDir } = location
  const wanted = [...patterns, 'refs/heads']
  const all = new Map<string, Listened>()
  /** Directories with an event that may mean that they were replaced. */
  let doubtful = new Set<string>()

  const hear = (directory: string, name: string | undefined) => {
    if (name?.endsWith('.lock') === true) return
    const isTop = directory === gitDir || directory === commonDir
    const tells = name === undefined || !isTop || telling.has(name)
    if (tells) {
      doubtful.add(name === undefined ? directory : join(directory, name))
      heard('refs')
    }
    if (name === undefined || (name === 'index' && directory === gitDir)) heard('index')
  }

  const listen = (directory: string, { at, identity }: Folder, doubts: ReadonlySet<string>) => {
    const known = all.get(directory)
    // Retry one that a limit had kept out.
    if (known?.handle !== undefined && known.identity === identity && !doubts.has(directory)) return
    const handle = handles.open({ at }, (name) => hear(directory, name), known?.handle)
    // A watch that could not be replaced stays open: close it.
    if (handle === undefined) known?.handle?.close()
    all.set(directory, { identity, handle })
  }

  const forget = (directory: string) => {
    all.get(directory)?.handle?.close()
    all.delete(directory)
  }

  return {
    follow: async () => {
      const doubts = doubtful
      doubtful = new Set()
      handles.retry()
      const seen = new Set<string>()
      /** Watches a directory before it is read, so that later changes raise an event. */
      const see = (directory: string, folder: Folder): boolean => {
        if (seen.size >= maxDirectories) return false
        seen.add(directory)
        listen(directory, folder, doubts)
        return true
      }
      const descend = async (parent: Folder, directory: string, last: string, name: string): Promise<void> => {
        const folder = await openDirectory(parent, last)
        if (folder === undefined) return
        try {
          if (!see(directory, folder)) return
          for (const child of await directoriesIn(folder)) {
            const path = `${name}/${child}`
            if (wanted.some((one) => isAbove(path, one) || isAbove(one, path)))
              await descend(folder, join(directory, child), child, path)
          }
        } finally {
          folder.close()
        }
      }
      const current = await anchors.current()
      see(gitDir, current.gitDir)
      if (commonDir !== gitDir) see(commonDir, current.commonDir)
      await descend(current.commonDir, join(commonDir, 'refs'), 'refs', 'refs')
      for (const directory of all.keys()) if (!seen.has(directory)) forget(directory)
    },
    isSame: async () => all.get(gitDir)?.identity === (await anchors.current()).gitDir.identity,
    close: () => {
      for (const directory of all.keys()) forget(directory)
    },
  }
}

/** Opens a subdirectory; undefined for anything but a directory. */
async function openDirectory(parent: Folder, name: string): Promise<Folder | undefined> {
  try {
    return await openIn(parent, name)
  } catch (error) {
    if (error instanceof LinkError) return undefined
    throw error
  }
}

async function directoriesIn(directory: Folder): Promise<readonly string[]> {
  const entries = await entriesOf(directory)
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Whether a ref name equals another one or is its parent. */
function isAbove(name: string, other: string): boolean {
  return other === name || other.startsWith(`${name}/`)
}
