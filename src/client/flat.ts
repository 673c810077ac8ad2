import { comparePaths } from '../core/path.ts'
import { directoryMimeType, type Resource } from '../core/view.ts'
import { lastSegment } from './wire.ts'

/**
 * The tree in a flat list of URIs, for servers that show none. The URIs are a stranger's: nothing is parsed, decoded or
 * rewritten in them, they are compared as text and cut at slashes.
 */

/** Where URIs begin: `file:///`, `https://host/`, `memo://` (for `memo://today`, which has no path), `note:`. */
const root = /^[a-z][a-z0-9+.-]*:(?:\/\/(?:[^/?#]*\/)?)?/i

/** The directory that a URI names, with what its children's URIs begin with. */
export function directoryBase(uri: string): string {
  return /[/:]$/.test(uri) ? uri : `${uri}/`
}

/** Whether a URI is one of a root that this module made up (`memo://`, `note:`): no server knows it. */
export function isMadeUp(uri: string): boolean {
  return /^[a-z][a-z0-9+.-]*:(?:\/\/)?$/i.test(uri)
}

/** The roots of a listing: for each scheme and authority, the deepest directory that holds all of its resources. */
export function rootsOf(resources: readonly Resource[]): readonly Resource[] {
  const roots = new Map<string, string>()
  for (const { uri } of resources) {
    const start = root.exec(uri)?.[0]
    if (start === undefined) continue
    const path = uri.replace(/[?#].*$/s, '')
    const directory = path.slice(0, Math.max(path.lastIndexOf('/') + 1, start.length))
    roots.set(start, commonDirectory(roots.get(start) ?? directory, directory, start))
  }
  return [...roots.values()].sort(comparePaths).map(directory)
}

/**
 * What lies directly in a directory, in the order of the URIs; `undefined` where nothing lies in it, and it is not listed
 * as a directory either.
 */
export function childrenOf(resources: readonly Resource[], uri: string): readonly Resource[] | undefined {
  const base = directoryBase(uri)
  const children = new Map<string, Resource>()
  let isDirectory = false
  for (const resource of resources) {
    if (resource.uri === base || resource.uri === uri) isDirectory ||= resource.mimeType === directoryMimeType
    if (!resource.uri.startsWith(base) || resource.uri.length === base.length) continue
    const slash = resource.uri
      .slice(base.length)
      .replace(/[?#].*$/s, '')
      .indexOf('/')
    const child = slash === -1 ? resource.uri : resource.uri.slice(0, base.length + slash + 1)
    // What the server says of a directory itself is better than what follows from its URI.
    if (child === resource.uri)
      children.set(child, child.endsWith('/') ? { ...resource, mimeType: directoryMimeType } : resource)
    else if (!children.has(child)) children.set(child, directory(child))
  }
  if (children.size === 0) return isDirectory ? [] : undefined
  return [...children.values()].sort((a, b) => comparePaths(a.uri, b.uri))
}

function commonDirectory(a: string, b: string, start: string): string {
  let common = a
  while (!b.startsWith(common)) common = common.slice(0, common.lastIndexOf('/', common.length - 2) + 1)
  return common.length < start.length ? start : common
}

function directory(uri: string): Resource {
  return { uri, name: lastSegment(uri), mimeType: directoryMimeType }
}
