import { DataTable } from '../preview/data-table.tsx'
import { t } from '../preview/words.ts'

/** In a host, time series are a table. The library that draws lines would take a tenth of the maximum size of the page. */
export const ChartView: typeof import('../preview/chart.tsx').ChartView = ({ chart: { times, series } }) => {
  const head = [t('time'), ...series.map(({ label }) => label)]
  const rows = times.map((seconds, at) => [
    new Date(seconds * 1000).toISOString(),
    ...series.map(({ values }) => String(values[at] ?? '')),
  ])
  return <DataTable rows={[head, ...rows]} />
}
