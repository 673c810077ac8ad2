import { useComputed } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { askToAddMany, maxBasketItems } from '../basket/picked.ts'
import type { IndexingProgress } from '../listing/survey.ts'
import { Button } from '../shell/fields.tsx'
import { errorSentence } from '../state/announce.ts'
import { loadNames, loadTemplates, offeredSearches, resourceNames, templates } from '../state/offered.ts'
import { forgetRecentSearches, recentSearches } from '../state/remembered.ts'
import { navigate, previewedHit, type Route, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, formatShortTime } from '../words/texts.ts'
import { Facets } from './facets.tsx'
import { noResults, querySearches, type SearchResults, searchQueryFromRoute, useResults } from './finder.ts'
import { groupHits, HitGroupItem, NameHit, nameHits } from './hit.tsx'
import { documentResource } from './hit-link.tsx'
import { t } from './words.ts'

export function SearchPane() {
  const { q = '' } = route.value
  const { results, isBusy, growth, run } = useResults()
  const list = useRef<HTMLDivElement>(null)
  const { state } = templates.value
  const hasSearch = state !== 'loaded' || offeredSearches.value.length > 0
  const { hits } = results.value ?? noResults
  useEffect(() => void loadNames(requireConnection().view).catch(() => {}), [])
  const resources = useComputed(() => nameHits(resourceNames.value.resources, route.value.q ?? '')).value
  usePeek(results.value, resources)
  if (q.trim() === '') return <Beginning />
  return (
    <section class="find" aria-label={t('results')} aria-busy={isBusy.value}>
      <div ref={list} role="group" aria-label={t('results')} onKeyDown={(event) => moveInHits(event, list.current)}>
        {resources.length === 0 ? null : (
          <>
            <h2 class="find-part">{t('names')}</h2>
            <ul class="name-hits">
              {resources.map((resource) => (
                <NameHit key={resource.uri} resource={resource} />
              ))}
            </ul>
          </>
        )}
        {hasSearch ? (
          <>
            <Facets mimes={hits.flatMap(({ mimeType }) => (mimeType === undefined ? [] : [mimeType]))} />
            <Contents results={results.value} isBusy={isBusy.value} growth={growth.value} q={q} run={run} />
          </>
        ) : (
          <WithoutSearch q={q} />
        )}
      </div>
    </section>
  )
}

interface ContentsProps {
  readonly results: SearchResults | undefined
  readonly isBusy: boolean
  readonly growth: IndexingProgress | undefined
  readonly q: string
  readonly run: (before?: SearchResults) => Promise<void>
}

function Contents({ results, isBusy, growth, q, run }: ContentsProps) {
  const { hits, notes, asOf, pending, next, failed } = results ?? noResults
  const { state, error } = templates.value
  if (state === 'failed')
    return (
      <>
        <p class="find-note find-bad">{errorSentence(error)}</p>
        <Button name={t('retry')} onClick={() => void loadTemplates()} />
      </>
    )
  return (
    <>
      <div class="find-line">
        <p class="find-count" role="status">
          {countOf(results, isBusy || growth !== undefined, q)}
        </p>
        {asOf === undefined ? null : (
          <p class="find-as-of">{t('asOf', { time: formatShortTime(Date.parse(asOf), Date.now()) })}</p>
        )}
        {results === undefined || hits.length === 0 ? null : (
          <Button name={t('addAll')} onClick={() => addAll(results, q)} />
        )}
      </div>
      {results !== undefined && !isBusy && growth === undefined && hits.length === 0 ? (
        <p class="hint">{t('nothingHint')}</p>
      ) : null}
      {growth === undefined ? null : <p class="find-note">{growthText(growth)}</p>}
      {growth === undefined && pending > 0 ? <p class="find-note">{t('changesPending', { count: pending })}</p> : null}
      {notes.filter(isNews(growth)).map((note) => (
        <p key={note} class="find-note">
          {note}
        </p>
      ))}
      {failed.map(({ address, error: fault }) => (
        <p key={address} class="find-note find-bad">
          {t('failed', { address, reason: errorSentence(fault) })}{' '}
          <Button name={t('retry')} onClick={() => void run()} />
        </p>
      ))}
      <ol class="hits">
        {groupHits(hits, true).map((group) => (
          <HitGroupItem key={group.document} group={group} />
        ))}
      </ol>
      {next.size > 0 ? (
        <Button name={t('more')} class="find-more" disabled={isBusy} onClick={() => void run(results)} />
      ) : null}
    </>
  )
}

