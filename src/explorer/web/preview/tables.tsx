import { useEffect, useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../core/kit/object.ts'
import { lazily } from '../shell/panes.tsx'
import { stepBack } from '../state/browser.ts'
import { linkTo } from '../state/place.ts'
import { Choice } from './controls.tsx'
import { DataTable } from './data-table.tsx'
import { maxColumns } from './model/bounds.ts'
import { delimiterOf, parseCsv, type Rows } from './model/csv.ts'
import { textsOf } from './model/documents.ts'
import { mediaTypeOf } from './model/kind.ts'
import { parameterOf, withParameter } from './model/reference.ts'
import { chartOfTable } from './model/series.ts'
import { t } from './words.ts'

const ChartView = lazily(async () => (await import('./chart.tsx')).ChartView)

/** Maximum number of rows of a table that are examined for a chart. */
const mostCharted = 50_000

/** Time slice for parsing rows before the browser gets a turn, in milliseconds. */
const slice = 12

/** Comma-separated values as a table; if one column has times and others have numbers, also as a chart. */
export function Csv({ text, mimeType }: { readonly text: string; readonly mimeType: string | undefined }) {
  const rows = useRows(text, mimeType)
  const [form, setForm] = useState<'table' | 'chart'>('table')
  const chart = useMemo(
    () =>
      rows === undefined || rows.length > mostCharted || (rows[0]?.length ?? 0) > maxColumns
        ? undefined
        : chartOfTable(rows),
    [rows],
  )
  if (rows === undefined) return <p class="preview-note">{t('loading')}</p>
  if (rows.length === 0) return <p class="preview-note">{t('empty')}</p>
  const choice =
    chart === undefined ? null : (
      <Choice
        label={t('view')}
        options={[
          ['table', t('table')],
          ['chart', t('chart')],
        ]}
        value={form}
        onChoose={setForm}
      />
    )
  if (chart === undefined || form === 'table') return <DataTable rows={rows}>{choice}</DataTable>
  return (
    <>
      <div class="preview-bar thin">{choice}</div>
      <ChartView chart={chart} />
    </>
  )
}

/** The rows, once all are parsed. Until then, the rows of the previous text stay. */
function useRows(text: string, mimeType: string | undefined): Rows | undefined {
  const [rows, setRows] = useState<Rows>()
  useEffect(() => {
    let isLeft = false
    const read = async () => {
      const found: (readonly string[])[] = []
      let until = performance.now() + slice
      for (const row of parseCsv(text, delimiterOf(text, mediaTypeOf(mimeType)))) {
        found.push(row)
        if (found.length % 200 !== 0 || performance.now() < until) continue
        await new Promise((resolve) => setTimeout(resolve))
        if (isLeft) return
        until = performance.now() + slice
      }
      setRows(found)
    }
    void read()
    return () => {
      isLeft = true
    }
  }, [text, mimeType])
  return rows
}

interface Props {
  readonly value: Readonly<Record<string, unknown>>
  readonly uri: string
}

/** Rows of a table of a database, page by page. */
export function DatabaseRows({ value, uri }: Props) {
  const columns = (Array.isArray(value.columns) ? value.columns : []).flatMap((column: unknown) =>
    isObject(column) ? textsOf([column.name]) : [],
  )
  const rows = (Array.isArray(value.rows) ? value.rows : []).filter(isObject)
  const table = [columns, ...rows.map((row) => columns.map((name) => cellOf(row[name])))]
  const { next } = value
  return (
    <DataTable rows={table}>
      {typeof next === 'string' ? (
        <a class="button" href={linkTo({ uri: withParameter(uri, 'after', next) })}>
          {t('showMore')}
        </a>
      ) : value.more === true ? (
        <span>{t('rowsMore')}</span>
      ) : null}
      {parameterOf(uri, 'after') === undefined ? null : (
        <button type="button" class="button" onClick={stepBack}>
          {t('previousItem')}
        </button>
      )}
    </DataTable>
  )
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
