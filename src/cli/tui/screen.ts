import {
  blanks,
  type Cell,
  cellsOf,
  columnsOf,
  fitted,
  line,
  type Row,
  type Style,
  type StyledSpan,
  sides,
  span,
  wrap,
} from './cells.ts'
import { helpHeight, keyHelp } from './keys.ts'
import { detailsOf, isTooSmall, layoutOf, least, listPane, previewSize, treeRows } from './layout.ts'
import { gutterOf, markedRowsOfLine, type Preview } from './preview.ts'
import { type Prompt, planIn, type State } from './state.ts'

export interface Screen {
  /** All rows of the screen, each exactly as wide as the screen. */
  readonly rows: readonly Row[]
  /** Position of the text cursor, at which an input method opens. */
  readonly cursor?: CellPosition
}

/** Lays out the screen of a state. */
export function screenOf(state: State): Screen {
  const { columns, rows } = state.size
  if (isTooSmall(state)) return { rows: tooSmall(columns, rows) }
  const { height } = layoutOf(state)
  const body = state.help === undefined ? bodyRows(state) : helpRows(columns, state.help)
  const bar = state.prompt === undefined ? { row: lastRow(state) } : promptRow(state, state.prompt)
  return {
    rows: [firstRow(state), ...filled(body, columns, height), bar.row],
    ...('column' in bar ? { cursor: { row: rows - 1, column: bar.column } } : {}),
  }
}

function tooSmall(columns: number, rows: number): readonly Row[] {
  const text = `The terminal is too small: ${least.columns} by ${least.rows} is the least.`
  return filled(
    wrap(cellsOf([span(text)]), columns).map((row) => fitted(row, columns)),
    columns,
    rows,
  )
}

function filled(rows: readonly Row[], columns: number, height: number): readonly Row[] {
  return Array.from({ length: height }, (_, index) => rows[index] ?? blanks(columns))
}

function bodyRows(state: State): readonly Row[] {
  const { height, listColumns, previewColumns } = layoutOf(state)
  if (previewColumns === 0) return listPane(state, listColumns, height)
  if (listColumns === 0) return previewPane(state, previewColumns, height)
  const left = filled(listPane(state, listColumns, height), listColumns, height)
  const right = filled(previewPane(state, previewColumns, height), previewColumns, height)
  const border = cellsOf([span('│ ', state.focus === 'preview' ? 'folder' : 'dim')])
  return left.map((row, index) => [...row, ...border, ...(right[index] ?? [])])
}

function helpRows(columns: number, from: number): readonly Row[] {
  return keyHelp
    .slice(from)
    .map(([keys, meaning]) =>
      meaning === undefined
        ? line(columns, span(` ${keys}`, 'heading'))
        : fitted([...fitted(cellsOf([span(`  ${keys}`, 'bold')]), 14), ...cellsOf([span(meaning)])], columns),
    )
}

/** Returns the first line: the source, and how full the basket is. */
function firstRow(state: State): Row {
  const { basket, size, title } = state
  const left = [span(' hikidashi ', 'title'), span(` ${title}`, 'bar')]
  const { tokens, isWhole } = planIn(basket)
  const number = `${isWhole ? '' : '≥'}${tokens.toLocaleString('en')}`
  const budget = basket.budget.toLocaleString('en')
  const room =
    size.columns < 50 ? `${number} tokens ` : `${number} of ${budget} tokens ${gauge(tokens / basket.budget)} `
  const isOver = tokens > basket.budget
  const right: readonly StyledSpan[] =
    basket.items.length === 0
      ? []
      : [span(` ${basket.items.length} in the basket, `, 'bar'), span(room, isOver ? 'title' : 'bar')]
  return inBar(sides(size.columns, left, right))
}

function gauge(share: number): string {
  const full = Math.max(0, Math.min(10, Math.round(share * 10)))
  return `[${'#'.repeat(full)}${'.'.repeat(10 - full)}]${share > 1 ? ' over' : ''}`
}

/** Gives the plain and dim cells of a row the style of a bar. */
function inBar(row: Row): Row {
  return row.map((cell): Cell => (cell.style === 'plain' || cell.style === 'dim' ? { ...cell, style: 'bar' } : cell))
}

