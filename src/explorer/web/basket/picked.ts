import { computed, signal } from '@preact/signals'
import {
  type BasketItems,
  type BasketLevel,
  estimateTokens,
  hasItem,
  withAddedItems,
  withLevel,
  withMovedItem,
  withoutUris,
} from '../../../browse/basket.ts'
import { type FilesBelow, foldersAbove, isFolder, walkBelow } from '../../../browse/tree.ts'
import type { Resource } from '../../../core/view.ts'
import { announce } from '../state/announce.ts'
import { requireConnection } from '../state/session.ts'
import { t } from './words.ts'

/** Picked items, in the order that the user chose. */
export const basket = signal<BasketItems>([])

/** Maximum number of items, as in `assemble_context`. */
export const maxBasketItems = 500

/** Number of picked resources below each folder, by the URI of the folder with `/` at its end. */
const pickedBelow = computed((): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const { resource } of basket.value)
    for (const folder of foldersAbove(resource.uri)) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  return counts
})

const withFinalSlash = (folder: string) => (folder.endsWith('/') ? folder : `${folder}/`)

/** Number of files below each folder that was picked as a whole, by the URI with `/` at its end. */
const wholes = signal<ReadonlyMap<string, number>>(new Map())

/** Stores the number of files below folders. */
function rememberWholes(counts: ReadonlyMap<string, number>): void {
  wholes.value = new Map([...wholes.value, ...[...counts].map(([uri, count]) => [withFinalSlash(uri), count] as const)])
}

/** The share of a folder that is in the basket. */
export function shareInBasket(folder: string): { readonly count: number; readonly isWhole: boolean } {
  const key = withFinalSlash(folder)
  const count = pickedBelow.value.get(key) ?? 0
  const whole = wholes.value.get(key)
  return { count, isWhole: count > 0 && whole !== undefined && count >= whole }
}

/** Removes all items below a folder from the basket. */
export function removeBelow(folder: string): void {
  const key = withFinalSlash(folder)
  basket.value = basket.value.filter(({ resource }) => !resource.uri.startsWith(key))
}

export function isPicked(uri: string): boolean {
  return hasItem(basket.value, uri)
}

/** Adds a file to the basket, or removes it. Ignores folders: {@link togglePicked} adds the files below them. */
export function toggleFile(resource: Resource): void {
  if (isPicked(resource.uri)) removeFromBasket(resource.uri)
  else addToBasket([{ resource, level: 'auto' }])
}

/** Adds the files that are not in the basket yet, up to its limit. Ignores folders. */
export function addToBasket(items: BasketItems): void {
  const files = items.filter(({ resource }) => !isFolder(resource))
  basket.value = withAddedItems(basket.value, files, maxBasketItems)
}

export function removeFromBasket(uri: string): void {
  basket.value = withoutUris(basket.value, new Set([uri]))
}

export function removeItems(uris: readonly string[]): void {
  basket.value = withoutUris(basket.value, new Set(uris))
}

export function setLevel(uri: string, level: BasketLevel): void {
  basket.value = withLevel(basket.value, uri, level)
}

/** Moves an item down by a number of positions. A negative number moves it up. */
export function moveInBasket(uri: string, by: number): void {
  basket.value = withMovedItem(basket.value, uri, by)
}

const maxPages = 400

/** Many resources that the user is about to put into the basket. */
export interface PendingAdd {
  /** Common name of the resources: a folder, or a search. */
  readonly name: string
  /** URI of the folder that contains the resources, if there is one. */
  readonly folder?: string
  readonly state: 'counting' | 'ready' | 'failed'
  readonly below?: FilesBelow
  readonly error?: unknown
}

/** The addition that waits for a confirmation. */
export const pendingAdd = signal<PendingAdd | undefined>(undefined)

let running: AbortController | undefined

/**
 * Adds a resource to the basket, or removes it. For a folder, adds the files below it once the user has confirmed their number, or removes
 * them.
 */
export function togglePicked(resource: Resource): void {
  if (!isFolder(resource)) toggleFile(resource)
  else if (shareInBasket(resource.uri).isWhole) {
    announce(t('folderOut', { name: resource.name }))
    removeBelow(resource.uri)
  } else
    askToAddMany({ name: resource.title ?? resource.name, folder: resource.uri }, (signal) =>
      below(resource.uri, signal),
    )
}

/** Asks whether to add many resources. `load` finds them. */
export function askToAddMany(
  what: Pick<PendingAdd, 'name' | 'folder'>,
  load: (signal: AbortSignal) => Promise<FilesBelow> | FilesBelow,
): void {
  running?.abort()
  const controller = new AbortController()
  running = controller
  pendingAdd.value = { ...what, state: 'counting' }
  const settle = (next: PendingAdd) => {
    if (!controller.signal.aborted) pendingAdd.value = next
  }
  Promise.resolve()
    .then(() => load(controller.signal))
    .then(
      (below) => settle({ ...what, state: 'ready', below: below }),
      (error: unknown) => settle({ ...what, state: 'failed', error }),
    )
}

export function cancelAdding(): void {
  running?.abort()
  pendingAdd.value = undefined
}

/** Adds the confirmed resources, up to the limit of the basket. */
export function confirmAdding({ below: content }: PendingAdd): void {
  if (content !== undefined) put(content)
  cancelAdding()
}

/** Returns which resources would be added to the basket, with estimates of their tokens. */
export function addableItems(files: readonly Resource[]) {
  const open = files.filter(({ uri }) => !isPicked(uri))
  const fresh = open.slice(0, Math.max(0, maxBasketItems - basket.value.length))
  const estimates = fresh.map(estimateTokens)
  return {
    fresh,
    /** Number of resources beyond the limit. */
    tooMany: open.length - fresh.length,
    alreadyIn: files.length - open.length,
    tokens: estimates.reduce<number>((sum, one) => sum + (one ?? 0), 0),
    /** Number of resources of unknown size, which are not in `tokens`. */
    unknown: estimates.filter((one) => one === undefined).length,
  }
}

/**
 * Adds the files below a folder without a confirmation, up to the limit of the basket. Resolves to the added URIs.
 *
 * @param earlier Resolves when the preceding folders of a range have been added.
 */
export async function addFolder(
  folder: string,
  signal: AbortSignal,
  earlier: Promise<unknown>,
): Promise<readonly string[]> {
  const filesBelow = await below(folder, signal)
  await earlier
  signal.throwIfAborted()
  return put(filesBelow)
}

function put({ files, counts }: FilesBelow): readonly string[] {
  const { fresh } = addableItems(files)
  addToBasket(fresh.map((resource) => ({ resource, level: 'auto' })))
  rememberWholes(counts)
  announce(t('added', { count: fresh.length }))
  return fresh.map(({ uri }) => uri)
}

function below(folder: string, signal: AbortSignal): Promise<FilesBelow> {
  // One file more than the basket can hold shows that there are more.
  return walkBelow(requireConnection().view, folder, { files: maxBasketItems + 1, pages: maxPages, signal })
}
