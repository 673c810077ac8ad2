import { bare, folderAt, withFolder, withListed, withOpen, withPage, withStale } from '../../browse/tree.ts'
import { defined } from '../../core/kit/object.ts'
import type { Resource } from '../../core/view.ts'
import { matches, needleOf } from './cells.ts'
import { edit, editorOf, escapedless, type Input, insert } from './input.ts'
import { chosenRow, previewSize, type TreeRow, treeRows } from './layout.ts'
import { moved, movedTo } from './moves.ts'
import { appended, endOf, type PreviewText, previewOf } from './preview.ts'
import {
  type Basket,
  type Counted,
  type Event,
  type FoundList,
  type Hits,
  type Prompt,
  type State,
  type StateChange,
  toggled,
  without,
} from './state.ts'

/** A directory with more entries than this is not listed again automatically; `r` lists it. */
const maxRelisted = 5000

/** Applies the result of a fetch to the state. Results that are no longer wanted change nothing. */
export function arrived(state: State, event: Event): State {
  switch (event.kind) {
    case 'mounts':
      return mounted(state, event.roots)
    case 'page':
      return { ...state, tree: withPage(state.tree, event.uri, event.cursor, event.page) }
    case 'unlisted':
      return { ...state, tree: withFolder(state.tree, event.uri, { failure: event.message, stale: undefined }) }
    case 'relisted':
      return relisted(state, event)
    case 'shown':
      return shown(state, event.uri, event.shown)
    case 'part':
      return continued(state, event.uri, event.part, event.shown)
    case 'unreadable':
      return unreadable(state, event.uri, event.message)
    case 'searches':
      return searches(state, event.areThere)
    case 'hits':
      return withFound(state, event.query, (found) => withHits(found, event.found, event.after))
    case 'unsearched':
      return withFound(state, event.query, (found) => ({ ...found, state: 'failed', notes: [event.message] }))
    case 'indexed':
      return state.found === undefined ? state : { ...state, found: { ...state.found, state: 'searching' } }
    case 'meant':
      return { ...without(state, 'visiting'), goal: event.uri, list: 'tree', focus: 'list' }
    case 'counted':
      return { ...state, basket: counted(state.basket, event) }
    case 'gathered':
      return gathered(state, event.files, event.isAll)
    case 'changed':
      return changed(state, event.uris)
    default:
      return state
  }
}

/** Sets the mounts. A single mount is opened at once. */
function mounted(state: State, roots: readonly Resource[]): State {
  const tree = { ...state.tree, roots }
  const [only] = roots
  return { ...state, tree: roots.length === 1 && only !== undefined ? withOpen(tree, only.uri) : tree }
}

/** Replaces the entries of a directory that was listed again, and marks the new and the changed entries. */
function relisted(state: State, { uri, items, next }: Extract<Event, { readonly kind: 'relisted' }>): State {
  const isFirst = folderAt(state.tree, uri).items.length === 0
  const { tree, changed } = withListed(state.tree, uri, { items, ...defined({ next }) })
  const marks = isFirst ? [] : changed
  return { ...state, tree, changed: marks.length === 0 ? state.changed : new Set([...state.changed, ...marks]) }
}

function shown(state: State, uri: string, content: PreviewText): State {
  const { preview } = state
  if (preview?.uri !== uri) return state
  const next = { ...without(preview, 'failure', 'stale'), state: 'ready' as const, shown: content }
  // After another read the preview keeps its position, or shows the end if the content has become shorter.
  const { columns, height } = previewSize({ ...state, preview: next })
  const end = endOf(content, columns, height)
  const isBehind = next.at.line > end.line || (next.at.line === end.line && next.at.row > end.row)
  return { ...state, preview: { ...next, at: isBehind ? end : next.at } }
}

function continued(state: State, uri: string, part: string, more: PreviewText): State {
  const { preview } = state
  if (preview?.uri !== uri || preview.shown.next !== part) return state
  const next = { ...preview, shown: appended(preview.shown, more) }
  const { columns, height } = previewSize(state)
  return { ...state, preview: next.toEnd ? { ...next, at: endOf(next.shown, columns, height) } : next }
}

function unreadable(state: State, uri: string, message: string): State {
  const { preview } = state
  if (preview?.uri !== uri) return state
  const { next: _, ...content } = preview.shown
  return {
    ...state,
    preview: { ...without(preview, 'stale'), state: 'failed', failure: message, shown: content },
  }
}

function searches(state: State, areThere: boolean): State {
  const next: State = { ...state, searches: areThere ? 'some' : 'none' }
  return !areThere && state.found !== undefined ? unsearchable(next, state.found.query) : next
}

function withFound(state: State, query: string, change: (found: FoundList) => FoundList): State {
  const { found } = state
  return found?.query === query ? { ...state, found: change(found) } : state
}

function withHits(found: FoundList, { hits, notes, next, isLoose }: Hits, after: string | undefined): FoundList {
  if (after !== undefined && found.next !== after) return found
  const all = after === undefined ? hits : [...found.hits, ...hits]
  return {
    ...without(found, 'next', 'wantsMore', 'isLoose'),
    ...defined({ isLoose }),
    state: 'done',
    hits: all,
    notes,
    at: Math.max(0, Math.min(found.at, all.length - 1)),
    ...(next === undefined || next === after ? {} : { next }),
  }
}

