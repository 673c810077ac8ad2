import { invalid } from './errors.ts'
import type { Mounted } from './mount.ts'
import type { ParsedUri } from './uri.ts'

interface Node {
  mount?: Mounted
  readonly below: Map<string, Node>
}

/**
 * Creates a function that finds the mount of a URI. Addresses do not overlap, so there is at most one.
 *
 * @throws ResourceError `invalid` when an address lies at or under another, or differs from it only in case or in Unicode
 * normalisation, naming both.
 */
export function createRouter(
  mounts: readonly Mounted[],
): (uri: ParsedUri) => { readonly mount: Mounted; readonly path: string } | undefined {
  const origins = new Map<string, Node>()
  const folded = new Map<string, Mounted>()
  for (const mount of mounts) {
    const origin = `${mount.address.scheme}://${mount.address.authority}`
    let node: Node = origins.get(origin) ?? { below: new Map() }
    origins.set(origin, node)
    refuseOverlap(node.mount, mount)
    for (const segment of mount.address.segments) {
      const next: Node = node.below.get(segment) ?? { below: new Map() }
      node.below.set(segment, next)
      node = next
      refuseOverlap(node.mount, mount)
    }
    refuseOverlap(firstBelow(node), mount)
    node.mount = mount
    // The content of a `data:` URI is not a name.
    if (mount.address.scheme === 'data') continue
    const form = [origin, ...mount.address.segments].join('/').normalize('NFC').toLowerCase()
    refuseTwin(folded.get(form), mount)
    folded.set(form, mount)
  }

  return (uri) => {
    let node = origins.get(`${uri.scheme}://${uri.authority}`)
    for (let depth = 0; node !== undefined; depth++) {
      if (node.mount !== undefined) {
        const path = uri.segments.slice(depth).join('/')
        return { mount: node.mount, path: uri.directory && path !== '' ? `${path}/` : path }
      }
      const segment = uri.segments[depth]
      if (segment === undefined) return undefined
      node = node.below.get(segment)
    }
    return undefined
  }
}

function refuseOverlap(other: Mounted | undefined, mount: Mounted): void {
  if (other === undefined) return
  throw invalid(
    `The addresses ${other.address.text} and ${mount.address.text} overlap: each mount needs an address of its own, ` +
      'neither at nor under another.',
    'overlapping-addresses',
  )
}

function refuseTwin(other: Mounted | undefined, mount: Mounted): void {
  if (other === undefined) return
  throw invalid(
    `The addresses ${other.address.text} and ${mount.address.text} differ only in case or in the form of their letters: ` +
      'whoever reads or types them would take one for the other. Give one of them another name.',
    'similar-addresses',
  )
}

function firstBelow(node: Node): Mounted | undefined {
  for (const next of node.below.values()) {
    const found = next.mount ?? firstBelow(next)
    if (found !== undefined) return found
  }
  return undefined
}
