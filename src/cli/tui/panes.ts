import { isIn, type PlannedItem } from '../../browse/basket.ts'
import { lastSegment } from '../../client/wire.ts'
import { piecesOf } from '../../core/found.ts'
import { defined } from '../../core/kit/defined.ts'
import { formatSize } from '../terminal/format.ts'
import { readableUri } from '../terminal/text.ts'
import { planIn } from './budget.ts'
import { blanks, type Cell, cellsOf, columnsOf, fitted, line, type Row, selected, sides, span } from './cells.ts'
import { markedText, needleOf } from './match.ts'
import { hitRows, isFolder, type TreeRow, treeRows } from './places.ts'
import type { State } from './state.ts'

/** The left part of the screen: the tree, the search results, or the basket. */
export function listPane(state: State, columns: number, height: number): readonly Row[] {
  if (state.list === 'found') return foundPane(state, columns, height)
  if (state.list === 'basket') return basketPane(state, columns, height)
  const { tree, top, at, filter } = state
  if (tree.roots === undefined) return [line(columns, span(' listing …', 'dim'))]
  const rows = treeRows(state)
  if (rows.length === 0) {
    const says = filter.trim() === '' ? 'Nothing is mounted here.' : 'Nothing open has that name.'
    return [line(columns, span(` ${says}`, 'dim'))]
  }
  return rows
    .slice(top, top + height)
    .map((row, index) => chosenAs(treeRow(state, row, columns), top + index === at.index, state))
}

function chosenAs(row: Row, isChosen: boolean, { focus }: State): Row {
  return isChosen ? selected(row, focus === 'list' ? 'firm' : 'faint') : row
}

/** How far deep lines are moved to the right at most, so that their names stay on the screen. */
function indentOf(depth: number, columns: number): string {
  return '  '.repeat(Math.min(depth, Math.floor(columns / 6)))
}

function treeRow(state: State, { resource, depth, says }: TreeRow, columns: number): Row {
  const indent = indentOf(depth, columns)
  if (says !== undefined) return line(columns, span(`  ${indent}  ${says}`, 'dim'))
  const isOpen = state.tree.folders.get(resource.uri)?.isOpen === true
  const arrow = isFolder(resource) ? (isOpen ? '▾ ' : '▸ ') : '  '
  const mark = state.changed.has(resource.uri) ? span('● ', 'changed') : span('  ')
  const pick = isIn(state.basket.items, resource.uri) ? span('✓ ', 'picked') : span('')
  const name = markedText(nameOf(resource, depth), needleOf(state.filter))
  const styled = isFolder(resource) ? name.map((cell) => inFolder(cell)) : name
  const { size } = resource
  const end = size === undefined ? [] : [span(` ${formatSize(size)} `, 'dim')]
  const start = [...cellsOf([mark, span(indent), span(arrow, 'dim'), pick]), ...styled]
  const room = columns - columnsOf(cellsOf(end))
  // The size is shown only if it leaves room for the whole name.
  return columnsOf(start) <= room ? [...fitted(start, room), ...cellsOf(end)] : fitted(start, columns)
}

function inFolder(cell: Cell): Cell {
  return cell.style === 'plain' ? { ...cell, style: 'folder' } : cell
}

function nameOf({ name, uri, mimeType }: TreeRow['resource'], depth: number): string {
  // Mounts are told apart by their addresses.
  if (depth === 0) return readableUri(uri)
  return isFolder({ name, uri, ...defined({ mimeType }) }) && !name.endsWith('/') ? `${name}/` : name
}

function foundPane(state: State, columns: number, height: number): readonly Row[] {
  const { found } = state
  if (found === undefined) return []
  const { query, hits, top, at, notes, next, isLoose } = found
  const about =
    found.state === 'searching'
      ? 'searching …'
      : found.state === 'failed'
        ? 'no answer'
        : `${hits.length}${next === undefined ? '' : '+'} found${isLoose ? ' by single characters alone' : ''}`
  const head = line(columns, span(` ${about}: `, 'dim'), span(query, 'bold'))
  const rows = hits.slice(top).flatMap((hit, index): readonly Row[] => {
    const isChosen = top + index === at
    const pick = isIn(state.basket.items, hit.uri) ? span('✓ ', 'picked') : span('')
    const titles = [...new Set([hit.title, hit.heading])].filter((text) => text !== undefined && text !== '')
    const name = `${lastSegment(hit.document)}:${hit.lines.start}`
    const first = line(
      columns,
      span(' '),
      pick,
      span(name, 'folder'),
      span(titles.length === 0 ? '' : `  ${titles.join(' · ')}`),
    )
    return [chosenAs(first, isChosen, state), chosenAs(snippetRow(hit.snippet, columns), isChosen, state)]
  })
  const said = rows.length === 0 && found.state === 'done' ? [line(columns, span(' Nothing was found.', 'dim'))] : []
  const told = notes.map((note) => line(columns, span(` ${note}`, found.state === 'failed' ? 'error' : 'dim')))
  const room = Math.max(0, height - 1 - told.length)
  return [head, ...(rows.length > room ? rows.slice(0, room - (room % hitRows)) : [...rows, ...said]), ...told].slice(
    0,
    height,
  )
}

/** Formats a hit as one row: the beginning is cut if the first mark would not fit. */
function snippetRow(snippet: Parameters<typeof piecesOf>[0], columns: number): Row {
  const pieces = piecesOf(snippet).map(({ text, marked }) => span(text.replace(/\s+/g, ' '), marked ? 'mark' : 'dim'))
  const cells = cellsOf(pieces)
  const first = cells.findIndex(({ style }) => style === 'mark')
  const room = columns - 3
  const from = columnsOf(cells.slice(0, first + 8)) > room ? Math.max(0, first - Math.floor(room / 3)) : 0
  return fitted([...blanks(3), ...cells.slice(from)], columns)
}

function basketPane(state: State, columns: number, height: number): readonly Row[] {
  const { basket } = state
  const head = sides(columns, [span(' Basket', 'bold')], [span(`${basket.format} `, 'dim')])
  if (basket.items.length === 0)
    return [head, line(columns, span(' Empty. Space in the tree puts a resource into it.', 'dim'))]
  const room = Math.max(1, height - 2)
  const { items } = planIn(basket)
  const rows = items
    .slice(basket.top, basket.top + room)
    .map((item, index) => chosenAs(basketRow(state, item, columns), basket.top + index === basket.at, state))
  const cost = basket.costs.get(basket.items[basket.at]?.resource.uri ?? '')
  const says = cost?.failure ?? cost?.notes.join('; ') ?? ''
  const last = says === '' ? span(' ←→ how much of it   f format   e export', 'dim') : span(` ${says}`, 'changed')
  return [head, ...rows, line(columns, last)].slice(0, height)
}

function basketRow({ basket, changed }: State, item: PlannedItem, columns: number): Row {
  const { uri } = item.resource
  const isFailed = basket.costs.get(uri)?.failure !== undefined
  const level = isFailed ? item.level : item.taken
  const tokens = isFailed ? 'fails' : (item.tokens?.toLocaleString('en') ?? '…')
  const end = [span(` ${level.padEnd(7)} `, level === item.level ? 'dim' : 'changed'), span(`${tokens.padStart(8)} `)]
  const mark = changed.has(uri) ? span('● ', 'changed') : span('  ')
  return sides(columns, [mark, span(lastSegment(uri))], end)
}
