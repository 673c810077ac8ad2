import { setImmediate as turn } from 'node:timers/promises'
import { requiredPriority } from '../core/entry.ts'
import { isResourceError } from '../core/errors.ts'
import { iteratePages } from '../core/kit/groups.ts'
import { defined } from '../core/kit/object.ts'
import { searchStatusMimeType } from '../core/search-answer.ts'
import type { Resource, View } from '../core/view.ts'
import { queryTerms } from '../text/analyser.ts'
import { createLabelScore } from '../text/relevance.ts'
import { findCandidates, neighboursOf } from './lists.ts'
import { type ContextReader, canonicalUri, createAddressFinder, createExcluder, folderOf, isHistory } from './reader.ts'
import {
  compareUris,
  endAtRepeatedPage,
  type FusedDocument,
  fuseRankings,
  isForAudience,
  listAll,
  scoreResource,
  searchAll,
  sumsOf,
} from './searched.ts'
import { rankTestsLower } from './tests.ts'
import type { AssembleOptions, Candidate, ContextFreshness, ContextLimits, Level, Pin } from './types.ts'

/** The number of resources that are examined before other work has its turn. */
const doublesSlice = 1024

interface Doubles {
  /** The URI of the original by the URI of its copy. */
  readonly originals: ReadonlyMap<string, string>
  readonly isSearched: boolean
}

/**
 * Finds the resources that are copies of resources that a search covers, and are outside of every search. For example, a git mount lists
 * the files that a file mount lists too. A copy has the same path below the mount as its original, or one more segment in front (the git
 * ref).
 *
 * @param coveredBy Returns the address of the mount in which a search covers a URI, or `undefined`.
 */
