import { setImmediate as turn } from 'node:timers/promises'
import { invalid, ResourceError } from '../core/errors.ts'
import { defined, requireKeys } from '../core/kit/object.ts'
import type { View } from '../core/view.ts'
import { type CopyFinder, createCopyFinder, shinglesOf } from './collapse.ts'
import { type FormedResource, type FormOptions, formsOfCandidate, type ResourceForm } from './forms.ts'
import { countCommonEntries, orderItems, type PackedResources, packKeepingPrefix, prefixDigests } from './prefix.ts'
import { rankAll } from './rank.ts'
import { createContextReader, createExcluder, decodeUriPath } from './reader.ts'
import { blocksOf, formatIsoTime, type RenderedPart, type Renderer, rendererOf } from './render.ts'
import { openCounter } from './tokens.ts'
import {
  type Assembled,
  type AssembledItem,
  type AssembleOptions,
  type Candidate,
  type ContextLimits,
  type Level,
  type LevelTokens,
  type ManifestEntry,
  type OmittedItem,
  resolveLimits,
} from './types.ts'
import { sectionsOf } from './windows.ts'

/** Maximum share of the budget for one resource while other resources fit. Figures: decision 21. */
const capShare = 0.6
/** Number of candidates for which forms are made, as a multiple of the maximum number of resources in the answer. */
const formedPerItem = 2

/**
 * Chooses the resources of a view that help with a query, and puts them into one text within a budget of tokens: first the
 * required resources, then those with the highest value per token. The same view, options and time give the same text.
 *
 * @throws ResourceError `invalid` for faulty options (reason `argument`), or if the required resources do not fit (reason
 *   `budget`, with the tokens that they take); `not-found` for a pin that does not exist; `unavailable` if a required resource
 *   cannot be read at the moment.
 */
export async function assemble(view: View, options: AssembleOptions): Promise<Assembled> {
  requireKeys('The view of assemble(view, options)', view, { list: 'a function', read: 'a function' })
  requireKeys('assemble(view, options)', { options }, { options: 'an object' })
  const { encoding = 'o200k_base', format = 'markdown', reserve = 0.03, signal } = options
  const limits = resolveLimits(options)
  const opening = openCounter(encoding)
  opening.catch(() => {})
  const renderer = rendererOf(format)
  const reader = createContextReader(view, limits, await createExcluder(view, options), options)
  const { candidates, terms, notes, freshness } = await rankAll(view, options, limits, reader)

  const counter = await opening
  const required = candidates.filter((candidate) => candidate.required !== undefined)
  const { earlier = [] } = options
  const before = new Set(earlier.flatMap(({ uri, level }) => (level === 'link' ? [] : [uri])))
  const detailed = candidates.filter(
    ({ resource }, index) => index < required.length + limits.detailed || before.has(resource.uri),
  )
  const outcomes = await reader.read(detailed.map(({ resource }) => resource.uri))
  const readings = new Map(detailed.map((candidate, index) => [candidate, outcomes[index]] as const))
  const usable = Math.floor(options.budget * (1 - reserve))
  const { countLevels } = options
  const forming: FormOptions = { counter, renderer, format, terms, most: usable, countLevels, signal }
  const formed: FormedResource[] = []
  const duplicates: OmittedItem[] = []
  const collapse = createCopyFinder()
  // Do not make links to the worse candidates: they would seldom be chosen, and thousands of them take long to count.
  const mostFormed = required.length + Math.max(limits.detailed, formedPerItem * limits.items)
  const late: OmittedItem[] = []
  for (const [index, candidate] of candidates.entries()) {
    const reading = readings.get(candidate)
    if (index >= mostFormed && !before.has(candidate.resource.uri)) {
      late.push({ uri: candidate.resource.uri, reason: 'count', explanation: candidate.explanation })
      continue
    }
    if (index % 256 === 255 || reading !== undefined) await turn()
    signal?.throwIfAborted()
    const same =
      reading !== undefined && 'text' in reading ? await duplicateOf(candidate, reading, collapse) : undefined
    if (same === undefined) formed.push(await formsOfCandidate(candidate, reading, forming, index))
    else {
      const { resource, explanation } = candidate
      duplicates.push({ uri: resource.uri, reason: 'duplicate', of: same, explanation })
    }
  }
  refuseUnreadable(formed)

  const headTokens = await counter.count(renderer.head)
  const frame = headTokens + (await counter.count(renderer.tail))
  const cap = options.cap ?? Math.floor(capShare * options.budget)
  const count = (part: RenderedPart) => counter.count(renderer.part(part, 1), signal)
  const bounds = { budget: usable, cap, frame, items: limits.items }
  const packing = await packKeepingPrefix(formed, earlier, { renderer, count }, bounds)
  if (packing === undefined) throw overBudgetError(formed, frame, usable)
  const { items, packed } = packing

  const selection = [...items].flatMap(([item, each]) => {
    const form = each.forms[packed.taken.get(item) ?? -1]
    return form === undefined ? [] : [{ ...each, form }]
  })
  const orderedItems = orderItems(selection, earlier, renderer)
  const parts = orderedItems.map(({ form }) => form.part)
  const prefixes = prefixDigests(parts, renderer)
  const manifest = orderedItems.map((each, index) => manifestOf(each, prefixes[index]))
  return {
    text: joinParts(
      parts.map((part, index) => renderer.part(part, index + 1)),
      renderer,
    ),
    ...(format === 'mcp' ? { blocks: blocksOf(parts) } : {}),
    tokens: packed.tokens,
    budget: options.budget,
    encoding,
    format,
    items: await Promise.all(orderedItems.map((each) => itemOf(each, terms))),
    omitted: [...duplicates, ...omittedOf(packing, limits), ...late],
    manifest,
    ...(options.earlier === undefined ? {} : { reusedPrefixTokens: reusedOf(manifest, earlier, headTokens) }),
    notes: [...notes, ...unreadableNotes(orderedItems)],
    freshness,
  }
}

