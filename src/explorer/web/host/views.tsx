import { signal } from '@preact/signals'
import { DataTable } from '../preview/data-table.tsx'
import { plainHtml } from '../preview/model/bounds.ts'
import { maxMatches } from '../preview/model/lines.ts'
import { htmlOf } from '../preview/model/markdown-html.ts'
import { BinaryPreview } from '../preview/notes.tsx'
import { TextView } from '../preview/text.tsx'
import { t } from '../preview/words.ts'

/** In a host, time series are a table, because the library that draws lines would be too large for the page. */
export const ChartView: typeof import('../preview/chart.tsx').ChartView = ({ chart: { times, series } }) => {
  const head = [t('time'), ...series.map(({ label }) => label)]
  const rows = times.map((seconds, at) => [
    new Date(seconds * 1000).toISOString(),
    ...series.map(({ values }) => String(values[at] ?? '')),
  ])
  return <DataTable rows={[head, ...rows]} />
}

/** In a host, the pages of a PDF are not drawn. Its text is another form of the preview. */
export const Pdf: typeof import('../preview/pdf.tsx').Pdf = ({ bytes }) => (
  <BinaryPreview bytes={bytes} size={undefined} />
)

/** In a host, a document in HTML is shown as its source: the policy of the host allows no frame for it. */
export const HtmlPreview: typeof import('../preview/page.tsx').HtmlPreview = ({ text }) => (
  <TextView text={text} language="html" wrap={true} />
)

/** In a host, the browser matches regular expressions, because RE2 would be too large for the page. */
export const compileFinder: typeof import('../preview/model/pattern.ts').compileFinder = (pattern) => {
  try {
    const compiled = new RegExp(pattern, 'giu')
    return {
      find: (lines) =>
        lines
          .flatMap((text, line) =>
            Array.from(text.matchAll(compiled), ({ index, 0: text }) => ({
              line,
              start: index,
              end: index + text.length,
            })),
          )
          .filter(({ start, end }) => start < end)
          .slice(0, maxMatches),
    }
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}

/** In a host there is no room for the facets of the tree. */
export const FacetsBar: typeof import('../tree/facets-bar.tsx').FacetsBar = () => <></>

/** Maximum length of Markdown that is parsed, in characters; a longer text stays plain. Parsing blocks the page, since hosts allow no worker. */
const maxLaidOut = 100_000
/** Maximum work for emphasis: `*` and `_` times characters, summed over blocks. */
const maxWork = 200_000_000

export const parseMarkdown: typeof import('../preview/workers.ts').parseMarkdown = async (text) =>
  text.length > maxLaidOut || workOf(text) > maxWork ? plainHtml(text) : htmlOf(text)

function workOf(text: string): number {
  const blocks = text.split(/\n[ \t]*\n/)
  return blocks.reduce((sum, block) => sum + (block.match(/[_*]/g)?.length ?? 0) * block.length, 0)
}

/** In a host, text has no colours, because highlighting needs a worker, which the policy of the host forbids. */
export const highlight: typeof import('../preview/workers.ts').highlight = async () => undefined

/** In a host, formulas are shown as their source, because drawing them needs workers. */
export const drawFormulas: typeof import('../preview/formulas.ts').drawFormulas = async () => {}

/** In a host, the page stores nothing, so earlier contents are unknown. */
export const createEarlierState: typeof import('../preview/earlier.ts').createEarlierState = () => signal(undefined)
export const compareEarlier: typeof import('../preview/earlier.ts').compareEarlier = async () => {}
export const EarlierNote: typeof import('../preview/difference.tsx').EarlierNote = () => <></>
export const Difference: typeof import('../preview/difference.tsx').Difference = () => <></>
