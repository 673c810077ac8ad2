import { folderAt, wayTo, withFolder, withOpen } from '../../browse/tree.ts'
import type { Resource } from '../../core/view.ts'
import { chosenRow, hitRows, layoutOf, previewSize, type TreeRow, treeRows } from './layout.ts'
import { endOf, scrolled } from './preview.ts'
import { isFolder, type State, without } from './state.ts'

/** Returns the number of lines of a page in the focused pane. */
export function pageOf(state: State): number {
  if (state.focus === 'preview') return Math.max(1, previewSize(state).height - 1)
  const { height } = layoutOf(state)
  return Math.max(1, state.list === 'found' ? Math.floor(height / hitRows) : height - 1)
}

/** Moves by a number of lines in the focused pane. */
export function moved(state: State, by: number): State {
  if (state.focus === 'preview') return scrolledBy(state, by)
  const { list, found, basket, at } = state
  if (list === 'tree') return movedTo(state, at.index + by)
  if (list === 'basket')
    return left({ ...state, basket: { ...basket, at: within(basket.at + by, basket.items.length) } })
  if (found === undefined) return state
  const next = within(found.at + by, found.hits.length)
  // Request more hits shortly before the last one is reached.
  const isNear = by > 0 && next >= found.hits.length - 5 && found.next !== undefined
  return left({ ...state, found: { ...found, at: next, ...(isNear ? { wantsMore: true } : {}) } })
}

export function movedToEnd(state: State, end: 'first' | 'last'): State {
  if (state.focus === 'list') {
    const next = moved(state, end === 'first' ? -1e9 : 1e9)
    return end === 'last' && state.list === 'tree' ? { ...next, toEnd: true } : next
  }
  const { preview } = state
  if (preview === undefined) return state
  if (end === 'first') return { ...state, preview: { ...without(preview, 'toEnd'), at: { line: 0, row: 0 } } }
  const { columns, height } = previewSize(state)
  return { ...state, preview: { ...preview, at: endOf(preview.shown, columns, height), toEnd: true } }
}

export function scrolledBy(state: State, by: number): State {
  const { preview } = state
  if (preview === undefined) return state
  const { columns, height } = previewSize(state)
  return { ...state, preview: { ...without(preview, 'toEnd'), at: scrolled(preview, by, columns, height) } }
}

function within(index: number, count: number): number {
  return Math.max(0, Math.min(count - 1, index))
}

/** Clears the visited resource and the goal, so that only the chosen line is shown. */
function left(state: State): State {
  return without(state, 'visiting', 'goal')
}

/** Selects a line of the tree. The mark of a change is removed from the line that was selected before. */
export function movedTo(state: State, index: number): State {
  const rows = treeRows(state)
  const next = within(index, rows.length)
  const row = rows[next]
  if (row === undefined) return state
  const before = chosenRow(state)
  const isSeen = before !== undefined && next !== state.at.index && state.changed.has(before.resource.uri)
  const changed = isSeen ? new Set([...state.changed].filter((uri) => uri !== before.resource.uri)) : state.changed
  return { ...left(without(state, 'toEnd')), at: spotOf(next, row), changed }
}

/** Returns the position of a selected line of the tree. The URI of a missing line is empty. */
export function spotOf(index: number, row: TreeRow | undefined): State['at'] {
  return { index, uri: row?.resource.uri ?? '', ...(row?.says === undefined ? {} : { says: true as const }) }
}

/** Opens the selected directory, or selects the first line in it. For a resource, moves the focus to the preview. */
export function opened(state: State): State {
  const row = chosenRow(state)
  if (state.list !== 'tree' || row === undefined) return { ...state, focus: 'preview' }
  const { uri } = row.resource
  const folder = folderAt(state.tree, uri)
  /** Opens the directory, and clears its failure so that it is listed again. */
  const reopened = (): State => ({ ...state, tree: withOpen(state.tree, uri) })
  // The selected line is a message. Retry the listing if it has failed.
  if (row.says !== undefined) return folder.failure === undefined ? state : reopened()
  if (!isFolder(row.resource)) return { ...state, focus: 'preview' }
  if (!folder.isOpen) return reopened()
  const below = treeRows(state)[state.at.index + 1]
  return below !== undefined && below.depth > row.depth ? movedTo(state, state.at.index + 1) : state
}

/** Closes the selected directory, or selects the directory that contains the line. */
export function closed(state: State): State {
  const row = chosenRow(state)
  if (row === undefined) return state
  if (row.says === undefined && folderAt(state.tree, row.resource.uri).isOpen)
    return { ...state, tree: withFolder(state.tree, row.resource.uri, { isOpen: false }) }
  const rows = treeRows(state)
  for (let index = state.at.index - 1; index >= 0; index--) {
    const above = rows[index]
    if (above !== undefined && above.says === undefined && above.depth < row.depth) return movedTo(state, index)
  }
  return state
}

/** Opens or closes the selected directory. For a resource, moves the focus to the preview. */
export function toggledFolder(state: State): State {
  const row = chosenRow(state)
  const isOpen = row !== undefined && row.says === undefined && folderAt(state.tree, row.resource.uri).isOpen
  return state.list === 'tree' && isOpen && isFolder(row.resource) ? closed(state) : opened(state)
}

/**
 * Takes one step towards the URI `goal`: opens the directories that contain it, as far as they are known. If the next page of the
 * last directory is needed, the goal stays, and the wants include that page ({@link soughtIn}).
 */
export function towards(state: State): State {
  const { goal, tree } = state
  if (goal === undefined || tree.roots === undefined) return state
  const { folders, found, lacks } = wayTo(tree, goal, isFolder)
  const next = { ...state, tree: folders.reduce(withOpen, tree) }
  if (found !== undefined) return arrived(next, found)
  if (lacks !== undefined && folderAt(tree, lacks).failure === undefined) return next
  const text = 'It is not listed in the tree. It is shown as it is read.'
  return { ...without(next, 'goal'), visiting: goal, notice: { text } }
}

/** Returns the directory whose next page is needed to find the URI `goal`. */
export function soughtIn({ goal, tree }: State): string | undefined {
  return goal === undefined ? undefined : wayTo(tree, goal, isFolder).lacks
}

function arrived(state: State, { uri }: Resource): State {
  const shown: State = { ...without(state, 'goal', 'visiting'), filter: '', list: 'tree' }
  const index = treeRows(shown).findIndex((row) => row.resource.uri === uri && row.says === undefined)
  if (index < 0) return shown
  const { goal = uri } = state
  // If the goal is a part of a resource, select the line of the whole resource, and show the part.
  const part = /[?#]/.test(goal) ? { visiting: goal } : {}
  return { ...shown, at: { index, uri }, ...part }
}
