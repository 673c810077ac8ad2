import type { Change, ChangedKind } from './provider.ts'

/** The changes of some milliseconds, joined. */
export interface ChangeBatch {
  /** The paths that changed. */
  readonly changed: ReadonlySet<string>
  /** Those of them that were added or removed. */
  readonly listed: ReadonlySet<string>
  /** Whether every path of the mount may have changed, beyond those in `changed`. */
  readonly everything: boolean
  /** The changed paths of each list besides the entries. */
  readonly of: ReadonlyMap<ChangedKind, ReadonlySet<string>>
  /** Other paths of the same file, by the path that changed: several links may lead to one file. */
  readonly aliases: ReadonlyMap<string, ReadonlySet<string>>
}

interface ChangeCollector {
  collect(change: Change): void
  /** Drops the changes that are still waiting. */
  close(): void
}

/** Debounce: changes are passed on after this time without another one, in milliseconds. */
const quietMs = 50
/** Maximum delay after the first change, in milliseconds. */
const maxDelayMs = 250
/** Maximum number of changed paths kept one by one. Above it, the batch counts as "everything changed". */
const maxPaths = 10_000

/** Creates a collector that joins changes into batches. */
export function createChangeCollector(take: (batch: ChangeBatch) => void): ChangeCollector {
  let changed = new Set<string>()
  let aliases = new Map<string, ReadonlySet<string>>()
  let listed = new Set<string>()
  let everything = false
  let kinds = new Map<ChangedKind, Set<string>>()
  let firstAt = 0
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    timer = undefined
    const batch = { changed, listed, everything, aliases, of: kinds }
    changed = new Set()
    listed = new Set()
    aliases = new Map()
    everything = false
    kinds = new Map()
    take(batch)
  }

  return {
    collect: ({ path, listed: isListed, of, aliases: others = [] }) => {
      if (of !== undefined) kinds.set(of, (kinds.get(of) ?? new Set()).add(path ?? ''))
      else if (path === undefined || changed.size >= maxPaths) everything = true
      else {
        // A change without aliases is visible to everyone who may see the path.
        if (others.length === 0) aliases.delete(path)
        else if (!changed.has(path) || aliases.has(path))
          aliases.set(path, new Set([...(aliases.get(path) ?? []), ...others]))
        changed.add(path)
        if (isListed) listed.add(path)
      }
      const now = performance.now()
      if (timer === undefined) firstAt = now
      // The batch is already due: another change does not delay it.
      else if (now >= firstAt + maxDelayMs) return
      clearTimeout(timer)
      timer = setTimeout(flush, Math.max(0, Math.min(quietMs, firstAt + maxDelayMs - now)))
    },
    close: () => clearTimeout(timer),
  }
}
