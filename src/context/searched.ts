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
import type { Audience } from '../core/provider.ts'
import type { Resource, ResourceTemplate, View } from '../core/view.ts'
import { pagesOf } from './listed.ts'
import { type Scored, scaled } from './score.ts'
import type { LineRange } from './types.ts'

/** Results of the searches of a view. */
export interface Searched {
  /** The documents that each search has found, best first, with the scores of their best hits. */
  readonly lists: readonly (readonly Scored[])[]
  readonly lines: ReadonlyMap<string, readonly LineRange[]>
  /** Resources of the hits, as the search describes them: a listing that was cut may not contain them. */
  readonly resources: readonly Resource[]
  /** The addresses of mounts that a search that has answered looks through as a whole. */
  readonly covered: readonly string[]
  readonly notes: readonly string[]
}

const most = 100

/** Asks every search that the view has. One that does not answer is told of, and what it covers is looked through in another way. */
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

/** Only mounts whose index is as they are: in any other, something may be that the search does not find. */
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
