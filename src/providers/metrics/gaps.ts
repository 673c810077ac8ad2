/** Where a series has no samples: between two points that are further apart than its step. */
export interface Gap {
  /** The index of the last point before it; the next one is the first behind it. */
  readonly after: number
  /** The times of both, in seconds since 1970. */
  readonly from: number
  readonly to: number
}

/** The gaps within a series, in order. A little more than a step is none: samples do not come on the dot. */
export function gapsOf(times: Float64Array, step: number): readonly Gap[] {
  const gaps: Gap[] = []
  for (let index = 1; index < times.length; index++) {
    const from = times[index - 1] ?? 0
    const to = times[index] ?? 0
    if (to - from > step * 1.75) gaps.push({ after: index - 1, from, to })
  }
  return gaps
}

/** The points at the edges of gaps, those of the longest ones first. */
export function edgesOf(gaps: readonly Gap[]): readonly number[] {
  return [...gaps].sort((a, b) => b.to - b.from - (a.to - a.from)).flatMap(({ after }) => [after, after + 1])
}
