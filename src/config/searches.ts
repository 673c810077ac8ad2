import type { Catalog, Mount } from '../core/catalog.ts'
import type { Search } from '../providers/search/index.ts'

/** A mount that searches others. */
export interface SearchMount extends Mount {
  readonly provider: Search
}

/** The mounts of a catalog that search others. */
export function searchesOf({ mounts }: Pick<Catalog, 'mounts'>): readonly SearchMount[] {
  return mounts.filter((mount): mount is SearchMount => 'feedStatus' in mount.provider)
}