/** Returns the last line: a message if there is one, else hints about the keys. */
function lastRow(state: State): Row {
  const { size, notice, basket, isEnding, goal, filter, help } = state
  const tell = (text: string, style: Style = 'plain') => line(size.columns, span(` ${text}`, style))
  const isLonger = helpHeight > layoutOf(state).height
  if (help !== undefined) return tell(`${isLonger ? '↑↓ more. ' : ''}Any other key goes back.`, 'dim')
  if (isEnding)
    return tell(
      `${basket.items.length} in the basket. e: write to a file   p: print at the end   q: end without   Esc: stay`,
      'bold',
    )
  if (notice !== undefined) return tell(notice.text, notice.isError ? 'error' : 'bold')
  if (goal !== undefined) return tell(`Looking for ${goal} …`, 'dim')
  const count = countOf(state)
  const keys = filter.trim() !== '' && state.list === 'tree' ? `filter: ${filter}   Esc takes it away` : hints(state)
  return sides(size.columns, [span(` ${keys}`, 'dim')], columnsOf(cellsOf([count])) < size.columns / 3 ? [count] : [])
}

function hints({ focus, list }: State): string {
  if (focus === 'preview') return '↑↓ scroll   Tab back   Space pick   y copy URI   ? help   q end'
  if (list === 'basket') return '↑↓ choose   ←→ level   Space remove   + - budget   e export   b back   ? help'
  if (list === 'found') return '↑↓ choose   Enter preview   t in tree   Space pick   s search   Esc back   ? help'
  return '↑↓ → ← open   / filter   s search   Space pick   b basket   g go to   ? help   q end'
}

/** Formats the number of the selected line, and the number of lines. */
function countOf(state: State): StyledSpan {
  const { list, at, found, basket, focus, preview } = state
  const number = (value: number) => value.toLocaleString('en')
  if (focus === 'preview' && preview !== undefined) {
    const { lines, next } = preview.shown
    return span(
      lines.length === 0
        ? ''
        : ` ${number(preview.at.line + 1)}/${number(lines.length)}${next === undefined ? '' : '+'} `,
      'dim',
    )
  }
  const [index, count] =
    list === 'tree'
      ? [at.index, treeRows(state).length]
      : list === 'basket'
        ? [basket.at, basket.items.length]
        : [found?.at ?? 0, found?.hits.length ?? 0]
  return span(count === 0 ? '' : ` ${number(index + 1)}/${number(count)} `, 'dim')
}

const labels = { filter: 'Filter: ', search: 'Search: ', goto: 'Go to URI: ', export: 'Write to file: ' } as const

/** Returns the line of a prompt, and the column of the cursor. Of a long line, the part around the cursor is shown. */
function promptRow(state: State, { kind, editor }: Prompt): { readonly row: Row; readonly column: number } {
  const { columns } = state.size
  const label = cellsOf([span(` ${labels[kind]}`, 'bold')])
  const before = cellsOf([span(editor.text.slice(0, editor.at))])
  const after = cellsOf([span(editor.text.slice(editor.at))])
  const room = Math.max(2, columns - columnsOf(label) - 1)
  let width = columnsOf(before)
  let from = 0
  while (width > room) width -= before[from++]?.width ?? 1
  const row = fitted([...label, ...before.slice(from), ...after], columns)
  return { row, column: Math.min(columns - 1, columnsOf(label) + width) }
}

/** Returns the right part of the screen: the facts of the selected resource, and its content. */
function previewPane(state: State, columns: number, height: number): readonly Row[] {
  const details = detailsOf(state)
  const { preview } = state
  if (preview === undefined) return []
  const room = Math.max(0, height - details.length)
  return [...details, ...contentRows(state, preview, columns, room)].slice(0, height)
}

function contentRows(state: State, preview: Preview, columns: number, height: number): readonly Row[] {
  const { shown, failure } = preview
  if (preview.state === 'loading' && shown.lines.length === 0) return [line(columns, span('reading …', 'dim'))]
  const said =
    failure === undefined ? [] : wrap(cellsOf([span(failure, 'error')]), columns).map((row) => fitted(row, columns))
  const text = textRows(state, preview, columns, height - Math.min(said.length, 3))
  return [...text, ...said.slice(0, 3)]
}

