import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { createHeap } from '../core/kit/sorted.ts'
import type { FormedResource, ResourceForm } from './forms.ts'
import type { RenderedPart, Renderer } from './render.ts'
import type { ManifestEntry } from './types.ts'
import { windowsAt } from './windows.ts'

export interface PackedResources {
  readonly items: ReadonlyMap<PackItem, FormedResource>
  readonly packed: Packed
}

/** A resource in the form of the earlier context. */
interface EarlierItem {
  readonly uri: string
  readonly form: ResourceForm
}

/**
 * Maximum share of the value of a context that is given up to keep its beginning the same. Figures: decision 23.
 */
const givenUp = 0.02

/** Number of hexadecimal digits of a digest in a manifest. */
const digits = 16

/** Digests the beginning of a text step by step: each call appends one part, and returns the digest of the text up to its end. */
function createDigests({ head, part }: Renderer) {
  let hash = createHash('sha256').update(head)
  const after = (one: RenderedPart, index: number) => hash.copy().update(part(one, index).toWellFormed())
  const hexOf = (each: typeof hash) => each.copy().digest('hex').slice(0, digits)
  return {
    /** Returns the digest that `take` would return. */
    peek: (one: RenderedPart, index: number) => hexOf(after(one, index)),
    take: (one: RenderedPart, index: number) => {
      hash = after(one, index)
      return hexOf(hash)
    },
  }
}

/** Returns for each part the digest of the text from the beginning of the context to the end of the part. */
export function prefixDigests(parts: readonly RenderedPart[], renderer: Renderer): readonly string[] {
  const digests = createDigests(renderer)
  return parts.map((part, index) => digests.take(part, index + 1))
}

/** Returns the number of entries at the beginning after which both contexts have had the same text. */
export function countCommonEntries(before: readonly ManifestEntry[], prefixes: readonly string[]): number {
  let most = 0
  for (const [index, { prefix }] of before.entries())
    if (prefix !== undefined && prefix === prefixes[index]) most = index + 1
  return most
}

/** Returns the longest beginning of an earlier context that the current resources give again with the same bytes. */
async function keepable(
  formed: readonly FormedResource[],
  earlier: readonly ManifestEntry[],
  renderer: Renderer,
  count: (part: RenderedPart) => Promise<number>,
): Promise<readonly EarlierItem[]> {
  const byUri = new Map(formed.map((each) => [each.candidate.resource.uri, each] as const))
  const digests = createDigests(renderer)
  const items: EarlierItem[] = []
  for (const [index, entry] of earlier.entries()) {
    const each = byUri.get(entry.uri)
    if (each === undefined || entry.prefix === undefined) break
    byUri.delete(entry.uri)
    const isSame = ({ part }: { readonly part: RenderedPart }) => digests.peek(part, index + 1) === entry.prefix
    const form =
      each.forms.find((one) => one.part.level === entry.level && isSame(one)) ??
      (await rebuilt(each, entry, isSame, count))
    if (form === undefined) break
    digests.take(form.part, index + 1)
    items.push({ uri: entry.uri, form })
  }
  return items
}

/** Makes the windows of an earlier context again. They may differ from the windows that are chosen now, although the text is the same. */
async function rebuilt(
  { candidate, reading, forms }: FormedResource,
  { level, ranges }: ManifestEntry,
  isSame: (form: { readonly part: RenderedPart }) => boolean,
  count: (part: RenderedPart) => Promise<number>,
): Promise<ResourceForm | undefined> {
  if (level !== 'windows' || ranges === undefined || candidate.required !== undefined) return undefined
  if (reading === undefined || !('text' in reading)) return undefined
  const body = windowsAt(reading.text, ranges)
  if (body === undefined) return undefined
  const part: RenderedPart = { resource: candidate.resource, level, body }
  if (!isSame({ part })) return undefined
  const tokens = await count(part)
  for (const form of forms) if (form.part.level === 'windows') await form.count?.()
  // The earlier windows count as much as the best windows of now that take no more tokens.
  const alike = forms.filter((form) => form.part.level === 'windows' && form.tokens <= tokens)
  const worth = Math.max(0, ...(alike.length > 0 ? alike : forms.slice(0, 2)).map((form) => form.worth))
  return { part, tokens, worth, ranges }
}

/**
 * Chooses the items of a context. It keeps the beginning of an earlier context as far as that costs little.
 *
 * @param count Counts the tokens of a part.
 * @returns `undefined` if the required resources do not fit.
 */
export async function packKeepingPrefix(
  formed: readonly FormedResource[],
  earlier: readonly ManifestEntry[],
  { renderer, count }: { readonly renderer: Renderer; readonly count: (part: RenderedPart) => Promise<number> },
  limits: PackLimits,
): Promise<PackedResources | undefined> {
  const attempt = async (earlierItems: readonly EarlierItem[]): Promise<PackedResources | undefined> => {
    const fixed = new Map(earlierItems.map(({ uri, form }) => [uri, form] as const))
    const items = new Map(formed.map((each) => itemOf(each, fixed.get(each.candidate.resource.uri))))
    const packing = await pack([...items.keys()], limits)
    return packing === undefined ? undefined : { items, packed: packing }
  }
  const free = await attempt([])
  if (free === undefined || earlier.length === 0) return free
  const earlierItems = await keepable(formed, earlier, renderer, count)
  const least = (1 - givenUp) * worthOf(free)
  let best = free
  // Try the whole beginning first, because it usually costs nothing. A binary search follows.
  for (let low = 1, high = earlierItems.length, at = high; low <= high; at = (low + high) >> 1) {
    const tried = await attempt(earlierItems.slice(0, at))
    if (tried !== undefined && worthOf(tried) >= least) {
      best = tried
      low = at + 1
    } else high = at - 1
  }
  return best
}