function counted(basket: Basket, { uri, format, cost, frame = basket.frame }: Counted): Basket {
  return format === basket.format ? { ...basket, costs: new Map(basket.costs).set(uri, cost), frame } : basket
}

function gathered(state: State, files: readonly Resource[], isAll: boolean): State {
  const notice = isAll
    ? files.length === 0
      ? { text: 'There is nothing in it.' }
      : undefined
    : { text: `Only ${files.length} below it were added: there are more, or a folder did not answer.` }
  const basket = toggled(state.basket, files)
  return { ...state, basket, ...defined({ notice }) }
}

/** Marks changed resources, and makes the shown ones stale, so that they are read again. */
function changed(state: State, uris: readonly string[]): State {
  const all = new Set(uris.map(bare))
  const isIn = (uri: string) => all.has(bare(uri))
  const stale: string[] = []
  const marks = new Set(state.changed)
  for (const [uri, folder] of state.tree.folders) {
    if (folder.items.length > maxRelisted) continue
    if (folder.isOpen && isIn(uri) && folder.items.length > 0) stale.push(uri)
    for (const item of folder.items) if (isIn(item.uri)) marks.add(item.uri)
  }
  for (const uri of uris) if (!state.tree.folders.has(uri)) marks.add(uri)
  const { preview, basket } = state
  const costs = new Map([...basket.costs].filter(([uri]) => !isIn(uri)))
  return {
    ...state,
    tree: withStale(state.tree, stale),
    changed: marks,
    basket: costs.size === basket.costs.size ? basket : { ...basket, costs, round: basket.round + 1 },
    ...(preview !== undefined && isIn(preview.uri) ? { preview: { ...preview, stale: (preview.stale ?? 0) + 1 } } : {}),
  }
}

/** Shows a resource in the preview, with the words to mark in it. Undefined closes the preview. */
export function previewing(state: State, uri: string | undefined, words: readonly string[]): State {
  if (uri === undefined) return without(state, 'preview')
  const { preview } = state
  if (preview?.uri !== uri) return { ...state, preview: previewOf(uri, words) }
  return preview.words.join(' ') === words.join(' ') ? state : { ...state, preview: { ...preview, words } }
}

/** Opens a prompt for a line of text. */
export function asking(state: State, kind: Prompt['kind'], text = ''): State {
  return { ...state, prompt: { kind, editor: editorOf(text) } }
}

/** Applies an input while a line is being edited. */
export function prompted(state: State, prompt: Prompt, input: Input): StateChange {
  const { kind, editor } = prompt
  if (input.kind !== 'key') return { state: written(state, { kind, editor: insert(editor, escapedless(input.text)) }) }
  const { name, ctrl } = input
  if (name === 'escape' || (ctrl && (name === 'c' || name === 'g'))) {
    const rest = without(state, 'prompt')
    return { state: kind === 'filter' ? { ...rest, filter: '' } : rest }
  }
  if (name === 'enter') return entered(without(state, 'prompt'), kind, editor.text.trim())
  if (kind === 'filter' && (name === 'up' || name === 'down'))
    return { state: moved({ ...state, focus: 'list' }, name === 'up' ? -1 : 1) }
  // Backspace in an empty prompt closes it.
  if (name === 'backspace' && editor.text === '') return { state: without(state, 'prompt') }
  const next = edit(editor, input)
  return { state: next === undefined ? state : written(state, { kind, editor: next }) }
}

/** Stores the edited text of a prompt. A filter is also applied at once. */
function written(state: State, prompt: Prompt): State {
  return prompt.kind === 'filter' ? filtered({ ...state, prompt }, prompt.editor.text) : { ...state, prompt }
}

/** Applies a filter. If the selected line does not match it, the first matching line is selected. */
function filtered(state: State, filter: string): State {
  const next = { ...without(state, 'visiting', 'toEnd'), filter }
  const needle = needleOf(filter)
  if (needle === undefined) return next
  const row = chosenRow(state)
  const isKept = row !== undefined && row.says === undefined && matches(row.resource, needle)
  // Skip the directories above the first match, which are shown only because of it.
  const isIt = ({ resource, says }: TreeRow) => says === undefined && matches(resource, needle)
  const first = isKept ? -1 : treeRows(next).findIndex(isIt)
  return first < 0 ? next : movedTo(next, first)
}

function entered(state: State, kind: Prompt['kind'], text: string): StateChange {
  if (text === '') return { state }
  switch (kind) {
    case 'filter':
      return { state }
    case 'search':
      return { state: searched(state, text) }
    case 'goto':
      return { state, effect: { kind: 'goto', text } }
    case 'export':
      return { state, effect: { kind: 'export', file: text } }
  }
}

/** Searches. If there is no search, filters the names. */
function searched(state: State, query: string): State {
  if (state.searches === 'none') return unsearchable(state, query)
  return {
    ...without(state, 'visiting', 'goal'),
    list: 'found',
    focus: 'list',
    found: { query, state: 'searching', hits: [], notes: [], at: 0, top: 0 },
  }
}

function unsearchable(state: State, query: string): State {
  const notice = { text: 'No search is mounted here: the names of what is open are filtered instead.' }
  return { ...filtered({ ...without(state, 'found'), list: 'tree' }, query), notice }
}
