import { setImmediate as turn } from 'node:timers/promises'
import type { Resource } from '../core/view.ts'

/** The number of resources that are looked at before other work has its turn. */
const slice = 1024

export interface Doubles {
  /** The URI of the original by the URI of its copy. */
  readonly originals: ReadonlyMap<string, string>
  /** Whether a search covers any of the resources. */
  readonly isSearched: boolean
}

/**
 * Finds the resources outside of every search that are copies, by their paths, of resources that a search covers: a git mount and a settings
 * mount list the files that a file mount lists too. The path of a copy equals the path of its original below the mount, or does so without
 * its first segment (the git ref), and the two sizes are not known to differ.
 *
 * @param coveredBy The address of the mount in which a search covers a URI, or `undefined`.
 */
export async function doublesOf(
  resources: readonly Resource[],
  coveredBy: (uri: string) => string | undefined,
): Promise<Doubles> {
  const covered = new Map<string, Resource>()
  const others: Resource[] = []
  for (const [index, resource] of resources.entries()) {
    if (index % slice === slice - 1) await turn()
    const address = coveredBy(resource.uri)
    if (address === undefined) others.push(resource)
    else covered.set(resource.uri.slice(address.length).replace(/^\//, ''), resource)
  }
  const originals = new Map<string, string>()
  if (covered.size === 0) return { originals, isSearched: false }
  for (const [index, { uri, size }] of others.entries()) {
    if (index % slice === slice - 1) await turn()
    const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]*\/([^?#]+)$/i.exec(uri)?.[1]
    if (path === undefined) continue
    const original = covered.get(path) ?? covered.get(path.slice(path.indexOf('/') + 1))
    if (original === undefined) continue
    const isSameSize = size === undefined || original.size === undefined || size === original.size
    if (isSameSize) originals.set(uri, original.uri)
  }
  return { originals, isSearched: true }
}
