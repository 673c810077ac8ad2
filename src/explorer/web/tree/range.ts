import type { Resource } from '../../../core/view.ts'
import { basket, toggle } from '../state/basket.ts'

/** Picks the rows from where the reader began to hold Shift to where the reader is. */
export interface Range {
  /** @param resourceAt What can be picked in a row, if anything. */
  extend(resourceAt: (index: number) => Resource | undefined, from: number, to: number): void
  end(): void
}

/** So many are picked at once. */
const most = 2000

export function createRange(): Range {
  let anchor: number | undefined
  /** What this range has picked: it is put back where the range shrinks. */
  let own = new Set<string>()
  return {
    extend: (resourceAt, from, to) => {
      anchor ??= from
      const wanted = new Map<string, Resource>()
      for (let index = Math.min(anchor, to); index <= Math.max(anchor, to) && wanted.size < most; index++) {
        const resource = resourceAt(index)
        if (resource !== undefined) wanted.set(resource.uri, resource)
      }
      const picked = new Set(basket.value.map(({ resource }) => resource.uri))
      for (const [uri, resource] of wanted) {
        if (picked.has(uri)) continue
        own.add(uri)
        toggle(resource)
      }
      for (const { resource } of basket.value) {
        if (wanted.has(resource.uri) || !own.delete(resource.uri)) continue
        toggle(resource)
      }
    },
    end: () => {
      anchor = undefined
      own = new Set()
    },
  }
}
