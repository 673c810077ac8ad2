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
  paths: Promise<ReadonlySet<string> | undefined> | undefined
}

/** Number of questions about one version of a folder before it is listed: until then a list would take longer than it saves. */
const patience = 16
/** Maximum number of paths that are kept of one folder. */
const maxPaths = 2000
const maxFolders = 200

export function createFolderNames(list: Provider['list']): FolderNames {
  const folders = createRecent<Known>(maxFolders)

  const read = async (prefix: string, context: Context): Promise<ReadonlySet<string> | undefined> => {
    const paths = new Set<string>()
    try {
      for await (const { path } of list({ prefix, shallow: true }, context)) {
        paths.add(path)
        if (paths.size > maxPaths) return undefined
      }
    } catch (error) {
      if (isResourceError(error)) return undefined
      throw error
    }
    return paths
  }

  return {
    of: async (folder, version, context) => {
      let known = folders.get(folder)
      if (known?.version !== version) {
        known = { version, asked: 0, paths: undefined }
        folders.set(folder, known)
      }
      known.asked++
      if (known.asked <= patience) return undefined
      if (known.paths !== undefined) return known.paths
      const asking = known
      asking.paths = read(folder, context).catch((error: unknown) => {
        asking.paths = undefined
        // Others wait for this list too: they look for each path by itself if its caller has gone.
        if (context.signal.aborted) return undefined
        throw error
      })
      return asking.paths
    },
  }
}
