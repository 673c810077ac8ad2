import type { Resource } from '../core/view.ts'

/**
 * Finds the resources outside of every search that are copies, by their paths, of resources that a search covers: a git mount and a settings
 * mount list the files that a file mount lists too. The path of a copy equals the path of its original below the mount, or does so without
 * its first segment (the git ref), and the two sizes are not known to differ.
 *
 * @param coveredBy The address of the mount in which a search covers a URI, or `undefined`.
 * @returns The URI of the original by the URI of its copy.
 */
export function doublesOf(
  resources: readonly Resource[],
  coveredBy: (uri: string) => string | undefined,
): ReadonlyMap<string, string> {
  const originals = new Map<string, Resource>()
  const others: Resource[] = []
  for (const resource of resources) {
    const address = coveredBy(resource.uri)
    if (address === undefined) others.push(resource)
    else originals.set(resource.uri.slice(address.length).replace(/^\//, ''), resource)
  }
  const doubles = new Map<string, string>()
  if (originals.size === 0) return doubles
  for (const { uri, size } of others) {
    const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]*\/([^?#]+)$/i.exec(uri)?.[1]
    if (path === undefined) continue
    const original = originals.get(path) ?? originals.get(path.slice(path.indexOf('/') + 1))
    if (original === undefined) continue
    const isSameSize = size === undefined || original.size === undefined || size === original.size
    if (isSameSize) doubles.set(uri, original.uri)
  }
  return doubles
}
