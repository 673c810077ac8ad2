import { directoryMimeType, type Resource, type View } from '../../../core/view.ts'

/** Resources below a folder, at any depth. */
export interface Below {
  readonly files: readonly Resource[]
  /** Number of files below each folder that was listed completely, by the URI of the folder. */
  readonly counts: ReadonlyMap<string, number>
  /** Whether there may be more: a limit was reached, or a folder did not answer. */
  readonly isPart: boolean
}

export interface BelowLimits {
  /** Maximum number of files. */
  readonly files: number
  /** Maximum number of requested pages of folders. */
  readonly pages: number
}

/** Number of folders listed concurrently. */
const atOnce = 4

const isFolder = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType || uri.endsWith('/')

/** Lists a folder and all folders in it, until everything is listed or a limit is reached. */
export async function walkBelow(view: View, folder: string, limits: BelowLimits, signal: AbortSignal): Promise<Below> {
  const files = new Map<string, Resource>()
  const pending = [folder]
  const seen = new Set(pending)
  let pages = 0
  let isPart = false
  const look = async (uri: string): Promise<void> => {
    let cursor: string | undefined
    do {
      if (files.size >= limits.files || pages >= limits.pages) {
        isPart = true
        return
      }
      pages++
      const page = await view.directory(cursor === undefined ? { uri } : { uri, cursor }, { signal })
      for (const item of page.items) {
        if (!isFolder(item)) files.set(item.uri, item)
        else if (!seen.has(item.uri)) {
          seen.add(item.uri)
          pending.push(item.uri)
        }
      }
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }
  while (pending.length > 0) {
    const looked = await Promise.allSettled(pending.splice(0, atOnce).map(look))
    signal.throwIfAborted()
    const failed = looked.filter((one) => one.status === 'rejected')
    // If the folder itself cannot be listed, that is an error; a folder in it that cannot be listed is a gap.
    if (failed[0] !== undefined && seen.size === 1) throw failed[0].reason
    if (failed.length > 0) isPart = true
  }
  const found = [...files.values()].slice(0, limits.files)
  return {
    files: found,
    counts: isPart ? new Map() : countsOf(seen, found),
    isPart: isPart || files.size > found.length,
  }
}

function countsOf(folders: ReadonlySet<string>, files: readonly Resource[]): ReadonlyMap<string, number> {
  const counts = new Map([...folders].map((uri) => [uri, 0]))
  for (const { uri } of files)
    for (const folder of foldersOf(uri)) {
      const key = counts.has(folder) ? folder : folder.slice(0, -1)
      const count = counts.get(key)
      if (count !== undefined) counts.set(key, count + 1)
    }
  return counts
}

/** The folders above a URI, each with `/` at its end. */
export function foldersOf(uri: string): readonly string[] {
  const end = uri.search(/[?#]/)
  const bare = end === -1 ? uri : uri.slice(0, end)
  const start = /^[A-Za-z][A-Za-z0-9+.-]*:(?:\/\/)?/.exec(bare)?.[0].length ?? 0
  const folders: string[] = []
  for (let at = bare.indexOf('/', start); at !== -1 && at < bare.length - 1; at = bare.indexOf('/', at + 1))
    folders.push(bare.slice(0, at + 1))
  return folders
}
