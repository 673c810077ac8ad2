import { isResourceError } from '../core/errors.ts'
import { iteratePages } from '../core/kit/groups.ts'
import { defined } from '../core/kit/object.ts'
import { overviewUri } from '../core/meta.ts'
import { baseName } from '../core/path.ts'
import type { Audience } from '../core/provider.ts'
import {
  findSearchMounts,
  freshnessOf,
  notesAboveHits,
  parseSearchAnswer,
  parseSearchStatus,
  resourceOfHit,
  type SearchAnswer,
  type SearchMount,
  staleNote,
} from '../core/search-answer.ts'
import { directoryMimeType, type Resource, type ResourceTemplate, type View } from '../core/view.ts'
import type { AssembleOptions, ContextFreshness, ContextLimits, Explanation, Factor, LineRange } from './types.ts'

/** Results of the searches of a view. */
export interface SearchOutcome {
  /** The documents found by each search, best first, with the scores of their best hits. */
  readonly lists: readonly (readonly ScoredDocument[])[]
  readonly lines: ReadonlyMap<string, readonly LineRange[]>
  /** Resources of the hits, as the search describes them. */
  readonly resources: readonly Resource[]
  /** The addresses of the mounts that are covered completely by a search that answered. */
  readonly covered: readonly string[]
  readonly notes: readonly string[]
  readonly freshness: ContextFreshness
}

/** Maximum length of a query that a search takes, in characters, and in bytes in its URI. */
const maxQuery = { characters: 1000, bytes: 7000 }

/** Returns the beginning of a query that is short enough for a search. */
function searchable(query: string): string {
  let text = query.slice(0, maxQuery.characters).toWellFormed()
  while (encodeURIComponent(text).length > maxQuery.bytes) text = text.slice(0, -10).toWellFormed()
  return text
}

/** Queries every search of the view. If one does not answer, a note says so. */
export async function searchAll(
  view: View,
  query: string,
  {
    audience,
    limit,
    fresh,
    signal,
  }: { readonly audience: Audience; readonly limit: number } & Pick<AssembleOptions, 'fresh' | 'signal'>,
): Promise<SearchOutcome> {
  const options = signal === undefined ? {} : { signal }
  const templates: ResourceTemplate[] = []
  for await (const page of iteratePages((cursor) => view.templates(cursor, options), endAtRepeatedPage))
    templates.push(...page.items)
  const lists: (readonly ScoredDocument[])[] = []
  const lines = new Map<string, LineRange[]>()
  const resources: Resource[] = []
  const covered: string[] = []
  const notes: string[] = []
  const answers: SearchAnswer[] = []
  const searched = searchable(query)
  for (const reason of findSearchMounts(templates)) {
    const [answer, status] = await Promise.all([
      tryReadText(view, () => reason.uriOf({ query: searched, limit, audience, ...(fresh ? { fresh } : {}) }), options),
      tryReadText(view, () => reason.status, options),
    ])
    const searchAnswer = answer === undefined ? undefined : parseSearchAnswer(answer)
    signal?.throwIfAborted()
    if (searchAnswer === undefined) {
      notes.push(`the search at ${reason.address} gave no usable answer`)
      continue
    }
    notes.push(...notesAboveHits(searchAnswer))
    answers.push(searchAnswer)
    if (fresh && searchAnswer.fresh === undefined) notes.push(staleNote)
    if (searched.length < query.length)
      notes.push(`the search at ${reason.address} used only the first ${searched.length} characters of the query`)
    covered.push(...coveredBy(reason, status))
    lists.push(collectHits(searchAnswer, lines))
    resources.push(...searchAnswer.hits.map((hit) => resourceOfHit(hit, hit.document, baseName(hit.document))))
  }
  return { lists, lines, resources, covered, notes, freshness: freshnessOf(answers) }
}

async function tryReadText(view: View, uri: () => string, options: { readonly signal?: AbortSignal }) {
  try {
    const { contents } = await view.read(uri(), options)
    const [content] = contents
    return content !== undefined && 'text' in content ? content.text : undefined
  } catch (error) {
    if (isResourceError(error)) return undefined
    throw error
  }
}

/** Returns the addresses that a search covers: its own, and those of the mounts whose index is current. */
function coveredBy({ address }: SearchMount, status: string | undefined): readonly string[] {
  const searchStatus = status === undefined ? undefined : parseSearchStatus(status)
  const current = (searchStatus?.mounts ?? []).filter(({ state }) => state === 'current')
  return [address, ...current.map((mount) => mount.address)]
}

function collectHits({ hits }: SearchAnswer, lines: Map<string, LineRange[]>): readonly ScoredDocument[] {
  const documents = new Map<string, number>()
  for (const { document, lines: range, score } of hits) {
    documents.set(document, Math.max(score, documents.get(document) ?? 0))
    lines.set(document, [...(lines.get(document) ?? []), range])
  }
  return scaleScores(documents)
}

/** Uses the pages that a listing gave before it repeated a cursor: a faulty server does not fail the whole context. */
export const endAtRepeatedPage = { repeated: 'end' } as const

interface ListedResources {
  readonly resources: readonly Resource[]
  readonly notes: readonly string[]
}

