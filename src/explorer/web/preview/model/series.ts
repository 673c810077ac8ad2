import type { WireObject } from '../../../../client/wire.ts'
import { defined, isObject } from '../../../../core/kit/object.ts'
import { parseCellNumber, type Rows } from './rows.ts'

/** A time series: one value for each time of the chart. `undefined`: only other series have a value at this time. `null`: a gap. */
interface Series {
  readonly label: string
  readonly values: readonly (number | null | undefined)[]
  readonly last?: number
  readonly min?: number
  readonly max?: number
  /** Number of measured values. The document may hold fewer. */
  readonly count: number
}

export interface Chart {
  /** The query that gave the series. */
  readonly title?: string
  readonly summary?: string
  readonly unit?: string
  /** Times of the values, in seconds since 1970 (UTC), ascending. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly of?: number
}

interface SeriesRun {
  readonly label: string
  readonly points: readonly (readonly [time: number, value: number])[]
  /** Time ranges without measurements, in seconds since 1970. */
  readonly gaps: readonly (readonly [from: number, to: number])[]
  readonly count?: number
}

/** The chart of a JSON document of the metrics provider (docs/providers/metrics.md). Returns `undefined` for other documents. */
export function chartOfJson(value: unknown): Chart | undefined {
  if (!isObject(value) || !Array.isArray(value.series) || typeof value.step !== 'number') return undefined
  const seriesItems: readonly unknown[] = value.series
  const labels = seriesItems.map((one) => (isObject(one) && isObject(one.labels) ? one.labels : {}))
  const runs = seriesItems.flatMap((one, index): readonly SeriesRun[] => {
    if (!isObject(one) || !Array.isArray(one.points)) return []
    return [
      {
        label: labelOf(labels[index] ?? {}, labels),
        points: one.points.flatMap(pointOf),
        gaps: (Array.isArray(one.gaps) ? one.gaps : []).flatMap(gapOf),
        ...(typeof one.pointsInAll === 'number' ? { count: one.pointsInAll } : {}),
      },
    ]
  })
  if (runs.every(({ points }) => points.length === 0)) return undefined
  const of = isObject(value.omitted) && typeof value.omitted.of === 'number' ? value.omitted.of : undefined
  return {
    ...texts(value),
    ...mergeSeriesRuns(runs),
    ...defined({ of }),
  }
}

function texts({ query, summary, unit }: WireObject) {
  return {
    ...(typeof query === 'string' ? { title: query } : {}),
    ...(typeof summary === 'string' ? { summary } : {}),
    ...(typeof unit === 'string' && unit !== '' ? { unit } : {}),
  }
}

function pointOf(point: unknown): readonly (readonly [number, number])[] {
  if (!Array.isArray(point)) return []
  const [time, value] = point as readonly unknown[]
  return typeof time === 'number' && Number.isFinite(time) && typeof value === 'number' ? [[time, value]] : []
}

function gapOf(gap: unknown): readonly (readonly [number, number])[] {
  if (!isObject(gap)) return []
  const [from, to] = [gap.from, gap.to].map((time) =>
    typeof time === 'string' ? Date.parse(time) / 1000 : Number(time),
  )
  return from !== undefined && to !== undefined && from < to ? [[from, to]] : []
}

/** Returns the labels of a series that not all series share, as text; of a sole series, all labels. */
function labelOf(labels: WireObject, all: readonly WireObject[]): string {
  const own = Object.entries(labels).filter(
    ([name, value]) => all.length === 1 || all.some((one) => one[name] !== value),
  )
  const pairs = own.filter(([name]) => name !== '__name__').map(([name, value]) => `${name}=${String(value)}`)
  const metric = own.find(([name]) => name === '__name__')?.[1]
  const text = pairs.join(', ')
  return typeof metric === 'string' ? (text === '' ? metric : `${metric}{${text}}`) : text
}

/** Names of a column of times. */
const timeNames = /^(time|timestamp|date|datetime|date_time|ts|at|日時|時刻|日付|年月日|タイムスタンプ)$/i

