import { signal } from '@preact/signals'
import { defined } from '../../../core/kit/defined.ts'
import type { Resource } from '../../../core/view.ts'
import { connected } from './session.ts'

/** Maximum number of cached resources: the ones that were listed last. */
const most = 200_000

const known = new Map<string, Resource>()

/** Neighbours of the shown resource in the list that it was opened from: for `[` and `]`. */
export const neighbours = signal<{ readonly previous?: string; readonly next?: string }>({})

/** Caches the metadata from lists, so that it is not requested again. */
export function remember(resources: Iterable<Resource>): void {
  for (const resource of resources) {
    known.delete(resource.uri)
    known.set(resource.uri, resource)
  }
  for (const uri of known.keys()) {
    if (known.size <= most) return
    known.delete(uri)
  }
}

export function knownOf(uri: string): Resource | undefined {
  return known.get(uri)
}

/** Maximum number of pages of a folder that are searched for one resource. */
const mostPages = 5

/** Returns a resource from the listing of its folder; undefined if it is in none of the first pages. */
export async function lookUp(uri: string, parent: string, signal: AbortSignal): Promise<Resource | undefined> {
  const { view } = connected()
  let cursor: string | undefined
  for (let pages = 0; pages < mostPages; pages++) {
    const page = await view.directory({ uri: parent, ...defined({ cursor }) }, { signal })
    remember(page.items)
    const found = page.items.find((resource) => resource.uri === uri)
    if (found !== undefined || page.nextCursor === undefined) return found
    cursor = page.nextCursor
  }
  return undefined
}