function addAll(results: SearchResults, q: string): void {
  askToAddMany({ name: t('filesOf', { query: escapeInvisible(q) }) }, async (signal) => {
    const query = searchQueryFromRoute(route.value)
    let searchResults = results
    while (query !== undefined && searchResults.next.size > 0 && groupHits(searchResults.hits).length <= maxBasketItems)
      searchResults = await querySearches(
        requireConnection().view,
        offeredSearches.value,
        { ...query, limit: 100 },
        searchResults,
        signal,
      )
    const files = groupHits(searchResults.hits).flatMap(({ hits: [best] }) =>
      best === undefined ? [] : [documentResource(best)],
    )
    return { files: files.slice(0, maxBasketItems + 1), counts: new Map(), isPart: searchResults.next.size > 0 }
  })
}

/** Returns a predicate: whether a note says more than the progress of the index. */
function isNews(growth: IndexingProgress | undefined): (note: string) => boolean {
  return (note) => growth === undefined || !note.includes('is still being indexed')
}

function growthText({ done, of }: IndexingProgress): string {
  return of === undefined ? t('growing', { done }) : t('growingOf', { done, of })
}

function countOf(results: SearchResults | undefined, isBusy: boolean, q: string): string {
  const { hits, total, next } = results ?? noResults
  if (results === undefined || (isBusy && hits.length === 0)) return t('searching')
  if (hits.length === 0) return t('nothing', { query: q })
  const files = groupHits(hits, true).length
  if (next.size === 0) return t('hitsIn', { count: hits.length, files })
  return total === undefined
    ? t('hitsMore', { count: hits.length, files })
    : t('hitsOf', { count: hits.length, total, files })
}

/** Previews the first hit of each search, as long as the user has opened nothing. */
function usePeek(results: SearchResults | undefined, names: readonly Resource[]): void {
  const { uri, q = '' } = route.value
  const searched = useRef<string | undefined>(undefined)
  const firstName = names[0]?.uri
  const isEmpty = q.trim() === ''
  useEffect(() => {
    if (route.value.uri !== undefined) return
    if (isEmpty) {
      previewedHit.value = undefined
      return
    }
    // `results` are those of the previous search until the answer for these words arrives.
    if (results?.query !== q) return
    const first = results.hits[0]?.uri ?? firstName
    const isHit = [...results.hits, ...names].some((one) => one.uri === previewedHit.value)
    // The preview stays while more hits for the same words are loaded.
    if (first !== undefined && isHit && searched.current === q) return
    searched.current = q
    previewedHit.value = first
  }, [results, firstName, q])
  useEffect(() => {
    if (uri !== undefined) previewedHit.value = undefined
  }, [uri])
  useEffect(
    () => () => {
      previewedHit.value = undefined
    },
    [],
  )
}

function Beginning() {
  return (
    <section class="find" aria-label={t('results')}>
      <p class="find-count">{t('type')}</p>
      <p class="hint">{t('quoted')}</p>
      {recentSearches.value.length === 0 ? null : (
        <>
          <h2 class="find-part">{t('recent')}</h2>
          <ul class="recent">
            {recentSearches.value.map((query) => (
              <li key={query}>
                <button type="button" class="recent-query" onClick={() => navigate({ view: 'search', q: query })}>
                  <bdi>{escapeInvisible(query)}</bdi>
                </button>
              </li>
            ))}
          </ul>
          <Button name={t('forget')} onClick={forgetRecentSearches} />
        </>
      )}
    </section>
  )
}

function WithoutSearch({ q }: Required<Pick<Route, 'q'>>) {
  return (
    <>
      <p class="find-count">{t('noSearch')}</p>
      <p class="hint">{t('noSearchHint')}</p>
      <Button
        name={t('filterNames', { query: q })}
        onClick={() => navigate({ view: 'list', filter: q, q: undefined })}
      />
    </>
  )
}

/** Moves the focus: arrows go from hit to hit, and from the first hit back to the field; Home and End go to the first and last hit. */
function moveInHits(event: KeyboardEvent, list: HTMLElement | null): void {
  const links: readonly Element[] = [...(list?.querySelectorAll('.hit-link') ?? [])]
  const focused = document.activeElement
  const at = focused === null ? -1 : links.indexOf(focused)
  if (at === -1) return
  if (event.key === 'ArrowUp' && at === 0) {
    event.preventDefault()
    document.getElementById('search')?.focus()
    return
  }
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key]
  const link = to === undefined ? undefined : links[to]
  if (!(link instanceof HTMLElement)) return
  event.preventDefault()
  link.focus()
}
