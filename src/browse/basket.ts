import { documentFormatOf } from '../core/documents.ts'
import type { Resource } from '../core/view.ts'

/** The levels at which a context can contain a resource (`assemble_context`), the largest first. */
export const contentLevels = ['full', 'windows', 'outline', 'link'] as const
export type ContentLevel = (typeof contentLevels)[number]

/** `auto`: the largest level that fits. */
export type BasketLevel = 'auto' | ContentLevel

export interface BasketItem {
  readonly resource: Resource
  readonly level: BasketLevel
}

export type BasketItems = readonly BasketItem[]

export function hasItem(items: BasketItems, uri: string): boolean {
  return items.some(({ resource }) => resource.uri === uri)
}

/** Adds the items that the basket does not contain yet, up to a total of `most` items. */
export function withAddedItems(
  items: BasketItems,
  basketItems: BasketItems,
  most = Number.POSITIVE_INFINITY,
): BasketItems {
  const there = new Set(items.map(({ resource }) => resource.uri))
  const fresh = basketItems.filter(({ resource }) => !there.has(resource.uri))
  return fresh.length === 0 ? items : [...items, ...fresh].slice(0, most)
}

export function withoutUris(items: BasketItems, uris: ReadonlySet<string>): BasketItems {
  return items.filter(({ resource }) => !uris.has(resource.uri))
}

export function withLevel(items: BasketItems, uri: string, level: BasketLevel): BasketItems {
  return items.map((item) => (item.resource.uri === uri ? { ...item, level } : item))
}

/** Moves an item by `by` positions, at most to an end of the list. */
export function withMovedItem(items: BasketItems, uri: string, by: number): BasketItems {
  const rest = [...items]
  const at = rest.findIndex(({ resource }) => resource.uri === uri)
  const [item] = rest.splice(at, 1)
  if (at === -1 || item === undefined) return items
  rest.splice(Math.max(0, Math.min(rest.length, at + by)), 0, item)
  return rest
}

export interface TokenCost {
  /** Tokens at each level that the resource has. */
  readonly levels: Readonly<Partial<Record<ContentLevel, number>>>
  /** Whether the resource is missing or denied. */
  readonly missing: boolean
  readonly notes: readonly string[]
  /** Why the tokens could not be counted. */
  readonly failure?: string
}

export interface PlannedItem extends BasketItem {
  readonly taken: ContentLevel
  /** Tokens of the item at this level. `undefined`: not counted. */
  readonly tokens: number | undefined
  readonly missing: boolean
  readonly notes: readonly string[]
}

export interface BasketPlan {
  readonly items: readonly PlannedItem[]
  /** Tokens of all counted items, and of the head and tail of the context; 0 without items. */
  readonly tokens: number
  /** Whether no item waits to be counted. */
  readonly isWhole: boolean
  readonly over: number
}

/** Returns the usable part of a budget: a reserve stays free, because models count differently. */
export function usableBudget(budget: number, reserve = 0.03): number {
  return Math.floor(budget * (1 - reserve))
}

export function levelsOf(cost: TokenCost | undefined): readonly ContentLevel[] {
  return cost === undefined ? contentLevels : contentLevels.filter((level) => cost.levels[level] !== undefined)
}

/**
 * Decides the level of each item. Chosen levels stay, if the resource has them; items with `auto` begin in full, and are lowered while the
 * budget is exceeded, each time by the step that saves most.
 *
 * @param frame Tokens of the head and tail of the context.
 * @param usable Maximum number of tokens ({@link usableBudget}).
 */
