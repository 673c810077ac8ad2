const garbage = { bytes: 20 * 2 ** 20, leastPercent: 30, mostPercent: 100 }

/**
 * Bounds the garbage of a server's heap: 20 MiB, but at least 30 and at most 100 percent of the live data. By default
 * V8 collects a small heap often, which delays requests, and lets a large heap grow to a multiple of its live data.
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

export function heapGrowthFor(liveBytes: number): number {
  const percent = Math.round((100 * garbage.bytes) / liveBytes)
  return Math.min(garbage.mostPercent, Math.max(garbage.leastPercent, percent))
}

function gcKind({ detail }: object & { readonly detail?: unknown }): unknown {
  return typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined
}
