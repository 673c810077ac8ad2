import { distinctLabels, type Shown } from './shown.ts'
import { formatTime } from './time.ts'

/**
 * Formats series as CSV (RFC 4180): a line for each point, with its time, its value, and a column for each label.
 *
 * A spreadsheet would run a text that begins like a formula: such a label value gets a `'` in front.
 */
export function formatCsv({ series }: Shown): string {
  const { common } = distinctLabels(series)
  // The name of the metric is a column only if there are several.
  const isOne = common.some(([name]) => name === '__name__')
  const all = new Set(series.flatMap(({ labels }) => [...labels.keys()]))
  const names = [...all].filter((name) => !(isOne && name === '__name__')).sort()
  const own = ['time', 'value']
  const head = [...own, ...names.map((name) => (own.includes(name) ? `label_${name}` : name))]
  const rows = series.flatMap(({ labels, times, values }) => {
    const cells = names.map((name) => field(labels.get(name) ?? ''))
    const end = cells.length === 0 ? '' : `,${cells.join(',')}`
    return Array.from(
      times,
      (time, index) => `${formatTime(Math.round(time * 1000) / 1000)},${numberIn(values[index])}${end}`,
    )
  })
  return `${[head.map(field).join(','), ...rows].join('\r\n')}\r\n`
}

function numberIn(value = Number.NaN): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
