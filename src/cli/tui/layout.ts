import { isIn, type PlannedItem } from '../../browse/basket.ts'
import { type Folder, shownFolder, type Tree } from '../../browse/tree.ts'
import { lastSegment } from '../../client/wire.ts'
import { piecesOf, resourceOfHit } from '../../core/search-answer.ts'
import type { Resource } from '../../core/view.ts'
import { formatSize } from '../terminal/io.ts'
import { readableUri } from '../terminal/text.ts'
import {
  blanks,
  type Cell,
  cellsOf,
  columnsOf,
  fitted,
  line,
  markedText,
  matches,
  type Needle,
  needleOf,
  type Row,
  type StyledSpan,
  selected,
  sides,
  span,
} from './cells.ts'
import { gutterOf } from './preview.ts'
import { isFolder, planIn, type State } from './state.ts'

/** The sizes of the panes. A pane with 0 columns is not on the screen. */
interface Layout {
  /** Number of rows between the first and the last line of the screen. */
  readonly height: number
  readonly listColumns: number
  readonly previewColumns: number
}

/** Minimum width of a screen with both panes, in columns. */
const both = 64
export const least = { columns: 20, rows: 5 }
/** Number of rows that a search hit takes. */
export const hitRows = 2

export function layoutOf({ size: { columns, rows }, focus }: State): Layout {
  const height = Math.max(0, rows - 2)
  if (columns < both)
    return focus === 'list'
      ? { height, listColumns: columns, previewColumns: 0 }
      : { height, listColumns: 0, previewColumns: columns }
  const listColumns = Math.min(72, Math.floor(columns * 0.4))
  return { height, listColumns, previewColumns: columns - listColumns - 2 }
}

export function isTooSmall({ size: { columns, rows } }: State): boolean {
  return columns < least.columns || rows < least.rows
}

export function treeRows(state: State): readonly TreeRow[] {
  return rowsOf(state.tree, needleOf(state.filter))
}

export function chosenRow(state: State): TreeRow | undefined {
  return treeRows(state)[state.at.index]
}

/** Returns the visited resource, or the selected one of the list: it is shown in the preview, copied or picked. */
export function chosen(state: State): Resource | undefined {
  const { visiting, list, found, basket } = state
  if (visiting !== undefined) return { uri: visiting, name: lastSegment(visiting) }
  if (list === 'tree') return chosenRow(state)?.resource
  if (list === 'basket') return basket.items[basket.at]?.resource
  const hit = found?.hits[found.at]
  return hit === undefined ? undefined : resourceOfHit(hit, hit.uri, lastSegment(hit.uri))
}

/** Returns the rows with facts of the selected resource, above its preview. Small screens have fewer of them. */
export function detailsOf(state: State): readonly Row[] {
  const { previewColumns, height } = layoutOf(state)
  const resource = chosen(state)
  if (resource === undefined || previewColumns === 0 || height < 8) return []
  const { title, size, modified, mimeType, priority, audience, description, uri } = resource
  const read = state.preview?.uri === uri ? state.preview.shown.facts : []
  const facts = [
    ...(isFolder(resource) ? ['directory'] : mimeType === undefined ? [] : [mimeType]),
    ...(size === undefined ? [] : [formatSize(size)]),
    ...(modified === undefined || Math.abs(modified) > 8.64e15 ? [] : [minuteOf(modified)]),
    ...read.filter((fact) => fact !== mimeType && !(fact.startsWith('size ') && size !== undefined)),
  ]
  const notes = [
    ...(priority === undefined ? [] : [`priority ${priority}`]),
    ...(audience === undefined || audience.length === 0 ? [] : [`for ${audience.join(' and ')}`]),
    ...(description === undefined ? [] : [description.replace(/\s+/g, ' ')]),
  ]
  const lines: readonly (readonly StyledSpan[])[] = [
    [span(resource.name, 'bold'), ...(title === undefined || title === resource.name ? [] : [span(`  ${title}`)])],
    ...(facts.length === 0 ? [] : [[span(facts.join(' · '))]]),
    ...(notes.length === 0 ? [] : [[span(notes.join(' · '))]]),
  ]
  const most = height < 14 ? 1 : 3
  return [
    ...lines.slice(0, most).map((spans) => fitted(cellsOf(spans), previewColumns)),
    // The end of a URI tells more than its beginning, which many share.
    fitted(cellsOf([span(readableUri(uri), 'dim')]), previewColumns, 'end'),
    fitted([], previewColumns),
  ]
}

function minuteOf(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ')}Z`
}

