import { useMemo } from 'preact/hooks'
import { parseFound } from '../../../core/found.ts'
import { isObject } from '../../../core/kit/object.ts'
import { lazily } from '../shell/panes.tsx'
import { JsonTree } from './json-tree.tsx'
import { boundedValue, maxColumns } from './model/bounds.ts'
import { analysesOf, notebookOf, overviewOf } from './model/documents.ts'
import { endingOf } from './model/kind.ts'
import { chartOfJson } from './model/series.ts'
import { TextView } from './text.tsx'
import { t } from './words.ts'

const ChartView = lazily(async () => (await import('./chart.tsx')).ChartView)
const Diagram = lazily(async () => (await import('./diagram.tsx')).Diagram)
const TableSchema = lazily(async () => (await import('./table-schema.tsx')).TableSchema)
const DatabaseRows = lazily(async () => (await import('./database-rows.tsx')).DatabaseRows)
const FoundList = lazily(async () => (await import('./found.tsx')).FoundList)
const Notebook = lazily(async () => (await import('./notebook.tsx')).Notebook)
const Analyses = lazily(async () => (await import('./analyses.tsx')).Analyses)
const Analysis = lazily(async () => (await import('./analyses.tsx')).Analysis)

interface Props {
  readonly text: string
  readonly uri: string
  readonly format: string | undefined
}

/** Maximum length of a parsed document, in characters. A longer one is shown as text, because parsing would block the page. */
const largest = 25_000_000

/** A JSON document: in the special form of its format, else as a tree. */
export function Json({ text, uri, format }: Props) {
  const parsed = useMemo(() => parse(text), [text])
  if ('reason' in parsed)
    return (
      <>
        <p class="preview-banner warn">
          {parsed.reason === '' ? t('tooDeep') : t('notJson', { reason: parsed.reason })}
        </p>
        <TextView text={text} wrap={false} />
      </>
    )
  const { value: whole } = parsed
  const chart = chartOfJson(whole)
  if (chart !== undefined && chart.series.length <= maxColumns) return <ChartView chart={chart} />
  const notebook = endingOf(uri) === 'ipynb' ? notebookOf(whole) : undefined
  if (notebook !== undefined) return <Notebook notebook={notebook} uri={uri} />
  const { value, isCut } = boundedValue(whole)
  const form = formOf(value, { uri, format })
  if (form === undefined) return <JsonTree value={whole} />
  return (
    <>
      {isCut ? <p class="preview-banner">{t('shortened')}</p> : null}
      {form}
    </>
  )
}

/** A document in the special form of its format, if there is one. */
function formOf(value: unknown, { uri, format }: Omit<Props, 'text'>) {
  const overview = format === 'DatabaseOverview' ? overviewOf(value) : undefined
  if (overview !== undefined && overview.tables.length > 0) return <Diagram overview={overview} uri={uri} />
  if (format === 'DatabaseSchema' && isObject(value)) return <TableSchema value={value} uri={uri} />
  if (format === 'DatabaseRows' && isObject(value)) return <DatabaseRows value={value} uri={uri} />
  const found = format === 'SearchFound' ? parseFound(JSON.stringify(value)) : undefined
  if (found !== undefined) return <FoundList found={found} />
  const listed = analysesOf(value, uri)
  if (listed !== undefined) return <Analyses listed={listed} />
  if (isObject(value) && Array.isArray(value.votes) && isObject(value.consensus))
    return <Analysis value={value} uri={uri} />
  return undefined
}

function parse(text: string): { readonly value: unknown } | { readonly reason: string } {
  if (text.length > largest) return { reason: '' }
  try {
    return { value: JSON.parse(text.replace(/^\ufeff/, '')) as unknown }
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) }
  }
}