function textRows(state: State, { shown, at, words }: Preview, columns: number, height: number): readonly Row[] {
  const { columns: width } = previewSize(state)
  const gutter = gutterOf(shown)
  const rows: Row[] = []
  for (let index = at.line; index < shown.lines.length && rows.length < height; index++) {
    const each = shown.lines[index]
    if (each === undefined) break
    const parts = markedRowsOfLine(each, width, words)
    for (let part = index === at.line ? at.row : 0; part < parts.length && rows.length < height; part++) {
      const number = part === 0 && each.number !== undefined ? `${each.number} `.padStart(gutter) : ''
      const text = parts[part] ?? []
      rows.push(fitted([...fitted(cellsOf([span(number, 'dim')]), gutter), ...text], columns))
    }
  }
  const isEnd = rows.length < height
  if (isEnd && shown.next !== undefined) rows.push(line(columns, span('reading on …', 'dim')))
  return shown.lines.length === 0 && shown.next === undefined ? [fitted(blanks(0), columns)] : rows
}

/** Position of a cell on the screen, from 0. */
interface CellPosition {
  readonly row: number
  readonly column: number
}

const start = '\u001b['
const attributes: Readonly<Record<Style, { readonly plain: string; readonly colour: string }>> = {
  plain: { plain: '', colour: '' },
  dim: { plain: '2', colour: '2' },
  bold: { plain: '1', colour: '1' },
  folder: { plain: '1', colour: '1;34' },
  heading: { plain: '1', colour: '1;36' },
  code: { plain: '', colour: '33' },
  key: { plain: '', colour: '36' },
  string: { plain: '', colour: '32' },
  number: { plain: '', colour: '35' },
  mark: { plain: '1;4', colour: '1;4;33' },
  changed: { plain: '1', colour: '1;33' },
  picked: { plain: '1', colour: '1;32' },
  error: { plain: '1', colour: '1;31' },
  bar: { plain: '7', colour: '7' },
  title: { plain: '1;7', colour: '1;7' },
}
/** Attributes of escaped characters, which distinguish them from text that only looks like an escape. */
const escaped = { plain: '4', colour: '4;35' }

/**
 * Creates a painter that draws screens, and writes only the rows that have changed.
 *
 * @param colour If false, characters are only dim, bold, underlined or reversed (https://no-color.org).
 */
export function createPainter(write: (text: string) => void, colour: boolean) {
  let shown: readonly string[] | undefined
  let lastMove = ''
  return {
    draw: (rows: readonly Row[], cursor?: CellPosition) => {
      const next = rows.map((row) => paintRow(row, colour))
      const isNew = shown === undefined || shown.length !== next.length
      const changed = next.flatMap((text, at) => (isNew || shown?.[at] !== text ? [`${start}${at + 1};1H${text}`] : []))
      shown = next
      const move = cursor === undefined ? `${start}?25l` : `${start}${cursor.row + 1};${cursor.column + 1}H${start}?25h`
      if (changed.length === 0 && move === lastMove) return
      lastMove = move
      // Terminals with mode 2026 show the whole frame at once; others ignore it.
      const clear = isNew ? `${start}0m${start}2J` : ''
      write(`${start}?2026h${start}?25l${clear}${changed.join('')}${move}${start}?2026l`)
    },
    /** Forgets the content of the screen, so that the next frame is drawn as a whole. */
    forget: () => {
      shown = undefined
      lastMove = ''
    },
  }
}

/** Returns the text and escape sequences that draw a row, from the first column on. */
function paintRow(row: Row, colour: boolean): string {
  let text = ''
  let now = ''
  let column = 1
  for (const cell of row) {
    const attribute = attributeOf(cell, colour)
    if (attribute !== now) text += `${start}0${attribute === '' ? '' : `;${attribute}`}m`
    now = attribute
    // Blanks are written first, because a terminal may draw the character narrower and would leave old text beside it. Then the
    // cursor moves to the column where the cell has to end.
    const next = column + cell.width
    text += cell.sure ? cell.text : `${' '.repeat(cell.width)}${start}${column}G${cell.text}${start}${next}G`
    column = next
  }
  return now === '' ? text : `${text}${start}0m`
}

function attributeOf({ style, selected, escaped: isEscaped }: Cell, colour: boolean): string {
  // The selected line has no colours of its own.
  const kind = colour && selected === undefined ? 'colour' : 'plain'
  const chosen = selected === undefined ? [] : [selected === 'firm' ? '7' : '2;7']
  const parts = [attributes[style][kind], ...(isEscaped ? [escaped[kind]] : []), ...chosen]
  return parts.filter((part) => part !== '').join(';')
}
