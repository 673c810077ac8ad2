import type { Catalog, Mount } from '../core/catalog.ts'
import type { Feeding } from '../core/feed-status.ts'
import type { Provider } from '../core/provider.ts'

/** A mount that searches others. */
interface SearchMount extends Mount {
  readonly provider: Provider & Feeding
}

/** The mounts of a catalog that search others. */
export function searchesOf({ mounts }: Pick<Catalog, 'mounts'>): readonly SearchMount[] {
  return mounts.filter((mount): mount is SearchMount => mount.provider.feedStatus !== undefined)
}
