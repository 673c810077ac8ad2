import { downsample } from './downsample.ts'
import { edgesOf, type Gap, gapsOf } from './gaps.ts'
import type { Answer, Labels, Series } from './source.ts'
import { type Summary, summarize } from './summary.ts'

/** A series as it is shown: summed up from all of its points, and then with fewer of them. */
export interface ShownSeries extends Series {
  /** `undefined`: it has no finite value. */
  readonly summary: Summary | undefined
  /** Of all of its points. */
  readonly gaps: readonly Gap[]
  /** How many points it has in all. */
  readonly points: number
}

/** What is shown of an answer, in whichever form. */
export interface Shown {
  /** What was asked for: the name of a metric with its matchers, or a query. */
  readonly query: string
  readonly type?: string
  readonly help?: string
  readonly unit?: string
  /** In seconds since 1970; `step` is 0 at one moment. */
  readonly start: number
  readonly end: number
  readonly step: number
  readonly series: readonly ShownSeries[]
  /** How many series there are in all. */
  readonly total: number
  readonly notes: readonly string[]
}

/** No series is shown with fewer points than this. */
const fewest = 16

/**
 * Thins out the points of an answer.
 *
 * @param perSeries How many points a series may have, and
 * @param inAll how many all of them together; more series have fewer each.
 */
export function thinned(
  { series }: Answer,
  { step, isCounter, perSeries, inAll }: { step: number; isCounter: boolean; perSeries: number; inAll: number },
): readonly ShownSeries[] {
  const most = Math.max(fewest, Math.min(perSeries, Math.floor(inAll / Math.max(1, series.length))))
  return series.map(({ labels, times, values }) => {
    const gaps = step === 0 ? [] : gapsOf(times, step)
    const indices = downsample({ times, values }, most, edgesOf(gaps))
    const pick = (from: Float64Array) => Float64Array.from(indices, (index) => from[index] ?? Number.NaN)
    const all = indices.length === times.length
    return {
      labels,
      times: all ? times : pick(times),
      values: all ? values : pick(values),
      summary: summarize({ times, values }, isCounter),
      gaps,
      points: times.length,
    }
  })
}

/** What tells the series of an answer apart: their labels without those that all of them have alike. */
export function distinctLabels(series: readonly { readonly labels: Labels }[]): {
  readonly common: readonly (readonly [name: string, value: string])[]
  readonly own: readonly (readonly (readonly [name: string, value: string])[])[]
} {
  const [first] = series
  const isCommon = (name: string, value: string) => series.every(({ labels }) => labels.get(name) === value)
  const common = [...(first?.labels ?? [])].filter(([name, value]) => isCommon(name, value))
  const names = new Set(common.map(([name]) => name))
  return { common, own: series.map(({ labels }) => [...labels].filter(([name]) => !names.has(name))) }
}

/** Labels as PromQL writes them, without braces. */
export function formatLabels(labels: readonly (readonly [name: string, value: string])[]): string {
  return labels.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ')
}