/** Maximum number of resources that a note names. */
const maxNamed = 5

function unreadableNotes(forms: readonly ChosenForm[]): readonly string[] {
  const uris = forms.flatMap(({ candidate, reading }) =>
    reading !== undefined && 'fault' in reading && reading.fault === 'unreadable' ? [candidate.resource.uri] : [],
  )
  if (uris.length === 0) return []
  const more = uris.length > maxNamed ? `, and ${uris.length - maxNamed} more` : ''
  return [
    `a link alone, because the text cannot be read (it is damaged, or holds only pictures): ${uris.slice(0, maxNamed).join(', ')}${more}`,
  ]
}

function joinParts(parts: readonly string[], { head, tail }: Renderer): string {
  return parts.length === 0 ? '' : [head, ...parts, tail].join('')
}

/** Returns the URI of an earlier resource with nearly the same text. Undefined for a required resource, which is always included. */
async function duplicateOf(
  { resource, required }: Candidate,
  { text, sha256 }: { readonly text: string; readonly sha256: string },
  collapse: CopyFinder,
): Promise<string | undefined> {
  const shingles = await shinglesOf(text, sha256)
  if (required === undefined) return collapse.add(resource.uri, shingles)
  collapse.remember(resource.uri, shingles)
  return undefined
}

type ChosenForm = FormedResource & { readonly form: ResourceForm }

async function itemOf(
  { candidate, form, reading, notes, levels }: ChosenForm,
  terms: ReadonlySet<string>,
): Promise<AssembledItem> {
  return {
    uri: candidate.resource.uri,
    resource: candidate.resource,
    level: form.part.level,
    tokens: form.tokens,
    required: candidate.required !== undefined,
    matched: reading === undefined || !('text' in reading) ? 0 : matchedIn(candidate, reading.text, terms),
    ...(levels === undefined ? {} : { levels: await levels() }),
    explanation: candidate.explanation,
    notes,
  }
}

/** The number of different words of the query in the best section of a text. */
function matchedIn({ resource: { uri, mimeType } }: Candidate, text: string, terms: ReadonlySet<string>): number {
  const sections = sectionsOf({ text, path: decodeUriPath(uri), mimeType }, terms)
  return Math.max(0, ...sections.map(({ found: { counts } }) => counts.filter((times) => times > 0).length))
}

function manifestOf({ candidate, form, reading }: ChosenForm, prefix: string | undefined): ManifestEntry {
  const { uri, modified, version: entryVersion } = candidate.resource
  const textReading = reading !== undefined && 'text' in reading ? reading : undefined
  const version = textReading?.version ?? entryVersion
  const at = formatIsoTime(modified)
  return {
    uri,
    level: form.part.level,
    tokens: form.tokens,
    ...(textReading === undefined ? {} : { sha256: textReading.sha256 }),
    ...defined({ ranges: form.ranges, modified: at, version, prefix }),
  }
}

/** The number of tokens at the beginning that this text and an earlier one have in common, up to the end of a resource. */
function reusedOf(now: readonly ManifestEntry[], earlier: readonly ManifestEntry[], headTokens: number): number {
  const common = countCommonEntries(
    earlier,
    now.map(({ prefix = '' }) => prefix),
  )
  return now.slice(0, common).reduce((sum, { tokens }) => sum + tokens, common === 0 ? 0 : headTokens)
}

