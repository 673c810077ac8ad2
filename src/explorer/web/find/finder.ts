import {
  type Found,
  type FoundHit,
  type FoundQuery,
  parseFound,
  type SearchPlace,
  saidOf,
  withWords,
} from '../../../core/found.ts'
import { defined } from '../../../core/kit/defined.ts'
import type { View } from '../../../core/view.ts'
import type { Place } from '../state/place.ts'

/** Merged results of several searches: hits best first, and the cursor of each search. */
export interface Results {
  readonly hits: readonly FoundHit[]
  readonly total: number | undefined
  readonly notes: readonly string[]
  /** The searches that have more, and after what. */
  readonly next: ReadonlyMap<string, string>
  /** The searches that did not answer, and why. */
  readonly failed: readonly { readonly address: string; readonly error: unknown }[]
}

export const noResults: Results = { hits: [], total: 0, notes: [], next: new Map(), failed: [] }

/** Returns the query of a place; undefined without words. */
export function queryOf({ q = '', mount, mime, audience, minPriority, since }: Place): FoundQuery | undefined {
  if (q.trim() === '') return undefined
  const priority = Number(minPriority)
  return {
    query: q,
    limit: 20,
    ...(mount === undefined ? {} : { mount: mount.split(' ')[0] ?? mount }),
    ...(mime === undefined ? {} : { mime: mime.split(' ')[0] ?? mime }),
    ...defined({ since }),
    ...(minPriority === undefined || !(priority >= 0 && priority <= 1) ? {} : { minPriority: priority }),
    ...(audience === 'user' || audience === 'assistant' ? { audience } : {}),
  }
}

/**
 * Asks every search, and joins what they answer. One that fails does not hide the others.
 *
 * @param before What was found so far: only the searches that have more are asked then, for what follows.
 */
export async function find(
  view: View,
  places: readonly SearchPlace[],
  query: FoundQuery,
  before: Results | undefined,
  signal: AbortSignal,
): Promise<Results> {
  const asked = before === undefined ? places : places.filter(({ address }) => before.next.has(address))
  const answers = await Promise.all(
    asked.map(async (place) => {
      const after = before?.next.get(place.address)
      try {
        return { place, found: await ask(view, place, after === undefined ? query : { ...query, after }, signal) }
      } catch (error) {
        signal.throwIfAborted()
        return { place, error }
      }
    }),
  )
  const found = withWords(answers.flatMap((answer) => ('found' in answer ? [answer.found] : [])))
  const hits = found.flatMap((one) => one.hits).sort((a, b) => b.score - a.score)
  const totals = found.map(({ total }) => total)
  return {
    hits: before === undefined ? withoutTwins(hits) : withoutTwins([...before.hits, ...hits]),
    total:
      before !== undefined
        ? before.total
        : totals.reduce<number | undefined>(
            (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
            0,
          ),
    notes: [...new Set([...(before?.notes ?? []), ...found.flatMap(saidOf)])],
    next: new Map(
      answers.flatMap((answer) =>
        'found' in answer && answer.found.next !== undefined && found.includes(answer.found)
          ? [[answer.place.address, answer.found.next] as const]
          : [],
      ),
    ),
    failed: answers.flatMap((answer) =>
      'error' in answer ? [{ address: answer.place.address, error: answer.error }] : [],
    ),
  }
}

async function ask(view: View, place: SearchPlace, query: FoundQuery, signal: AbortSignal): Promise<Found> {
  const { contents } = await view.read(place.uriOf(query), { signal })
  const [content] = contents
  const found = content !== undefined && 'text' in content ? parseFound(content.text) : undefined
  if (found === undefined) throw new Error(`${place.address} does not answer as a search does.`)
  return found
}

/** Two searches may cover the same mount. */
function withoutTwins(hits: readonly FoundHit[]): readonly FoundHit[] {
  const seen = new Set<string>()
  return hits.filter(({ uri }) => !seen.has(uri) && seen.add(uri))
}
