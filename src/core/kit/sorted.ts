import { comparePaths } from '../path.ts'

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

/** A part of a text (in UTF-16 code units) or of bytes: from `start` up to, but not including, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
  /** For the span of a secret value: the position of its name. */
  readonly key?: number
}

/** Sorts spans, joins those that overlap or touch, and leaves out empty ones. */
export function mergeSpans(spans: Iterable<Span>): readonly Span[] {
  const result: Span[] = []
  for (const { start, end } of [...spans].filter((span) => span.end > span.start).sort((a, b) => a.start - b.start)) {
    const last = result.at(-1)
    if (last === undefined || start > last.end) result.push({ start, end })
    else if (end > last.end) result[result.length - 1] = { start: last.start, end }
  }
  return result
}

export function joinRanges(
  ranges: readonly (readonly [start: number, end: number])[],
): readonly (readonly [start: number, end: number])[] {
  const joined: [number, number][] = []
  for (const [start, end] of [...ranges].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else joined.push([start, end])
  }
  return joined
}

/** Returns the index of the first name after `path`. The names must be sorted. */
export function indexAfter(names: readonly string[], path: string): number {
  return firstIndex(0, names.length, (index) => comparePaths(names[index] ?? '', path) > 0)
}

interface ItemPair<T> {
  readonly path: string
  readonly old: T | undefined
  readonly fresh: T | undefined
}

/** Yields the items of two lists that are in path order, with two at the same path together. */
export function* pairedItems<T>(
  before: readonly T[],
  now: readonly T[],
  pathOf: (item: T) => string,
): Generator<ItemPair<T>> {
  for (let i = 0, j = 0; i < before.length || j < now.length; ) {
    const [old, fresh] = [before[i], now[j]]
    const [oldPath, freshPath] = [old && pathOf(old), fresh && pathOf(fresh)]
    const order = oldPath === undefined ? 1 : freshPath === undefined ? -1 : comparePaths(oldPath, freshPath)
    const path = (order > 0 ? freshPath : oldPath) ?? ''
    yield { path, old: order <= 0 ? old : undefined, fresh: order >= 0 ? fresh : undefined }
    if (order <= 0) i++
    if (order >= 0) j++
  }
}

/** Compares two lists that are in path order, and yields the paths of added, removed and changed items. */
export function* changedPaths<T>(
  before: readonly T[],
  now: readonly T[],
  pathOf: (item: T) => string,
  isSame: (a: T, b: T) => boolean,
): Generator<string> {
  for (const { path, old, fresh } of pairedItems(before, now, pathOf))
    if (old === undefined || fresh === undefined || !isSame(old, fresh)) yield path
}

/** Creates a binary heap: `pop` removes the value that precedes all others. */
export function createHeap<T>(precedes: (a: T, b: T) => boolean) {
  const values: T[] = []
  return {
    push: (value: T): void => {
      let index = values.length
      values.push(value)
      while (index > 0) {
        const above = (index - 1) >> 1
        const parent = values[above]
        if (parent === undefined || !precedes(value, parent)) break
        values[index] = parent
        index = above
      }
      values[index] = value
    },
    pop: (): T | undefined => {
      const [first] = values
      const last = values.pop()
      if (last === undefined || values.length === 0) return first
      let index = 0
      for (;;) {
        let below = 2 * index + 1
        let child = values[below]
        if (child === undefined) break
        const other = values[below + 1]
        if (other !== undefined && precedes(other, child)) {
          child = other
          below++
        }
        if (!precedes(child, last)) break
        values[index] = child
        index = below
      }
      values[index] = last
      return first
    },
  }
}
