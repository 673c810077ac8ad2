import { useEffect, useMemo, useState } from 'preact/hooks'
import { isObject, nonEmptyText, objectsIn, stringItems } from '../../../core/kit/object.ts'
import { Button } from '../shell/fields.tsx'
import { lazyComponent } from '../shell/panes.tsx'
import { stepBack } from '../state/browser.ts'
import { linkTo } from '../state/route.ts'
import { TableHead } from './controls.tsx'
import { DataTable, TableOrOther } from './data-table.tsx'
import { SearchableRegion } from './find.tsx'
import { maxColumns } from './model/bounds.ts'
import { siblingTableUri } from './model/documents.ts'
import { mediaTypeOf } from './model/kind.ts'
import { parameterOf, uriWithParameter } from './model/reference.ts'
import { databaseRows, delimiterOf, parseCsv, type Rows } from './model/rows.ts'
import { chartOfTable } from './model/series.ts'
import { t } from './words.ts'
import './schema.css'
import type { ComponentChildren } from 'preact'
import type { WireObject } from '../../../client/wire.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'

const ChartView = lazyComponent(async () => (await import('./chart.tsx')).ChartView)

/** Maximum number of rows of a table that gets a chart. A longer one is only a table. */
const mostCharted = 50_000

/** Time slice for parsing rows before the browser gets a turn, in milliseconds. */
const sliceMs = 12

/** Comma-separated values as a table, and as a chart if one column has times and others have numbers. */
export function Csv({ text, mimeType }: { readonly text: string; readonly mimeType: string | undefined }) {
  const rows = useRows(text, mimeType)
  const chart = useMemo(
    () =>
      rows === undefined || rows.length > mostCharted || (rows[0]?.length ?? 0) > maxColumns
        ? undefined
        : chartOfTable(rows),
    [rows],
  )
  if (rows === undefined) return <p class="preview-note">{t('loading')}</p>
  if (rows.length === 0) return <p class="preview-note">{t('empty')}</p>
  if (chart === undefined) return <DataTable rows={rows} />
  return <TableOrOther rows={rows} form="chart" drawn={<ChartView chart={chart} />} />
}

function useRows(text: string, mimeType: string | undefined): Rows | undefined {
  const [rows, setRows] = useState<Rows>()
  useEffect(() => {
    let isLeft = false
    const readRows = async () => {
      const rows: (readonly string[])[] = []
      let until = performance.now() + sliceMs
      for (const row of parseCsv(text, delimiterOf(text, mediaTypeOf(mimeType)))) {
        rows.push(row)
        if (rows.length % 200 !== 0 || performance.now() < until) continue
        await new Promise((resolve) => setTimeout(resolve))
        if (isLeft) return
        until = performance.now() + sliceMs
      }
      setRows(rows)
    }
    void readRows()
    return () => {
      isLeft = true
    }
  }, [text, mimeType])
  return rows
}

/** Rows of a table of a database, page by page. */
export function DatabaseRows({ value, uri }: { readonly value: WireObject; readonly uri: string }) {
  const { next } = value
  return (
    <DataTable rows={databaseRows(value)}>
      {typeof next === 'string' ? (
        <a class="button" href={linkTo({ uri: uriWithParameter(uri, 'after', next) })}>
          {t('showMore')}
        </a>
      ) : value.more === true ? (
        <span>{t('rowsMore')}</span>
      ) : null}
      {parameterOf(uri, 'after') === undefined ? null : <Button name={t('previousItem')} onClick={stepBack} />}
    </DataTable>
  )
}

