import type { RemoteView } from '../../client/index.ts'
import { isResourceError } from '../../core/errors.ts'
import { foreignOf, pathOfForeign } from '../../core/foreign.ts'
import { comparePaths } from '../../core/path.ts'
import type { Entry } from '../../core/provider.ts'
import { directoryMimeType, type Resource } from '../../core/view.ts'
import { knownOf } from './entries.ts'

/** Maximum number of children read of one directory. */
const maxChildren = 100_000

/**
 * Returns the direct children of a directory as the server reads it, in path order: some servers have more entries than they
 * list. Empty when the server does not read directories, or lists all their entries.
 */
export async function childrenThere(
  view: RemoteView,
  prefix: string,
  { mark, signal }: { readonly mark: string; readonly signal: AbortSignal },
): Promise<readonly Entry[]> {
  const uri = view.readsDirectories === false || view.isOurs ? undefined : foreignOf(prefix)
  if (uri === undefined) return []
  // With the slash at the end and without: servers name directories in both ways.
  for (const spelled of [uri.replace(/([^/])\/$/, '$1'), uri]) {
    try {
      return await readDirectory(view, spelled, prefix, { mark, signal })
    } catch (error) {
      signal.throwIfAborted()
      if (!isResourceError(error, 'not-found') && !isResourceError(error, 'invalid')) throw error
    }
  }
  return []
}

async function readDirectory(
  view: RemoteView,
  uri: string,
  prefix: string,
  { mark, signal }: { readonly mark: string; readonly signal: AbortSignal },
): Promise<readonly Entry[]> {
  const found = new Map<string, Entry>()
  let cursor: string | undefined
  do {
    const page = await view.directory(cursor === undefined ? { uri } : { uri, cursor }, { signal })
    for (const resource of page.items) {
      const entry = entryOf(resource, mark)
      if (entry !== undefined && isIn(prefix, entry.path)) found.set(entry.path, entry)
    }
    cursor = page.nextCursor
  } while (cursor !== undefined && found.size < maxChildren)
  return [...found.values()].sort((a, b) => comparePaths(a.path, b.path))
}

function entryOf(resource: Resource, mark: string): Entry | undefined {
  if (resource.mimeType !== directoryMimeType) return knownOf(resource, mark)?.entry
  return { path: `${pathOfForeign(resource.uri.replace(/\/$/, ''))}/`, mimeType: directoryMimeType }
}

function isIn(prefix: string, path: string): boolean {
  const rest = path.slice(prefix.length)
  return path.startsWith(prefix) && rest !== '' && !rest.slice(0, -1).includes('/')
}

/** Merges two listings; of a duplicate, the first is taken. */
export function* merge(listed: Iterable<Entry>, more: readonly Entry[]): Generator<Entry> {
  let at = 0
  for (const entry of listed) {
    for (let next = more[at]; next !== undefined; next = more[++at]) {
      const order = comparePaths(next.path, entry.path)
      if (order > 0) break
      if (order < 0) yield next
    }
    yield entry
  }
  yield* more.slice(at)
}
