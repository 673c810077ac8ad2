import { useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../core/kit/object.ts'
import { parseSearchAnswer } from '../../../core/search-answer.ts'
import { Button, rowHeightPx } from '../shell/fields.tsx'
import { indexAfterKey } from '../shell/keys.ts'
import { lazyComponent } from '../shell/panes.tsx'
import { copyAndAnnounce } from '../state/announce.ts'
import { VirtualRows } from './controls.tsx'
import { TableOrOther } from './data-table.tsx'
import { isFindBarOpen } from './find.tsx'
import { maxColumns, truncateValue } from './model/bounds.ts'
import { analysesOf, notebookOf, overviewOf } from './model/documents.ts'
import { endingOf } from './model/kind.ts'
import {
  isOpenAtFirst,
  type JsonRow,
  jsonRows,
  keepDigits,
  maxJsonRows,
  parseLines,
  tabulateObjects,
} from './model/rows.ts'
import { chartOfJson } from './model/series.ts'
import { TextView } from './text.tsx'
import { t } from './words.ts'
import './data.css'
import { escapeInvisible, langOf } from '../words/texts.ts'

/** JSON Lines as a table or a tree. */
export function JsonLines({ text }: { readonly text: string }) {
  const values = useMemo(() => parseLines(text), [text])
  const table = useMemo(() => tabulateObjects(values), [values])
  const tree = <JsonTree value={values} />
  return table === undefined ? tree : <TableOrOther rows={table} form="tree" drawn={tree} />
}

const ChartView = lazyComponent(async () => (await import('./chart.tsx')).ChartView)
const Diagram = lazyComponent(async () => (await import('./diagram.tsx')).TablesDiagram)
const TableSchema = lazyComponent(async () => (await import('./tables.tsx')).TableSchema)
const DatabaseRows = lazyComponent(async () => (await import('./tables.tsx')).DatabaseRows)
const FoundList = lazyComponent(async () => (await import('./records.tsx')).HitList)
const Notebook = lazyComponent(async () => (await import('./markdown.tsx')).Notebook)
const Analyses = lazyComponent(async () => (await import('./records.tsx')).Analyses)
const Analysis = lazyComponent(async () => (await import('./records.tsx')).Analysis)

interface Props {
  readonly text: string
  readonly uri: string
  readonly format: string | undefined
}

/** Maximum length of a parsed document, in characters. Parsing a longer one would block the page. */
const largest = 25_000_000

export function Json({ text, uri, format }: Props) {
  const parsed = useMemo(() => parseJsonText(text, format === 'DatabaseRows' ? keepDigits : undefined), [text, format])
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
  if (notebook !== undefined) return <Notebook {...notebook} uri={uri} />
  const { value, isCut } = truncateValue(whole)
  const form = renderByFormat(value, { uri, format })
  if (form === undefined) return <JsonTree value={whole} />
  return (
    <>
      {isCut ? <p class="preview-banner">{t('shortened')}</p> : null}
      {form}
    </>
  )
}

/** Renders a document in the form of its format, such as a diagram of tables. `undefined`: its format has no form. */
function renderByFormat(value: unknown, { uri, format }: Omit<Props, 'text'>) {
  const overview = format === 'DatabaseOverview' ? overviewOf(value) : undefined
  if (overview !== undefined && overview.tables.length > 0) return <Diagram overview={overview} uri={uri} />
  if (format === 'DatabaseSchema' && isObject(value)) return <TableSchema value={value} uri={uri} />
  if (format === 'DatabaseRows' && isObject(value)) return <DatabaseRows value={value} uri={uri} />
  const answer = format === 'SearchFound' ? parseSearchAnswer(JSON.stringify(value)) : undefined
  if (answer !== undefined) return <FoundList found={answer} />
  const listed = analysesOf(value, uri)
  if (listed !== undefined) return <Analyses listed={listed} />
  if (isObject(value) && Array.isArray(value.votes) && isObject(value.consensus))
    return <Analysis value={value} uri={uri} />
  return undefined
}

function parseJsonText(
  text: string,
  reviver?: typeof keepDigits,
): { readonly value: unknown } | { readonly reason: string } {
  if (text.length > largest) return { reason: '' }
  try {
    return { value: JSON.parse(text.replace(/^\ufeff/, ''), reviver) as unknown }
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) }
  }
}

type OpenRule = { readonly all?: boolean; readonly pointers: ReadonlyMap<string, boolean> }

/** A JSON value as a tree (ARIA tree pattern). */
function JsonTree({ value }: { readonly value: unknown }) {
  // Find needs the whole text, and the tree draws only some rows.
  if (isFindBarOpen.value) return <TextView text={JSON.stringify(value, undefined, 2)} language="json" wrap />
  return <OpenTree value={value} />
}

