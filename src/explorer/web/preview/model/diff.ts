/**
 * The lines of a text that are new in comparison with the text before: indexes from 0. `removed` tells whether any line was
 * removed.
 */
export interface Difference {
  readonly changed: ReadonlySet<number>
  readonly removed: number
}

/**
 * Maximum number of compared lines in the middle. With more, all of them count as changed: a coarse mark suffices for the reader.
 */
const most = 2000

/**
 * Compares two texts line by line: removes their common beginning and end, and finds the longest common subsequence of the rest.
 */
export function differenceOf(before: readonly string[], after: readonly string[]): Difference {
  let head = 0
  const shorter = Math.min(before.length, after.length)
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  const old = before.slice(head, before.length - tail)
  const fresh = after.slice(head, after.length - tail)
  const kept = old.length > most || fresh.length > most ? new Set<number>() : commonIn(old, fresh)
  const changed = new Set<number>()
  for (const index of fresh.keys()) if (!kept.has(index)) changed.add(head + index)
  return { changed, removed: old.length - kept.size }
}

/** The indexes in `fresh` of a longest common subsequence. */
function commonIn(old: readonly string[], fresh: readonly string[]): ReadonlySet<number> {
  const width = fresh.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0)
  const kept = new Set<number>()
  for (let i = 0, j = 0; i < old.length && j < fresh.length; ) {
    if (old[i] === fresh[j]) {
      kept.add(j)
      i++
      j++
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i++
    else j++
  }
  return kept
}
