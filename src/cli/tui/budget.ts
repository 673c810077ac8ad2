import {
  type BasketItem,
  isIn,
  type Level,
  type Plan,
  planOf,
  withAdded,
  withLevel,
  withoutUris,
} from '../../browse/basket.ts'
import type { Resource } from '../../core/view.ts'
import type { Basket } from './state.ts'

/** The items of a basket with their tokens. Nothing is shortened to fit the budget: the person decides. */
export function planIn({ items, costs, frame }: Basket): Plan {
  return planOf(items, costs, frame, Number.POSITIVE_INFINITY)
}

/** Picks resources in full; if all of them are picked, removes them. */
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

/** The level of an item in a request. */
export function levelOf({ level }: BasketItem): Level {
  return level === 'auto' ? 'full' : level
}

/** The levels that a key steps through. */
const steps: readonly Level[] = ['link', 'outline', 'full']

/** Takes a step more, or less, of the selected item. */
export function levelled(basket: Basket, by: 1 | -1): Basket {
  const item = basket.items[basket.at]
  if (item === undefined) return basket
  const now = steps.indexOf(levelOf(item))
  const level = steps[Math.max(0, Math.min(steps.length - 1, now + by))]
  return level === undefined ? basket : { ...basket, items: withLevel(basket.items, item.resource.uri, level) }
}

const formats = ['markdown', 'xml', 'json'] as const

/** Changes the format. Each has other tokens, so they are counted again. */
export function reformatted(basket: Basket): Basket {
  const format = formats[(formats.indexOf(basket.format) + 1) % formats.length] ?? 'markdown'
  return { ...basket, format, costs: new Map(), frame: 0 }
}

export const endings = { markdown: 'md', xml: 'xml', json: 'json' } as const

/** A number of tokens as people say it: `32k`, `200000`. `undefined`: it is none. */
export function parseTokens(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)([km]?)$/i.exec(text.trim().replaceAll(',', ''))
  if (match === null) return undefined
  const unit = (match[2] ?? '').toLowerCase()
  const tokens = Math.round(Number(match[1]) * (unit === 'k' ? 1000 : unit === 'm' ? 1_000_000 : 1))
  return tokens >= 1 && tokens <= 100_000_000 ? tokens : undefined
}
