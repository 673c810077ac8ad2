import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { defined } from '../../../core/kit/object.ts'
import {
  type FoundHit,
  type FoundQuery,
  freshnessOf,
  notesAboveHits,
  parseSearchAnswer,
  preferWordHits,
  type SearchAnswer,
  type SearchMount,
} from '../../../core/search-answer.ts'
import type { View } from '../../../core/view.ts'
import { reconnections } from '../listing/browse.ts'
import { type IndexingProgress, readIndexingProgress } from '../listing/survey.ts'
import { offeredSearches, templates } from '../state/offered.ts'
import { type Route, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'

/** Merged results of several searches. */
export interface SearchResults {
  readonly query: string
  /** Best first in each batch: the hits of a further batch follow those before it. */
  readonly hits: readonly FoundHit[]
  readonly total: number | undefined
  readonly notes: readonly string[]
  /** Time (ISO 8601) up to which all reported changes can be found. `undefined`: not all searches state a time. */
  readonly asOf?: string
  /** Number of known changes that cannot be found yet. */
  readonly pending: number
  /** The cursors of the searches with more hits, by the address of the search. */
  readonly next: ReadonlyMap<string, string>
  readonly failed: readonly { readonly address: string; readonly error: unknown }[]
}

export const noResults: SearchResults = {
  query: '',
  hits: [],
  total: 0,
  notes: [],
  pending: 0,
  next: new Map(),
  failed: [],
}

/** Returns the query in a permalink, with the first of its mounts and types. `undefined`: the permalink has no words. */
export function searchQueryFromRoute({
  q = '',
  mount,
  mime,
  audience,
  minPriority,
  since,
}: Route): FoundQuery | undefined {
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
 * Queries the searches, and merges the answers. A failed search does not hide the others.
 *
 * @param before The results to extend: the searches that have more hits are queried from their cursors.
 */
export async function querySearches(
  view: View,
  mounts: readonly SearchMount[],
  query: FoundQuery,
  before: SearchResults | undefined,
  signal: AbortSignal,
): Promise<SearchResults> {
  const searches = before === undefined ? mounts : mounts.filter(({ address }) => before.next.has(address))
  const answers = await Promise.all(
    searches.map(async (mount) => {
      const after = before?.next.get(mount.address)
      try {
        return {
          mount,
          found: await searchInMount(view, mount, after === undefined ? query : { ...query, after }, signal),
        }
      } catch (error) {
        signal.throwIfAborted()
        return { mount, error }
      }
    }),
  )
  const proposals = preferWordHits(answers.flatMap((answer) => ('found' in answer ? [answer.found] : [])))
  const hits = proposals.flatMap((one) => one.hits).sort((a, b) => b.score - a.score)
  const totals = proposals.map(({ total }) => total)
  return {
    query: query.query,
    hits: before === undefined ? withoutTwins(hits) : withoutTwins([...before.hits, ...hits]),
    total:
      before !== undefined
        ? before.total
        : totals.reduce<number | undefined>(
            (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
            0,
          ),
    notes: [...new Set([...(before?.notes ?? []), ...proposals.flatMap(notesAboveHits)])],
    // All hits are as old as the first ones.
    ...defined({ asOf: (before ?? freshnessOf(proposals)).asOf }),
    pending: before?.pending ?? proposals.reduce((sum, { pending = 0 }) => sum + pending, 0),
    next: new Map(
      answers.flatMap((answer) => {
        const { address } = answer.mount
        const isShown = 'found' in answer && proposals.includes(answer.found)
        const next = 'error' in answer ? before?.next.get(address) : isShown ? answer.found.next : undefined
        return next === undefined ? [] : [[address, next] as const]
      }),
    ),
    failed: [
      ...(before?.failed ?? []).filter(({ address }) => !searches.some((mount) => mount.address === address)),
      ...answers.flatMap((answer) =>
        'error' in answer ? [{ address: answer.mount.address, error: answer.error }] : [],
      ),
    ],
  }
}

async function searchInMount(
  view: View,
  mount: SearchMount,
  query: FoundQuery,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const { contents } = await view.read(mount.uriOf(query), { signal })
  const [content] = contents
  const answer = content !== undefined && 'text' in content ? parseSearchAnswer(content.text) : undefined
  if (answer === undefined) throw new Error(`The answer of ${mount.address} is not a search result.`)
  return answer
}

/** Removes duplicate hits, because two searches may cover the same mount. */
function withoutTwins(hits: readonly FoundHit[]): readonly FoundHit[] {
  const uris = new Set<string>()
  return hits.filter(({ uri }) => !uris.has(uri) && uris.add(uri))
}

/** Delay after the last key before contents are searched (debounce), in milliseconds. */
const pauseMs = 250
/** Interval at which a search is repeated while its index grows or lacks changes, in milliseconds. */
const growingIntervalMs = 1500

/** Runs the search in the permalink, once the user stops typing. */
export function useResults() {
  const results = useSignal<SearchResults | undefined>(undefined)
  const isBusy = useSignal(false)
  const running = useRef<AbortController | undefined>(undefined)
  const key = useComputed(() => JSON.stringify(searchQueryFromRoute(route.value)))
  const { state } = templates.value
  const growth = useSignal<IndexingProgress | undefined>(undefined)
  const isLonger = useRef(false)
  const run = async (before?: SearchResults) => {
    running.current?.abort()
    isLonger.current = before !== undefined
    const query = searchQueryFromRoute(route.value)
    if (query === undefined || offeredSearches.value.length === 0) {
      results.value = undefined
      isBusy.value = false
      return
    }
    const controller = new AbortController()
    running.current = controller
    isBusy.value = true
    try {
      const searchResults = await querySearches(
        requireConnection().view,
        offeredSearches.value,
        query,
        before,
        controller.signal,
      )
      if (!controller.signal.aborted) results.value = searchResults
    } catch {
      // A newer search replaced this one.
    } finally {
      if (running.current === controller) isBusy.value = false
    }
  }
  useEffect(() => {
    if (state !== 'loaded') return
    const timer = setTimeout(() => void run(), results.value === undefined ? 0 : pauseMs)
    return () => clearTimeout(timer)
  }, [key.value, state])
  /**
   * Searches again while the index grows or lacks changes, and once more when it is done. Results that the user has extended stay as they
   * are.
   */
  const follow = async (searchResults: SearchResults, signal: AbortSignal) => {
    const query = searchQueryFromRoute(route.value)
    const now = await readIndexingProgress(requireConnection().view, offeredSearches.value, signal)
    if (signal.aborted || query === undefined) return
    const isDone = now === undefined && growth.value === undefined
    growth.value = now
    const again = await querySearches(requireConnection().view, offeredSearches.value, query, undefined, signal)
    const visibleText = ({ hits, notes, pending }: SearchResults) => JSON.stringify([hits, notes, pending])
    const isSame = visibleText(again) === visibleText(searchResults)
    const isAsked = JSON.stringify(searchQueryFromRoute(route.value)) === JSON.stringify(query)
    if (!signal.aborted && isAsked && !(isDone && isSame && again.pending === 0)) results.value = again
  }
  useEffect(() => {
    const searchResults = results.value
    const isWhole = searchResults?.notes.length === 0 && searchResults.pending === 0
    if (searchResults === undefined || isWhole || isLonger.current) {
      growth.value = undefined
      return
    }
    const controller = new AbortController()
    const begin = () => void follow(searchResults, controller.signal).catch(() => {})
    // Show the progress of the index at once.
    const timer = setTimeout(begin, growth.value === undefined && searchResults.pending === 0 ? 0 : growingIntervalMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [results.value])
  useEffect(() => {
    if (reconnections.value > 0 && (results.value?.failed.length ?? 0) > 0) void run()
  }, [reconnections.value])
  useEffect(() => () => running.current?.abort(), [])
  return { results, isBusy, growth, run }
}
