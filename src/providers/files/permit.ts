import type { BigIntStats } from 'node:fs'

/** Options that decide, besides the name of a file, whether it is served. */
export interface PermitOptions {
  readonly hardlinks: boolean
  readonly allowMounts: boolean
}

/**
 * Returns the kind of a file that may be served: `file` for a regular file with one name on the root's device, `directory` for a directory on
 * it. Undefined for devices, sockets and FIFOs.
 */
export function kindOf(stats: BigIntStats, device: bigint, options: PermitOptions): 'file' | 'directory' | undefined {
  if (stats.dev !== device && !options.allowMounts) return undefined
  if (stats.isDirectory()) return 'directory'
  if (!stats.isFile() || stats.nlink === 0n) return undefined
  // A second name may lie anywhere on the device, under other permissions.
  return stats.nlink === 1n || options.hardlinks ? 'file' : undefined
}

let identity = { user: -1, groups: new Set<bigint>() }

/** Returns the user and groups of this process, which may drop privileges while it runs. */
function currentIdentity(): typeof identity {
  const user = process.geteuid?.() ?? 0
  if (user !== identity.user) {
    const ids = [...(process.getgroups?.() ?? []), process.getegid?.() ?? 0]
    identity = { user, groups: new Set(ids.map(BigInt)) }
  }
  return identity
}

/**
 * Whether the mode of a file lets this process read it (a directory: read and search it). If not, an access control list may still allow it,
 * which only access(2) can tell.
 */
export function modeAllows(stats: BigIntStats): boolean {
  const rights = stats.isDirectory() ? 0o5n : 0o4n
  const everybody = rights * 0o111n
  // True for most files, without a look-up of the user of this process.
  if ((stats.mode & everybody) === everybody) return true
  const { user, groups } = currentIdentity()
  if (user === 0) return true
  const shift = stats.uid === BigInt(user) ? 6n : groups.has(stats.gid) ? 3n : 0n
  return ((stats.mode >> shift) & rights) === rights
}

/** Returns a version stamp of a file or directory. Different states have different stamps, within the resolution of the file system's clock. */
export function stampOf(stats: BigIntStats): string {
  const { mtimeNs, ctimeNs, size, ino } = stats
  return `${mtimeNs.toString(36)}.${ctimeNs.toString(36)}.${size.toString(36)}.${ino.toString(36)}`
}

/** Whether two stats have the same stamp. It is cheaper than making both stamps. */
export function hasStamp(a: BigIntStats, b: BigIntStats): boolean {
  return a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.size === b.size && a.ino === b.ino
}

/** Bound of the clock tick of file systems, in milliseconds: two changes within one tick (4 to 10 ms) leave the same stamp. */
export const tickMs = 20

/**
 * Whether the last change was long enough before a time (ms since 1970) that any later change gives another stamp. Content read before that
 * may be stale although the stamp is unchanged. A time in the future was set by hand, and no change produces it.
 */
export function isSettled({ mtimeMs, ctimeMs }: BigIntStats, time: number, withinMs = tickMs): boolean {
  return Math.abs(time - Number(mtimeMs)) > withinMs && Math.abs(time - Number(ctimeMs)) > withinMs
}
