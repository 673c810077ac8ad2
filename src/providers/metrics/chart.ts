import { describeSeries } from './data.ts'
import {
  cutToWidth,
  escapeXml,
  estimateTextWidth,
  formatElement,
  formatPixels,
  timeMarks,
  type ValueAxis,
  valueAxis,
} from './drawing.ts'
import { distinctLabels, formatLabels, type ShownAnswer, type ShownSeries } from './shown.ts'
import { createValueFormat, formatDuration, formatUnixTime, type ValueFormat } from './units.ts'

const width = 960
const plotHeight = 300
const edge = 24
const rowHeight = 22
const mostLines = 40

/** Line colours. The first six are of Okabe and Ito (for colour blindness), with a darker yellow. */
const colours = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#b8860b',
  '#56b4e9',
  '#7a5195',
  '#8c564b',
  '#4d4d4d',
  '#2f4b7c',
]
const mostNamed = colours.length
const ink = { text: '#1f2933', soft: '#616e7c', line: '#e4e7eb', axis: '#9aa5b1', paper: '#ffffff' }
const font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK JP', 'DejaVu Sans', sans-serif"

interface PlotArea {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
  readonly x: (time: number) => number
  readonly y: (value: number) => number
}

/** Formats series as a picture (SVG): lines over time, with gaps where there are no samples. The picture has no script and no link. */
export function formatChart(answer: ShownAnswer): string {
  const { start, end } = answer
  const lines = answer.series.slice(0, mostLines)
  const format = createValueFormat(answer.unit)
  const [low, high] = boundsOf(lines)
  const axis = valueAxis(low, high, format)
  const top = 84
  const left = edge + Math.max(30, ...axis.marks.map(({ text }) => estimateTextWidth(text, 12) + 10))
  const [right, bottom] = [width - edge, top + plotHeight]
  const frame: PlotArea = {
    ...{ left, right, top, bottom },
    x: (time) => left + ((time - start) / (end - start || 1)) * (right - left),
    y: (value) => {
      const share = (value - axis.low) / (axis.high - axis.low)
      return bottom - Math.max(0, Math.min(1, share)) * plotHeight
    },
  }
  const legend = legendOf(answer, lines, format, bottom + 46)
  const height = legend.bottom + edge - 6
  const isEmpty = lines.every(({ summary }) => summary === undefined)
  const body = [
    formatElement('rect', { width, height, fill: ink.paper }),
    ...headOf(answer),
    ...(isEmpty ? [] : valueMarks(axis, frame)),
    ...timeLines(answer, frame),
    formatElement(
      'g',
      { fill: 'none', 'stroke-linejoin': 'round', 'stroke-linecap': 'round' },
      ...lines.map((one, index) => drawSeriesLine(one, index, frame, lines.length)),
    ),
    ...(isEmpty ? [emptyWords(frame)] : []),
    ...legend.rows,
  ]
  const size = { width, height, viewBox: `0 0 ${width} ${height}` }
  const root = {
    xmlns: 'http://www.w3.org/2000/svg',
    ...size,
    role: 'img',
    'font-family': font,
    'font-size': 12,
    fill: ink.text,
  }
  const words = [`<title>${escapeXml(chartTitle(answer))}</title>`, `<desc>${escapeXml(describeSeries(answer))}</desc>`]
  return `${formatElement('svg', root, '\n', [...words, ...body].join('\n'), '\n')}\n`
}

function boundsOf(series: readonly ShownSeries[]): readonly [low: number, high: number] {
  const summaries = series.flatMap(({ summary }) => (summary === undefined ? [] : [summary]))
  if (summaries.length === 0) return [0, 1]
  return [Math.min(...summaries.map(({ min }) => min.value)), Math.max(...summaries.map(({ max }) => max.value))]
}

function chartTitle({ query }: ShownAnswer): string {
  return query.replace(/\s+/g, ' ').trim()
}

function text(content: string, attributes: Readonly<Record<string, string | number>>): string {
  return formatElement('text', attributes, escapeXml(content))
}

function headOf(answer: ShownAnswer): readonly string[] {
  const { help, start, end, step, series, unit, type } = answer
  const { common } = distinctLabels(series)
  const labels = formatLabels(common.filter(([name]) => name !== '__name__'))
  const kind = [type === undefined || type === 'unknown' ? '' : type, unit === undefined ? '' : `in ${unit}`]
  const about = [help ?? '', kind.filter((part) => part !== '').join(' ')].filter((part) => part !== '').join(' · ')
  const every = step === 0 ? [] : [`every ${formatDuration(step)}`]
  const when = [`${dateOf(start)} – ${dateOf(end)} UTC`, ...every].join(', ')
  const room = width - 2 * edge
  const second = about === '' && series.length > 1 ? labels : about
  return [
    text(cutToWidth(chartTitle(answer), 17, room), { x: edge, y: 32, 'font-size': 17, 'font-weight': 600 }),
    text(cutToWidth(second, 12.5, room - estimateTextWidth(when, 12) - 24), {
      x: edge,
      y: 54,
      'font-size': 12.5,
      fill: ink.soft,
    }),
    text(when, { x: width - edge, y: 54, fill: ink.soft, 'text-anchor': 'end' }),
  ]
}

