import { type AccessRule, compileAccess } from './access.ts'
import { invalid } from './errors.ts'
import type { Reach } from './glob.ts'
import { createMount, type Mounted } from './mount.ts'
import type { Principal, Provider } from './provider.ts'
import { type Address, type ParsedUri, parseUri } from './uri.ts'

interface Node {
  mount?: Mounted
  readonly below: Map<string, Node>
}

/**
 * Creates a function that finds the mount of a URI.
 * @throws ResourceError `invalid` when an address lies at or under another, or differs from it only in case or in
 * Unicode normalisation.
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
    // The content of a `data:` URI is not a name: contents that differ only in case are not confusing.
    if (mount.address.scheme === 'data') continue
    const form = [origin, ...mount.address.segments].join('/').normalize('NFC').toLowerCase()
    refuseTwin(folded.get(form), mount)
    folded.set(form, mount)
  }
  for (const mount of mounts) for (const alias of mount.aliases) addAlias(origins, alias, mount)

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

function addAlias(origins: Map<string, Node>, alias: Address, mount: Mounted): void {
  const origin = `${alias.scheme}://${alias.authority}`
  let node: Node = origins.get(origin) ?? { below: new Map() }
  origins.set(origin, node)
  for (const segment of alias.segments) {
    if (node.mount !== undefined) return
    const next: Node = node.below.get(segment) ?? { below: new Map() }
    node.below.set(segment, next)
    node = next
  }
  if (node.mount === undefined && firstBelow(node) === undefined) node.mount = mount
}

function refuseOverlap(other: Mounted | undefined, mount: Mounted): void {
  if (other === undefined) return
  throw invalid(
    `The addresses ${other.address.text} and ${mount.address.text} overlap: each mount needs an address of its own, ` +
      'neither at nor under another.',
    'configuration',
  )
}

function refuseTwin(other: Mounted | undefined, mount: Mounted): void {
  if (other === undefined) return
  throw invalid(
    `The addresses ${other.address.text} and ${mount.address.text} differ only in case or in the form of their letters: ` +
      'people would confuse them. Give one of them another name.',
    'configuration',
  )
}

function firstBelow(node: Node): Mounted | undefined {
  for (const next of node.below.values()) {
    const nextMount = next.mount ?? firstBelow(next)
    if (nextMount !== undefined) return nextMount
  }
  return undefined
}

/** The mount and path of a URI, among mounts whose sources are not open. */
export interface ResolvedUri<M> {
  readonly mount: M
  /** Path in the mount, decoded. */
  readonly path: string
  /** Returns how much a principal may see of the directory at the path. */
  below(principal: Principal): Reach
}

export interface ResolvableMount {
  readonly address: string
  readonly aliases?: readonly string[]
  readonly rules?: readonly AccessRule[]
  readonly scopes?: readonly string[]
}

const closed: Provider = {
  async *list() {},
  read: () => Promise.reject(new Error('the source is not open')),
}

/**
 * Creates a function that finds the mount of a URI by the same rules as a catalog, without opening any source.
 *
 * @throws ResourceError `invalid` for addresses that overlap or are malformed. The returned function throws it for a malformed URI.
 */
export function createResolver<M extends ResolvableMount>(
  mounts: readonly M[],
): (uri: string) => ResolvedUri<M> | undefined {
  const mounted = mounts.map(({ address, aliases, rules, scopes }) =>
    createMount({
      address,
      ...(aliases === undefined ? {} : { aliases }),
      provider: closed,
      ...(rules === undefined ? {} : { access: compileAccess(rules) }),
      ...(scopes === undefined ? {} : { scopes }),
    }),
  )
  const route = createRouter(mounted)
  return (uri) => {
    const location = route(parseUri(uri))
    const mount = location === undefined ? undefined : mounts[mounted.indexOf(location.mount)]
    if (location === undefined || mount === undefined) return undefined
    const { path } = location
    const directory = path === '' || path.endsWith('/') ? path : `${path}/`
    return { mount, path, below: (principal) => location.mount.reach(principal, directory) }
  }
}
