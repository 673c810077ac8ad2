import { copyAndAnnounce } from '../state/announce.ts'
import './data.css'
import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Button } from '../shell/fields.tsx'
import { escapeInvisible, formatNumber, langOf } from '../words/texts.ts'
import { Choice, Toggle, VirtualRows } from './controls.tsx'
import { FindBar, isFindBarOpen, useFinder } from './find.tsx'
import { maxColumns } from './model/bounds.ts'
import { parseCellNumber, type Rows, rowOrder } from './model/rows.ts'
import { t } from './words.ts'

interface Sort {
  readonly column: number
  readonly isDescending: boolean
}

interface TableOrProps {
  readonly rows: Rows
  readonly form: 'tree' | 'chart'
  readonly drawn: ComponentChildren
}

export function TableOrOther({ rows, form, drawn }: TableOrProps) {
  const [chosen, setChosen] = useState<'table' | 'tree' | 'chart'>('table')
  const options = (['table', form] as const).map((value) => [value, t(value)] as const)
  const choice = <Choice label={t('view')} options={options} value={chosen} onChoose={setChosen} />
  if (chosen === 'table') return <DataTable rows={rows}>{choice}</DataTable>
  return (
    <>
      <div class="preview-bar thin">{choice}</div>
      {drawn}
    </>
  )
}

/** A table (ARIA grid pattern): the first of `rows` has the names of the columns. A click on a name sorts by its column. */
export function DataTable({ rows, children }: { readonly rows: Rows; readonly children?: ComponentChildren }) {
  const head = useMemo(() => rows[0] ?? [], [rows])
  const body = useMemo(() => rows.slice(1), [rows])
  const wholeWidth = useMemo(() => Math.max(head.length, ...body.slice(0, 500).map((row) => row.length)), [head, body])
  const width = Math.min(wholeWidth, maxColumns)
  const columns = useMemo(() => measureColumns(head, body, width), [head, body, width])
  const [sort, setSort] = useState<Sort>()
  const sorted = useMemo(
    () => (sort === undefined ? undefined : rowOrder(body, sort.column, sort.isDescending)),
    [body, sort],
  )
  const { find, fault, current, order, places, found } = useMatches(body, sorted)
  const count = order?.length ?? body.length
  const [cell, setCell] = useState({ row: 0, column: 0 })
  const at = (row: number) => (row < count ? (body[order?.[row] ?? row] ?? []) : [])
  useEffect(() => {
    const row = places[Math.min(current.value, places.length - 1)]
    if (row !== undefined) setCell({ row, column: found?.get(order?.[row] ?? row) ?? 0 })
  }, [places, current.value])
  const sortBy = (column: number) =>
    setSort(
      sort?.column !== column
        ? { column, isDescending: false }
        : sort.isDescending
          ? undefined
          : { column, isDescending: true },
    )
  const digits = Math.max(3, formatNumber(body.length).length)
  const template = `${digits + 3}ch ${columns.map(({ size }) => `${size}ch`).join(' ')}`
  const wide = `${columns.reduce((sum, { size }) => sum + size, digits + 3)}ch`
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return
    if ((event.ctrlKey || event.metaKey) && event.key === 'c' && String(getSelection()) === '') {
      void copyAndAnnounce(at(cell.row)[cell.column] ?? '')
      return
    }
    const next = moved(event, cell, count, width)
    if (event.key === 'Enter') sortBy(cell.column)
    if (next === undefined) return
    event.preventDefault()
    setCell(next)
    const element = event.currentTarget as HTMLElement
    requestAnimationFrame(() =>
      element.querySelector('.cell.active')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    )
  }
  return (
    <div class="column">
      <div class="preview-bar thin">
        <span class="quiet">{t('tableSize', { rows: body.length, columns: wholeWidth })}</span>
        {children}
        <span class="spring" />
        <bdi class="cell-value one-line">{escapeInvisible((at(cell.row)[cell.column] ?? '').slice(0, 500))}</bdi>
        <Button name={t('copyCell')} onClick={() => void copyAndAnnounce(at(cell.row)[cell.column] ?? '')} />
      </div>
      {isFindBarOpen.value ? (
        <FindBar count={places.length} current={current} fault={fault}>
          <Toggle name={t('onlyMatches')} state={hidesOthers} />
        </FindBar>
      ) : null}
      {wholeWidth > width ? <p class="preview-banner">{t('shortened')}</p> : null}
      <VirtualRows
        class="grid"
        role="grid"
        tabIndex={0}
        aria-label={t('table')}
        aria-rowcount={body.length + 1}
        aria-colcount={width + 1}
        aria-activedescendant={`cell-${cell.row}-${cell.column}`}
        onKeyDown={onKeyDown}
        count={count}
        active={cell.row}
        wide={wide}
        head={<TableHead {...{ columns, template, sort, sortBy }} />}
        row={(index) => (
          <div
            key={index}
            class="grid-row"
            role="row"
            aria-rowindex={index + 2}
            style={{ gridTemplateColumns: template }}
          >
            <span role="rowheader" class="cell number">
              {formatNumber((order?.[index] ?? index) + 1)}
            </span>
            {columns.map(({ isNumeric }, column) => {
              const text = at(index)[column] ?? ''
              const isActive = cell.row === index && cell.column === column
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys
                <span
                  key={column}
                  id={`cell-${index}-${column}`}
                  role="gridcell"
                  tabIndex={-1}
                  aria-colindex={column + 2}
                  aria-selected={isActive}
                  class={`cell ${isNumeric ? 'numeric' : ''} ${isActive ? 'active' : ''}`}
                  lang={langOf(text)}
                  onClick={() => setCell({ row: index, column })}
                >
                  <CellText text={text.slice(0, 300)} find={find} />
                </span>
              )
            })}
          </div>
        )}
      />
    </div>
  )
}

