import type { Mounted } from './mount.ts'
import { comparePaths } from './path.ts'
import type { Context, Entry } from './provider.ts'

/** Where a resource comes in a selection. */
export type Rank = readonly [priority: number, derived: 0 | 1, depth: number, address: string, path: string]

/** One entry of a selection. */
export interface Ranked {
  readonly rank: Rank
  readonly mount: Mounted
  readonly entry: Entry
}

/** How much may be looked at for one selection. */
export interface SelectionBounds {
  /** How many entries that the caller may see are compared, of all mounts together. */
  readonly visible: number
  /** How many entries of one mount are looked at, seen or not. */
  readonly scan: number
}

/** The priority of what has none: between what is said to matter and what is said not to. */
const noPriority = 0.5

/**
 * The order of importance: the priority that rules give, highest first; then what is not derived from other mounts; then what
 * lies higher in its tree; then the address and path. No two entries are equal in it.
 */
export function compareRanks(a: Rank, b: Rank): number {
  return (
    b[0] - a[0] ||
    a[1] - b[1] ||
    a[2] - b[2] ||
    Buffer.compare(Buffer.from(a[3]), Buffer.from(b[3])) ||
    comparePaths(a[4], b[4])
  )
}

/**
 * The `most` important entries that the caller may see, strictly behind `after`, best first. At any time at most twice as many
 * are held. Each mount has its share of the entries that are compared, and what one leaves of it is the next one's; the mounts
 * that are not derived come last, so they have what all others leave.
 *
 * @param onUnavailable Called for a mount whose source does not answer; others are selected from all the same.
 */
export async function selectEntries(
  mounts: readonly Mounted[],
  most: number,
  after: Rank | undefined,
  bounds: SelectionBounds,
  context: Context,
  onUnavailable: (mount: Mounted, error: unknown) => void,
): Promise<readonly Ranked[]> {
  let best: Ranked[] = []
  /** Nothing behind this rank is among the best. */
  let bar: Rank | undefined
  const cut = () => {
    best = best.sort((a, b) => compareRanks(a.rank, b.rank)).slice(0, most)
    bar = best.length === most ? best.at(-1)?.rank : undefined
  }
  let left = bounds.visible
  const order = mounts.toSorted((a, b) => Number(b.derived) - Number(a.derived))
  for (const [index, mount] of order.entries()) {
    let share = Math.ceil(left / (order.length - index))
    let looked = 0
    try {
      for await (const entry of mount.provider.list({}, context)) {
        context.signal.throwIfAborted()
        if (++looked > bounds.scan) break
        if (!mount.access(context.principal, entry.path)) continue
        const rank = rankOf(mount, entry)
        left--
        const isBehind = after === undefined || compareRanks(rank, after) > 0
        if (isBehind && (bar === undefined || compareRanks(rank, bar) < 0)) best.push({ rank, mount, entry })
        if (best.length >= 2 * most) cut()
        if (--share <= 0) break
      }
    } catch (error) {
      onUnavailable(mount, error)
    }
  }
  cut()
  return best
}

function rankOf(mount: Mounted, { path, priority = noPriority }: Entry): Rank {
  const depth = path.split('/').length
  return [Number.isFinite(priority) ? priority : noPriority, mount.derived ? 1 : 0, depth, mount.address.text, path]
}
