import { followAbortFor } from './kit/abort.ts'
import { defined } from './kit/object.ts'
import type { Mounted } from './mount.ts'
import { allowsInOpenMount, indexerPrincipal } from './mount-reader.ts'
import type { Change } from './provider.ts'
import { steadyVersion } from './stat.ts'

/** A noticed change of a path. A later change of the same path replaces it. */
export interface LoggedChange {
  readonly number: number
  readonly path: string
  /** Whether this change, or one that it replaces, added or removed the entry, or changed its listed facts. */
  readonly listed: boolean
  readonly aliases: readonly string[]
  /** Time at which the change was noticed, in milliseconds since 1970. */
  readonly time: number
}

/** The changes of one mount, and its listing after the last of them. */
export interface KeptMountChanges {
  readonly gap: number
  readonly changes: readonly LoggedChange[]
  /** The version of each entry, by its path. Undefined: a comparison would not find every change. */
  readonly listing: readonly (readonly [path: string, version: string])[] | undefined
}

/** A run of the log of changes as it is stored, so that a later process can continue the log. */
export interface KeptRun {
  readonly id: string
  /** The key that seals positions, in base64. */
  readonly key: string
  /** Number of the last change of the run. */
  readonly last: number
  /** The runs that this one continues, oldest first, each with the number of the last change that was stored of it. */
  readonly continued: readonly Pick<KeptRun, 'id' | 'last'>[]
  /** Changes and listing of each mount, by its address. */
  readonly mounts: Readonly<Record<string, KeptMountChanges>>
}

export const keptRunKey = 'changes'

/** Hides the other paths of an entry, so that a source lists each entry under one path only. */
const denied = () => false

/** Time-out of one listing, in milliseconds, and maximum number of its entries. */
const [listingMs, maxEntries] = [10_000, 100_000]

/** Stands for a version that a later state may have too. An entry with it counts as changed at the next comparison. */
const unsteady = ''

type EntryVersions = ReadonlyMap<string, string>

/**
 * Lists a mount. Undefined if a comparison of its listings would not find every change, if it has too many entries, or
 * if it fails.
 */
export async function listingOf(mount: Mounted, caller: AbortSignal): Promise<EntryVersions | undefined> {
  const { provider } = mount
  if (provider.listsChanges?.(mount.restricted) !== true) return undefined
  const { signal, release } = followAbortFor(caller, listingMs)
  const versions = new Map<string, string>()
  try {
    for await (const entry of provider.list(
      {},
      { principal: indexerPrincipal, signal, allows: mount.restricted ? denied : allowsInOpenMount },
    )) {
      const { path, version, size, modified } = entry
      const own = version ?? (modified === undefined ? undefined : `${modified} ${size ?? ''}`)
      if (own === undefined || versions.size >= maxEntries) return undefined
      versions.set(path, steadyVersion({ version: own, ...defined({ modified }) }) ?? unsteady)
    }
    return versions
  } catch {
    return undefined
  } finally {
    release()
  }
}

export function* changesBetween(before: EntryVersions, now: EntryVersions): Generator<Change> {
  for (const [path, version] of now) {
    const earlier = before.get(path)
    if (earlier === undefined) yield { path, listed: true }
    else if (earlier === unsteady || earlier !== version) yield { path }
  }
  for (const path of before.keys()) if (!now.has(path)) yield { path, listed: true }
}
