/** Cache of look-ups in texts, valid until the texts change: common terms are queried repeatedly. */
export interface Known {
  count(home: Version, token: string, find: () => number): number
  ids(home: Version, match: string, find: () => readonly number[]): readonly number[]
  /** The same of a few out of a long list: they are kept though they are few, since finding them took the whole list. */
  chosen(home: Version, match: string, find: () => readonly number[]): readonly number[]
}

/** The set of texts, and its revision. */
export interface Version {
  readonly id: number
  readonly revision: number
}

/** Limits of the cache: the number of counts, and of ids in all lists together. A list shorter than `few` is looked up fast, and counts as `few` ids. */
const most = { counts: 50_000, ids: 1_000_000, few: 500 }

interface Kept {
  readonly revision: number
  readonly counts: Map<string, number>
  readonly lists: Map<string, readonly number[]>
  ids: number
}

export function createKnown(): Known {
  const homes = new Map<number, Kept>()
  const keptOf = ({ id, revision }: Version): Kept => {
    const found = homes.get(id)
    if (found?.revision === revision) return found
    const fresh: Kept = { revision, counts: new Map(), lists: new Map(), ids: 0 }
    homes.set(id, fresh)
    return fresh
  }
  const keep = (kept: Kept, match: string, found: readonly number[]): readonly number[] => {
    const size = Math.max(found.length, most.few)
    if (size > most.ids / 4) return found
    if (kept.ids + size > most.ids) {
      kept.lists.clear()
      kept.ids = 0
    }
    kept.lists.set(match, found)
    kept.ids += size
    return found
  }
  return {
    count: (home, token, find) => {
      const { counts } = keptOf(home)
      const known = counts.get(token)
      if (known !== undefined) return known
      const found = find()
      if (counts.size >= most.counts) counts.clear()
      counts.set(token, found)
      return found
    },
    ids: (home, match, find) => {
      const kept = keptOf(home)
      const known = kept.lists.get(match)
      if (known !== undefined) return known
      const found = find()
      return found.length < most.few ? found : keep(kept, match, found)
    },
    chosen: (home, match, find) => {
      const kept = keptOf(home)
      return kept.lists.get(match) ?? keep(kept, match, find())
    },
  }
}
