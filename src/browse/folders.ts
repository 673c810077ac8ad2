import { defined } from '../core/kit/defined.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../core/view.ts'

export const isFolder = ({ uri, mimeType }: Resource) => mimeType === directoryMimeType || uri.endsWith('/')

/** Whether a URI is below a directory. */
export function isBelow(uri: string, directory: string): boolean {
  return uri.startsWith(directory.endsWith('/') || directory.endsWith(':') ? directory : `${directory}/`)
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

/** Resources below a folder, at any depth. */
export interface Below {
  readonly files: readonly Resource[]
  /** Number of files below each folder that was listed completely, by the URI of the folder. */
  readonly counts: ReadonlyMap<string, number>
  /** Whether there may be more: a limit was reached, or a folder did not answer. */
  readonly isPart: boolean
}

interface BelowOptions {
  /** Maximum number of files. */
  readonly files: number
  /** The most pages of folders that are asked for. Default: no limit. */
  readonly pages?: number
  readonly isFolder?: (resource: Resource) => boolean
  readonly signal?: AbortSignal
}

/** Number of folders listed concurrently. */
const atOnce = 4

/** Lists a folder and all folders in it, until everything is listed or a limit is reached. */
export async function walkBelow(view: View, folder: string, options: BelowOptions): Promise<Below> {
  const { files: maxFiles, pages: maxPages = Number.POSITIVE_INFINITY, isFolder: enters = isFolder, signal } = options
  const files = new Map<string, Resource>()
  const pending = [folder]
  const seen = new Set(pending)
  let found = 0
  let pages = 0
  let isPart = false
  const look = async (uri: string, items: Resource[]): Promise<void> => {
    let cursor: string | undefined
    do {
      if (found >= maxFiles || pages >= maxPages) {
        isPart = true
        return
      }
      pages++
      const page: Page<Resource> = await view.directory({ uri, ...defined({ cursor }) }, defined({ signal }))
      items.push(...page.items)
      found += page.items.filter((item) => !enters(item)).length
      cursor = page.nextCursor === cursor ? undefined : page.nextCursor
    } while (cursor !== undefined)
  }
  while (pending.length > 0) {
    const some = pending.splice(0, atOnce).map((uri) => ({ uri, items: [] as Resource[] }))
    const looked = await Promise.allSettled(some.map(({ uri, items }) => look(uri, items)))
    signal?.throwIfAborted()
    const failed = looked.filter((one) => one.status === 'rejected')
    // If the folder itself cannot be listed, that is an error; a folder in it that cannot be listed is a gap.
    if (failed[0] !== undefined && seen.size === 1) throw failed[0].reason
    if (failed.length > 0) isPart = true
    // In the order of the folders, whichever answered first.
    for (const item of some.flatMap(({ items }) => items)) {
      if (!enters(item)) files.set(item.uri, item)
      else if (!seen.has(item.uri)) {
        seen.add(item.uri)
        pending.push(item.uri)
      }
    }
  }
  const first = [...files.values()].slice(0, maxFiles)
  return {
    files: first,
    counts: isPart ? new Map() : countsOf(seen, first),
    isPart: isPart || files.size > first.length,
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

/** Entries of a directory from its beginning. `next`: cursor of the page after them. */
export interface Listed {
  readonly items: readonly Resource[]
  readonly next?: string
}

/** Lists a directory again, as far as it was listed before: whole pages with at least so many entries. */
export async function listAgain(
  pageAt: (cursor: string | undefined) => Promise<Page<Resource>>,
  least: number,
): Promise<Listed> {
  const items: Resource[] = []
  let next: string | undefined
  do {
    const page = await pageAt(next)
    items.push(...page.items)
    next = page.nextCursor === next ? undefined : page.nextCursor
  } while (next !== undefined && items.length < least)
  return next === undefined ? { items } : { items, next }
}
