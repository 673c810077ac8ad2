import { defined } from '../../core/kit/object.ts'
import type { MountReader } from '../../core/mount-reader.ts'
import type { Principal } from '../../core/provider.ts'
import { pendingNote, type SearchAnswer, type SearchStatus, staleNote } from '../../core/search-answer.ts'
import type { FeedStatus, Freshness } from '../../core/tool.ts'

interface Known {
  readonly mounts: readonly MountReader[]
  /** The freshness of a mount that this process indexes, by the changes of the counted paths (by default all). Undefined for other mounts. */
  readonly here: (address: string, isCounted?: (path: string) => boolean) => Freshness | undefined
  /** The progress that the process that keeps the index has stored. */
  readonly stored: FeedStatus | undefined
}

/** Returns how far an index is behind the searched mounts, as far as a principal may know it. */
export function freshnessFor(principal: Principal, { mounts, here, stored }: Known): Freshness {
  const reaches = mounts
    .map((mount) => ({ mount, reach: mount.reach(principal) }))
    .filter(({ reach }) => reach !== 'none')
  const isWhole = reaches.every(({ reach }) => reach === 'all')
  const all = reaches.map(({ mount, reach }) => {
    const isCounted = reach === 'all' ? undefined : (path: string) => mount.allows(principal, path)
    // The stored numbers also count changes that the principal may not see.
    const progress = reach === 'all' ? stored?.mounts.find(({ address }) => address === mount.address) : undefined
    return here(mount.address, isCounted) ?? progress ?? {}
  })
  // The time would tell of changes that the principal may not see.
  const times = isWhole ? all.flatMap(({ asOf }) => asOf ?? []) : []
  const counts = all.flatMap(({ pending }) => pending ?? [])
  return {
    ...(times.length === all.length && times.length > 0 ? { asOf: Math.min(...times) } : {}),
    ...(counts.length === all.length ? { pending: counts.reduce((sum, count) => sum + count, 0) } : {}),
  }
}

export function partialMounts(
  { mounts }: SearchStatus,
  addresses: readonly string[] | undefined,
): Pick<SearchAnswer, 'partial'> {
  const partial = mounts.flatMap(({ address, state, looked, of, partial: gaps, firstPages }) => {
    if (addresses?.includes(address) === false) return []
    const counts = state === 'current' ? {} : defined({ looked, of })
    const facts = { ...counts, ...gaps, ...defined({ firstPages }) }
    return Object.keys(facts).length === 0 ? [] : [{ mount: address, ...facts }]
  })
  return partial.length === 0 ? {} : { partial }
}

export function freshnessNotes(pending: number | undefined, isFresh: boolean | undefined): readonly string[] {
  return [
    ...(pending === undefined || pending === 0 ? [] : [pendingNote(pending)]),
    ...(isFresh === false ? [staleNote] : []),
  ]
}
