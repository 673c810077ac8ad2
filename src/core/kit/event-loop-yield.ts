/** Time after which long work yields in one turn of the event loop, in milliseconds. */
const sliceMs = 8
/**
 * Time for which a resumed task continues although others wait, in milliseconds, so that work of many small steps gets
 * on under load.
 */
const pieceMs = 1

const waiting: (() => void)[] = []
let isResuming = false
/** Time at which the slice of this turn of the event loop began; undefined while no long work has run in it. */
let turnStart: number | undefined
/** Time at which the running task was resumed; undefined while no resumed task runs. */
let resumedAt: number | undefined

/** A slice begins with the first call in a turn of the event loop. */
function isUsedUp(): boolean {
  const now = performance.now()
  if (turnStart === undefined) setImmediate(end)
  turnStart ??= now
  return now - turnStart > sliceMs
}

function end(): void {
  turnStart = undefined
}

function hasPiece(): boolean {
  return resumedAt !== undefined && performance.now() - resumedAt < pieceMs
}

function next(): void {
  end()
  isUsedUp()
  resume()
}

function resume(): void {
  resumedAt = performance.now()
  waiting.shift()?.()
  // A tick runs when no microtask is left: by then the resumed task has ended, or waits for something else.
  queueMicrotask(() => process.nextTick(goOn))
}

function goOn(): void {
  resumedAt = undefined
  if (waiting.length === 0) isResuming = false
  else if (isUsedUp()) setImmediate(next)
  else resume()
}

/**
 * Cooperative yield for long work: `if (eventLoopYield.due()) await eventLoopYield.take()`. Tasks that run at once
 * share a time slice of about 8 ms.
 */
export const eventLoopYield = {
  due: (): boolean => (waiting.length > 0 && !hasPiece()) || isUsedUp(),
  take: (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (!isResuming) setImmediate(next)
      isResuming = true
    }),
}

/** Maximum number of entries of a time slice. */
export const maxEntriesPerSlice = 2000
const entriesPerLook = 50

/**
 * Divides work on many entries into time slices: `if (slices.due()) await slices.rest()`.
 * @param onEntries Called with the number of entries of each slice.
 */
export function createSlices(onEntries?: (entries: number) => void) {
  let count = 0
  let lookCount = 0
  return {
    /** Counts processed entries. Returns whether to yield. */
    due: (entries = 1): boolean => {
      count += entries
      if (count >= maxEntriesPerSlice) return true
      if (count - lookCount < entriesPerLook) return false
      lookCount = count
      return eventLoopYield.due()
    },
    rest: async (): Promise<void> => {
      onEntries?.(count)
      count = 0
      lookCount = 0
      await eventLoopYield.take()
    },
  }
}

export type TimeSlices = ReturnType<typeof createSlices>

export async function flatMapInSlices<T, Converted>(
  items: readonly T[],
  convert: (item: T) => readonly Converted[],
): Promise<readonly Converted[]> {
  const slices = createSlices()
  const all: Converted[] = []
  for (const item of items) {
    for (const converted of convert(item)) all.push(converted)
    if (slices.due()) await slices.rest()
  }
  return all
}

/**
 * Sorts items by a merge sort in time slices. Returns a sorted copy, or the items themselves if they are in order
 * already.
 * @param sortRun A faster sort of at most {@link maxEntriesPerSlice} items, if there is one.
 */
export async function sortInSlices<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  slices: TimeSlices,
  sortRun = (run: T[]): T[] => run.sort(compare),
): Promise<readonly T[]> {
  if (await isSorted(items, compare, slices)) return items
  let from: T[] = []
  for (let start = 0; start < items.length; start += maxEntriesPerSlice) {
    const run = sortRun(items.slice(start, start + maxEntriesPerSlice))
    for (const item of run) from.push(item)
    if (slices.due(run.length)) await slices.rest()
  }
  for (let width = maxEntriesPerSlice; width < from.length; width *= 2) {
    const to: T[] = []
    for (let start = 0; start < from.length; start += 2 * width) {
      const [middle, end] = [Math.min(start + width, from.length), Math.min(start + 2 * width, from.length)]
      const inOrder = middle === end || compare(from[middle - 1] as T, from[middle] as T) <= 0
      for (let a = start, b = middle; a < middle || b < end; ) {
        const takesFirst = b >= end || (a < middle && (inOrder || compare(from[a] as T, from[b] as T) <= 0))
        to.push(from[takesFirst ? a++ : b++] as T)
        if (slices.due()) await slices.rest()
      }
    }
    from = to
  }
  return from
}

async function isSorted<T>(items: readonly T[], compare: (a: T, b: T) => number, slices: TimeSlices): Promise<boolean> {
  for (let i = 1; i < items.length; i++) {
    if (compare(items[i - 1] as T, items[i] as T) > 0) return false
    if (slices.due()) await slices.rest()
  }
  return true
}