/** Returns the size of the text in the preview, without line numbers and details. */
export function previewSize(state: State): { readonly columns: number; readonly height: number } {
  const { previewColumns, height } = layoutOf(state)
  const gutter = state.preview === undefined ? 0 : gutterOf(state.preview.shown)
  return { columns: Math.max(2, previewColumns - gutter), height: Math.max(1, height - detailsOf(state).length) }
}

/** Scrolls a list so that line `at` of `count` lines is visible. Returns the first visible line. */
export function topFor(top: number, at: number, count: number, height: number): number {
  const highest = Math.max(0, count - height)
  return Math.max(0, Math.min(highest, at < top ? at : at >= top + height ? at - height + 1 : top))
}

/** A line of the tree: a resource, or a message about the directory above it. */
export interface TreeRow {
  readonly resource: Resource
  readonly depth: number
  /** The directory that contains the line; a mount has none. */
  readonly parent: string | undefined
  /** A message in place of the resource: its directory is being listed, is empty, or cannot be listed. */
  readonly says?: string
}

const known = new WeakMap<Tree<string>, Map<string, readonly TreeRow[]>>()

/** Returns the lines of open directories; with a filter, the matching entries and their directories. Cached for each tree. */
function rowsOf(tree: Tree<string>, needle: Needle | undefined): readonly TreeRow[] {
  const made = known.get(tree) ?? new Map<string, readonly TreeRow[]>()
  known.set(tree, made)
  const key = needle?.key ?? ''
  const found = made.get(key)
  if (found !== undefined) return found
  const rows: TreeRow[] = []
  const walk = (items: readonly Resource[], parent: string | undefined, above: readonly string[]): void => {
    for (const resource of items) {
      const at = rows.length
      rows.push({ resource, depth: above.length, parent })
      const folder = isFolder(resource) ? shownFolder(tree, resource.uri, above) : undefined
      if (folder !== undefined) {
        walk(folder.items, resource.uri, [...above, resource.uri])
        const says = sayingOf(folder)
        if (says !== undefined && (needle === undefined || folder.next !== undefined))
          rows.push({ resource, depth: above.length + 1, parent: resource.uri, says })
      }
      // Without a matching entry below it, a resource is shown only if its own name matches.
      if (needle !== undefined && rows.length === at + 1 && !matches(resource, needle)) rows.pop()
    }
  }
  walk(tree.roots ?? [], undefined, [])
  made.clear()
  made.set(key, rows)
  return rows
}

function sayingOf({ items, next, failure }: Folder<string>): string | undefined {
  if (failure !== undefined) return failure
  if (next === undefined) return items.length === 0 ? 'empty' : undefined
  return items.length === 0 ? 'listing …' : `more than ${items.length.toLocaleString('en')} …`
}

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

function treeRow(state: State, { resource, depth, says }: TreeRow, columns: number): Row {
  // Limit the indentation, so that the names of deep lines stay on the screen.
  const indent = '  '.repeat(Math.min(depth, Math.floor(columns / 6)))
  if (says !== undefined) return line(columns, span(`  ${indent}  ${says}`, 'dim'))
  const isOpen = state.tree.folders.get(resource.uri)?.isOpen === true
  const arrow = isFolder(resource) ? (isOpen ? '▾ ' : '▸ ') : '  '
  const mark = state.changed.has(resource.uri) ? span('● ', 'changed') : span('  ')
  const pick = isIn(state.basket.items, resource.uri) ? span('✓ ', 'picked') : span('')
  const name = markedText(nameOf(resource, depth), needleOf(state.filter))
  const styled = isFolder(resource) ? name.map(inFolder) : name
  const { size } = resource
  const end = size === undefined ? [] : [span(` ${formatSize(size)} `, 'dim')]
  const start = [...cellsOf([mark, span(indent), span(arrow, 'dim'), pick]), ...styled]
  const room = columns - columnsOf(cellsOf(end))
  // Show the size only if it leaves room for the whole name.
  return columnsOf(start) <= room ? [...fitted(start, room), ...cellsOf(end)] : fitted(start, columns)
}

function inFolder(cell: Cell): Cell {
  return cell.style === 'plain' ? { ...cell, style: 'folder' } : cell
}

function nameOf(resource: Resource, depth: number): string {
  const { name, uri } = resource
  // The address distinguishes mounts better than the name.
  if (depth === 0) return readableUri(uri)
  return isFolder(resource) && !name.endsWith('/') ? `${name}/` : name
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

/** Formats the snippet of a hit as one row. The beginning is cut if the first mark would not fit. */
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
