import { folderAt, withStale } from '../../browse/tree.ts'
import { asking } from './arrivals.ts'
import type { Key } from './input.ts'
import { chosen, chosenRow } from './layout.ts'
import { closed, moved, movedToEnd, opened, pageOf, scrolledBy, toggledFolder } from './moves.ts'
import { endings, isFolder, levelled, reformatted, type State, type StateChange, toggled, without } from './state.ts'

const stay = (state: State): StateChange => ({ state })

/** Applies a key while no line is being edited. */
export function keyed(state: State, { name, ctrl }: Key): StateChange {
  if (ctrl) return controls[name]?.(state) ?? stay(state)
  return named[name]?.(state) ?? stay(state)
}

/** Applies a character as a command. Full-width characters of an input method act like their ASCII equivalents. */
export function typed(state: State, character: string): StateChange {
  return characters[character.normalize('NFKC')]?.(state) ?? stay(state)
}

type Command = (state: State) => StateChange

const by =
  (lines: number): Command =>
  (state) =>
    stay(moved(state, lines))
const pages =
  (share: number): Command =>
  (state) =>
    stay(moved(state, Math.trunc(share * pageOf(state))))

const up = by(-1)
const down = by(1)
const first: Command = (state) => stay(movedToEnd(state, 'first'))
const last: Command = (state) => stay(movedToEnd(state, 'last'))

/** Takes more of the selected item of the basket, opens the selected directory, or moves the focus to the preview. */
const right: Command = (state) => {
  if (state.focus === 'preview') return stay(state)
  return stay(state.list === 'basket' ? { ...state, basket: levelled(state.basket, 1) } : opened(state))
}

const left: Command = (state) => {
  if (state.focus === 'preview') return stay({ ...state, focus: 'list' })
  if (state.list === 'basket') return stay({ ...state, basket: levelled(state.basket, -1) })
  return stay(state.list === 'tree' ? closed(state) : { ...state, list: 'tree' })
}

const swap: Command = (state) => stay({ ...state, focus: state.focus === 'list' ? 'preview' : 'list' })

/** Goes one step back: from the preview to the list, from a visited URI or another list to the tree, or out of a filter. */
const back: Command = (state) => {
  if (state.focus === 'preview') return stay({ ...state, focus: 'list' })
  if (state.visiting !== undefined || state.goal !== undefined) return stay(without(state, 'visiting', 'goal'))
  if (state.list !== 'tree') return stay({ ...state, list: 'tree' })
  return stay({ ...without(state, 'toEnd'), filter: '' })
}

/** Adds the selected resource to the basket, or removes it. For a directory, it gathers all resources below. */
const pick: Command = (state) => {
  const resource = chosen(state)
  if (resource === undefined) return stay(state)
  const isLine = state.list === 'tree' && state.visiting === undefined && chosenRow(state)?.says !== undefined
  if (isLine) return stay(state)
  if (isFolder(resource)) return { state, effect: { kind: 'gather', uri: resource.uri } }
  const basket = toggled(state.basket, [resource])
  // Select the next line, so that the same key picks the next resource. In the basket, the next resource moves up to the selected
  // line.
  const isNext = state.focus === 'list' && state.visiting === undefined && state.list !== 'basket'
  return stay(isNext ? moved({ ...state, basket }, 1) : { ...state, basket })
}

const remove: Command = (state) => (state.list === 'basket' ? pick(state) : stay(state))

const showBasket: Command = (state) =>
  stay({ ...without(state, 'visiting'), list: state.list === 'basket' ? 'tree' : 'basket', focus: 'list' })

const changeBudget =
  (factor: number): Command =>
  (state) => {
    const budget = Math.max(1000, Math.min(10_000_000, Math.round(state.basket.budget * factor)))
    return stay({ ...state, basket: { ...state.basket, budget } })
  }

const changeFormat: Command = (state) => stay({ ...state, basket: reformatted(state.basket) })

const ask =
  (kind: 'filter' | 'search' | 'goto'): Command =>
  (state) => {
    const base: State = kind === 'filter' ? { ...state, list: 'tree', focus: 'list' } : state
    return stay(asking(base, kind, kind === 'filter' ? state.filter : ''))
  }

/** Opens the prompt for the file to which the basket is written. */
export const askFile: Command = (state) => {
  if (state.basket.items.length === 0)
    return stay({ ...state, notice: { text: 'The basket is empty: Space puts something into it.' } })
  return stay(asking(state, 'export', `context.${endings[state.basket.format]}`))
}

const copy: Command = (state) => {
  const resource = chosen(state)
  return resource === undefined ? stay(state) : { state, effect: { kind: 'copy', text: resource.uri } }
}