/** Lists the resources of a view, without directories, up to a limit, each once. */
export async function listAll(view: View, limits: ContextLimits, signal?: AbortSignal): Promise<ListedResources> {
  const notes = new Set<string>()
  const resources = new Map<string, Resource>()
  if (limits.listed === 0) return { resources: [], notes: [] }
  for await (const page of iteratePages((query) => view.list(query, defined({ signal })), endAtRepeatedPage)) {
    for (const address of page.unavailable ?? []) notes.add(`${address} does not answer`)
    for (const resource of page.items) {
      if (isNoDocument(resource) || resources.has(resource.uri)) continue
      if (resources.size >= limits.listed) {
        notes.add(`only the first ${limits.listed} resources of the listing were looked at`)
        return { resources: [...resources.values()], notes: [...notes] }
      }
      resources.set(resource.uri, resource)
    }
  }
  return { resources: [...resources.values()], notes: [...notes] }
}

/** Whether a listed entry cannot be a candidate: a directory, or data about a server itself. */
function isNoDocument({ uri, mimeType }: Resource): boolean {
  return mimeType === directoryMimeType || uri === overviewUri
}

/** Whether a resource is for an audience: a resource without an audience is for all. */
export function isForAudience(audience: Audience, audiences: readonly Audience[] | undefined): boolean {
  return audiences === undefined || audiences.length === 0 || audiences.includes(audience)
}

/** The results of one search method, best first: URIs with scores from 0 to 1. */
export interface RankedList {
  readonly name: string
  readonly entries: readonly ScoredDocument[]
  readonly weight: number
}

export interface ScoredDocument {
  readonly uri: string
  readonly score: number
}

export interface FusedDocument {
  /** From 0 to 1; the best candidate has 1. */
  readonly relevance: number
  readonly because: string
}

/** Exponent of the sum of scores of a resource, relative to the best sum. Figures: decision 21. */
const power = 2
/** Factor for a history of changes, unless the query names it. Figures: decision 21. */
const ofHistory = 0.25
const dayMs = 86_400_000
const defaultHalfLifeMs = 30 * dayMs

export function sumsOf(lists: readonly RankedList[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { entries, weight } of lists)
    for (const { uri, score } of entries) sums.set(uri, (sums.get(uri) ?? 0) + weight * score)
  return sums
}

/** Fuses lists: adds the weighted scores of each resource, divides by the best sum, and squares. */
export function fuseRankings(lists: readonly RankedList[]): ReadonlyMap<string, FusedDocument> {
  const scores = new Map<string, { relevance: number; because: string }>()
  let best = 0
  for (const { name, entries, weight } of lists)
    for (const [index, { uri, score }] of entries.entries()) {
      const reason = `${name} #${index + 1}`
      const previous = scores.get(uri)
      if (previous === undefined) scores.set(uri, { relevance: weight * score, because: reason })
      else {
        previous.relevance += weight * score
        previous.because = `${previous.because}, ${reason}`
      }
    }
  for (const { relevance } of scores.values()) best = Math.max(best, relevance)
  for (const fused of scores.values()) fused.relevance = (fused.relevance / (best || 1)) ** power
  return scores
}

/** Scores relative to the best of them, best first; equal scores in the order of their URIs. Scores of 0 are left out. */
export function scaleScores(scores: Iterable<readonly [uri: string, score: number]>): readonly ScoredDocument[] {
  const entries = [...scores].filter(([, score]) => score > 0)
  const best = entries.reduce((most, [, score]) => Math.max(most, score), 0)
  return entries
    .map(([uri, score]) => ({ uri, score: score / best }))
    .sort((a, b) => b.score - a.score || compareUris(a.uri, b.uri))
}

/** The order of URIs, independent of the locale. */
export function compareUris(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Scores a resource: its relevance, times further factors. Each of these has a floor; unknown values change nothing. */
export function scoreResource(
  { uri, priority, modified }: Resource,
  {
    relevance,
    because,
    isHistory = false,
  }: Pick<FusedDocument, 'relevance' | 'because'> & { readonly isHistory?: boolean },
  { now, halfLife = defaultHalfLifeMs, changes }: Pick<AssembleOptions, 'now' | 'halfLife' | 'changes'>,
): Explanation {
  const factors: Factor[] = [{ name: 'relevance', value: relevance, because }]
  if (isHistory)
    factors.push({ name: 'history', value: ofHistory, because: 'a history of changes mentions everything' })
  if (isKnown(priority)) {
    const p = Math.min(1, Math.max(0, priority))
    factors.push({ name: 'priority', value: 0.75 + 0.5 * p, because: `priority ${p}` })
  }
  if (isKnown(modified)) {
    const ageMs = Math.max(0, now - modified)
    const value = 0.8 + 0.2 * 2 ** (-ageMs / halfLife)
    factors.push({ name: 'recency', value, because: `modified ${(ageMs / dayMs).toFixed(1)} days ago` })
  }
  const times = changes?.(uri)
  if (isKnown(times) && times > 0)
    factors.push({
      name: 'activity',
      value: 1 + 0.1 * Math.log(1 + times),
      because: times === 1 ? 'changed once' : `changed ${times} times`,
    })
  return { score: factors.reduce((product, { value }) => product * value, 1), factors }
}

function isKnown(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value)
}
