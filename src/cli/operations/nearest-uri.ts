import { pagesOf } from '../../core/kit/groups.ts'
import { decodeComponent } from '../../core/uri.ts'
import type { Resource, View } from '../../core/view.ts'
import { nearest } from '../../schema/refusals.ts'

/** Maximum number of children that are compared in a directory, and maximum time of the search, in milliseconds. */
const maxChildren = 2000
const maxTime = 1500

/**
 * Returns the URI that was probably meant by one without a resource: each segment is the written one, or the nearest in the view.
 * It uses only listings of the view, so it never names a denied resource. `undefined` if nothing is near.
 */
export async function nearestUri(view: View, uri: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(maxTime)
  try {
    const wanted = segmentsOf(uri)
    const mount = nearestMount(await view.mounts({ signal }), wanted)
    if (mount === undefined) return undefined
    const depth = segmentsOf(mount.uri).length
    let isOther = !isSame(segmentsOf(mount.uri), wanted.slice(0, depth))
    let found = mount.uri
    for (const segment of wanted.slice(depth)) {
      const children = await childrenOf(view, found, signal)
      const child = childFor(segment, children)
      // The part corrected so far is near, even if the rest does not exist.
      if (child === undefined) break
      isOther ||= nameOf(child.uri) !== decoded(segment)
      found = child.uri
    }
    return isOther && found !== uri ? found : undefined
  } catch {
    // A failed suggestion must not cause a second error.
    return undefined
  }
}

/** The mount of a URI, or the mount that it would have with the right spelling. */
function nearestMount(mounts: readonly Resource[], wanted: readonly string[]): Resource | undefined {
  const within = mounts.filter(({ uri }) => {
    const segments = segmentsOf(uri)
    return segments.length <= wanted.length && segments.every((segment, i) => isNear(wanted[i] ?? '', segment))
  })
  const exact = within.find(({ uri }) => isSame(segmentsOf(uri), wanted.slice(0, segmentsOf(uri).length)))
  const texts = within.map(({ uri }) => uri)
  const closest = nearest(wanted.join('/'), texts)
  return exact ?? within.find(({ uri }) => uri === closest) ?? within[0]
}

async function childrenOf(view: View, uri: string, signal: AbortSignal): Promise<readonly Resource[]> {
  const children: Resource[] = []
  for await (const { items } of pagesOf((query) => view.directory({ uri, ...query }, { signal }))) {
    children.push(...items)
    if (children.length >= maxChildren) break
  }
  return children
}

function childFor(segment: string, children: readonly Resource[]): Resource | undefined {
  const wanted = decoded(segment)
  const names = children.map(({ uri }) => nameOf(uri))
  const begun = names.filter((name) => name.toLowerCase().startsWith(wanted.toLowerCase()))
  const alike = names.filter((name) => stemOf(name) === stemOf(wanted))
  // A name without its suffix, or with another one, if only one name fits.
  const only = [begun, alike].find(({ length }) => length === 1)?.[0]
  const name = names.includes(wanted) ? wanted : (nearest(wanted, names) ?? only)
  return name === undefined ? undefined : children[names.indexOf(name)]
}

function stemOf(name: string): string {
  return name.toLowerCase().replace(/(?<=.)\.[^.]*$/, '')
}

function isNear(word: string, segment: string): boolean {
  return word === segment || (word !== '' && segment !== '' && nearest(word, [segment]) !== undefined)
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((segment, i) => segment === b[i])
}

function segmentsOf(uri: string): readonly string[] {
  return uri
    .replace(/[?#].*$/s, '')
    .replace(/(?<!\/)\/$/, '')
    .split('/')
}

/** The last segment of a URI, decoded. */
export function nameOf(uri: string): string {
  return decoded(segmentsOf(uri).at(-1) ?? '')
}

function decoded(segment: string): string {
  return decodeComponent(segment) ?? segment
}