function itemOf(each: FormedResource, fixed: ResourceForm | undefined): readonly [PackItem, FormedResource] {
  const { candidate, forms, size } = each
  const item: PackItem = {
    uri: candidate.resource.uri,
    // The cube of the score favours the texts of the best resources over outlines of others. The factor of the size keeps small files that
    // hardly match from coming before a large one that matches.
    score: candidate.explanation.score ** 3 * size,
    options: fixed === undefined ? forms : [fixed],
    ...(candidate.required === undefined && fixed === undefined ? {} : { required: 0 }),
  }
  return [item, fixed === undefined ? each : { ...each, forms: [fixed] }]
}

function worthOf({ packed }: PackedResources): number {
  let sum = 0
  for (const [{ score, options }, at] of packed.taken) sum += score * (options[at]?.worth ?? 0)
  return sum
}

/**
 * Orders the chosen items: first those of the earlier context in its order, up to and including the first one whose text differs, then the
 * others, best first.
 */
export function orderItems<
  Chosen extends { readonly candidate: FormedResource['candidate']; readonly form: ResourceForm },
>(candidates: readonly Chosen[], earlier: readonly ManifestEntry[], renderer: Renderer): readonly Chosen[] {
  const rest = new Map(candidates.map((each) => [each.candidate.resource.uri, each] as const))
  const digests = createDigests(renderer)
  const front: Chosen[] = []
  for (const [index, { uri, prefix }] of earlier.entries()) {
    const each = rest.get(uri)
    if (each === undefined) break
    front.push(each)
    rest.delete(uri)
    if (digests.take(each.form.part, index + 1) !== prefix) break
  }
  return [...front, ...rest.values()]
}

/** One form in which an item can be taken. */
type PackOption = Pick<ResourceForm, 'tokens' | 'worth' | 'count'>

export interface PackItem {
  readonly uri: string
  readonly score: number
  /** The options of the item, in any order. */
  readonly options: readonly PackOption[]
  /** Index of the smallest option that the item must have. */
  readonly required?: number
}

interface PackLimits {
  readonly budget: number
  /** Maximum number of tokens of one item while other items remain. Required items may take more. */
  readonly cap: number
  /** Number of tokens of the frame, spent with the first item. */
  readonly frame: number
  readonly items: number
}

interface Packed {
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

const movesPerTurn = 1024

/**
 * Greedily takes items, and raises items from one option to a larger one, within the budget: first the move with the highest worth per
 * token. A move that does not fit is skipped. A second pass without the cap uses the remaining budget. Ties are decided by URI.
 *
 * @returns undefined when the required items do not fit.
 */
export async function pack(items: readonly PackItem[], limits: PackLimits): Promise<Packed | undefined> {
  const levels = new Map<PackItem, number>()
  let tokens = 0
  let lookCount = 0
  for (const item of items) {
    if (item.required === undefined) continue
    await item.options[item.required]?.count?.()
    tokens += (item.options[item.required]?.tokens ?? 0) + (levels.size === 0 ? limits.frame : 0)
    levels.set(item, item.required)
  }
  if (tokens > limits.budget || levels.size > limits.items) return undefined
  // A move that does not fit now never fits later, because tokens are only added.
  const remaining = () => limits.budget - tokens - (levels.size === 0 ? limits.frame : 0)
  for (const cap of [limits.cap, Number.POSITIVE_INFINITY]) {
    const waiting = createHeap(isBefore)
    const wait = (item: PackItem) => {
      const move = nextMove(item, levels.get(item), cap, remaining())
      if (move !== undefined) waiting.push(move)
    }
    for (const item of items) {
      wait(item)
      if (++lookCount % movesPerTurn === 0) await turn()
    }
    for (let move = waiting.pop(); move !== undefined; move = waiting.pop()) {
      if (++lookCount % movesPerTurn === 0) await turn()
      const { item } = move
      if (!levels.has(item) && levels.size >= limits.items) continue
      const { count } = item.options[move.to] ?? {}
      // The move is queued again with its real tokens. Its value per token can only be lower than estimated.
      if (move.tokens <= remaining() && count !== undefined) await count()
      else if (move.tokens <= remaining()) {
        tokens += move.tokens + (levels.size === 0 ? limits.frame : 0)
        levels.set(item, move.to)
      }
      wait(item)
    }
  }
  return { taken: levels, tokens }
}

/** The next move of an item at one of its options: the one with the highest value per token, of those that fit. */
function nextMove(item: PackItem, from: number | undefined, cap: number, remaining: number): Move | undefined {
  const now = from === undefined ? nothing : item.options[from]
  if (now === undefined) return undefined
  let to = -1
  let most = 0
  for (let at = 0; at < item.options.length; at++) {
    const option = item.options[at]
    if (option === undefined || option.tokens > cap || option.worth <= now.worth) continue
    // A form that is not counted yet may be larger than it seems.
    const tokens = Math.max(option.tokens - now.tokens, option.count === undefined ? 0 : 1)
    if (tokens === 0 || tokens > remaining) continue
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
