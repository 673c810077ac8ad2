import { defined } from '../../core/kit/object.ts'
import { formatSampleValue } from '../../core/kit/sample-value.ts'
import {
  distinctLabels,
  formatLabels,
  type Gap,
  type ShownAnswer,
  type ShownSeries,
  type Summary,
  type TimedValue,
} from './shown.ts'
import { createValueFormat, formatDuration, formatUnixTime, type ValueFormat } from './units.ts'

/** Maximum number of series described in the summary. */
const maxDescribedSeries = 10
/** Maximum number of gaps listed per series, the longest first. */
const maxGaps = 20
/** Maximum length of the labels in the summary, in characters. */
const maxLabelLength = 200

/** Converts a value to JSON; non-finite numbers become strings, as Prometheus writes them. */
function toJsonNumber(value: number): number | string {
  return Number.isFinite(value) ? value : formatSampleValue(value)
}

export function formatJson(answer: ShownAnswer): string {
  const { query, type, help, unit, start, end, step, series, total, notes } = answer
  const isThinned = series.some((one) => one.points > one.times.length)
  const head = {
    summary: describeSeries(answer),
    query,
    ...defined({ type, help, unit }),
    ...(step === 0 ? { time: formatUnixTime(end) } : { start: formatUnixTime(start), end: formatUnixTime(end), step }),
    ...(total > series.length ? { omitted: { series: total - series.length, of: total } } : {}),
    ...(notes.length === 0 ? {} : { notes }),
    ...(isThinned
      ? { sampling: 'the smallest and largest of each interval, the first, the last, the edges of gaps' }
      : {}),
    format: 'points are [Unix seconds, value]',
  }
  const lines = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},\n`)
  // One line per series, so that a long text is cut between series.
  const rows = series.map((one) => `    ${formatSeries(one, step)}`).join(',\n')
  return `{\n${lines.join('')}  "series": [${rows === '' ? '' : `\n${rows}\n  `}]\n}\n`
}

function formatSeries({ labels, summary, gaps, points, times, values }: ShownSeries, step: number): string {
  const json = {
    labels: Object.fromEntries(labels),
    ...(summary === undefined || step === 0 ? {} : { summary: formatSummary(summary) }),
    ...(gaps.length === 0 ? {} : { gaps: gapsIn(gaps) }),
    ...(gaps.length > maxGaps ? { gapsInAll: gaps.length } : {}),
    ...(points > times.length ? { pointsInAll: points } : {}),
  }
  const pairs = Array.from(times, (time, index) => [round(time), toJsonNumber(values[index] ?? Number.NaN)])
  return JSON.stringify({ ...json, points: pairs })
}

/** Rounds a time to milliseconds. */
const round = (time: number) => Math.round(time * 1000) / 1000

function formatSummary({ min, max, first, last, mean, trend, increase, perSecond }: Summary) {
  const at = ({ value, time }: TimedValue) => ({ value: toJsonNumber(value), time: formatUnixTime(round(time)) })
  return {
    min: at(min),
    max: at(max),
    mean: short(mean),
    first: at(first),
    last: at(last),
    trend,
    ...(increase === undefined ? {} : { increase: short(increase) }),
    ...(perSecond === undefined ? {} : { perSecond: short(perSecond) }),
  }
}

const short = (value: number) => Number(value.toPrecision(6))

function gapsIn(gaps: readonly Gap[]) {
  const longest = [...gaps].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, maxGaps)
  return longest
    .sort((a, b) => a.from - b.from)
    .map(({ from, to }) => ({ from: formatUnixTime(round(from)), to: formatUnixTime(round(to)) }))
}

export function describeSeries(answer: ShownAnswer): string {
  const { query, type, series, total, start, end, step } = answer
  const when =
    step === 0
      ? `at ${formatUnixTime(round(end))}`
      : `from ${formatUnixTime(round(start))} to ${formatUnixTime(round(end))}, every ${formatDuration(step)}`
  const kind = type === undefined || type === 'unknown' ? '' : ` (${type})`
  const some =
    total > series.length ? `${series.length} of ${total} series` : total === 1 ? '1 series' : `${total} series`
  const head = `${query}${kind}: ${total === 0 ? 'no samples' : some} ${when}.`
  const { own } = distinctLabels(series)
  const format = createValueFormat(answer.unit)
  const each = series
    .slice(0, maxDescribedSeries)
    .map((one, index) => sentence(one, own[index] ?? [], format, step === 0))
  const rest =
    series.length > maxDescribedSeries ? [`${series.length - maxDescribedSeries} more series are below.`] : []
  return [head, ...each, ...rest, ...queryAdvice(answer)].join(' ')
}

function sentence(
  { summary, gaps }: ShownSeries,
  labels: readonly (readonly [string, string])[],
  { format }: ValueFormat,
  isMoment: boolean,
): string {
  const name = labels.length === 0 ? '' : `${truncateLabels(formatLabels(labels))}: `
  if (summary === undefined) return `${name}no finite value.`
  const { last, min, max, trend, perSecond } = summary
  if (isMoment) return `${name}${format(last.value)}.`
  const clock = (time: number) => formatUnixTime(Math.round(time))
  const facts = [
    `last ${format(last.value)}`,
    ...(perSecond === undefined
      ? [`min ${format(min.value)} at ${clock(min.time)}`, `max ${format(max.value)} at ${clock(max.time)}`, trend]
      : [`grew by ${format(summary.increase ?? 0)}, ${format(perSecond)} a second`]),
    ...(gaps.length === 0 ? [] : [gaps.length === 1 ? '1 gap' : `${gaps.length} gaps`]),
  ]
  return `${name}${facts.join(', ')}.`
}

function queryAdvice({ total, series, step, type, notes, withoutQueries = false }: ShownAnswer): readonly string[] {
  const omittedCount = total - series.length
  return [
    ...(total === 0 && step > 0 && notes.length === 0 ? ['Ask for an earlier or longer time: ?start=-7d.'] : []),
    ...(omittedCount > 0
      ? [
          `${omittedCount} series are left out: select fewer by their labels${withoutQueries ? '' : ', or aggregate in a query'}.`,
        ]
      : []),
    ...(type === 'counter' && total > 0 && !withoutQueries
      ? ['The metric is a counter: rate(…[5m]) in a query shows how fast it grows.']
      : []),
    ...notes,
  ]
}

function truncateLabels(text: string): string {
  return text.length > maxLabelLength ? `${text.slice(0, maxLabelLength).toWellFormed()}…` : text
}

/**
 * Formats series as CSV (RFC 4180): a line for each point, with its time, its value and its labels.
 *
 * A spreadsheet would run a text that begins like a formula: such a cell gets a `'` in front.
 */
export function formatCsv({ series }: ShownAnswer): string {
  const { common } = distinctLabels(series)
  // The name of the metric is a column only if there are several names.
  const isOne = common.some(([name]) => name === '__name__')
  const all = new Set(series.flatMap(({ labels }) => [...labels.keys()]))
  const names = [...all].filter((name) => !(isOne && name === '__name__')).sort()
  const own = ['time', 'value']
  const head = [...own, ...names.map((name) => (own.includes(name) ? `label_${name}` : name))]
  const rows = series.flatMap(({ labels, times, values }) => {
    const cells = names.map((name) => field(labels.get(name) ?? ''))
    const end = cells.length === 0 ? '' : `,${cells.join(',')}`
    return Array.from(times, (time, index) => {
      const value = toJsonNumber(values[index] ?? Number.NaN)
      return `${formatUnixTime(round(time))},${value}${end}`
    })
  })
  return `${[head.map(field).join(','), ...rows].join('\r\n')}\r\n`
}

function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
