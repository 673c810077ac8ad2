/** A gap in a series: two consecutive points further apart than its step. */
export interface Gap {
  /** Index of the last point before the gap; the next point is the first after it. */
  readonly after: number
  /** Times of both points, in seconds since 1970. */
  readonly from: number
  readonly to: number
}

/** Returns the gaps in a series, in order. Slightly more than a step is no gap, because samples have jitter. */
export function gapsOf(times: Float64Array, step: number): readonly Gap[] {
  const gaps: Gap[] = []
  for (let index = 1; index < times.length; index++) {
    const from = times[index - 1] ?? 0
    const to = times[index] ?? 0
    if (to - from > step * 1.75) gaps.push({ after: index - 1, from, to })
  }
  return gaps
}

/** Returns the indices of the points at the edges of gaps, those of the longest gaps first. */
export function edgesOf(gaps: readonly Gap[]): readonly number[] {
  return [...gaps].sort((a, b) => b.to - b.from - (a.to - a.from)).flatMap(({ after }) => [after, after + 1])
}