/** The definition of a table of a database: columns, keys, foreign keys in both directions, indexes, checks and triggers. */
export function TableSchema({ value, uri }: { readonly value: WireObject; readonly uri: string }) {
  const columns = objectsIn(value.columns)
  const primary = new Set(isObject(value.primaryKey) ? stringItems(value.primaryKey.columns) : [])
  const foreign = objectsIn(value.foreignKeys)
  const referenced = objectsIn(value.referencedBy)
  const own = { uri, schema: nonEmptyText(value.schema) }
  const comments = columns.some(({ comment }) => nonEmptyText(comment) !== undefined)
  const defaults = columns.some((column) => nonEmptyText(column.default) !== undefined)
  const targets = new Map(
    foreign.flatMap((key) => stringItems(key.columns).map((name) => [name, key.references] as const)),
  )
  return (
    <SearchableRegion class="sheet" label={t('rendered')}>
      {nonEmptyText(value.comment) === undefined ? null : (
        <p lang={langOf(String(value.comment))}>{escapeInvisible(String(value.comment))}</p>
      )}
      <h3>{t('columns')}</h3>
      <div class="scroll-x">
        <table>
          <TableHead
            names={[
              t('column'),
              t('type'),
              t('nullable'),
              t('foreignKeys'),
              ...(defaults ? [t('defaultValue')] : []),
              ...(comments ? [t('comment')] : []),
            ]}
          />
          <tbody>
            {columns.map((column, index) => {
              const name = nonEmptyText(column.name) ?? ''
              return (
                <tr key={index}>
                  <th scope="row">
                    <bdi>{escapeInvisible(name)}</bdi>
                    {primary.has(name) ? <span class="chip"> {t('primaryKey')}</span> : null}
                  </th>
                  <td>
                    <code>{escapeInvisible(nonEmptyText(column.type) ?? '')}</code>
                  </td>
                  <td>{column.nullable === true ? t('yes') : t('no')}</td>
                  <td>
                    <End end={targets.get(name)} own={own} />
                  </td>
                  {defaults ? (
                    <td>
                      <code>{escapeInvisible(nonEmptyText(column.default) ?? '')}</code>
                    </td>
                  ) : null}
                  {comments ? (
                    <td lang={langOf(nonEmptyText(column.comment) ?? '')}>
                      {escapeInvisible(nonEmptyText(column.comment) ?? '')}
                    </td>
                  ) : null}
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      <List title={t('referencedBy')} items={referenced.map((key) => <Reference link={key} own={own} />)} />
      <List
        title={t('uniqueKey')}
        items={objectsIn(value.uniqueKeys).map((key) => stringItems(key.columns).join(', '))}
      />
      <List title={t('indexes')} items={objectsIn(value.indexes).map(renderDefinition)} />
      <List title={t('checks')} items={objectsIn(value.checks).map(renderDefinition)} />
      <List title={t('triggers')} items={objectsIn(value.triggers).map(renderDefinition)} />
      {nonEmptyText(value.definition) === undefined ? null : (
        <>
          <h3>{t('definition')}</h3>
          <pre>{escapeInvisible(String(value.definition))}</pre>
        </>
      )}
    </SearchableRegion>
  )
}

interface Own {
  readonly uri: string
  readonly schema: string | undefined
}

/** A link to the other table of a foreign key. */
function End({ end, own }: { readonly end: unknown; readonly own: Own }) {
  if (!isObject(end) || typeof end.table !== 'string') return null
  const uri = siblingTableUri(own, { schema: nonEmptyText(end.schema), name: end.table })
  const columns = stringItems(end.columns)
  return (
    <a href={linkTo({ uri, source: undefined })}>
      <bdi>{escapeInvisible(end.table)}</bdi>
      {columns.length === 0 ? '' : ` (${escapeInvisible(columns.join(', '))})`}
    </a>
  )
}

function Reference({ link, own }: { readonly link: WireObject; readonly own: Own }) {
  return (
    <>
      <End end={link.from} own={own} /> → {escapeInvisible(stringItems(link.columns).join(', '))}
    </>
  )
}

function List({ title, items }: { readonly title: string; readonly items: readonly ComponentChildren[] }) {
  if (items.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {items.map((item, index) => (
          <li key={index}>{item}</li>
        ))}
      </ul>
    </>
  )
}

function renderDefinition(key: WireObject): ComponentChildren {
  const text =
    nonEmptyText(key.definition) ?? nonEmptyText(key.expression) ?? nonEmptyText(key.name) ?? JSON.stringify(key)
  return <code>{escapeInvisible(text)}</code>
}
