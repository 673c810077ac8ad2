import type { Mounted } from './mount.ts'
import { comparePaths } from './path.ts'
import type { Context, Entry } from './provider.ts'

/** The sort key of a resource in a selection. */
export type Rank = readonly [priority: number, derived: 0 | 1, depth: number, address: string, path: string]

/** One entry of a selection. */
export interface Ranked {
  readonly rank: Rank
  readonly mount: Mounted
  readonly entry: Entry
}

/** Limits of one selection. */
export interface SelectionBounds {
  /** Maximum number of visible entries that are compared, of all mounts together. */
  readonly visible: number
  /** Maximum number of entries that are read of one mount, visible or not. */
  readonly scan: number
}

/** Priority of an entry without one: the middle. */
const noPriority = 0.5

/**
 * Compares two ranks by importance: the priority, highest first; then entries of mounts that are not derived; then entries that
 * are higher in their tree; then the address and path. No two entries are equal.
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
 * Returns the `most` important entries that the caller may see, strictly after `after`, best first. It holds at most twice as
 * many in memory. Each mount gets an equal share of the comparisons, and passes on the unused part of it. Mounts that are not
 * derived come last, so they get what all others leave.
 *
 * @param onUnavailable Called for a mount whose source does not answer. The selection continues with the others.
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
  /** Entries after this rank are not among the best. */
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
