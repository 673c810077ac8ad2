import { firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths } from '../../core/path.ts'
import { breath } from './breath.ts'

/** Number of names sorted at once: about 4 ms. */
const run = 4096

/**
 * Sorts the names of one directory in path order and removes duplicates. It yields on the way, so that a directory of a million names does not
 * block the event loop.
 */
export async function sortNames(names: readonly string[]): Promise<readonly string[]> {
  let runs: (readonly string[])[] = []
  for (let start = 0; start < names.length; start += run) {
    runs.push(sortRun(names.slice(start, start + run)))
    if (breath.due()) await breath.take()
  }
  while (runs.length > 1) {
    const merged: (readonly string[])[] = []
    for (let i = 0; i < runs.length; i += 2) {
      const merge = mergeRuns(runs[i] ?? [], runs[i + 1] ?? [])
      for (;;) {
        const { value, done } = merge.next()
        if (done === true) {
          merged.push(value)
          break
        }
        if (breath.due()) await breath.take()
      }
    }
    runs = merged
  }
  return runs[0] ?? []
}

function sortRun(names: string[]): readonly string[] {
  // Up to U+D7FF, JavaScript's own order of UTF-16 units is that of UTF-8 bytes, and sorting by it is faster.
  const plain = names.every((name) => !/[\ud800-\uffff]/.test(name))
  names.sort(plain ? undefined : comparePaths)
  return names.filter((name, i) => name !== names[i - 1])
}

/** Merges two sorted lists, and yields every few thousand names. */
function* mergeRuns(a: readonly string[], b: readonly string[]): Generator<undefined, readonly string[]> {
  const merged: string[] = []
  let [i, j] = [0, 0]
  for (;;) {
    const [x, y] = [a[i], b[j]]
    if (x === undefined && y === undefined) return merged
    const order = x === undefined ? 1 : y === undefined ? -1 : comparePaths(x, y)
    if (order <= 0 && x !== undefined) merged.push(x)
    else if (y !== undefined) merged.push(y)
    if (order <= 0) i++
    if (order >= 0) j++
    if (merged.length % run === 0) yield
  }
}

/** Binary search for the first name after `path`. Returns its index. */
export function indexAfter(names: readonly string[], path: string): number {
  return firstIndex(0, names.length, (index) => comparePaths(names[index] ?? '', path) > 0)
}
