import './chart.css'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { theme } from '../state/remembered.ts'
import { language, shown } from '../words/texts.ts'
import { createPlot, formatUnit, type Plot } from './chart-plot.ts'
import { Region } from './controls.tsx'
import type { Chart } from './model/series.ts'
import { t } from './words.ts'

/** Maximum number of series that are drawn at first. With more, colours would repeat. */
const mostDrawn = 12

/** Time series as lines, with the values at the cursor, and as a table for readers who cannot see the chart. */
export function ChartView({ chart }: { readonly chart: Chart }) {
  const box = useRef<HTMLElement>(null)
  const plot = useRef<Plot>(undefined)
  const [hidden, setHidden] = useState<ReadonlySet<number>>(
    () => new Set([...chart.series.keys()].filter((index) => index >= mostDrawn)),
  )
  const [at, setAt] = useState<number>()
  const dark = useDark()
  const locale = language.value
  useEffect(() => {
    if (box.current === null) return
    const made = createPlot(box.current, chart, { locale, onCursor: setAt })
    plot.current = made
    return () => made.end()
  }, [chart, locale, dark])
  useEffect(() => {
    for (const index of chart.series.keys()) plot.current?.show(index, !hidden.has(index))
  }, [chart, hidden, locale, dark])
  const time = at === undefined ? undefined : chart.times[at]
  const toggle = (index: number) => {
    const next = new Set(hidden)
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
  const name = shown(chart.title ?? chart.series[0]?.label ?? '')
  const format = useMemo(() => formatUnit(chart.unit, locale), [chart, locale])
  return (
    <div class="chart-view">
      <h3 class="chart-title">
        <bdi>{name}</bdi>
      </h3>
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
      <SeriesTable chart={chart} hidden={hidden} toggle={toggle} at={at} format={format} />
      {chart.summary === undefined ? null : <p class="chart-summary">{shown(chart.summary)}</p>}
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
        <thead>
          <tr>
            <th scope="col">{t('series')}</th>
            {at === undefined ? null : <th scope="col">{t('time')}</th>}
            <th scope="col">{t('last')}</th>
            <th scope="col">{t('min')}</th>
            <th scope="col">{t('max')}</th>
            <th scope="col">{t('count')}</th>
          </tr>
        </thead>
        <tbody>
          {chart.series.map(({ label, values, last, min, max, count }, index) => (
            <tr key={index}>
              <th scope="row">
                <label>
                  <input type="checkbox" checked={!hidden.has(index)} onChange={() => toggle(index)} />
                  <span class={`swatch s${index % 8}`} aria-hidden="true" />
                  <bdi>{shown(label === '' ? (chart.title ?? t('series')) : label)}</bdi>
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

/** Whether the page is dark: a canvas does not follow the colour scheme by itself. */
function useDark(): boolean {
  const query = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), [])
  const [isDark, setDark] = useState(query.matches)
  useEffect(() => {
    const change = () => setDark(query.matches)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [query])
  return theme.value === 'system' ? isDark : theme.value === 'dark'
}