/** The chart of a table with a column of times, found by its header, and columns of numbers. `undefined` for other tables. */
export function chartOfTable(rows: Rows): Chart | undefined {
  const [head = [], ...body] = rows
  const at = head.findIndex((name) => timeNames.test(name.trim()))
  if (at === -1 || body.length < 2) return undefined
  const times = body.map((row) => parseTimeCell(row[at] ?? ''))
  if (times.filter((time) => time !== undefined).length < body.length * 0.9) return undefined
  const columns = [...head.keys()].filter((column) => column !== at && isNumeric(body, column))
  if (columns.length === 0) return undefined
  const labels = [...head.keys()].filter((column) => column !== at && !columns.includes(column))
  const runs = new Map<string, { label: string; points: [number, number][] }>()
  for (const [index, row] of body.entries()) {
    const time = times[index]
    if (time === undefined) continue
    const group = labels.map((column) => `${head[column] ?? ''}=${row[column] ?? ''}`).join(', ')
    for (const column of columns) {
      const value = parseCellNumber(row[column] ?? '')
      if (value === undefined) continue
      const name = head[column] ?? ''
      const label = group === '' ? name : columns.length === 1 ? group : `${name} {${group}}`
      const run = runs.get(label) ?? { label, points: [] }
      if (run.points.length === 0) runs.set(label, run)
      run.points.push([time, value])
    }
  }
  // A table with more than 100 series is not drawn as a chart.
  if (runs.size === 0 || runs.size > 100) return undefined
  return mergeSeriesRuns(
    [...runs.values()].map((run) => ({ ...run, points: run.points.sort(([a], [b]) => a - b), gaps: [] })),
  )
}

function isNumeric(rows: Rows, column: number): boolean {
  const filled = rows.slice(0, 200).filter((row) => (row[column] ?? '').trim() !== '')
  const numbers = filled.filter((row) => parseCellNumber(row[column] ?? '') !== undefined)
  return filled.length > 0 && numbers.length >= filled.length * 0.9
}