function dateOf(time: number): string {
  return formatUnixTime(Math.round(time))
    .replace('T', ' ')
    .replace(/(?::00)?Z$/, '')
}

function valueMarks({ marks }: ValueAxis, { left, right, y }: PlotArea): readonly string[] {
  return marks.flatMap(({ value, text: words }) => [
    formatElement('line', {
      ...{ x1: formatPixels(left), x2: right, y1: formatPixels(y(value)), y2: formatPixels(y(value)) },
      stroke: value === 0 ? ink.axis : ink.line,
    }),
    text(words, { x: formatPixels(left - 8), y: formatPixels(y(value) + 4), 'text-anchor': 'end', fill: ink.soft }),
  ])
}

function timeLines({ start, end }: ShownAnswer, { left, right, top, bottom, x }: PlotArea): readonly string[] {
  const marks = timeMarks(start, end, 9)
  return [
    formatElement('line', { x1: formatPixels(left), x2: right, y1: bottom, y2: bottom, stroke: ink.axis }),
    ...marks.flatMap(({ value, text: words }) => {
      const at = x(value)
      const half = estimateTextWidth(words, 12) / 2
      const middle = Math.min(width - 6 - half, Math.max(6 + half, at))
      return [
        formatElement('line', {
          x1: formatPixels(at),
          x2: formatPixels(at),
          y1: top,
          y2: bottom,
          stroke: ink.line,
          'stroke-dasharray': '2 4',
        }),
        formatElement('line', {
          x1: formatPixels(at),
          x2: formatPixels(at),
          y1: bottom,
          y2: bottom + 5,
          stroke: ink.axis,
        }),
        text(words, { x: formatPixels(middle), y: bottom + 20, 'text-anchor': 'middle', fill: ink.soft }),
      ]
    }),
  ]
}

function drawSeriesLine(
  { times, values, gaps }: ShownSeries,
  index: number,
  { x, y }: PlotArea,
  lines: number,
): string {
  const colour = colourOf(index)
  const starts = new Set(gaps.map(({ to }) => to))
  const runs: string[][] = []
  let run: string[] | undefined
  for (let at = 0; at < times.length; at++) {
    const [time = 0, value = Number.NaN] = [times[at], values[at]]
    if (starts.has(time)) run = undefined
    if (!Number.isFinite(value)) {
      run = undefined
      continue
    }
    if (run === undefined) {
      run = []
      runs.push(run)
    }
    run.push(`${formatPixels(x(time))},${formatPixels(y(value))}`)
  }
  const path = runs.filter(({ length }) => length > 1).map((points) => `M${points.join('L')}`)
  const dots = runs
    .filter(({ length }) => length === 1)
    .map(([point = '']) => {
      const [cx = '', cy = ''] = point.split(',')
      return formatElement('circle', { cx, cy, r: 2.2, fill: colour })
    })
  const stroke = { stroke: colour, 'stroke-width': lines > mostNamed ? 1.1 : 1.7 }
  return [...(path.length === 0 ? [] : [formatElement('path', { d: path.join(''), ...stroke })]), ...dots].join('')
}

const colourOf = (index: number) => colours[index % colours.length] ?? ink.text

function emptyWords({ left, right, top, bottom }: PlotArea): string {
  const at = { x: formatPixels((left + right) / 2), y: (top + bottom) / 2, 'text-anchor': 'middle' }
  return text('No finite values in this time range.', { ...at, fill: ink.soft, 'font-size': 15 })
}

function legendOf(answer: ShownAnswer, lines: readonly ShownSeries[], { format }: ValueFormat, top: number) {
  const { own, common } = distinctLabels(answer.series)
  const legendLines = lines.slice(0, mostNamed)
  const rows = legendLines.flatMap(({ summary }, index) => {
    const labels = own[index] ?? []
    const name =
      formatLabels(labels.length === 0 ? common.filter(([key]) => key !== '__name__') : labels) || chartTitle(answer)
    const values =
      summary === undefined
        ? '–'
        : `last ${format(summary.last.value)}, min ${format(summary.min.value)}, max ${format(summary.max.value)}`
    const y = top + index * rowHeight
    return [
      formatElement('rect', { x: edge, y: y - 6, width: 20, height: 3, fill: colourOf(index) }),
      text(cutToWidth(name, 12, width - 2 * edge - estimateTextWidth(values, 12) - 50), { x: edge + 30, y }),
      text(values, { x: width - edge, y, 'text-anchor': 'end' }),
    ]
  })
  const bottom = top + (legendLines.length - 1) * rowHeight
  const rest = restOf(answer, lines.length, legendLines.length)
  if (rest === '') return { rows, bottom }
  rows.push(text(rest, { x: edge + 30, y: bottom + rowHeight, fill: ink.soft }))
  return { rows, bottom: bottom + rowHeight }
}

function restOf({ total }: ShownAnswer, drawnCount: number, namedCount: number): string {
  const parts = [
    ...(drawnCount > namedCount
      ? [`${drawnCount - namedCount} more ${drawnCount - namedCount === 1 ? 'line is' : 'lines are'} not named here`]
      : []),
    ...(total > drawnCount ? [`${total - drawnCount} of ${total} series are not drawn`] : []),
  ]
  return parts.length === 0 ? '' : `${parts.join('; ')}.`
}
