import { defined } from '../../../core/kit/object.ts'
import { parseSearchStatus, type SearchMount, type SearchStatus } from '../../../core/search-answer.ts'
import { directoryMimeType, type Resource, type View } from '../../../core/view.ts'

/** Number of direct children of a mount or folder, and its README. */
export interface FolderSummary {
  readonly folders: number
  readonly files: number
  /** Whether there are more children than were counted. */
  readonly isPart: boolean
  /** The README among the counted children. */
  readonly readme?: Resource
}

const readmeName = /^readme(?:\.(?:md|markdown|mdx|txt|rst|adoc))?$/i

export function readmeIn(items: readonly Resource[]): Resource | undefined {
  const resources = items.filter(({ name, mimeType }) => mimeType !== directoryMimeType && readmeName.test(name))
  return resources.find(({ name }) => /\.m/i.test(name)) ?? resources[0]
}

export function summarizeFolder(items: readonly Resource[], isPart: boolean): FolderSummary {
  const folders = items.filter(({ uri, mimeType }) => mimeType === directoryMimeType || uri.endsWith('/')).length
  const readme = readmeIn(items)
  return { folders, files: items.length - folders, isPart, ...defined({ readme }) }
}

export async function readFolderSummary(view: View, uri: string, signal: AbortSignal): Promise<FolderSummary> {
  const { items, nextCursor } = await view.directory({ uri }, { signal })
  return summarizeFolder(items, nextCursor !== undefined)
}

/** Reads the status of a search. `undefined`: the answer contains no status. */
export async function readSearchStatus(
  view: View,
  { status }: SearchMount,
  signal: AbortSignal,
): Promise<SearchStatus | undefined> {
  const { contents } = await view.read(status, { signal })
  const [content] = contents
  return content !== undefined && 'text' in content ? parseSearchStatus(content.text) : undefined
}

/** Whether the index of a search is growing, so that a later query may find more. */
export function isGrowing(status: SearchStatus | undefined): boolean {
  return (
    status?.indexing === 'running' && status.mounts.some(({ state }) => state === 'waiting' || state === 'comparing')
  )
}

/** Indexing progress of several searches: the number of checked documents. */
export interface IndexingProgress {
  readonly done: number
  /** Total number of documents, if every mount of these searches reports it. */
  readonly of?: number
}

/** Reads the indexing progress of the searches whose index is growing. Ignores a search whose status cannot be read. `undefined`: none. */
export async function readIndexingProgress(
  view: View,
  mounts: readonly SearchMount[],
  signal: AbortSignal,
): Promise<IndexingProgress | undefined> {
  const statuses = await Promise.all(
    mounts.map((mount) => readSearchStatus(view, mount, signal).catch(() => undefined)),
  )
  const growing = statuses.filter(isGrowing).flatMap((status) => status?.mounts ?? [])
  if (growing.length === 0) return undefined
  const comparedCount = growing.reduce((sum, { looked = 0 }) => sum + looked, 0)
  if (growing.some(({ of }) => of === undefined)) return { done: comparedCount }
  return { done: comparedCount, of: growing.reduce((sum, { of = 0 }) => sum + of, 0) }
}
