import {
  type BasketItem,
  type BasketItems,
  type Cost,
  isIn,
  type Level,
  type Plan,
  planOf,
  withAdded,
  withLevel,
  withoutUris,
} from '../../browse/basket.ts'
import { emptyTree, type Tree } from '../../browse/tree.ts'
import type { Format } from '../../context/index.ts'
import type { FoundHit } from '../../core/search-answer.ts'
import { directoryMimeType, type Page, type Resource } from '../../core/view.ts'
import type { Editor, Input } from './input.ts'
import type { Preview, PreviewText } from './preview.ts'

/** The whole state of the terminal UI. It is immutable: each event returns a new state. */
export interface State {
  readonly size: Size
  /** Name of the source, for the first line. */
  readonly title: string
  readonly tree: Tree<string>
  readonly filter: string
  /** The selected line of the tree. `top`: the first visible line. */
  readonly at: { readonly index: number; readonly uri: string; readonly says?: true }
  readonly top: number
  readonly list: 'tree' | 'found' | 'basket'
  readonly focus: 'list' | 'preview'
  readonly prompt?: Prompt
  /** The first visible line of the help. Undefined while the help is closed. */
  readonly help?: number
  /** Whether the user is asked what to do with the basket before the end. */
  readonly isEnding?: true
  readonly preview?: Preview
  /** A URI that the preview shows in place of the selected resource. */
  readonly visiting?: string
  readonly found?: FoundList
  readonly basket: Basket
  /** URIs that have changed since they were last viewed. */
  readonly changed: ReadonlySet<string>
  readonly notice?: { readonly text: string; readonly isError?: true }
  /** A URI to find and select in the tree. */
  readonly goal?: string
  /** Whether to go to the last line of the tree, for which all pages before it are listed. */
  readonly toEnd?: true
  /** Whether a search is mounted. */
  readonly searches: 'unknown' | 'none' | 'some'
  /** Whether an exported context can be printed into a pipe at the end. */
  readonly isPiped: boolean
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface Prompt {
  readonly kind: 'filter' | 'search' | 'goto' | 'export'
  readonly editor: Editor
}

export interface FoundList extends Hits {
  readonly query: string
  readonly state: 'searching' | 'done' | 'failed'
  readonly wantsMore?: true
  readonly at: number
  readonly top: number
}

export interface Basket {
  readonly items: BasketItems
  /** Tokens of the items in this format, by URI, as far as they are counted. */
  readonly costs: ReadonlyMap<string, Cost>
  /** Tokens of the head and tail of the context. */
  readonly frame: number
  readonly budget: number
  readonly format: Exclude<Format, 'mcp'>
  /** Number of changes of resources in the basket. After a change, they are counted again. */
  readonly round: number
  readonly at: number
  readonly top: number
}

/** Tokens of one resource in a context of a format. */
export interface Counted {
  readonly uri: string
  readonly format: Basket['format']
  readonly cost: Cost
  /** Tokens of the head and tail of the context. */
  readonly frame?: number
}

/** An event: an input of the user, or the result of a fetch. */
export type Event =
  | Input
  | { readonly kind: 'resize'; readonly size: Size }
  | { readonly kind: 'notice'; readonly text: string; readonly isError?: true }
  | { readonly kind: 'mounts'; readonly roots: readonly Resource[] }
  | { readonly kind: 'page'; readonly uri: string; readonly cursor: string; readonly page: Page<Resource> }
  | { readonly kind: 'unlisted'; readonly uri: string; readonly message: string }
  | { readonly kind: 'relisted'; readonly uri: string; readonly items: readonly Resource[]; readonly next?: string }
  | { readonly kind: 'shown'; readonly uri: string; readonly shown: PreviewText }
  | { readonly kind: 'part'; readonly uri: string; readonly part: string; readonly shown: PreviewText }
  | { readonly kind: 'unreadable'; readonly uri: string; readonly message: string }
  | { readonly kind: 'searches'; readonly areThere: boolean }
  | { readonly kind: 'hits'; readonly query: string; readonly after?: string; readonly found: Hits }
  | { readonly kind: 'unsearched'; readonly query: string; readonly message: string }
  | { readonly kind: 'indexed' }
  | { readonly kind: 'meant'; readonly uri: string }
  | ({ readonly kind: 'counted' } & Counted)
  | { readonly kind: 'gathered'; readonly files: readonly Resource[]; readonly isAll: boolean }
  | { readonly kind: 'changed'; readonly uris: readonly string[] }

export interface Hits {
  readonly hits: readonly FoundHit[]
  readonly notes: readonly string[]
  /** Whether the hits match only single characters of the words. */
  readonly isLoose?: true
  /** Cursor of the next hits. */
  readonly next?: string
}

/** An action outside of the state, carried out once. */
export type Effect =
  | { readonly kind: 'quit'; readonly print?: true }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'redraw' }
  | { readonly kind: 'copy'; readonly text: string }
  | { readonly kind: 'gather'; readonly uri: string }
  | { readonly kind: 'export'; readonly file: string }
  /** Resolve the text to a URI, and show its resource. */
  | { readonly kind: 'goto'; readonly text: string }

