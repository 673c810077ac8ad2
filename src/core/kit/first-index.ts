/**
 * Binary search: the first index from `low` to `high` for which a test holds; `high` if there is none. If the test holds for an
 * index, it must hold for all indices after it.
 */
export function firstIndex(low: number, high: number, holds: (index: number) => boolean): number {
  let [from, to] = [low, high]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (holds(middle)) to = middle
    else from = middle + 1
  }
  return from
}
