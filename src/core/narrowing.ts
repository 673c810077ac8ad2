import { compileAccess } from './access.ts'
import type { Reach } from './glob.ts'
import type { MountOptions } from './mount.ts'
import type { Principal } from './provider.ts'
import { parseAddress } from './uri.ts'

/**
 * What of a catalog is shown where things are listed: for a client that drowns in all of it. It is no access rule: what is not
 * shown can still be read by its URI.
 */
export interface Narrowing {
  /** The addresses of the mounts that are shown. By default all. */
  readonly mounts?: readonly string[]
  /** Globs of the paths that are shown. By default all. */
  readonly match?: readonly string[]
  /** How many resources are listed at most: the most important ones, best first. By default all. */
  readonly most?: number
  /** After how many pages a list ends; what is derived from other mounts is then listed behind them. By default after all. */
  readonly pages?: number
}

/** Mounts as a narrowing shows them: what it does not show is as if a rule denied it. */
export function narrowMounts(
  mounts: readonly MountOptions[],
  { mounts: named, match }: Narrowing,
): readonly MountOptions[] {
  const addresses = named && new Set(named.map((address) => parseAddress(address).text))
  const shown =
    addresses === undefined ? mounts : mounts.filter((mount) => addresses.has(parseAddress(mount.address).text))
  // A rule in any case: what depends on who asks is kept by nobody for others.
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
