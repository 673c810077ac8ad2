import type { BigIntStats } from 'node:fs'

/** What of a file, beside its name, decides whether it is served. */
export interface PermitOptions {
  readonly hardlinks: boolean
  readonly allowMounts: boolean
}

/**
 * Whether something that was found may be served, by what it is: `file` for a regular file with one name on the root's
 * device, `directory` for a directory on it. Devices, sockets and FIFOs are nothing.
 */
export function kindOf(stats: BigIntStats, device: bigint, options: PermitOptions): 'file' | 'directory' | undefined {
  if (stats.dev !== device && !options.allowMounts) return undefined
  if (stats.isDirectory()) return 'directory'
  if (!stats.isFile() || stats.nlink === 0n) return undefined
  // A second name may lie anywhere on the device, with the rights of another place.
  return stats.nlink === 1n || options.hardlinks ? 'file' : undefined
}

let identity = { user: -1, groups: new Set<bigint>() }

/** The user and groups of this process, which may give up rights while it runs. */
function currentIdentity(): typeof identity {
  const user = process.geteuid?.() ?? 0
  if (user !== identity.user) {
    const ids = [...(process.getgroups?.() ?? []), process.getegid?.() ?? 0]
    identity = { user, groups: new Set(ids.map(BigInt)) }
  }
  return identity
}

/**
 * Whether the mode of a file lets this process read it (a directory: read and search it). Where it does not, an access
 * list may still do so, which only access(2) tells.
 */
export function modeAllows(stats: BigIntStats): boolean {
  const rights = stats.isDirectory() ? 0o5n : 0o4n
  const everybody = rights * 0o111n
  // Most files: it need not be asked who this process is.
  if ((stats.mode & everybody) === everybody) return true
  const { user, groups } = currentIdentity()
  if (user === 0) return true
  const shift = stats.uid === BigInt(user) ? 6n : groups.has(stats.gid) ? 3n : 0n
  return ((stats.mode >> shift) & rights) === rights
}

/** Names a state of a file or directory: another one has another stamp, as far as the file system's clock goes. */
export function stampOf(stats: BigIntStats): string {
  const { mtimeNs, ctimeNs, size, ino } = stats
  return `${mtimeNs.toString(36)}.${ctimeNs.toString(36)}.${size.toString(36)}.${ino.toString(36)}`
}

/** File systems stamp with a clock that ticks: two changes within one tick (4 to 10 ms) leave the same stamp. */
export const tickMs = 20

/**
 * Whether something had been left alone for so long, at a time (ms since 1970), that any later change gives it another
 * stamp. What was read before that may be stale and still look current. A time in the future was set by hand, and no
 * change comes by it.
 */
export function isSettled({ mtimeMs, ctimeMs }: BigIntStats, time: number): boolean {
  return Math.abs(time - Number(mtimeMs)) > tickMs && Math.abs(time - Number(ctimeMs)) > tickMs
}
