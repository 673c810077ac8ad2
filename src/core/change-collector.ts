import type { Change } from './provider.ts'

/** The changes of some milliseconds, joined. */
export interface ChangeBatch {
  /** The paths that changed. */
  readonly changed: ReadonlySet<string>
  /** Those of them that came or went. */
  readonly listed: ReadonlySet<string>
  /** Whether anything may have changed, whatever the paths say. */
  readonly everything: boolean
  /** The other paths of a file that changed, by its path: it may be reached by several. */
  readonly aliases: ReadonlyMap<string, ReadonlySet<string>>
}

export interface ChangeCollector {
  collect(change: Change): void
  /** Drops the changes that have not been handed on. */
  close(): void
}

/** Changes are handed on once there was none for this long (a debounce), in milliseconds. */
const quietMs = 50
/** They wait no longer than this after the first, in milliseconds. */
const maxDelayMs = 250
/** So many changed paths are kept apart; beyond it, everything has changed. */
const maxPaths = 10_000

/** Joins changes into batches. */
export function createChangeCollector(take: (batch: ChangeBatch) => void): ChangeCollector {
  let changed = new Set<string>()
  let aliases = new Map<string, ReadonlySet<string>>()
  let listed = new Set<string>()
  let everything = false
  let firstAt = 0
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    timer = undefined
    const batch = { changed, listed, everything, aliases }
    changed = new Set()
    listed = new Set()
    aliases = new Map()
    everything = false
    take(batch)
  }

  return {
    collect: ({ path, listed: isListed, aliases: others = [] }) => {
      if (path === undefined || changed.size >= maxPaths) everything = true
      else {
        // A change that names the path alone is seen by all who see the path.
        if (others.length === 0) aliases.delete(path)
        else if (!changed.has(path) || aliases.has(path))
          aliases.set(path, new Set([...(aliases.get(path) ?? []), ...others]))
        changed.add(path)
        if (isListed) listed.add(path)
      }
      const now = performance.now()
      if (timer === undefined) firstAt = now
      // The batch is due already: another change does not put it off.
      else if (now >= firstAt + maxDelayMs) return
      clearTimeout(timer)
      timer = setTimeout(flush, Math.max(0, Math.min(quietMs, firstAt + maxDelayMs - now)))
    },
    close: () => clearTimeout(timer),
  }
}
