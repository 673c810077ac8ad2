import { firstIndex } from '../../core/kit/sorted.ts'
import { comparePaths } from '../../core/path.ts'

/** Time that long work takes of one turn of the event loop before it yields to other work of this process, in milliseconds. */
const sliceMs = 8

const waiting: (() => void)[] = []
/** Whether those that wait are being resumed, in this turn or the next one. */
let isResuming = false
/** When such work began in this turn. Undefined: there was none yet. */
let begun: number | undefined

/** The event loop does not wait for sockets while an immediate is due: only work lies between the beginning and the end. */
function begin(): number {
  if (begun === undefined) setImmediate(end)
  begun = performance.now()
  return begun
}

function end(): void {
  begun = undefined
}

/** Resumes those that wait, one after the other, until the slice of this turn is used up. */
function next(): void {
  begin()
  resume()
}

function resume(): void {
  waiting.shift()?.()
  // A tick runs when no microtask is left: the resumed work has come to its end, or waits for something else.
  queueMicrotask(() => process.nextTick(goOn))
}

function goOn(): void {
  if (waiting.length === 0) isResuming = false
  else if (breath.due()) setImmediate(next)
  else resume()
}

/**
 * Cooperative yield for long work: `if (breath.due()) await breath.take()`. Between two yields the event loop is blocked for about 8 ms,
 * however many such tasks run at once: they share the slice of a turn, and those that have waited longest go first.
 */
export const breath = {
  due: (): boolean => performance.now() - (begun ?? begin()) > sliceMs,
  take: (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (!isResuming) setImmediate(next)
      isResuming = true
    }),
}

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