function OpenTree({ value }: { readonly value: unknown }) {
  const [rule, setRule] = useState<OpenRule>({ pointers: new Map() })
  const [active, setActive] = useState(0)
  const rows = useMemo(() => {
    return jsonRows(value, (row, count) => rule.pointers.get(row.pointer) ?? rule.all ?? isOpenAtFirst(row, count))
  }, [value, rule])
  const at = Math.min(active, rows.length - 1)
  const row = rows[at]
  const setOpen = ({ pointer }: JsonRow, isOpen: boolean) =>
    setRule({ ...rule, pointers: new Map(rule.pointers).set(pointer, isOpen) })
  const setAll = (all: boolean) => {
    setActive(0)
    setRule({ all, pointers: all ? new Map() : new Map([['', true]]) })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (row === undefined || event.isComposing) return
    const to = rowFor(event.key, rows, at)
    if (to !== undefined) setActive(to)
    else if (isSwitch(event.key, row)) setOpen(row, !row.isOpen)
    else return
    event.preventDefault()
  }
  return (
    <div class="column">
      <div class="preview-bar thin" role="toolbar" aria-label={t('tree')}>
        <Button name={t('expandAll')} onClick={() => setAll(true)} />
        <Button name={t('collapseAll')} onClick={() => setAll(false)} />
        <code class="pointer one-line">{escapeInvisible(row?.pointer ?? '')}</code>
        <span class="spring" />
        <Button name={t('copyPointer')} onClick={() => void copyAndAnnounce(row?.pointer ?? '')} />
        <Button
          name={t('copyValue')}
          onClick={() => void copyAndAnnounce(formatJsonAtPointer(value, row?.pointer ?? ''))}
        />
      </div>
      {rows.length >= maxJsonRows ? <p class="preview-banner">{t('shortened')}</p> : null}
      <VirtualRows
        class="json-rows"
        height={rowHeightPx}
        role="tree"
        tabIndex={0}
        aria-label={t('jsonLabel')}
        aria-activedescendant={`json-${at}`}
        onKeyDown={onKeyDown}
        count={rows.length}
        active={active}
        row={(index) => {
          const one = rows[index]
          if (one === undefined) return null
          const open = () => {
            setActive(index)
            if (one.count !== undefined) setOpen(one, !one.isOpen)
          }
          return <JsonRowLine key={one.pointer} row={one} index={index} isActive={index === active} onClick={open} />
        }}
      />
    </div>
  )
}

interface RowProps {
  readonly row: JsonRow
  readonly index: number
  readonly isActive: boolean
  readonly onClick: () => void
}

function JsonRowLine({ row, index, isActive, onClick }: RowProps) {
  const { depth, name, isIndex, kind, text, count, isOpen } = row
  const isNest = kind === 'object' || kind === 'array'
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    <div
      id={`json-${index}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={depth + 1}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-selected={isActive}
      {...(count === undefined ? {} : { 'aria-expanded': isOpen })}
      class={`json-row ${isActive ? 'active' : ''}`}
      style={{ paddingLeft: `${8 + depth * 16}px` }}
      onClick={onClick}
    >
      <span class="twist" aria-hidden="true">
        {count === undefined ? '' : isOpen ? '▾' : '▸'}
      </span>
      {name === undefined ? null : (
        <span class={isIndex ? 'quiet' : 'json-name'}>
          <bdi>{escapeInvisible(name)}</bdi>:{' '}
        </span>
      )}
      {count === undefined ? null : <span class="quiet">{kind === 'array' ? `[${count}] ` : `{${count}} `}</span>}
      {isNest && isOpen ? null : (
        <bdi class={isNest ? 'quiet' : `json-${kind}`} lang={langOf(text)}>
          {escapeInvisible(text)}
        </bdi>
      )}
    </div>
  )
}

function rowFor(key: string, rows: readonly JsonRow[], at: number): number | undefined {
  const row = rows[at]
  if (key === 'ArrowRight' && row?.isOpen) return at + 1
  if (key !== 'ArrowLeft' || row === undefined || row.isOpen) return indexAfterKey(key, at, rows.length, 20)
  const above = rows.slice(0, at).findLastIndex(({ depth }) => depth < row.depth)
  return above < 0 ? undefined : above
}

function isSwitch(key: string, { count, isOpen }: JsonRow): boolean {
  if (count === undefined) return false
  return key === 'Enter' || key === ' ' || key === (isOpen ? 'ArrowLeft' : 'ArrowRight')
}

function formatJsonAtPointer(value: unknown, pointer: string): string {
  const steps = pointer.split('/').slice(1)
  const node = steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined
  }, value)
  return typeof node === 'string' ? node : (JSON.stringify(node, null, 2) ?? '')
}
