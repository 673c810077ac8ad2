import { signal } from '@preact/signals'
import { defined } from '../../../core/defined.ts'
import type { Resource } from '../../../core/view.ts'
import { connected } from './session.ts'

/** So many resources are remembered: the ones that were listed last. */
const most = 200_000

const known = new Map<string, Resource>()

/** What is before and behind the resource that is shown, in the list that it was opened from: for `[` and `]`. */
export const neighbours = signal<{ readonly previous?: string; readonly next?: string }>({})

/** Keeps what a list says of resources, so that nobody has to ask for it again. */
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

/** So many pages of a folder are looked through for one resource of it. */
const mostPages = 5

/** What a list says of a resource, asked for in the folder that it lies in. `undefined`: it is in none of its first pages. */
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
