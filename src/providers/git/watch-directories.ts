import { join } from 'node:path'
import type { Handle, Handles } from '../files/watch-handles.ts'
import type { Anchored } from './anchors.ts'
import { entriesOf, type Folder, LinkError, openIn } from './folder.ts'
import type { Location } from './locate.ts'

/** What was heard of: something that refs are read from, or the index. */
export type Heard = 'refs' | 'index'

/** The directories of a repository that are listened to: those that `HEAD`, refs and the index are in. */
export interface Directories {
  /** Listens to all that are there now, each as it is now. What is gone, or another one by now, is let go. */
  follow(): Promise<void>
  /** Whether the git directory is still the one that is listened to. */
  isSame(): Promise<boolean>
  close(): void
}

export interface DirectoriesOptions {
  readonly location: Location
  readonly anchors: Anchored
  /** What of the refs is served: the directories above and below these. */
  readonly patterns: readonly string[]
  readonly handles: Handles
  readonly heard: (what: Heard) => void
}

interface Listened {
  readonly identity: string
  readonly handle: Handle | undefined
}

/** Names beside the refs that tell of them: git replaces each of these files as a whole. */
const telling = new Set(['HEAD', 'packed-refs', 'shallow', 'refs'])
/** So many directories of refs are looked for. */
const maxDirectories = 4096

export function createDirectories({ location, anchors, patterns, handles, heard }: DirectoriesOptions): Directories {
  const { gitDir, commonDir } = location
  const wanted = [...patterns, 'refs/heads']
  const all = new Map<string, Listened>()
  /** Something was heard of these that may mean that they are no longer what is listened to. */
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
    // One that a limit kept out is tried again.
    if (known?.handle !== undefined && known.identity === identity && !doubts.has(directory)) return
    const handle = handles.open({ at }, (name) => hear(directory, name), known?.handle)
    // What cannot take the place of the old one leaves it open.
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
      /** Listens to a directory, before it is read: what comes after is heard. */
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

/** `undefined` for what is no directory, or a symbolic link. */
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

/** Whether a name of refs is another one, or begins it. */
function isAbove(name: string, other: string): boolean {
  return other === name || other.startsWith(`${name}/`)
}
