import 'uplot/dist/uPlot.min.css'
import UPlot from 'uplot'
import { timeLabels, valueLabels } from './model/axis.ts'
import type { Chart } from './model/series.ts'

export interface Plot {
  show(index: number, isShown: boolean): void
  /** Puts the cursor on the time with this index. */
  moveTo(index: number): void
  end(): void
}

interface Options {
  readonly locale: string
  readonly onCursor: (index: number | undefined) => void
}

/** Draws a chart into an element, as wide as that is at any time. */
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

/** The least distance between two labels of times, in pixels. */
const labelSpacePx = 90

/** Sizes are counted in powers of two, and so are the steps between their lines. */
const binarySteps = Array.from({ length: 60 }, (_, power) => 2 ** power)

/** Colours as they are just now: a canvas does not know `light-dark()`. */
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