async function doublesOf(
  resources: readonly Resource[],
  coveredBy: (uri: string) => string | undefined,
): Promise<Doubles> {
  const covered = new Map<string, Resource>()
  const others: Resource[] = []
  for (const [index, resource] of resources.entries()) {
    if (index % doublesSlice === doublesSlice - 1) await turn()
    const address = coveredBy(resource.uri)
    if (address === undefined) others.push(resource)
    else covered.set(resource.uri.slice(address.length).replace(/^\//, ''), resource)
  }
  const originals = new Map<string, string>()
  if (covered.size === 0) return { originals, isSearched: false }
  for (const [index, { uri, size }] of others.entries()) {
    if (index % doublesSlice === doublesSlice - 1) await turn()
    const path = /^[a-z][a-z0-9+.-]*:\/\/[^/]*\/([^?#]+)$/i.exec(uri)?.[1]
    if (path === undefined) continue
    const original = covered.get(path) ?? covered.get(path.slice(path.indexOf('/') + 1))
    if (original === undefined) continue
    const isSameSize = size === undefined || original.size === undefined || size === original.size
    if (isSameSize) originals.set(uri, original.uri)
  }
  return { originals, isSearched: true }
}

interface Ranked {
  /** Required candidates in the order of the pins, then the others, best first. */
  readonly candidates: readonly Candidate[]
  readonly terms: ReadonlySet<string>
  readonly notes: readonly string[]
  /** How up to date the searched indexes were. */
  readonly freshness: ContextFreshness
}

const slice = 1024

/** Finds the candidates, and scores them. */
export async function rankAll(
  view: View,
  options: AssembleOptions,
  limits: ContextLimits,
  reader: ContextReader,
): Promise<Ranked> {
  const { query = '', pins = [], mounts, audience = 'assistant', signal } = options
  const isExcluded = await createExcluder(view, options)
  if (options.pinsOnly === true) return onlyPins(view, options, isExcluded)
  const allResources = await listAll(view, limits, signal)
  reader.expect(allResources.resources)
  const mountOf = createAddressFinder(mounts ?? [])
  const empty = new Set(mounts)
  const isWanted = ({ uri, audience: audiences, mimeType }: Resource) => {
    // The status of a search is not a candidate.
    if (!isForAudience(audience, audiences) || isExcluded(uri) || mimeType === searchStatusMimeType) return false
    const mount = mountOf(uri)
    if (mount !== undefined) empty.delete(mount)
    return mounts === undefined || mount !== undefined
  }
  const resources: Resource[] = []
  for (const [index, resource] of allResources.resources.entries()) {
    if (index % slice === slice - 1) await turn()
    if (isWanted(resource)) resources.push(resource)
  }

  const bySpelling = await findPinned(view, pins.map(pinUri), allResources.resources, signal)
  const required = requiredOf(pins, resources, bySpelling, isExcluded)
  // Pins are read first, so that other reads do not use up the limit of bytes.
  await reader.read([...required.keys()])

  const terms = new Set(queryTerms(query))
  const searched =
    query.trim() === ''
      ? { lists: [], lines: new Map<string, never>(), resources: [], covered: [], notes: [], freshness: {} }
      : await searchAll(view, query, { audience, limit: limits.searched, ...defined({ fresh: options.fresh, signal }) })
  const isListed = new Set(allResources.resources.map(({ uri }) => uri))
  for (const match of searched.resources) {
    if (isListed.has(match.uri) || !isWanted(match)) continue
    isListed.add(match.uri)
    resources.push(match)
  }
  const resourcesByUri = new Map(resources.map((resource) => [resource.uri, resource] as const))
  const coveredBy = createAddressFinder(searched.covered)
  const { originals, isSearched } = await doublesOf(resources, coveredBy)
  const isRead = ({ uri }: Resource) => coveredBy(uri) === undefined && !originals.has(uri)

  // A copy is left out if its original was found or is required.
  const hitUris = new Set(searched.lists.flatMap((entries) => entries.map(({ uri }) => uri)))
  const isDouble = (uri: string) => {
    const original = originals.get(uri)
    return original !== undefined && (hitUris.has(original) || required.has(original))
  }
  const isCovered = ({ uri }: Resource) => coveredBy(uri) !== undefined
  const { memory } = options
  const labelScore = createLabelScore(query)
  const looking = { terms, labelScore, searched, isSearched, isCovered, isRead, isDouble, reader, limits, memory }
  const { lists, notes: searchNotes } = await findCandidates(resourcesByUri, looking)
  const near = await neighboursOf([...required.keys()], sumsOf(lists), resourcesByUri, reader)
  const fused = fuseRankings([...lists, ...near])
  const whole = { relevance: 1, because: query.trim() === '' ? 'no query' : 'required' }
  const candidateOf = (resource: Resource, rank: Pick<FusedDocument, 'relevance' | 'because'>): Candidate => {
    const pinned = required.get(resource.uri)
    return {
      resource,
      explanation: scoreResource(resource, { ...rank, isHistory: isHistory(resource.uri, terms) }, options),
      ...(pinned === undefined ? {} : { required: pinned.level }),
      found: searched.lines.get(resource.uri) ?? [],
    }
  }
  const must = [...required.values()].map(({ resource }) => candidateOf(resource, fused.get(resource.uri) ?? whole))
  const may = resources
    .filter(({ uri }) => !required.has(uri) && !isDouble(uri))
    .flatMap((resource) => {
      const rank = query.trim() === '' && pins.length === 0 ? whole : fused.get(resource.uri)
      return rank === undefined ? [] : [candidateOf(resource, rank)]
    })
  const ordered = [...rankTestsLower(may, terms)].sort(
    (a, b) => b.explanation.score - a.explanation.score || compareUris(a.resource.uri, b.resource.uri),
  )
  const notes = [
    ...(empty.size === 0 ? [] : [nothingIn([...empty])]),
    ...allResources.notes,
    ...searched.notes,
    ...searchNotes,
  ]
  return { candidates: [...must, ...ordered], terms, notes, freshness: searched.freshness }
}

function nothingIn(mounts: readonly string[]): string {
  const [first, ...others] = mounts
  return `nothing is listed in ${first}${others.length === 0 ? '' : `, nor in ${others.length} more ${others.length === 1 ? 'mount' : 'mounts'}`}`
}

/** Returns the pins as the only candidates, without a search. */
async function onlyPins(view: View, options: AssembleOptions, isExcluded: (uri: string) => boolean): Promise<Ranked> {
  const { query = '', pins = [], signal } = options
  const resources = await describePins(view, pins.map(pinUri), signal)
  const candidates = [...requiredOf(pins, [], resources, isExcluded).values()].map(
    ({ resource, level }): Candidate => ({
      resource,
      explanation: scoreResource(resource, { relevance: 1, because: 'pinned' }, options),
      required: level,
      found: [],
    }),
  )
  return { candidates, terms: new Set(queryTerms(query)), notes: [], freshness: {} }
}

/** Returns the resources of pins, by canonical URI: from the listing, or else from the folder that contains the pin. */
async function findPinned(
  view: View,
  pins: readonly string[],
  listed: readonly Resource[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, Resource>> {
  if (pins.length === 0) return new Map()
  const pinUris = new Set(pins.map(canonicalUri))
  const resources = new Map<string, Resource>()
  for (const [index, resource] of listed.entries()) {
    if (index % slice === slice - 1) await turn()
    const uri = canonicalUri(resource.uri)
    if (pinUris.has(uri)) resources.set(uri, resource)
  }
  const unlisted = [...pinUris].filter((uri) => !resources.has(uri))
  for (const [uri, resource] of await describePins(view, unlisted, signal)) resources.set(uri, resource)
  return resources
}

function pinUri(pin: string | Pin): string {
  return typeof pin === 'string' ? pin : pin.uri
}

interface Required {
  readonly resource: Resource
  readonly level: Level
}

/** Returns the required resources by their URIs: the pins in the given order, then the resources of priority 1. */
function requiredOf(
  pins: NonNullable<AssembleOptions['pins']>,
  resources: readonly Resource[],
  resourcesByUri: ReadonlyMap<string, Resource>,
  isExcluded: (uri: string) => boolean,
): ReadonlyMap<string, Required> {
  const required = new Map<string, Required>()
  for (const pin of pins) {
    const { uri, level = 'full' } = typeof pin === 'string' ? { uri: pin } : pin
    if (isExcluded(uri)) continue
    // A resource of a template is not listed, but may exist.
    const resource = resourcesByUri.get(canonicalUri(uri)) ?? { uri, name: uri.slice(uri.lastIndexOf('/') + 1) }
    if (!required.has(resource.uri)) required.set(resource.uri, { resource, level })
  }
  for (const resource of resources)
    if (resource.priority === requiredPriority && !required.has(resource.uri))
      required.set(resource.uri, { resource, level: 'full' })
  return required
}

/** Maximum number of pages listed of one folder. */
const most = 5

/** Returns the listed resources of these URIs, by canonical URI. URIs in no folder, such as those of a template, are left out. */
async function describePins(
  view: View,
  uris: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, Resource>> {
  const uriSet = new Set(uris.map(canonicalUri))
  const resources = new Map<string, Resource>()
  const options = signal === undefined ? {} : { signal }
  for (const folder of new Set([...uriSet].map(folderOf))) {
    let left = [...uriSet].filter((uri) => folderOf(uri) === folder).length
    let pages = 0
    try {
      for await (const { items } of iteratePages(
        (query) => view.directory({ uri: folder, ...query }, options),
        endAtRepeatedPage,
      )) {
        for (const resource of items) {
          const uri = canonicalUri(resource.uri)
          if (!uriSet.has(uri) || resources.has(uri)) continue
          resources.set(uri, resource)
          left--
        }
        if (left === 0 || ++pages === most) break
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isResourceError(error)) throw error
    }
  }
  return resources
}
