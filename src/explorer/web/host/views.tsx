import { Binary } from '../preview/binary.tsx'
import { DataTable } from '../preview/data-table.tsx'
import { TextView } from '../preview/text.tsx'
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

/** In a host, the pages of a PDF are not drawn: its text is shown instead. */
export const Pdf: typeof import('../preview/pdf.tsx').Pdf = ({ bytes }) => <Binary bytes={bytes} size={undefined} />

/** In a host, a document in HTML is shown as its source: the policy of the host allows no frame for it. */
export const Page: typeof import('../preview/page.tsx').Page = ({ text }) => (
  <TextView text={text} language="html" wrap={true} />
)

/** In a host there is no room for the facets of the tree. The search has facets. */
export const FacetsBar: typeof import('../tree/facets-bar.tsx').FacetsBar = () => <></>
