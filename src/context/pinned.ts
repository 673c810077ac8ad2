import { isResourceError } from '../core/errors.ts'
import type { Resource, View } from '../core/view.ts'
import { pagesOf } from './listed.ts'
import { canonical, folderOf } from './places.ts'

/** Maximum number of pages listed of one folder. */
const most = 5

/** Returns the listed resources of these URIs, by canonical URI. URIs in no folder, such as those of a template, are left out. */
export async function describePins(
  view: View,
  uris: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, Resource>> {
  const wanted = new Set(uris.map(canonical))
  const known = new Map<string, Resource>()
  const options = signal === undefined ? {} : { signal }
  for (const folder of new Set([...wanted].map(folderOf))) {
    let left = [...wanted].filter((uri) => folderOf(uri) === folder).length
    let pages = 0
    try {
      for await (const { items } of pagesOf((query) => view.directory({ uri: folder, ...query }, options))) {
        for (const resource of items) {
          const uri = canonical(resource.uri)
          if (!wanted.has(uri) || known.has(uri)) continue
          known.set(uri, resource)
          left--
        }
        if (left === 0 || ++pages === most) break
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isResourceError(error)) throw error
    }
  }
  return known
}
