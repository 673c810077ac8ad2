import { createHeap } from './heap.ts'

/** Rank of each token in the order of merging, by its bytes as characters from 0 to 255. */
export type Ranks = ReadonlyMap<string, number>

/** Positions in a piece stay below it. */
const span = 2 ** 24

/**
 * Counts the tokens that byte pair encoding makes of a piece, given as its bytes: the pair of the lowest rank is merged first, of
 * several the first. The plain algorithm looks at all pairs for each merge, so a run without a boundary takes the square of its
 * length. Here the pairs wait in a heap: the merges are the same, and so is the count.
 *
 * It stops now and then, so that it can be gone on with later.
 */
export function* mergeSteps(piece: string, ranks: Ranks): Generator<void, number> {
  if (ranks.has(piece)) return 1
  const size = piece.length
  const next = new Int32Array(size)
  const before = new Int32Array(size)
  const rankAt = new Int32Array(size).fill(-1)
  const heap = createHeap<number>((a, b) => a < b)
  let count = size
  /** Looks up the pair that begins at a token. */
  const look = (start: number) => {
    const middle = next[start] ?? size
    const end = middle < size ? (next[middle] ?? size) : size
    const rank = middle < size ? ranks.get(piece.slice(start, end)) : undefined
    rankAt[start] = rank ?? -1
    if (rank !== undefined) heap.push(rank * span + start)
  }
  for (let index = 0; index < size; index++) {
    next[index] = index + 1
    before[index] = index - 1
  }
  for (let index = 0; index < size; index++) {
    look(index)
    if (index % 4096 === 4095) yield
  }
  let steps = 0
  for (let least = heap.pop(); least !== undefined; least = heap.pop()) {
    if (++steps % 4096 === 0) yield
    const start = least % span
    // Skip entries of pairs that were merged or changed since.
    if (rankAt[start] !== Math.floor(least / span)) continue
    const gone = next[start] ?? size
    const after = next[gone] ?? size
    rankAt[gone] = -1
    next[start] = after
    if (after < size) before[after] = start
    count--
    look(start)
    const left = before[start] ?? -1
    if (left >= 0) look(left)
  }
  return count
}
