import './chart.css'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ServerText } from '../shell/fields.tsx'
import { mediaMatches } from '../shell/panes.tsx'
import { theme } from '../state/remembered.ts'
import { escapeInvisible, language } from '../words/texts.ts'
import { Region, TableHead } from './controls.tsx'
import { type Chart, createUnitFormatter, timeLabels, valueLabels } from './model/series.ts'
import { t } from './words.ts'
import 'uplot/dist/uPlot.min.css'
import UPlot from 'uplot'

function createPlot(box: HTMLElement, chart: Chart, locale: string, onCursor: (index: number | undefined) => void) {
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
          stroke: colour(colourOf(index)),
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
    show: (index: number, isShown: boolean) => {
      if (plot.series[index + 1]?.show !== isShown) plot.setSeries(index + 1, { show: isShown })
    },
    moveTo: (index: number) => {
      const time = chart.times[index]
      if (time !== undefined) plot.setCursor({ left: plot.valToPos(time, 'x'), top: 20 })
    },
    end: () => {
      observer.disconnect()
      plot.destroy()
    },
  }
}

const colourOf = (index: number) => `--s${index % 8}`

/** Minimum distance between two time labels, in pixels: it fits a date with a time, and "09:05 AM" with a gap. */
const labelSpacePx = 90

/** Axis steps for sizes in bytes: powers of two, as in the labels. */
const binarySteps = Array.from({ length: 60 }, (_, power) => 2 ** power)

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

/** Maximum number of series that are drawn at first, because more are hard to tell apart. */
const mostDrawn = 12

/** Time series as lines, and below them a table with the last, minimum and maximum value of each, and the value at the cursor. */
export function ChartView({ chart }: { readonly chart: Chart }) {
  const box = useRef<HTMLElement>(null)
  const plot = useRef<ReturnType<typeof createPlot>>(undefined)
  const [hiddenSeries, setHidden] = useState<ReadonlySet<number>>(
    () => new Set([...chart.series.keys()].filter((index) => index >= mostDrawn)),
  )
  const [at, setAt] = useState<number>()
  const dark = isDark()
  const locale = language.value
  useEffect(() => {
    if (box.current === null) return
    const newPlot = createPlot(box.current, chart, locale, setAt)
    plot.current = newPlot
    return () => newPlot.end()
  }, [chart, locale, dark])
  useEffect(() => {
    for (const index of chart.series.keys()) plot.current?.show(index, !hiddenSeries.has(index))
  }, [chart, hiddenSeries, locale, dark])
  const time = at === undefined ? undefined : chart.times[at]
  const toggle = (index: number) => {
    const next = new Set(hiddenSeries)
    if (!next.delete(index)) next.add(index)
    setHidden(next)
  }
  const last = chart.times.length - 1
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }
    const step = steps[event.key]
    const to =
      event.key === 'Home' ? 0 : event.key === 'End' ? last : step === undefined ? undefined : (at ?? last) + step
    if (to === undefined) return
    event.preventDefault()
    plot.current?.moveTo(Math.max(0, Math.min(last, to)))
  }
  const name = escapeInvisible(chart.title ?? chart.series[0]?.label ?? '')
  const format = useMemo(() => createUnitFormatter(chart.unit, locale), [chart, locale])
  return (
    <div class="chart-view">
      <ServerText as="h3" class="chart-title" text={name} />
      <p class="quiet chart-note">
        {chart.of === undefined
          ? t('seriesCount', { count: chart.series.length })
          : t('seriesOf', { count: chart.series.length, of: chart.of })}
        {' · '}
        <time>{time === undefined ? rangeText(chart.times, locale) : timeText(time, locale)}</time>
      </p>
      <Region
        box={box}
        class="chart-box"
        label={`${t('chartLabel', { name })} ${t('chartHelp')}`}
        onKeyDown={onKeyDown}
      />
      <SeriesTable chart={chart} hidden={hiddenSeries} toggle={toggle} at={at} format={format} />
      {chart.summary === undefined ? null : <p class="chart-summary">{escapeInvisible(chart.summary)}</p>}
    </div>
  )
}

interface TableProps {
  readonly chart: Chart
  readonly hidden: ReadonlySet<number>
  readonly toggle: (index: number) => void
  readonly at: number | undefined
  readonly format: (value: number) => string
}

function SeriesTable({ chart, hidden, toggle, at, format }: TableProps) {
  const cell = (value: number | null | undefined) => (value === undefined || value === null ? '–' : format(value))
  return (
    <div class="chart-table">
      <table>
        <TableHead
          names={[t('series'), ...(at === undefined ? [] : [t('atTime')]), t('last'), t('min'), t('max'), t('count')]}
        />
        <tbody>
          {chart.series.map(({ label, values, last, min, max, count }, index) => (
            <tr key={index}>
              <th scope="row">
                <label>
                  <input type="checkbox" checked={!hidden.has(index)} onChange={() => toggle(index)} />
                  <span class="swatch" style={{ background: `var(${colourOf(index)})` }} aria-hidden="true" />
                  <bdi>{escapeInvisible(label === '' ? (chart.title ?? t('series')) : label)}</bdi>
                </label>
              </th>
              {at === undefined ? null : <td>{cell(nearest(values, at))}</td>}
              <td>{cell(last)}</td>
              <td>{cell(min)}</td>
              <td>{cell(max)}</td>
              <td>{count}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The value of a series at a time; if the series has no point there, its previous value. */
function nearest(values: Chart['series'][number]['values'], at: number): number | null | undefined {
  for (let index = at; index >= 0; index--) if (values[index] !== undefined) return values[index]
  return undefined
}

function timeText(time: number, locale: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(time * 1000)
}

function rangeText(times: readonly number[], locale: string): string {
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined) return ''
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
  return format.formatRange(first * 1000, last * 1000)
}

const isSystemDark = mediaMatches('(prefers-color-scheme: dark)')

function isDark(): boolean {
  return theme.value === 'system' ? isSystemDark.value : theme.value === 'dark'
}
