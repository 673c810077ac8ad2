import { isObject } from '../../../core/kit/object.ts'
import { stepBack } from '../state/browser.ts'
import { linkTo } from '../state/place.ts'
import { DataTable } from './data-table.tsx'
import { textsOf } from './model/documents.ts'
import { parameterOf, withParameter } from './model/reference.ts'
import { t } from './words.ts'

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
