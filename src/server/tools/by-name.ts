import { defined } from '../../core/kit/defined.ts'
import type { JsonObject } from '../../core/tool.ts'
import { decodeComponent } from '../../core/uri.ts'
import type { Resource, View } from '../../core/view.ts'

export interface Result {
  readonly uri: string
  readonly document: string
  readonly name: string
  readonly snippet: string
  readonly score: number
  readonly facts: JsonObject
}

/** Returns the resources that have all the words in their name, title, description or URI, with matches in the name first. */
export async function byName(
  view: View,
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly Result[]> {
  const words = fold(query)
    .split(/\s+/u)
    .filter((word) => word !== '')
    .slice(0, 16)
  const found: Result[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < maxPages; pages++) {
    const page = await view.list(cursor === undefined ? {} : { cursor }, { signal })
    for (const resource of page.items) {
      const score = scoreOf(resource, words)
      if (score === 0) continue
      const { uri, name, title, description, mimeType } = resource
      found.push({
        uri,
        document: uri,
        name: title ?? name,
        snippet: description ?? '',
        score,
        facts: defined({ title, mimeType }),
      })
    }
    cursor = page.nextCursor
    if (cursor === undefined) break
  }
  return found.sort((a, b) => b.score - a.score).slice(0, limit)
}

function scoreOf({ uri, name, title = '', description = '' }: Resource, words: readonly string[]): number {
  const places = [
    [fold(name), 1],
    [fold(title), 0.9],
    [fold(decodeComponent(uri) ?? uri), 0.5],
    [fold(description), 0.3],
  ] as const
  let sum = 0
  for (const word of words) {
    const [, worth] = places.find(([text]) => text.includes(word)) ?? []
    if (worth === undefined) return 0
    sum += worth
  }
  return words.length === 0 ? 0 : Math.round((sum / words.length) * 100) / 100
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

export const maxPages = 12
