import { compileAccess } from './access.ts'
import type { Reach } from './glob.ts'
import type { MountOptions } from './mount.ts'
import type { Principal } from './provider.ts'
import { parseAddress } from './uri.ts'

/**
 * Restricts what a catalog lists, for a client that cannot handle all of it. It is not an access rule: resources that are not
 * listed can still be read by their URIs.
 */
export interface Narrowing {
  /** Addresses of the mounts to list. Default all. */
  readonly mounts?: readonly string[]
  /** Globs of the paths to list. Default all. */
  readonly match?: readonly string[]
  /** Maximum number of listed resources: the most important ones, best first. Default no limit. */
  readonly most?: number
  /** Maximum number of pages of a list; derived mounts then come last. Default no limit. */
  readonly pages?: number
}

/** Returns the mounts with a narrowing applied as an access rule. */
export function narrowMounts(
  mounts: readonly MountOptions[],
  { mounts: named, match }: Narrowing,
): readonly MountOptions[] {
  const addresses = named && new Set(named.map((address) => parseAddress(address).text))
  const shown =
    addresses === undefined ? mounts : mounts.filter((mount) => addresses.has(parseAddress(mount.address).text))
  // Always add a rule, so that answers which depend on the caller are not cached for others.
  const narrow = compileAccess([{ allow: ['*'], match }])
  return shown.map((mount) => {
    const { access } = mount
    if (access === undefined) return { ...mount, access: narrow }
    const both = (principal: Principal, path: string) => narrow(principal, path) && access(principal, path)
    const reach = (principal: Principal, directory: string): Reach => {
      const reaches = [narrow, access].map((rule) => rule.reach?.(principal, directory) ?? 'some')
      if (reaches.includes('none')) return 'none'
      return reaches.includes('some') ? 'some' : 'all'
    }
    return { ...mount, access: Object.assign(both, { reach }) }
  })
}
