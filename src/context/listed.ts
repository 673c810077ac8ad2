import { overviewUri } from '../core/overview.ts'
import type { Audience } from '../core/provider.ts'
import { directoryMimeType, type Page, type Resource, type View } from '../core/view.ts'
import type { Limits } from './types.ts'

export interface Listed {
  readonly resources: readonly Resource[]
  readonly notes: readonly string[]
}

/** All resources of a view, in its order, up to a limit, each once. */
export async function listAll(view: View, limits: Limits, signal?: AbortSignal): Promise<Listed> {
  const notes = new Set<string>()
  const resources = new Map<string, Resource>()
  for await (const page of pagesOf((cursor) => view.list(cursor, signal === undefined ? {} : { signal }))) {
    for (const address of page.unavailable ?? []) notes.add(`${address} does not answer`)
    for (const resource of page.items) {
      if (isNoDocument(resource) || resources.has(resource.uri)) continue
      if (resources.size >= limits.listed) {
        notes.add(`only the first ${limits.listed} resources of the listing were looked at`)
        return { resources: [...resources.values()], notes: [...notes] }
      }
      resources.set(resource.uri, resource)
    }
  }
  return { resources: [...resources.values()], notes: [...notes] }
}

/** Whether something listed is no document to choose from: a directory, or what a server says of itself. */
function isNoDocument({ uri, mimeType }: Resource): boolean {
  return mimeType === directoryMimeType || uri === overviewUri
}

/** Pages until there are no more. One that leads back to where it was before ends them too. */
export async function* pagesOf<T>(
  next: (query: { readonly cursor?: string }) => Promise<Page<T>>,
): AsyncGenerator<Page<T>> {
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await next(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor !== undefined && seen.has(cursor)) return
    if (cursor !== undefined) seen.add(cursor)
  } while (cursor !== undefined)
}

/** Whether something is meant for an audience: what names none is meant for all. */
export function isFor(audience: Audience, given: readonly Audience[] | undefined): boolean {
  return given === undefined || given.length === 0 || given.includes(audience)
}
