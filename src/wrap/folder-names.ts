import { isResourceError } from '../core/errors.ts'
import { createRecent } from '../core/kit/lru.ts'
import type { Context, Provider } from '../core/provider.ts'

/** The paths in folders of which many documents are read. */
export interface FolderNames {
  /**
   * Returns the paths directly in a folder, or undefined if they are not known: the folder was asked for seldom, or has too many.
   *
   * @param version The version of the folder. Its paths are known until the version changes.
   */
  of(folder: string, version: string, context: Context): Promise<ReadonlySet<string> | undefined>
}

interface Known {
  readonly version: string
  /** How often the folder was asked for in this version. */
  asked: number
  /** The question with which it is listed. */
  next: number
  paths: Promise<ReadonlySet<string> | undefined> | undefined
  /** Number of paths. */
  readonly size: number
}

/** Number of questions about one version of a folder before it is listed: until then a list would take longer than it saves. */
const patience = 16
/**
 * Number of paths for each question that a list may have: it takes 5 µs for a path, and saves 200 µs for a document. A folder with more paths is
 * listed again when twice as many questions have come.
 */
const pathsPerQuestion = 128
/** Maximum number of paths that are kept of all folders, about 20 MB. */
const maxPaths = 100_000

export function createFolderNames(list: Provider['list']): FolderNames {
  const folders = createRecent<Known>(maxPaths, ({ size }) => size)

  /** Returns undefined for a folder with more paths than `limit`, and for one that cannot be listed. */
  const read = async (prefix: string, limit: number, context: Context): Promise<ReadonlySet<string> | undefined> => {
    const paths = new Set<string>()
    try {
      for await (const { path } of list({ prefix, shallow: true }, context)) {
        paths.add(path)
        if (paths.size > limit) return undefined
      }
    } catch (error) {
      if (isResourceError(error)) return undefined
      throw error
    }
    return paths
  }

  const ask = async (folder: string, known: Known, context: Context): Promise<ReadonlySet<string> | undefined> => {
    known.next = 2 * known.asked
    try {
      const paths = await read(folder, Math.min(maxPaths, known.asked * pathsPerQuestion), context)
      if (paths === undefined) known.paths = undefined
      else if (folders.get(folder) === known) folders.set(folder, { ...known, size: 1 + paths.size })
      return paths
    } catch (error) {
      known.paths = undefined
      known.next = known.asked
      // Others wait for this list too: they look for each path by itself if its caller has gone.
      if (context.signal.aborted) return undefined
      throw error
    }
  }

  return {
    of: async (folder, version, context) => {
      let known = folders.get(folder)
      if (known?.version !== version) {
        known = { version, asked: 0, next: patience + 1, paths: undefined, size: 1 }
        folders.set(folder, known)
      }
      known.asked++
      if (known.paths === undefined && known.asked >= known.next) known.paths = ask(folder, known, context)
      return known.paths
    },
  }
}
