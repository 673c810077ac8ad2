import { setImmediate as turn } from 'node:timers/promises'
import { createHeap } from './heap.ts'

/** One form in which an item can be taken. */
interface PackOption {
  readonly tokens: number
  /** Its value as a share of the item, from 0 to 1. */
  readonly worth: number
}

export interface PackItem {
  readonly uri: string
  readonly score: number
  /** In any order. */
  readonly options: readonly PackOption[]
  /** Index of the smallest option that the item must have. */
  readonly required?: number
}

export interface PackLimits {
  readonly budget: number
  /** Maximum number of tokens of one item while other items remain. Required items may take more. */
  readonly cap: number
  /** Number of tokens of the frame, spent with the first item. */
  readonly frame: number
  /** Maximum number of items. */
  readonly items: number
}

export interface Packed {
  /** The chosen option of each item, by its index. */
  readonly taken: ReadonlyMap<PackItem, number>
  readonly tokens: number
}

interface Move {
  readonly item: PackItem
  readonly to: number
  readonly tokens: number
  readonly gain: number
}

/**
 * Greedily takes items, and raises items from one option to a larger one, within the budget: first the move with the highest worth per token.
 * A move that does not fit is skipped, and later ones are still tried. A second pass without the cap uses the remaining budget.
 *
 * The order of the moves does not depend on the budget. So of two budgets with one cap, the larger takes at least as many tokens: at the
 * first difference the larger takes an item that does not fit into the smaller. Ties are decided by URI.
 *
 * @returns undefined when the required items do not fit.
 */
export function pack(items: readonly PackItem[], limits: PackLimits): Packed | undefined {
  const work = packing(items, limits)
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** The same, but yields to the event loop now and then. */
export async function packInTurns(items: readonly PackItem[], limits: PackLimits): Promise<Packed | undefined> {
  const work = packing(items, limits)
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await turn()
  }
}

/** Number of moves examined before the task yields to the event loop. */
const slice = 1024

function* packing(items: readonly PackItem[], limits: PackLimits): Generator<void, Packed | undefined> {
  const taken = new Map<PackItem, number>()
  let tokens = 0
  let looked = 0
  for (const item of items) {
    if (item.required === undefined) continue
    tokens += (item.options[item.required]?.tokens ?? 0) + (taken.size === 0 ? limits.frame : 0)
    taken.set(item, item.required)
  }
  if (tokens > limits.budget || taken.size > limits.items) return undefined
  for (const cap of [limits.cap, Number.POSITIVE_INFINITY]) {
    const refused = new Map<PackItem, Set<number>>()
    const waiting = createHeap(isBefore)
    const wait = (move: Move | undefined) => move !== undefined && waiting.push(move)
    for (const item of items) {
      wait(nextMove(item, taken.get(item), cap))
      if (++looked % slice === 0) yield
    }
    for (let move = waiting.pop(); move !== undefined; move = waiting.pop()) {
      if (++looked % slice === 0) yield
      const { item } = move
      const isNew = !taken.has(item)
      const cost = move.tokens + (taken.size === 0 ? limits.frame : 0)
      if (isNew && taken.size >= limits.items) continue
      if (tokens + cost <= limits.budget) {
        tokens += cost
        taken.set(item, move.to)
      } else refused.set(item, (refused.get(item) ?? new Set()).add(move.to))
      wait(nextMove(item, taken.get(item), cap, refused.get(item)))
    }
  }
  return { taken, tokens }
}

/** The next move of an item at one of its options: the one with the highest value per token. */
function nextMove(
  item: PackItem,
  from: number | undefined,
  cap: number,
  refused?: ReadonlySet<number>,
): Move | undefined {
  const now = from === undefined ? { tokens: 0, worth: 0 } : item.options[from]
  if (now === undefined) return undefined
  let best: Move | undefined
  for (const [to, option] of item.options.entries()) {
    const tokens = option.tokens - now.tokens
    if (option.worth <= now.worth || tokens <= 0 || option.tokens > cap || refused?.has(to) === true) continue
    const gain = (item.score * (option.worth - now.worth)) / tokens
    if (best === undefined || gain > best.gain) best = { item, to, tokens, gain }
  }
  return best
}

function isBefore(a: Move, b: Move): boolean {
  if (a.gain !== b.gain) return a.gain > b.gain
  if (a.item.uri !== b.item.uri) return a.item.uri < b.item.uri
  return a.to < b.to
}
