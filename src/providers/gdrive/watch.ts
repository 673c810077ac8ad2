import { createRecent } from '../../core/kit/lru.ts'
import type { Change, Degradation } from '../../core/provider.ts'
import { createLooking } from '../looking.ts'
import type { Snapshot, State } from './snapshot.ts'
import { differences, type Placed, placedAt } from './tree.ts'

/** Maximum delay until listeners are notified of a change, in milliseconds. */
const telling = 2000

/** Watches for changes through the feed that the snapshot follows. */
export function createWatch(snapshot: Snapshot, interval: number) {
  /** The former entries of changed paths, kept until listeners are notified: those who could see an entry also learn of its removal. */
  const former = createRecent<{ readonly placed: Placed; readonly until: number }>(10_000)

  const changesOf = function* (before: State, now: State): Generator<Change> {
    // The changes during a loss of the feed are unknown.
    if (now.losses !== before.losses) return yield {}
    if (now.tree === before.tree) return
    for (const change of differences(before.tree, now.tree)) {
      const placed = placedAt(before.tree, change.path)
      if (placed !== undefined) former.set(change.path, { placed, until: performance.now() + telling })
      yield change
    }
  }
  const looking = createLooking({ interval, look: (signal) => snapshot.fresh(signal), changesOf })

  return {
    watch: looking.watch,
    degraded: (): Degradation | undefined => (looking.away ? 'unavailable' : undefined),
    /** Returns the entry that was at a path until a moment ago, if it has just changed. */
    lately: (path: string): Placed | undefined => {
      const found = former.get(path)
      return found !== undefined && performance.now() < found.until ? found.placed : undefined
    },
  }
}