/** Result of an event. */
export interface StateChange {
  readonly state: State
  readonly effect?: Effect
}

/** The parts of the first state of a session that its options determine. */
export type InitialState = Pick<State, 'title' | 'size' | 'isPiped' | 'goal'> & Pick<Basket, 'budget' | 'format'>

export function begin({ budget, format, ...beginning }: InitialState): State {
  return {
    ...beginning,
    tree: emptyTree,
    filter: '',
    at: { index: 0, uri: '' },
    top: 0,
    list: 'tree',
    focus: 'list',
    basket: { items: [], costs: new Map(), frame: 0, budget, format, round: 0, at: 0, top: 0 },
    changed: new Set(),
    searches: 'unknown',
  }
}

/** Returns a copy without some optional members. */
export function without<T extends object, K extends keyof T>(value: T, ...keys: readonly K[]): Omit<T, K> {
  const copy = { ...value }
  for (const key of keys) delete copy[key]
  return copy
}

/** Returns the items of a basket with their tokens. Nothing is shortened to fit the budget: the user decides. */
export function planIn({ items, costs, frame }: Basket): Plan {
  return planOf(items, costs, frame, Number.POSITIVE_INFINITY)
}

/** Adds resources to the basket in full. If the basket contains all of them already, removes them. */
export function toggled(basket: Basket, resources: readonly Resource[]): Basket {
  const isNew = resources.some(({ uri }) => !isIn(basket.items, uri))
  const items = isNew
    ? withAdded(
        basket.items,
        resources.map((resource) => ({ resource, level: 'full' })),
      )
    : withoutUris(basket.items, new Set(resources.map(({ uri }) => uri)))
  return { ...basket, items, at: Math.max(0, Math.min(basket.at, items.length - 1)) }
}

/** Returns the level of an item in a request. */
export function levelOf({ level }: BasketItem): Level {
  return level === 'auto' ? 'full' : level
}

/** The levels that a key steps through. */
const steps: readonly Level[] = ['link', 'outline', 'full']

/** Raises or lowers the level of the selected item by one step. */
export function levelled(basket: Basket, by: 1 | -1): Basket {
  const item = basket.items[basket.at]
  if (item === undefined) return basket
  const now = steps.indexOf(levelOf(item))
  const level = steps[Math.max(0, Math.min(steps.length - 1, now + by))]
  return level === undefined ? basket : { ...basket, items: withLevel(basket.items, item.resource.uri, level) }
}

const formats = ['markdown', 'xml', 'json'] as const

/** Switches to the next format. Tokens depend on the format, so they are counted again. */
export function reformatted(basket: Basket): Basket {
  const format = formats[(formats.indexOf(basket.format) + 1) % formats.length] ?? 'markdown'
  return { ...basket, format, costs: new Map(), frame: 0 }
}

export const endings = { markdown: 'md', xml: 'xml', json: 'json' } as const

export function isFolder({ mimeType }: Resource): boolean {
  return mimeType === directoryMimeType
}