function parseTimeCell(cell: string): number | undefined {
  const text = cell.trim()
  if (/^\d{9,10}(\.\d+)?$/.test(text)) return Number(text)
  if (/^\d{12,13}$/.test(text)) return Number(text) / 1000
  const [, date, time, zone = 'Z'] =
    /^(\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?)(?:[T ]+(\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?$/.exec(
      text,
    ) ?? []
  if (date === undefined) return undefined
  const [year, month, day] = date.split(/[-/.年月日]/)
  const iso = `${year}-${(month ?? '').padStart(2, '0')}-${(day ?? '').padStart(2, '0')}`
  const parsed = Date.parse(`${iso}T${(time ?? '00:00').padStart(5, '0').replace(',', '.')}${zone}`)
  return Number.isFinite(parsed) ? parsed / 1000 : undefined
}

function mergeSeriesRuns(runs: readonly SeriesRun[]): Pick<Chart, 'times' | 'series'> {
  // Each gap gets at least one time without a value, so that no line is drawn across it.
  const middles = runs.map(({ gaps }) => gaps.map(([from, to]) => (from + to) / 2))
  const times = [...new Set([...runs.flatMap(({ points }) => points.map(([time]) => time)), ...middles.flat()])].sort(
    (a, b) => a - b,
  )
  const indices = new Map(times.map((time, index) => [time, index]))
  const series = runs.map(({ label, points, gaps, count }): Series => {
    const values: (number | null | undefined)[] = Array.from(times, () => undefined)
    for (const [from, to] of gaps)
      for (const [index, time] of times.entries()) if (time > from && time < to) values[index] = null
    for (const [time, value] of points) values[indices.get(time) ?? 0] = Number.isFinite(value) ? value : null
    const finite = points.map(([, value]) => value).filter(Number.isFinite)
    const last = finite.at(-1)
    return {
      label,
      values,
      count: count ?? points.length,
      ...(last === undefined ? {} : { last, min: least(finite, -1), max: least(finite, 1) }),
    }
  })
  return { times, series }
}

function least(values: readonly number[], sign: 1 | -1): number {
  return values.reduce((best, value) => (value * sign > best * sign ? value : best))
}

/** Numbers of significant digits to try, in ascending order. */
const digits = [4, 6, 8, 12, 17]

/**
 * Returns the labels of the values of an axis, with as few digits as make each different from its neighbour, and at most 17.
 *
 * @param unit Unit of the metric, as for {@link createUnitFormatter}.
 */
export function valueLabels(values: readonly number[], unit: string | undefined, locale: string): string[] {
  let labels: string[] = []
  for (const count of digits) {
    labels = values.map(createUnitFormatter(unit, locale, count))
    if (areDistinct(labels)) break
  }
  return labels
}

const month: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short' }
const date: Intl.DateTimeFormatOptions = { month: 'short', day: 'numeric' }
const hour: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' }
const second: Intl.DateTimeFormatOptions = { ...hour, second: '2-digit' }
const millisecond: Intl.DateTimeFormatOptions = { ...second, fractionalSecondDigits: 3 }

const daySeconds = 86_400

/**
 * Returns the labels of the times of an axis, in the shortest form in which each differs from its neighbour, if there is one.
 *
 * @param times Seconds since 1970, ascending.
 * @param span Seconds from the first to the last time of the chart.
 */
export function timeLabels(times: readonly number[], span: number, locale: string): string[] {
  let labels: string[] = []
  for (const form of formsFor(span)) {
    const format = new Intl.DateTimeFormat(locale, form)
    // On an axis of hours, midnight shows its date.
    const midnight = form === hour ? new Intl.DateTimeFormat(locale, date) : format
    labels = times.map((time) => (isMidnight(time) ? midnight : format).format(time * 1000))
    if (areDistinct(labels)) break
  }
  return labels
}

function formsFor(span: number): readonly Intl.DateTimeFormatOptions[] {
  if (span > 200 * daySeconds) return [month, date, { ...date, ...hour }]
  if (span > 3 * daySeconds) return [date, { ...date, ...hour }]
  return span < 180 ? [second, millisecond] : [hour, second, millisecond]
}

function isMidnight(time: number): boolean {
  const local = new Date(time * 1000)
  return local.getHours() === 0 && local.getMinutes() === 0
}

function areDistinct(labels: readonly string[]): boolean {
  return labels.every((label, index) => label !== labels[index - 1])
}

/**
 * Returns a function that formats values of a metric: `bytes`, `seconds` and `ratio` in readable units, other values as short numbers with
 * their unit.
 *
 * @param maxDigits Maximum number of significant digits.
 */
export function createUnitFormatter(
  unit: string | undefined,
  locale: string,
  maxDigits = 4,
): (value: number) => string {
  const number = new Intl.NumberFormat(locale, { maximumSignificantDigits: maxDigits, notation: 'compact' })
  const small = new Intl.NumberFormat(locale, { maximumSignificantDigits: maxDigits })
  const plain = (value: number) => (Math.abs(value) < 100_000 ? small : number).format(value)
  if (unit === 'bytes') return (value) => sizeText(value, small)
  if (unit === 'seconds') return (value) => durationText(value, small)
  if (unit === 'ratio') return (value) => `${small.format(value * 100)} %`
  if (unit === undefined) return plain
  return (value) => `${plain(value)} ${unit}`
}

function sizeText(value: number, format: Intl.NumberFormat): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let [size, at] = [value, 0]
  while (Math.abs(size) >= 1024 && at < units.length - 1) {
    size /= 1024
    at++
  }
  return `${format.format(size)} ${units[at] ?? ''}`
}

function durationText(value: number, format: Intl.NumberFormat): string {
  const size = Math.abs(value)
  if (size === 0) return '0 s'
  if (size < 1e-3) return `${format.format(value * 1e6)} µs`
  if (size < 1) return `${format.format(value * 1e3)} ms`
  if (size < 120) return `${format.format(value)} s`
  if (size < 7200) return `${format.format(value / 60)} min`
  if (size < 172_800) return `${format.format(value / 3600)} h`
  return `${format.format(value / 86_400)} d`
}
