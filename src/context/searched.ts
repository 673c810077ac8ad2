import { isResourceError } from '../core/errors.ts'
import {
  type Found,
  type FoundHit,
  parseFound,
  parseSearchStatus,
  type SearchPlace,
  saidOf,
  searchPlaces,
} from '../core/found.ts'
import { defined } from '../core/kit/defined.ts'
import { overviewUri } from '../core/overview.ts'
import type { Audience } from '../core/provider.ts'
import { directoryMimeType, type Page, type Resource, type ResourceTemplate, type View } from '../core/view.ts'
import { type Scored, scaled } from './score.ts'
import type { Limits, LineRange } from './types.ts'

/** Results of the searches of a view. */
export interface Searched {
  /** The documents found by each search, best first, with the scores of their best hits. */
  readonly lists: readonly (readonly Scored[])[]
  readonly lines: ReadonlyMap<string, readonly LineRange[]>
  /** Resources of the hits, as the search describes them: a listing that was cut may not contain them. */
  readonly resources: readonly Resource[]
  /** The addresses of the mounts that are covered completely by a search that answered. */
  readonly covered: readonly string[]
  readonly notes: readonly string[]
}

const most = 100

/** Queries every search of the view. If a search does not answer, a note says so, and its mounts are searched in another way. */
export async function searchAll(
  view: View,
  query: string,
  audience: Audience,
  signal?: AbortSignal,
): Promise<Searched> {
  const options = signal === undefined ? {} : { signal }
  const templates: ResourceTemplate[] = []
  for await (const page of pagesOf((cursor) => view.templates(cursor, options))) templates.push(...page.items)
  const lists: (readonly Scored[])[] = []
  const lines = new Map<string, LineRange[]>()
  const resources: Resource[] = []
  const covered: string[] = []
  const notes: string[] = []
  for (const place of searchPlaces(templates)) {
    const [answer, status] = await Promise.all([
      textAt(view, () => place.uriOf({ query, limit: most, audience }), options),
      textAt(view, () => place.status, options),
    ])
    const found = answer === undefined ? undefined : parseFound(answer)
    signal?.throwIfAborted()
    if (found === undefined) {
      notes.push(`the search at ${place.address} does not answer`)
      continue
    }
    notes.push(...saidOf(found))
    covered.push(...coveredBy(place, status))
    lists.push(collect(found, lines))
    resources.push(...found.hits.map(resourceOf))
  }
  return { lists, lines, resources, covered, notes }
}

async function textAt(view: View, uri: () => string, options: { readonly signal?: AbortSignal }) {
  try {
    const { contents } = await view.read(uri(), options)
    const [content] = contents
    return content !== undefined && 'text' in content ? content.text : undefined
  } catch (error) {
    if (isResourceError(error)) return undefined
    throw error
  }
}

/** Only mounts with a current index: for others, the search may miss documents. */
function coveredBy({ address }: SearchPlace, status: string | undefined): readonly string[] {
  const known = status === undefined ? undefined : parseSearchStatus(status)
  const current = (known?.mounts ?? []).filter(({ state }) => state === 'current')
  return [address, ...current.map((mount) => mount.address)]
}

function collect({ hits }: Found, lines: Map<string, LineRange[]>): readonly Scored[] {
  const documents = new Map<string, number>()
  for (const { document, lines: range, score } of hits) {
    documents.set(document, Math.max(score, documents.get(document) ?? 0))
    lines.set(document, [...(lines.get(document) ?? []), range])
  }
  return scaled(documents)
}

function resourceOf({ document, title, mimeType, modified, priority, audience }: FoundHit): Resource {
  const time = modified === undefined ? Number.NaN : Date.parse(modified)
  return {
    uri: document,
    name: document.slice(document.lastIndexOf('/') + 1),
    ...defined({ title, mimeType }),
    ...(Number.isNaN(time) ? {} : { modified: time }),
    ...defined({ priority, audience }),
  }
}

interface Listed {
  readonly resources: readonly Resource[]
  readonly notes: readonly string[]
}

/** All resources of a view, in its order, up to a limit, each once. */
export async function listAll(view: View, limits: Limits, signal?: AbortSignal): Promise<Listed> {
  const notes = new Set<string>()
  const resources = new Map<string, Resource>()
  for await (const page of pagesOf((cursor) => view.list(cursor, signal === undefined ? {} : { signal }))) {
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

/** All pages. A repeated cursor also ends them. */
export async function* pagesOf<T>(
  next: (query: { readonly cursor?: string }) => Promise<Page<T>>,
): AsyncGenerator<Page<T>> {
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await next(cursor === undefined ? {} : { cursor })
    yield page
    cursor = page.nextCursor
    if (cursor !== undefined && seen.has(cursor)) return
    if (cursor !== undefined) seen.add(cursor)
  } while (cursor !== undefined)
}

/** Whether a resource is for an audience: a resource without an audience is for all. */
export function isFor(audience: Audience, given: readonly Audience[] | undefined): boolean {
  return given === undefined || given.length === 0 || given.includes(audience)
}
