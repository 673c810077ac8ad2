import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { go, type Place, place } from '../state/place.ts'
import { reasonOf } from '../state/reason.ts'
import { connected } from '../state/session.ts'
import { loadTemplates, places, templates } from '../state/templates.ts'
import { Facets } from './facets.tsx'
import { find, noResults, queryOf, type Results } from './finder.ts'
import { Hit } from './hit.tsx'
import { t } from './words.ts'

/** How long the reader pauses before what was typed is searched for, in milliseconds. */
const pause = 200

/** What was found for the words in the place, and how to narrow it down. */
export function SearchPane() {
  const results = useSignal<Results | undefined>(undefined)
  const isBusy = useSignal(false)
  const running = useRef<AbortController | undefined>(undefined)
  const list = useRef<HTMLOListElement>(null)
  const key = useComputed(() => JSON.stringify(queryOf(place.value)))
  const { q = '' } = place.value
  const { state } = templates.value

  const run = async (before?: Results) => {
    running.current?.abort()
    const query = queryOf(place.value)
    if (query === undefined) {
      results.value = undefined
      return
    }
    const controller = new AbortController()
    running.current = controller
    isBusy.value = true
    try {
      const found = await find(connected().view, places.value, query, before, controller.signal)
      if (!controller.signal.aborted) results.value = found
    } catch {
      // Another search took its place.
    } finally {
      if (running.current === controller) isBusy.value = false
    }
  }

  useEffect(() => {
    if (state !== 'loaded') return
    const timer = setTimeout(() => void run(), results.value === undefined ? 0 : pause)
    return () => clearTimeout(timer)
  }, [key.value, state])
  useEffect(() => () => running.current?.abort(), [])

  if (state === 'failed')
    return (
      <section class="find" aria-label={t('results')}>
        <p class="find-note find-bad">{reasonOf(templates.value.error)}</p>
        <button type="button" class="button" onClick={() => void loadTemplates()}>
          {t('retry')}
        </button>
      </section>
    )
  if (state === 'loaded' && places.value.length === 0) return <WithoutSearch q={q} />
  const { hits, total, notes, next, failed } = results.value ?? noResults
  const isEmpty = q.trim() === ''
  return (
    <section class="find" aria-label={t('results')} aria-busy={isBusy.value}>
      <Facets mimes={hits.flatMap(({ mimeType }) => (mimeType === undefined ? [] : [mimeType]))} />
      <p class="find-count" role="status">
        {isEmpty
          ? t('type')
          : results.value === undefined || (isBusy.value && hits.length === 0)
            ? t('searching')
            : hits.length === 0
              ? t('nothing', { query: q })
              : total === undefined || next.size > 0
                ? t('hitsMore', { count: hits.length })
                : t('hits', { count: total })}
      </p>
      {isEmpty ? <p class="find-hint">{t('quoted')}</p> : null}
      {!isEmpty && results.value !== undefined && !isBusy.value && hits.length === 0 ? (
        <p class="find-hint">{t('nothingHint')}</p>
      ) : null}
      {notes.map((note) => (
        <p key={note} class="find-note">
          {note}
        </p>
      ))}
      {failed.map(({ address, error }) => (
        <p key={address} class="find-note find-bad">
          {t('failed', { address, reason: reasonOf(error) })}{' '}
          <button type="button" class="button" onClick={() => void run()}>
            {t('retry')}
          </button>
        </p>
      ))}
      <ol class="hits" ref={list} onKeyDown={(event) => moveInHits(event, list.current)}>
        {hits.map((hit) => (
          <Hit key={hit.uri} hit={hit} />
        ))}
      </ol>
      {next.size > 0 ? (
        <button type="button" class="button find-more" disabled={isBusy.value} onClick={() => void run(results.value)}>
          {t('more')}
        </button>
      ) : null}
    </section>
  )
}

function WithoutSearch({ q }: Required<Pick<Place, 'q'>>) {
  return (
    <section class="find" aria-label={t('results')}>
      <p class="find-count">{t('noSearch')}</p>
      <p class="find-hint">{t('noSearchHint')}</p>
      {q.trim() === '' ? null : (
        <button type="button" class="button" onClick={() => go({ view: 'list', filter: q, q: undefined })}>
          {t('filterNames', { query: q })}
        </button>
      )}
    </section>
  )
}

/** Arrows go from hit to hit; Home and End to the first and the last. */
function moveInHits(event: KeyboardEvent, list: HTMLOListElement | null): void {
  const links: readonly Element[] = [...(list?.querySelectorAll('.hit-link') ?? [])]
  const focused = document.activeElement
  const at = focused === null ? -1 : links.indexOf(focused)
  if (at === -1) return
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key]
  const link = to === undefined ? undefined : links[to]
  if (!(link instanceof HTMLElement)) return
  event.preventDefault()
  link.focus()
}
