import { edit, editorOf, escapedless, type Input, insert } from './input.ts'
import { matches, needleOf } from './match.ts'
import { moved, movedTo } from './moves.ts'
import type { TreeRow } from './places.ts'
import { chosenRow, treeRows } from './places.ts'
import { type Prompt, type State, type Step, without } from './state.ts'

/** Begins to ask for a line. */
export function asking(state: State, kind: Prompt['kind'], text = ''): State {
  return { ...state, prompt: { kind, editor: editorOf(text) } }
}

/** Applies an input while a line is being edited. */
export function prompted(state: State, prompt: Prompt, input: Input): Step {
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

/** A filter filters as it is written. */
function written(state: State, prompt: Prompt): State {
  return prompt.kind === 'filter' ? filtered({ ...state, prompt }, prompt.editor.text) : { ...state, prompt }
}

/** A filter, with the first line that matches chosen where the one that was does not. */
function filtered(state: State, filter: string): State {
  const next = { ...without(state, 'visiting', 'toEnd'), filter }
  const needle = needleOf(filter)
  if (needle === undefined) return next
  const row = chosenRow(state)
  const isKept = row !== undefined && row.says === undefined && matches(row.resource, needle)
  // The directories above the first that matches are there for its sake only.
  const isIt = ({ resource, says }: TreeRow) => says === undefined && matches(resource, needle)
  const first = isKept ? -1 : treeRows(next).findIndex(isIt)
  return first < 0 ? next : movedTo(next, first)
}

function entered(state: State, kind: Prompt['kind'], text: string): Step {
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

export function unsearchable(state: State, query: string): State {
  const notice = { text: 'No search is mounted here: the names of what is open are filtered instead.' }
  return { ...filtered({ ...without(state, 'found'), list: 'tree' }, query), notice }
}
