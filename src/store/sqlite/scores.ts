/** Ids in ascending order (as FTS5 returns them), with the weight of each: more than 0. */
export interface Weighed {
  readonly weight: number
  readonly ids: readonly number[]
}

/** Width of a window of ids that are summed up together: its data fits into the cache of a processor. */
const span = 1 << 14
const sums = new Float64Array(span)
const touched = new Uint16Array(span)
/** When fewer than one in this many ids has a sum, only the ids with a sum are sorted; otherwise all ids are scanned. */
const sparse = 16

/**
 * Returns the ids with the greatest sums of weights; equal sums by ascending id. It scans the ids in ascending order, one window
 * after the other, so that among many equal ids the first are found without sorting.
 */
export function bestOf(lists: readonly Weighed[], limit: number): readonly number[] {
  return weighedOf(lists, limit).map(({ id }) => id)
}

/** The same, with the sums. */
export function weighedOf(lists: readonly Weighed[], limit: number): readonly Scored[] {
  const best = createBest(limit)
  const at = lists.map(() => 0)
  for (let start = leastOf(lists, at); start < Number.POSITIVE_INFINITY; start = leastOf(lists, at)) {
    const end = start + span
    let count = 0
    let last = 0
    for (const [index, { weight, ids }] of lists.entries()) {
      let next = at[index] ?? 0
      for (let id = ids[next]; id !== undefined && id < end; id = ids[++next]) {
        const offset = id - start
        const sum = sums[offset] ?? 0
        if (sum === 0) touched[count++] = offset
        sums[offset] = sum + weight
        if (offset > last) last = offset
      }
      at[index] = next
    }
    const take = (offset: number) => {
      const sum = sums[offset] ?? 0
      if (sum === 0) return
      sums[offset] = 0
      best.add(start + offset, sum)
    }
    if (count * sparse < last) for (const offset of touched.subarray(0, count).sort()) take(offset)
    else for (let offset = 0; offset <= last; offset++) take(offset)
  }
  return best.take()
}

function leastOf(lists: readonly Weighed[], at: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY
  for (const [index, { ids }] of lists.entries()) least = Math.min(least, ids[at[index] ?? 0] ?? least)
  return least
}

/** Keeps the best of ids that arrive in ascending order: a heap with the worst one on top. */
function createBest(limit: number) {
  const heap: { readonly id: number; readonly sum: number }[] = []
  /** Whether one is worse than another. */
  const isWorse = (a: Scored, b: Scored) => a.sum < b.sum || (a.sum === b.sum && a.id > b.id)

  const rise = (scored: Scored): void => {
    let at = heap.length
    heap.push(scored)
    for (let above = (at - 1) >> 1; at > 0; at = above, above = (at - 1) >> 1) {
      const other = heap[above]
      if (other === undefined || !isWorse(scored, other)) break
      heap[at] = other
    }
    heap[at] = scored
  }

  const sink = (scored: Scored): void => {
    let at = 0
    for (;;) {
      const left = heap[2 * at + 1]
      const right = heap[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && isWorse(right, left)
      const child = isRight ? right : left
      if (!isWorse(child, scored)) break
      heap[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    heap[at] = scored
  }

  return {
    add: (id: number, sum: number): void => {
      const worst = heap[0]
      if (heap.length < limit) rise({ id, sum })
      // Of an equal sum the lesser id is there already.
      else if (worst !== undefined && sum > worst.sum) sink({ id, sum })
    },
    take: (): readonly Scored[] => heap.sort((a, b) => b.sum - a.sum || a.id - b.id),
  }
}

export interface Scored {
  readonly id: number
  readonly sum: number
}
