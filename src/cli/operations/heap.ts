/** Maximum garbage between two full collections, in bytes, and its least and greatest share of the live data, in percent. */
const garbage = { bytes: 20 * 2 ** 20, leastPercent: 30, mostPercent: 100 }

/**
 * Bounds the garbage that the heap of a server holds before the next full collection: 20 MiB, but at least 30 and at most 100 percent of
 * the live data. The limit of `--max-old-space-size` still applies.
 *
 * The default of V8 is too low for a small heap: it grows by about a third, so at 200 reads a second it is collected every three seconds,
 * and each collection delays requests. The default is too high for a large heap, which grows to four times its live data.
 */
export function boundHeap(): void {
  const { getHeapStatistics, setFlagsFromString } = process.getBuiltinModule('node:v8')
  const { constants, PerformanceObserver } = process.getBuiltinModule('node:perf_hooks')
  const setGrowth = (percent: number) => setFlagsFromString(`--heap-growing-percent=${percent}`)
  setGrowth(garbage.mostPercent)
  new PerformanceObserver((list) => {
    const isFull = list.getEntries().some((entry) => gcKind(entry) === constants.NODE_PERFORMANCE_GC_MAJOR)
    if (isFull) setGrowth(heapGrowthFor(getHeapStatistics().used_heap_size))
  }).observe({ entryTypes: ['gc'] })
}

/** Returns the allowed growth of a heap, in percent of its live data. */
export function heapGrowthFor(liveBytes: number): number {
  const percent = Math.round((100 * garbage.bytes) / liveBytes)
  return Math.min(garbage.mostPercent, Math.max(garbage.leastPercent, percent))
}

/** Returns the kind of garbage collection that a performance entry reports. */
function gcKind({ detail }: object & { readonly detail?: unknown }): unknown {
  return typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined
}
