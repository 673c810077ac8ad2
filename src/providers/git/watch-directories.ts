import type { Stats } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../files/pool.ts'
import type { Handle, Handles } from '../files/watch-handles.ts'
import type { Location } from './locate.ts'
import { lookAt } from './small-file.ts'

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

export function createDirectories({ location, patterns, handles, heard }: DirectoriesOptions): Directories {
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

  const listen = (directory: string, stats: Stats, doubts: ReadonlySet<string>) => {
    const known = all.get(directory)
    const identity = identityOf(stats)
    // One that a limit kept out is tried again.
    if (known?.handle !== undefined && known.identity === identity && !doubts.has(directory)) return
    const handle = handles.open({ at: directory }, (name) => hear(directory, name), known?.handle)
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
      const see = async (directory: string): Promise<boolean> => {
        const stats = await lookAt(directory)
        if (stats?.isDirectory() !== true || seen.size >= maxDirectories) return false
        seen.add(directory)
        listen(directory, stats, doubts)
        return true
      }
      const descend = async (directory: string, name: string): Promise<void> => {
        if (!(await see(directory))) return
        for (const child of await directoriesIn(directory)) {
          const path = `${name}/${child}`
          if (wanted.some((one) => isAbove(path, one) || isAbove(one, path)))
            await descend(join(directory, child), path)
        }
      }
      for (const directory of new Set([gitDir, commonDir])) await see(directory)
      await descend(join(commonDir, 'refs'), 'refs')
      for (const directory of all.keys()) if (!seen.has(directory)) forget(directory)
    },
    isSame: async () => {
      const stats = await lookAt(gitDir)
      return stats !== undefined && all.get(gitDir)?.identity === identityOf(stats)
    },
    close: () => {
      for (const directory of all.keys()) forget(directory)
    },
  }
}

async function directoriesIn(directory: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return []
    throw error
  }
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`
}

/** Whether a name of refs is another one, or begins it. */
function isAbove(name: string, other: string): boolean {
  return other === name || other.startsWith(`${name}/`)
}
