import { isFolder } from '../../../browse/folders.ts'
import type { Resource } from '../../../core/view.ts'
import { addFolder } from '../basket/adding.ts'
import { basket, remove, toggle } from '../state/basket.ts'

/** Picks the rows from where Shift was first held to the current row. For a folder, everything below it. */
export interface Range {
  /** @param resourceAt Returns the pickable resource of a row, if any. */
  extend(resourceAt: (index: number) => Resource | undefined, from: number, to: number): void
  end(): void
}

/** Maximum number of rows picked at once. */
const most = 2000

/** A folder in a range: the resources that it added to the basket, once they are known. */
interface Taken {
  readonly controller: AbortController
  uris: readonly string[]
}

export function createRange(): Range {
  let anchor: number | undefined
  /** URIs picked by this range: they are unpicked when the range shrinks. */
  let own = new Set<string>()
  let folders = new Map<string, Taken>()
  /** Resolves when all folders so far have been added, or failed. */
  let added: Promise<unknown> = Promise.resolve()

  const takeFolder = (uri: string) => {
    const taken: Taken = { controller: new AbortController(), uris: [] }
    folders.set(uri, taken)
    added = addFolder(uri, taken.controller.signal, added).then(
      (uris) => {
        taken.uris = uris
      },
      // A folder that does not answer adds nothing; its row shows the reason when it is opened.
      () => {},
    )
  }
  const leaveFolder = (uri: string) => {
    const taken = folders.get(uri)
    folders.delete(uri)
    taken?.controller.abort()
    for (const one of taken?.uris ?? []) remove(one)
  }

  return {
    extend: (resourceAt, from, to) => {
      anchor ??= from
      const wanted = new Map<string, Resource>()
      for (let index = Math.min(anchor, to); index <= Math.max(anchor, to) && wanted.size < most; index++) {
        const resource = resourceAt(index)
        if (resource !== undefined) wanted.set(resource.uri, resource)
      }
      const picked = new Set(basket.value.map(({ resource }) => resource.uri))
      // Start of the range: if the basket cannot hold all, the rows nearest to it come first.
      for (const [uri, resource] of anchor <= to ? wanted : [...wanted].reverse()) {
        if (isFolder(resource)) {
          if (!folders.has(uri)) takeFolder(uri)
        } else if (!picked.has(uri)) {
          own.add(uri)
          toggle(resource)
        }
      }
      for (const uri of [...folders.keys()]) if (!wanted.has(uri)) leaveFolder(uri)
      for (const { resource } of basket.value) {
        if (wanted.has(resource.uri) || !own.delete(resource.uri)) continue
        toggle(resource)
      }
    },
    end: () => {
      anchor = undefined
      own = new Set()
      folders = new Map()
    },
  }
}
