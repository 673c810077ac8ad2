import { signal } from '@preact/signals'
import { estimateOf } from '../../../browse/basket.ts'
import { type Below, isFolder, walkBelow } from '../../../browse/tree.ts'
import type { Resource } from '../../../core/view.ts'
import { announce } from '../state/announce.ts'
import { add, basket, isPicked, markOf, mostPicked, rememberWholes, removeBelow, toggle } from '../state/basket.ts'
import { connected } from '../state/session.ts'
import { t } from './words.ts'

/** Maximum number of pages of folders that are loaded before the dialog shows the number of files. */
const maxPages = 400

/** Many resources that the reader is about to put into the basket. */
export interface Adding {
  /** Common name of the resources: a folder, or a search. */
  readonly name: string
  /** Folder above them, if there is one. */
  readonly folder?: string
  readonly state: 'counting' | 'ready' | 'failed'
  readonly below?: Below
  readonly error?: unknown
}

/** The addition that waits for a confirmation. */
export const adding = signal<Adding | undefined>(undefined)

let running: AbortController | undefined

/** Adds a resource to the basket, or removes it. For a folder, the reader first confirms the number of files below it. */
export function pick(resource: Resource): void {
  if (!isFolder(resource)) toggle(resource)
  else if (markOf(resource.uri).isWhole) {
    announce(t('folderOut', { name: resource.name }))
    removeBelow(resource.uri)
  } else
    askFor({ name: resource.title ?? resource.name, folder: resource.uri }, (signal) => below(resource.uri, signal))
}

/** Asks whether to add many resources. `load` finds them. */
export function askFor(
  what: Pick<Adding, 'name' | 'folder'>,
  load: (signal: AbortSignal) => Promise<Below> | Below,
): void {
  running?.abort()
  const controller = new AbortController()
  running = controller
  adding.value = { ...what, state: 'counting' }
  const settle = (next: Adding) => {
    if (!controller.signal.aborted) adding.value = next
  }
  Promise.resolve()
    .then(() => load(controller.signal))
    .then(
      (found) => settle({ ...what, state: 'ready', below: found }),
      (error: unknown) => settle({ ...what, state: 'failed', error }),
    )
}

export function cancelAdding(): void {
  running?.abort()
  adding.value = undefined
}

/** Adds the confirmed resources, up to the limit of the basket. */
export function confirmAdding({ below: found }: Adding): void {
  if (found !== undefined) put(found)
  cancelAdding()
}

/** The resources that fit into the basket. */
interface Offer {
  /** The resources that are not in the basket yet, up to its limit. */
  readonly fresh: readonly Resource[]
  /** Number of resources beyond the limit. */
  readonly tooMany: number
  readonly alreadyIn: number
  readonly tokens: number
  /** Number of resources of unknown size, which are not in `tokens`. */
  readonly unknown: number
}

export function offerOf(files: readonly Resource[]): Offer {
  const open = files.filter(({ uri }) => !isPicked(uri))
  const fresh = open.slice(0, Math.max(0, mostPicked - basket.value.length))
  const estimates = fresh.map(estimateOf)
  return {
    fresh,
    tooMany: open.length - fresh.length,
    alreadyIn: files.length - open.length,
    tokens: estimates.reduce<number>((sum, one) => sum + (one ?? 0), 0),
    unknown: estimates.filter((one) => one === undefined).length,
  }
}

/**
 * Adds all files below a folder without asking, as for a range. Resolves to the added URIs.
 *
 * @param earlier Resolves when the folders before it have been added: if the basket cannot hold all, they come first.
 */
export async function addFolder(
  folder: string,
  signal: AbortSignal,
  earlier: Promise<unknown>,
): Promise<readonly string[]> {
  const found = await below(folder, signal)
  await earlier
  signal.throwIfAborted()
  return put(found)
}

function put({ files, counts }: Below): readonly string[] {
  const { fresh } = offerOf(files)
  add(fresh.map((resource) => ({ resource, level: 'auto' })))
  rememberWholes(counts)
  announce(t('added', { count: fresh.length }))
  return fresh.map(({ uri }) => uri)
}

function below(folder: string, signal: AbortSignal): Promise<Below> {
  // One more than there is room for tells that there is more.
  return walkBelow(connected().view, folder, { files: mostPicked + 1, pages: maxPages, signal })
}
