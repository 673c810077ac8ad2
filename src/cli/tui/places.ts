import { type Folder, shownFolder, type Tree } from '../../browse/tree.ts'
import { lastSegment } from '../../client/wire.ts'
import { defined } from '../../core/kit/defined.ts'
import { directoryMimeType, type Resource } from '../../core/view.ts'
import { formatSize } from '../terminal/format.ts'
import { readableUri } from '../terminal/text.ts'
import { cellsOf, fitted, type Row, type Span, span } from './cells.ts'
import { matches, type Needle, needleOf } from './match.ts'
import { gutterOf } from './preview.ts'
import type { State } from './state.ts'

/** How the screen is divided. No columns: that part is not on it. */
interface Layout {
  /** Without the first and the last line. */
  readonly height: number
  readonly listColumns: number
  readonly previewColumns: number
}

/** Both parts are on the screen from this width on. */
const both = 64
export const least = { columns: 20, rows: 5 }
/** Rows that a hit takes. */
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

/** The row of the tree that is chosen. */
export function chosenRow(state: State): TreeRow | undefined {
  return treeRows(state)[state.at.index]
}

/** Returns the selected resource in any pane: the one that is shown, copied or picked. */
export function chosen(state: State): Resource | undefined {
  const { visiting, list, found, basket } = state
  if (visiting !== undefined) return { uri: visiting, name: lastSegment(visiting) }
  if (list === 'tree') return chosenRow(state)?.resource
  if (list === 'basket') return basket.items[basket.at]?.resource
  const hit = found?.hits[found.at]
  if (hit === undefined) return undefined
  const { uri, title, mimeType, modified, priority, audience } = hit
  const time = modified === undefined ? Number.NaN : Date.parse(modified)
  return {
    uri,
    name: lastSegment(uri),
    ...defined({ title, mimeType }),
    ...(Number.isNaN(time) ? {} : { modified: time }),
    ...defined({ priority, audience }),
  }
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
  const lines: readonly (readonly Span[])[] = [
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

/** Columns of the text in the preview, and its rows. */
export function previewSize(state: State): { readonly columns: number; readonly height: number } {
  const { previewColumns, height } = layoutOf(state)
  const gutter = state.preview === undefined ? 0 : gutterOf(state.preview.shown)
  return { columns: Math.max(2, previewColumns - gutter), height: Math.max(1, height - detailsOf(state).length) }
}

/** The first of `count` lines that are on the screen, so that the chosen one is. */
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
  /** Instead of the resource: it is being listed, is empty, or cannot be listed. */
  readonly says?: string
}

export function isFolder({ mimeType }: Resource): boolean {
  return mimeType === directoryMimeType
}

const known = new WeakMap<Tree<string>, Map<string, readonly TreeRow[]>>()

/** The lines of open directories; with a filter, the matching entries and their directories. Computed once for each tree. */
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
      // No entry in the directory matched, so it is shown only if its own name matches.
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