function omittedOf({ items, packed: { taken } }: PackedResources, limits: ContextLimits): readonly OmittedItem[] {
  const isFull = taken.size >= limits.items
  return [...items].flatMap(([item, { candidate, reading, forms }]) => {
    if (taken.has(item)) return []
    const isUnread = reading !== undefined && 'fault' in reading
    const tokens = Math.min(...forms.flatMap((form) => (form.count === undefined ? [form.tokens] : [])))
    const reason = isUnread ? 'unreadable' : isFull ? 'count' : 'budget'
    return [{ uri: item.uri, reason, tokens, explanation: candidate.explanation }]
  })
}

/** Throws if a required resource does not exist, may not be seen, or is not available now. */
function refuseUnreadable(formed: readonly FormedResource[]): void {
  const faulty = (fault: string) =>
    formed.filter(
      ({ candidate, reading }) =>
        candidate.required !== undefined &&
        (fault === 'unavailable' && reading === undefined
          ? true
          : reading !== undefined && 'fault' in reading && reading.fault === fault),
    )
  const name = (these: readonly FormedResource[]) => these.map(({ candidate }) => candidate.resource.uri).join(', ')
  const absent = faulty('not-found')
  if (absent.length > 0)
    throw new ResourceError('not-found', `Required resources do not exist, or may not be seen: ${name(absent)}`)
  const silent = faulty('unavailable')
  if (silent.length > 0)
    throw new ResourceError('unavailable', `Required resources cannot be read now: ${name(silent)}`)
}

function overBudgetError(formed: readonly FormedResource[], frame: number, usable: number): ResourceError {
  const required = formed.filter(({ candidate }) => candidate.required !== undefined)
  const sizes = required.map(({ candidate, forms }) => ({ uri: candidate.resource.uri, tokens: forms[0]?.tokens ?? 0 }))
  const requiredTokens = sizes.reduce((sum, { tokens }) => sum + tokens, frame)
  const list = sizes
    .sort((a, b) => b.tokens - a.tokens)
    .map(({ uri, tokens }) => `${uri} (${tokens})`)
    .join(', ')
  return invalid(
    `The required resources take ${requiredTokens} tokens, and the budget has room for ${usable}: ${list}. Raise the budget, or ask for less of them: outline or link.`,
    'budget',
    { needed: requiredTokens, usable, items: sizes.length },
  )
}

export interface PinMeasurements {
  readonly items: readonly MeasuredItem[]
  /** Tokens of all existing pins, each at its level, plus `frame`. */
  readonly tokens: number
  /** Tokens of the note around the resources. */
  readonly frame: number
}

export interface MeasuredItem extends Pick<AssembledItem, 'uri' | 'resource' | 'tokens' | 'notes'> {
  /** The level of the pin, or the next lower one that exists. */
  readonly level: Level
  readonly levels: LevelTokens
  /** Whether the resource does not exist, or is denied. */
  readonly missing: boolean
}

/**
 * Counts the tokens of pins at every level. Pins over the budget and missing pins are not errors.
 *
 * @throws ResourceError `invalid` for faulty options.
 */
export async function measure(
  view: View,
  options: Omit<AssembleOptions, 'budget' | 'reserve'>,
): Promise<PinMeasurements> {
  const { encoding = 'o200k_base', format = 'markdown', signal } = options
  const packOptions = { ...options, budget: 0, pinsOnly: true }
  const limits = resolveLimits(packOptions)
  const counter = await openCounter(encoding)
  const renderer = rendererOf(format)
  const reader = createContextReader(view, limits, await createExcluder(view, options), options)
  const { candidates, terms } = await rankAll(view, packOptions, limits, reader)
  const readings = await reader.read(candidates.map(({ resource }) => resource.uri))
  const forming = { counter, renderer, format, terms, most: Number.POSITIVE_INFINITY, countLevels: true, signal }
  const frame = (await counter.count(renderer.head)) + (await counter.count(renderer.tail))
  const items: MeasuredItem[] = []
  for (const [index, candidate] of candidates.entries()) {
    await turn()
    signal?.throwIfAborted()
    const { resource } = candidate
    const reading = readings[index]
    const missing = reading !== undefined && 'fault' in reading && reading.fault === 'not-found'
    const { forms, levels, notes } = await formsOfCandidate(candidate, reading, forming, index)
    const [form] = forms
    if (form === undefined) continue
    const { tokens, part } = form
    items.push({
      uri: resource.uri,
      resource,
      level: part.level,
      tokens,
      levels: (await levels?.()) ?? {},
      missing,
      notes,
    })
  }
  const there = items.filter(({ missing }) => !missing)
  const tokens = there.reduce((sum, item) => sum + item.tokens, there.length === 0 ? 0 : frame)
  return { items, tokens, frame }
}