export function planBasket(
  items: BasketItems,
  costs: ReadonlyMap<string, TokenCost>,
  frame: number,
  usable: number,
): BasketPlan {
  const costOf = (item: BasketItem) => costs.get(item.resource.uri)
  const levels = items.map((item) => {
    const there = levelsOf(costOf(item))
    const level = item.level === 'auto' ? 'full' : item.level
    return there.includes(level) ? level : (lowerThan(there, level) ?? there[0] ?? 'link')
  })
  const tokensAt = (at: number) => {
    const item = items[at]
    return item === undefined ? undefined : costOf(item)?.levels[levels[at] ?? 'link']
  }
  const sum = () => items.reduce((total, _, at) => total + (tokensAt(at) ?? 0), items.length === 0 ? 0 : frame)
  let tokens = sum()
  while (tokens > usable) {
    let best: { readonly at: number; readonly to: ContentLevel; readonly saved: number } | undefined
    for (const [at, item] of items.entries()) {
      const cost = costOf(item)
      const to = item.level === 'auto' ? nextLower(cost, levels[at] ?? 'link') : undefined
      const saved = (tokensAt(at) ?? 0) - (to === undefined ? 0 : (cost?.levels[to] ?? 0))
      if (to !== undefined && saved > (best?.saved ?? 0)) best = { at, to, saved }
    }
    if (best === undefined) break
    levels[best.at] = best.to
    tokens -= best.saved
  }
  return {
    items: items.map((item, at) => {
      const cost = costOf(item)
      return {
        ...item,
        taken: levels[at] ?? 'link',
        tokens: tokensAt(at),
        missing: cost?.missing ?? false,
        notes: cost?.notes ?? [],
      }
    }),
    tokens,
    isWhole: items.every((item) => costs.has(item.resource.uri)),
    over: Math.max(0, tokens - usable),
  }
}

/** Whether `auto` has lowered an item below its full level. */
export function isShortened({ level, taken }: PlannedItem, cost: TokenCost | undefined): boolean {
  return cost !== undefined && level === 'auto' && cost.levels.full !== undefined && taken !== 'full'
}

function lowerThan(there: readonly ContentLevel[], level: ContentLevel): ContentLevel | undefined {
  return there.find((one) => contentLevels.indexOf(one) > contentLevels.indexOf(level))
}

/** Returns the next lower level that takes fewer tokens. */
function nextLower(cost: TokenCost | undefined, from: ContentLevel): ContentLevel | undefined {
  const now = cost?.levels[from] ?? 0
  return levelsOf(cost).find(
    (level) => contentLevels.indexOf(level) > contentLevels.indexOf(from) && (cost?.levels[level] ?? now) < now,
  )
}

type Saving =
  | {
      readonly what: 'lower'
      readonly uri: string
      readonly to: ContentLevel
      readonly saved: number
      readonly suffices: boolean
    }
  | { readonly what: 'drop'; readonly uri: string; readonly saved: number; readonly suffices: boolean }

/** Returns up to `most` suggestions to fit the budget. Steps that suffice alone come first. */
export function suggestSavings(plan: BasketPlan, costs: ReadonlyMap<string, TokenCost>, most = 3): readonly Saving[] {
  if (plan.over === 0) return []
  const savings = plan.items.flatMap((item): readonly Saving[] => {
    const { uri } = item.resource
    const { tokens = 0 } = item
    const cost = costs.get(uri)
    const lowered = levelsOf(cost).flatMap((to): readonly Saving[] => {
      const saved = tokens - (cost?.levels[to] ?? tokens)
      return contentLevels.indexOf(to) > contentLevels.indexOf(item.taken) && saved > 0
        ? [{ what: 'lower', uri, to, saved, suffices: saved >= plan.over }]
        : []
    })
    const dropped: readonly Saving[] =
      tokens > 0 ? [{ what: 'drop', uri, saved: tokens, suffices: tokens >= plan.over }] : []
    return [...lowered, ...dropped]
  })
  return savings
    .sort((a, b) => {
      if (a.suffices !== b.suffices) return a.suffices ? -1 : 1
      if (a.suffices && a.what !== b.what) return a.what === 'lower' ? -1 : 1
      return a.suffices ? a.saved - b.saved : b.saved - a.saved
    })
    .slice(0, most)
}

/** Estimates the tokens of a resource in full, from its size. `undefined`: unknown. */
export function estimateTokens({ uri, size, mimeType = '' }: Resource): number | undefined {
  if (size === undefined) return undefined
  // A context contains only a link to a binary content.
  if (/^(?:image|audio|video|font)\//.test(mimeType)) return 30
  // The size of a document does not show the length of its text.
  const format = documentFormatOf(uri, mimeType)
  if (format !== undefined && format !== 'html' && format !== 'ipynb') return undefined
  return Math.ceil(size / 3.6)
}
