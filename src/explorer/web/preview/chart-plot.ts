import 'uplot/dist/uPlot.min.css'
import UPlot from 'uplot'
import type { Chart } from './model/series.ts'

export interface Plot {
  show(index: number, isShown: boolean): void
  /** Moves the cursor to the time with this index. */
  moveTo(index: number): void
  end(): void
}

interface Options {
  readonly locale: string
  readonly onCursor: (index: number | undefined) => void
}

/** Draws a chart into an element, and follows the width of the element. */
export function createPlot(box: HTMLElement, chart: Chart, { locale, onCursor }: Options): Plot {
  const colour = colours(box)
  const axis = { stroke: colour('--ink-2'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
  const first = chart.times[0] ?? 0
  const span = (chart.times.at(-1) ?? 0) - first
  const isDense = chart.times.length > 300
  const plot = new UPlot(
    {
      width: Math.max(200, box.clientWidth),
      height: 300,
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: true } },
      axes: [
        // Wide enough for a date with a time, and for "09:05 AM" with a gap.
        { ...axis, space: labelSpacePx, values: (_, splits) => timeLabels(splits, span, locale) },
        {
          ...axis,
          size: 76,
          values: (_, splits) => valueLabels(splits, chart.unit, locale),
          ...(chart.unit === 'bytes' ? { incrs: binarySteps } : {}),
        },
      ],
      series: [
        {},
        ...chart.series.map(({ label }, index) => ({
          label,
          stroke: colour(`--s${index % 8}`),
          width: 1.6,
          ...(index >= 8 ? { dash: [6, 3] } : {}),
          ...(isDense ? { points: { show: false } } : {}),
        })),
      ],
      hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? undefined)] },
    },
    [[...chart.times], ...chart.series.map(({ values }) => [...values])] as UPlot.AlignedData,
    box,
  )
  const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(200, box.clientWidth), height: 300 }))
  observer.observe(box)
  return {
    show: (index, isShown) => {
      if (plot.series[index + 1]?.show !== isShown) plot.setSeries(index + 1, { show: isShown })
    },
    moveTo: (index) => {
      const time = chart.times[index]
      if (time !== undefined) plot.setCursor({ left: plot.valToPos(time, 'x'), top: 20 })
    },
    end: () => {
      observer.disconnect()
      plot.destroy()
    },
  }
}

/** Minimum distance between two time labels, in pixels. */
const labelSpacePx = 90

/** Sizes are counted in powers of two, and so are the steps of their axis. */
const binarySteps = Array.from({ length: 60 }, (_, power) => 2 ** power)

/** The current colours: a canvas does not support `light-dark()`. */
function colours(box: HTMLElement): (name: string) => string {
  return (name) => {
    const probe = document.createElement('span')
    probe.style.color = `var(${name})`
    box.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}

/** Numbers of significant digits to try, in ascending order. */
const digits = [4, 6, 8, 12, 17]

/**
 * Labels of the values of an axis, each different from its neighbour, with as few digits as possible.
 *
 * @param unit Unit of the metric, as for {@link formatUnit}.
 */
export function valueLabels(values: readonly number[], unit: string | undefined, locale: string): string[] {
  let labels: string[] = []
  for (const count of digits) {
    labels = values.map(formatUnit(unit, locale, count))
    if (areDistinct(labels)) break
  }
  return labels
}

const month: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short' }
const date: Intl.DateTimeFormatOptions = { month: 'short', day: 'numeric' }
const hour: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' }
const second: Intl.DateTimeFormatOptions = { ...hour, second: '2-digit' }
const millisecond: Intl.DateTimeFormatOptions = { ...second, fractionalSecondDigits: 3 }

const day = 86_400

/**
 * Labels of the times of an axis, each different from its neighbour.
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

/** Time formats, from the shortest to the most precise. */
function formsFor(span: number): readonly Intl.DateTimeFormatOptions[] {
  if (span > 200 * day) return [month, date, { ...date, ...hour }]
  if (span > 3 * day) return [date, { ...date, ...hour }]
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
 * Returns a function that formats values of a metric: sizes and times in readable units, all other values as short numbers.
 *
 * @param maxDigits Maximum number of significant digits.
 */
export function formatUnit(unit: string | undefined, locale: string, maxDigits = 4): (value: number) => string {
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
