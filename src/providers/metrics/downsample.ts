/**
 * Selects the points of a series to show within a maximum: the smallest and the largest of each bucket (equal spans of time, as many as fit);
 * the first and the last; and some given points. So no extreme is lost, every point is a measured one, and the times are those of the source.
 * (LTTB, which keeps the look of a line, loses single peaks.)
 *
 * NaN values have no order: a bucket of only NaN keeps its first.
 *
 * @param most At least 8.
 * @param keep Indices to keep, at most a quarter of all: the edges of gaps.
 * @returns Ascending indices, at most `most`; all of them when there are no more points than that.
 */
export function downsample(
  { times, values }: { readonly times: Float64Array; readonly values: Float64Array },
  most: number,
  keep: readonly number[] = [],
): readonly number[] {
  const count = times.length
  if (count <= most) return Array.from(times, (_, index) => index)
  const kept = new Set([0, count - 1, ...keep.slice(0, Math.floor(most / 4))])
  const buckets = Math.floor((most - kept.size) / 2)
  const start = times[0] ?? 0
  const length = ((times[count - 1] ?? 0) - start) / buckets || 1
  const lows = new Int32Array(buckets).fill(-1)
  const highs = new Int32Array(buckets).fill(-1)
  for (let index = 0; index < count; index++) {
    const bucket = Math.min(buckets - 1, Math.floor(((times[index] ?? 0) - start) / length))
    const low = lows[bucket] ?? -1
    const high = highs[bucket] ?? -1
    const value = values[index] ?? Number.NaN
    if (low === -1 || value < (values[low] ?? 0) || isFirstNumber(value, values[low])) lows[bucket] = index
    if (high === -1 || value > (values[high] ?? 0) || isFirstNumber(value, values[high])) highs[bucket] = index
  }
  for (const index of [...lows, ...highs]) if (index !== -1) kept.add(index)
  return [...kept].sort((a, b) => a - b)
}

/** Whether a value is a number and the candidate so far is NaN. */
function isFirstNumber(value: number, before = 0): boolean {
  return Number.isNaN(before) && !Number.isNaN(value)
}