/** Returns the matches of Find in a table, and the order of the shown rows. `undefined` as the order: that of `body`. */
function useMatches(body: Rows, sorted: readonly number[] | undefined) {
  const { find, fault } = useFinder()
  const rowMatches = useMemo(() => (find === undefined ? undefined : rowsWith(body, find)), [body, find])
  const current = useSignal(0)
  const hides = hidesOthers.value
  const order = useMemo(() => {
    if (rowMatches === undefined || !hides) return sorted
    return (sorted ?? Array.from(body.keys())).filter((index) => rowMatches.has(index))
  }, [body, sorted, rowMatches, hides])
  const places = useMemo(() => {
    if (rowMatches === undefined) return []
    return Array.from({ length: order?.length ?? body.length }, (_, row) => row).filter((row) =>
      rowMatches.has(order?.[row] ?? row),
    )
  }, [body, rowMatches, order])
  return { find, fault, current, order, places, found: rowMatches }
}

/** Whether rows without a match are left out. */
const hidesOthers = signal(true)

type Find = NonNullable<ReturnType<typeof useFinder>['find']>

/** The rows with a match, by their index, each with the first column that matches. */
function rowsWith(body: Rows, find: Find): ReadonlyMap<number, number> {
  const matchesByRow = new Map<number, number>()
  for (const [index, row] of body.entries()) {
    const [first] = find(row)
    if (first !== undefined) matchesByRow.set(index, first.line)
  }
  return matchesByRow
}

function CellText({ text, find }: { readonly text: string; readonly find: Find | undefined }) {
  const matches = find?.([text]) ?? []
  if (matches.length === 0) return <>{escapeInvisible(text)}</>
  let at = 0
  const pieces = matches.flatMap(({ start, end }) => {
    const before = text.slice(at, start)
    at = end
    return [escapeInvisible(before), <mark key={start}>{escapeInvisible(text.slice(start, end))}</mark>]
  })
  return (
    <>
      {pieces}
      {escapeInvisible(text.slice(at))}
    </>
  )
}

interface HeadProps {
  readonly columns: readonly TableColumn[]
  readonly template: string
  readonly sort: Sort | undefined
  readonly sortBy: (column: number) => void
}

function TableHead({ columns, template, sort, sortBy }: HeadProps) {
  return (
    <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
      <span role="columnheader" class="cell number">
        <span class="unseen">{t('rowNumber')}</span>
      </span>
      {columns.map(({ name, isNumeric }, column) => (
        <span
          key={column}
          role="columnheader"
          class={isNumeric ? 'cell numeric' : 'cell'}
          aria-colindex={column + 2}
          {...(sort?.column === column
            ? { 'aria-sort': sort.isDescending ? ('descending' as const) : ('ascending' as const) }
            : {})}
        >
          <button type="button" tabIndex={-1} title={t('sortBy', { name })} onClick={() => sortBy(column)}>
            <bdi lang={langOf(name)}>{escapeInvisible(name)}</bdi>
            <span aria-hidden="true">{sort?.column === column ? (sort.isDescending ? ' ▾' : ' ▴') : ''}</span>
          </button>
        </span>
      ))}
    </div>
  )
}

interface TableColumn {
  readonly name: string
  readonly size: number
  readonly isNumeric: boolean
}

function measureColumns(head: readonly string[], body: Rows, width: number): readonly TableColumn[] {
  const sample = body.slice(0, 200)
  return Array.from({ length: width }, (_, column) => {
    const cells = sample.map((row) => row[column] ?? '')
    const filled = cells.filter((cell) => cell.trim() !== '')
    const longest = Math.max(estimateCellWidth(head[column] ?? '') + 2, ...cells.map(estimateCellWidth))
    return {
      name: head[column] ?? '',
      size: Math.max(6, Math.min(longest, 42)) + 3,
      isNumeric: filled.length > 0 && filled.every((cell) => parseCellNumber(cell) !== undefined),
    }
  })
}

/** Approximate width of a cell, in characters: East Asian ones count twice. Only the beginning of the text counts. */
function estimateCellWidth(text: string): number {
  let width = 0
  for (const character of text.slice(0, 60)) width += (character.codePointAt(0) ?? 0) >= 0x1100 ? 2 : 1
  return width
}

function moved(
  { key, ctrlKey, metaKey }: KeyboardEvent,
  { row, column }: { readonly row: number; readonly column: number },
  rows: number,
  columns: number,
): { readonly row: number; readonly column: number } | undefined {
  const far = ctrlKey || metaKey
  const to = (nextRow: number, nextColumn: number) => ({
    row: Math.max(0, Math.min(rows - 1, nextRow)),
    column: Math.max(0, Math.min(columns - 1, nextColumn)),
  })
  if (key === 'ArrowDown') return to(far ? rows : row + 1, column)
  if (key === 'ArrowUp') return to(far ? 0 : row - 1, column)
  if (key === 'ArrowRight') return to(row, far ? columns : column + 1)
  if (key === 'ArrowLeft') return to(row, far ? 0 : column - 1)
  if (key === 'PageDown') return to(row + 20, column)
  if (key === 'PageUp') return to(row - 20, column)
  if (key === 'Home') return to(far ? 0 : row, 0)
  if (key === 'End') return to(far ? rows : row, columns)
  return undefined
}
