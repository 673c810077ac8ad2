import type { BasketItem } from '../../browse/basket.ts'
import { folderAt } from '../../browse/tree.ts'
import type { View } from '../../core/view.ts'
import { layoutOf, previewSize, treeRows } from './layout.ts'
import { soughtIn } from './moves.ts'
import { type Basket, isFolder, type State } from './state.ts'

/** Data that the screen needs. Fetches that are no longer wanted are aborted. */
export type Want = { readonly key: string } & (
  | { readonly kind: 'mounts' }
  | { readonly kind: 'page'; readonly uri: string; readonly cursor: string }
  | { readonly kind: 'relist'; readonly uri: string; readonly least: number }
  | { readonly kind: 'preview'; readonly uri: string }
  | { readonly kind: 'part'; readonly uri: string; readonly part: string }
  | { readonly kind: 'search'; readonly query: string; readonly after?: string }
  | { readonly kind: 'count'; readonly item: BasketItem; readonly format: Basket['format'] }
)

/** Returns all wants of a state. Equal states have equal wants. */
export function wantsOf(state: State): readonly Want[] {
  return [...treeWants(state), ...previewWants(state), ...searchWants(state), ...countWants(state)]
}

function treeWants(state: State): readonly Want[] {
  const { tree, top, filter, toEnd } = state
  if (tree.roots === undefined) return [{ key: 'mounts', kind: 'mounts' }]
  const rows = treeRows(state)
  const { height } = layoutOf(state)
  const uris = new Set<string>()
  // The rows on the screen, and one more screen on either side.
  for (const row of rows.slice(Math.max(0, top - height), top + 2 * height)) if (row.says) uris.add(row.resource.uri)
  // A filter needs all entries of the open directories.
  if (filter.trim() !== '') for (const [uri, { isOpen }] of tree.folders) if (isOpen) uris.add(uri)
  const last = rows.at(-1)
  if (toEnd && last?.says !== undefined) uris.add(last.resource.uri)
  const sought = soughtIn(state)
  if (sought !== undefined) uris.add(sought)
  const pages = [...uris].flatMap((uri): readonly Want[] => {
    const { next: cursor, failure } = folderAt(tree, uri)
    if (cursor === undefined || failure !== undefined) return []
    return [{ key: `page ${cursor} ${uri}`, kind: 'page', uri, cursor }]
  })
  const stale = [...tree.folders].flatMap(([uri, { stale, items }]): readonly Want[] =>
    stale === undefined ? [] : [{ key: `relist ${stale} ${uri}`, kind: 'relist', uri, least: items.length }],
  )
  return [...pages, ...stale]
}

function previewWants(state: State): readonly Want[] {
  const { preview } = state
  if (preview === undefined) return []
  const { uri, shown, at, toEnd } = preview
  if (preview.state === 'loading' || preview.stale !== undefined)
    return [{ key: `preview ${preview.stale ?? 0} ${uri}`, kind: 'preview', uri }]
  const { height } = previewSize(state)
  const isNear = at.line + 3 * height >= shown.lines.length
  if (shown.next === undefined || !(isNear || toEnd)) return []
  return [{ key: `part ${shown.next}`, kind: 'part', uri, part: shown.next }]
}

function searchWants({ found }: State): readonly Want[] {
  if (found === undefined) return []
  const { query, next } = found
  if (found.state === 'searching') return [{ key: `search ${query}`, kind: 'search', query }]
  if (!found.wantsMore || next === undefined) return []
  return [{ key: `search ${next} ${query}`, kind: 'search', query, after: next }]
}

/** Resources are counted one after the other, so that the first count is shown without waiting for the rest. */
function countWants({ basket }: State): readonly Want[] {
  const { items, costs, format, round } = basket
  const item = items.find(({ resource }) => !costs.has(resource.uri))
  return item === undefined
    ? []
    : [{ key: `count ${round} ${format} ${item.resource.uri}`, kind: 'count', item, format }]
}

/** Maximum number of URIs that are watched at the same time. */
const maxWatched = 200

/** Returns the URIs to subscribe to: the preview, the basket, the search results, open directories, and the lines on the screen. */
export function watchedBy(state: State): readonly string[] {
  const { tree, top, preview, basket, list, found } = state
  const { height } = layoutOf(state)
  const uris = new Set<string>()
  if (preview !== undefined) uris.add(preview.uri)
  for (const { resource } of basket.items) uris.add(resource.uri)
  if (list === 'found') for (const { document } of found?.hits ?? []) uris.add(document)
  for (const [uri, { isOpen }] of tree.folders) if (isOpen) uris.add(uri)
  for (const { resource, says } of treeRows(state).slice(top, top + height))
    if (says === undefined && !isFolder(resource)) uris.add(resource.uri)
  return [...uris].slice(0, maxWatched)
}

/** Subscribes to changes of the resources on the screen. */
export interface Live {
  /** Replaces the watched URIs. */
  watch(uris: readonly string[]): void
  close(): void
}

/** Delay before a subscription, in milliseconds, so that scrolling does not subscribe to every line. */
const subscribeDelayMs = 250

export function createLive(view: View, changed: (uris: readonly string[]) => void): Live {
  const subscription = view.subscribe?.(({ uris }) => changed(uris))
  if (subscription === undefined) return { watch: () => {}, close: () => {} }
  let wanted: readonly string[] = []
  let heard = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let work = Promise.resolve()

  const sync = async (): Promise<void> => {
    const next = new Set(wanted)
    for (const uri of heard) if (!next.has(uri)) subscription.remove(uri)
    const added = [...next].filter((uri) => !heard.has(uri))
    heard = next
    // If there are too many, or the server has no subscriptions, only the marks of changes are missing.
    if (added.length > 0) await subscription.add(added).catch(() => [])
  }

  return {
    watch: (uris) => {
      if (uris.length === wanted.length && uris.every((uri, index) => wanted[index] === uri)) return
      wanted = uris
      clearTimeout(timer)
      timer = setTimeout(() => {
        work = work.then(sync)
      }, subscribeDelayMs)
    },
    close: () => {
      clearTimeout(timer)
      subscription.close()
    },
  }
}
