import { fold } from '../../../browse/matching.ts'
import { type FoundHit, piecesOf } from '../../../core/found.ts'
import type { Resource } from '../../../core/view.ts'
import { matchesIn } from '../preview/model/lines.ts'

/** Maximum number of names above the hits. */
const maxShown = 5

/** How well a name fits a query, both folded: higher is better. `undefined`: the query is not in it. */
function fitOf(query: string, name: string, path: string): number | undefined {
  const at = name.indexOf(query)
  if (at === 0) return 3000 - name.length
  if (at > 0) return (/[\s._\-()[\]]/.test(name[at - 1] ?? '') ? 2000 : 1000) - name.length
  const words = query.split(/\s+/)
  if (words.length > 1 && words.every((word) => path.includes(word))) return 500 - path.length
  return query.includes('/') && path.includes(query) ? 800 - path.length : undefined
}

/** Copies rank below files: a file in a commit, the settings in a file, the files of a package. */
const copyPenalty = 5000
const isCopy = (uri: string) => /^(?:git|config|env|pkg):/i.test(uri)

/** The resources whose names fit what was typed, best first. */
export function nameHits(resources: Iterable<Resource>, query: string): readonly Resource[] {
  const needle = fold(query.trim())
  if (needle === '') return []
  const found: { readonly resource: Resource; readonly fit: number }[] = []
  for (const resource of resources) {
    const fit = fitOf(needle, fold(resource.name), fold(decodedPath(resource.uri)))
    if (fit !== undefined) found.push({ resource, fit: fit - (isCopy(resource.uri) ? copyPenalty : 0) })
  }
  return found
    .sort((a, b) => b.fit - a.fit || (a.resource.uri < b.resource.uri ? -1 : 1))
    .slice(0, maxShown)
    .map(({ resource }) => resource)
}

/** A name cut where the query is in it. */
export function nameMarks(name: string, query: string) {
  const marks = matchesIn([name], query.trim()).map(({ start, end }) => [start, end] as const)
  return piecesOf({ text: name, marks })
}

function decodedPath(uri: string): string {
  if (!uri.includes('%')) return uri
  try {
    return decodeURIComponent(uri)
  } catch {
    return uri
  }
}

/** The hits of one document. */
export interface HitGroup {
  readonly document: string
  /** Best first. */
  readonly hits: readonly FoundHit[]
}

/** Puts the hits of one document together, where the best of them stands. */
export function groupsOf(hits: readonly FoundHit[]): readonly HitGroup[] {
  const groups = new Map<string, FoundHit[]>()
  for (const hit of hits) {
    const group = groups.get(hit.document)
    if (group === undefined) groups.set(hit.document, [hit])
    else group.push(hit)
  }
  return [...groups].map(([document, own]) => ({ document, hits: own }))
}
