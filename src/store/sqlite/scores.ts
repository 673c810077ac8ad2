/** The sums of weights, each under its id. */
export interface Scores {
  readonly ids: readonly number[]
  of(id: number): number
}

export interface Weighed {
  readonly weight: number
  readonly ids: readonly number[]
}

/** An array is much faster than a map, where the ids lie close enough together. */
const widest = 1 << 24

/** Sums up weights. */
export function scoresOf(lists: readonly Weighed[]): Scores {
  let least = Number.POSITIVE_INFINITY
  let most = 0
  for (const { ids } of lists) {
    for (const id of ids) {
      if (id < least) least = id
      if (id > most) most = id
    }
  }
  return most - least < widest ? inArray(lists, least, most) : inMap(lists)
}

function inArray(lists: readonly Weighed[], least: number, most: number): Scores {
  const sums = new Float64Array(Math.max(0, most - least + 1))
  const found: number[] = []
  for (const { weight, ids } of lists) {
    for (const id of ids) {
      const sum = sums[id - least] ?? 0
      if (sum === 0) found.push(id)
      sums[id - least] = sum + weight
    }
  }
  return { ids: found, of: (id) => sums[id - least] ?? 0 }
}

function inMap(lists: readonly Weighed[]): Scores {
  const sums = new Map<number, number>()
  for (const { weight, ids } of lists) for (const id of ids) sums.set(id, (sums.get(id) ?? 0) + weight)
  return { ids: [...sums.keys()], of: (id) => sums.get(id) ?? 0 }
}

/** The best, and among equals the least id, in that order. */
export function bestOf({ ids, of }: Scores, limit: number): readonly number[] {
  const least = ids.length > limit ? thresholdOf({ ids, of }, limit) : Number.NEGATIVE_INFINITY
  const candidates = ids.filter((id) => of(id) >= least)
  return candidates.sort((a, b) => of(b) - of(a) || a - b).slice(0, limit)
}

/** The score of the last of the best, by a heap of as many, whose least is on top. */
function thresholdOf({ ids, of }: Scores, limit: number): number {
  const heap = new Float64Array(limit).fill(Number.NEGATIVE_INFINITY)
  for (const id of ids) {
    const score = of(id)
    if (score > (heap[0] ?? 0)) replaceTop(heap, score)
  }
  return heap[0] ?? Number.NEGATIVE_INFINITY
}

function replaceTop(heap: Float64Array, score: number): void {
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    if (left >= heap.length) break
    const child = left + 1 < heap.length && (heap[left + 1] ?? 0) < (heap[left] ?? 0) ? left + 1 : left
    const least = heap[child] ?? 0
    if (least >= score) break
    heap[at] = least
    at = child
  }
  heap[at] = score
}
