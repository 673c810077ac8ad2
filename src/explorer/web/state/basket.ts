import { computed, signal } from '@preact/signals'
import {
  type BasketItems,
  type BasketLevel,
  isIn,
  withAdded,
  withLevel,
  withMoved,
  withoutUris,
} from '../../../browse/basket.ts'
import { foldersOf, isFolder } from '../../../browse/tree.ts'
import type { Resource } from '../../../core/view.ts'

/** Picked items, in the order of picking. */
export const basket = signal<BasketItems>([])

/** Maximum number of items, as in `assemble_context`. */
export const mostPicked = 500

/** Number of picked resources below each folder, by the URI of the folder with `/` at its end. */
const pickedBelow = computed((): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const { resource } of basket.value)
    for (const folder of foldersOf(resource.uri)) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  return counts
})

const keyOf = (folder: string) => (folder.endsWith('/') ? folder : `${folder}/`)

/** Number of files below each folder that was picked as a whole, by the URI with `/` at its end. */
const wholes = signal<ReadonlyMap<string, number>>(new Map())

/** Stores the number of files below folders, so that a wholly picked folder is marked as such. */
export function rememberWholes(counts: ReadonlyMap<string, number>): void {
  wholes.value = new Map([...wholes.value, ...[...counts].map(([uri, count]) => [keyOf(uri), count] as const)])
}

/** The share of a folder that is in the basket. */
export function markOf(folder: string): { readonly count: number; readonly isWhole: boolean } {
  const key = keyOf(folder)
  const count = pickedBelow.value.get(key) ?? 0
  const whole = wholes.value.get(key)
  return { count, isWhole: count > 0 && whole !== undefined && count >= whole }
}

/** Removes everything below a folder. */
export function removeBelow(folder: string): void {
  const key = keyOf(folder)
  basket.value = basket.value.filter(({ resource }) => !resource.uri.startsWith(key))
}

export function isPicked(uri: string): boolean {
  return isIn(basket.value, uri)
}

/** Adds a resource to the basket, or removes it. Folders are ignored: `pick` adds the files below them. */
export function toggle(resource: Resource): void {
  if (isPicked(resource.uri)) remove(resource.uri)
  else add([{ resource, level: 'auto' }])
}

/** Adds the new resources, up to the limit of the basket. */
export function add(items: BasketItems): void {
  const files = items.filter(({ resource }) => !isFolder(resource))
  basket.value = withAdded(basket.value, files, mostPicked)
}

export function remove(uri: string): void {
  basket.value = withoutUris(basket.value, new Set([uri]))
}

export function setLevel(uri: string, level: BasketLevel): void {
  basket.value = withLevel(basket.value, uri, level)
}

/** Moves an item by a number of places. */
export function move(uri: string, by: number): void {
  basket.value = withMoved(basket.value, uri, by)
}
