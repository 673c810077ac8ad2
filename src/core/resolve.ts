import { type AccessRule, compileAccess } from './access.ts'
import type { Reach } from './glob.ts'
import { createMount } from './mount.ts'
import type { Principal, Provider } from './provider.ts'
import { createRouter } from './router.ts'
import { parseUri } from './uri.ts'

/** The mount and path of a URI, among mounts whose sources are not open. */
export interface Resolved<M> {
  readonly mount: M
  /** Path in the mount, decoded. */
  readonly path: string
  /** Returns how much a principal may see of the directory at the path. */
  below(principal: Principal): Reach
}

interface ResolvableMount {
  readonly address: string
  readonly rules?: readonly AccessRule[]
  readonly scopes?: readonly string[]
}

/** A placeholder for a source, which is never called. */
const closed: Provider = {
  async *list() {},
  read: () => Promise.reject(new Error('the source is not open')),
}

/**
 * Creates a function that finds the mount of a URI by the same rules as a catalog, without opening any source.
 *
 * @throws ResourceError `invalid` for addresses that overlap; the function, for a malformed URI.
 */
export function createResolver<M extends ResolvableMount>(
  mounts: readonly M[],
): (uri: string) => Resolved<M> | undefined {
  const mounted = mounts.map(({ address, rules, scopes }) =>
    createMount({
      address,
      provider: closed,
      ...(rules === undefined ? {} : { access: compileAccess(rules) }),
      ...(scopes === undefined ? {} : { scopes }),
    }),
  )
  const route = createRouter(mounted)
  return (uri) => {
    const found = route(parseUri(uri))
    const mount = found === undefined ? undefined : mounts[mounted.indexOf(found.mount)]
    if (found === undefined || mount === undefined) return undefined
    const { path } = found
    const directory = path === '' || path.endsWith('/') ? path : `${path}/`
    return { mount, path, below: (principal) => found.mount.reach(principal, directory) }
  }
}