/** Reads the shown resource again, and lists the selected directory, or the directory of the selected line, again. */
const refresh: Command = (state) => {
  const row = chosenRow(state)
  const uri = row === undefined ? undefined : isFolder(row.resource) ? row.resource.uri : row.parent
  const isListed = state.list === 'tree' && uri !== undefined && folderAt(state.tree, uri).items.length > 0
  return stay({
    ...state,
    tree: isListed ? withStale(state.tree, [uri]) : state.tree,
    ...(state.preview === undefined ? {} : { preview: { ...state.preview, stale: (state.preview.stale ?? 0) + 1 } }),
  })
}

/** Selects the resource of the selected hit or item of the basket in the tree. */
const reveal: Command = (state) => {
  const resource = chosen(state)
  if (resource === undefined || (state.list === 'tree' && state.visiting === undefined)) return stay(state)
  const document = state.list === 'found' ? state.found?.hits[state.found.at]?.document : resource.uri
  return stay({ ...state, list: 'tree', focus: 'list', goal: document ?? resource.uri })
}

/** Ends the program. If the basket would be lost, it asks first. */
const leave: Command = (state) => {
  if (state.basket.items.length === 0) return { state, effect: { kind: 'quit' } }
  if (state.isPiped) return { state, effect: { kind: 'quit', print: true } }
  return stay({ ...state, isEnding: true })
}

const found: Command = (state) => (state.found === undefined ? ask('search')(state) : stay({ ...state, list: 'found' }))

const named: Readonly<Record<string, Command>> = {
  up,
  down,
  left,
  right,
  home: first,
  end: last,
  pageup: pages(-1),
  pagedown: pages(1),
  enter: (state) => (state.focus === 'preview' ? stay(state) : stay(toggledFolder(state))),
  tab: swap,
  backtab: swap,
  escape: back,
  backspace: (state) => (state.list === 'basket' ? remove(state) : left(state)),
  delete: remove,
}

const controls: Readonly<Record<string, Command>> = {
  c: (state) => ({ state, effect: { kind: 'quit' } }),
  z: (state) => ({ state, effect: { kind: 'suspend' } }),
  l: (state) => ({ state, effect: { kind: 'redraw' } }),
  b: pages(-1),
  f: pages(1),
  u: pages(-0.5),
  d: pages(0.5),
  n: down,
  p: up,
}

const characters: Readonly<Record<string, Command>> = {
  k: up,
  j: down,
  h: left,
  l: right,
  G: last,
  K: (state) => stay(scrolledBy(state, -3)),
  J: (state) => stay(scrolledBy(state, 3)),
  ' ': pick,
  '/': ask('filter'),
  s: ask('search'),
  S: found,
  g: ask('goto'),
  b: showBasket,
  t: reveal,
  y: copy,
  r: refresh,
  e: askFile,
  f: changeFormat,
  '+': changeBudget(2),
  '-': changeBudget(0.5),
  '?': (state) => stay({ ...state, help: 0 }),
  q: leave,
}

/** The keys and their meanings, as the help screen and `--help` show them. */
export const keyHelp: readonly (readonly [keys: string, meaning: string] | readonly [heading: string])[] = [
  ['Tree'],
  ['↑ ↓  k j', 'one line; PgUp PgDn a screen, Ctrl-U Ctrl-D half of one, Home End to the ends'],
  ['→  l', 'open a directory, then go into it; show a resource'],
  ['←  h', 'close a directory, or go to the one above'],
  ['Enter', 'open or close a directory; go to the preview of a resource'],
  ['/', 'filter the names of all that is open, as you type; Esc removes the filter'],
  ['s', 'search the texts, if a search is mounted; S returns to the hits'],
  ['g', 'go to a URI, or a path of this machine'],
  ['t', 'show a hit, or an item of the basket, in the tree'],
  ['y', 'copy the URI'],
  ['r', 'reload'],
  ['Preview'],
  ['Tab', 'to the preview, and back'],
  ['J K', 'scroll the preview from the tree'],
  ['Basket'],
  ['Space', 'add to the basket, or remove; a directory: everything below it'],
  ['b', 'show the basket, and go back'],
  ['← →', 'in the basket: less or more of a resource: link, outline, full'],
  ['+ -', 'double or halve the budget of tokens'],
  ['f', 'the format: markdown, xml, json'],
  ['e', 'write the basket to a file'],
  ['Other'],
  ['●', 'has changed since you looked at it'],
  ['Esc', 'one step back'],
  ['Ctrl-L', 'redraw the screen; Ctrl-Z suspends (fg resumes)'],
  ['q', 'quit; the basket can be written or printed first; Ctrl-C quits at once'],
]

export const helpHeight = keyHelp.length

/** Returns the keys and their meanings as lines of text. */
export function helpLines(): readonly string[] {
  return keyHelp.map(([keys, meaning]) => (meaning === undefined ? `${keys}:` : `  ${keys.padEnd(10)}${meaning}`))
}
