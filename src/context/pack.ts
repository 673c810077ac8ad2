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
  // A move that does not fit now never fits later, because tokens are only added.
  const left = () => limits.budget - tokens - (taken.size === 0 ? limits.frame : 0)
  for (const cap of [limits.cap, Number.POSITIVE_INFINITY]) {
    const waiting = createHeap(isBefore)
    const wait = (item: PackItem) => {
      const move = nextMove(item, taken.get(item), cap, left())
      if (move !== undefined) waiting.push(move)
    }
    for (const item of items) {
      wait(item)
      if (++looked % slice === 0) yield
    }
    for (let move = waiting.pop(); move !== undefined; move = waiting.pop()) {
      if (++looked % slice === 0) yield
      const { item } = move
      if (!taken.has(item) && taken.size >= limits.items) continue
      if (move.tokens <= left()) {
        tokens += move.tokens + (taken.size === 0 ? limits.frame : 0)
        taken.set(item, move.to)
      }
      wait(item)
    }
  }
  return { taken, tokens }
}

/** The next move of an item at one of its options: the one with the highest value per token, of those that fit. */
function nextMove(item: PackItem, from: number | undefined, cap: number, left: number): Move | undefined {
  const now = from === undefined ? nothing : item.options[from]
  if (now === undefined) return undefined
  let to = -1
  let most = 0
  for (let at = 0; at < item.options.length; at++) {
    const option = item.options[at]
    if (option === undefined || option.tokens > cap || option.worth <= now.worth) continue
    const tokens = option.tokens - now.tokens
    if (tokens <= 0 || tokens > left) continue
    const gain = (item.score * (option.worth - now.worth)) / tokens
    if (to >= 0 && gain <= most) continue
    to = at
    most = gain
  }
  const option = item.options[to]
  return option === undefined ? undefined : { item, to, tokens: option.tokens - now.tokens, gain: most }
}

const nothing: PackOption = { tokens: 0, worth: 0 }

function isBefore(a: Move, b: Move): boolean {
  if (a.gain !== b.gain) return a.gain > b.gain
  if (a.item.uri !== b.item.uri) return a.item.uri < b.item.uri
  return a.to < b.to
}
