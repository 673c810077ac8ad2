import './browse.css'
import { Button } from '../shell/fields.tsx'
import './rows.css'
import './list.css'
import { useEffect, useRef } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import { directoryMimeType } from '../../../core/view.ts'
import { askToAddMany } from '../basket/picked.ts'
import {
  browseModel,
  emptyColumns,
  isFiltered,
  isRevealing,
  listState,
  selectedRows,
  treeState,
} from '../listing/browse.ts'
import { parseSort, type SortKey, sortKeys } from '../listing/columns.ts'
import { Icon } from '../shell/icons.tsx'
import { announce, errorSentence } from '../state/announce.ts'
import { findCachedResource } from '../state/offered.ts'
import { linkTo, navigate, route } from '../state/route.ts'
import { escapeInvisible } from '../words/texts.ts'
import { FacetsBar } from './facets-bar.tsx'
import { ListView } from './list-view.tsx'
import { matchingFiles, TreeView } from './tree-view.tsx'
import { t } from './words.ts'

/** The tree, or the list, with its filter and facets. */
export function BrowsePane() {
  const isList = route.value.view === 'list'
  return (
    <div class={['browse', ...emptyColumns.value.map((name) => `without-${name}`)].join(' ')}>
      <div class="browse-tools">
        <FilterBar />
        <FacetsBar />
      </div>
      {isList ? <ListBody /> : <TreeBody />}
      <Progress />
    </div>
  )
}

function hasRows(isList: boolean): boolean {
  if (isList || isFiltered.value) return selectedRows.value.rows.length > 0
  const { state } = treeState.value
  return state !== 'failed' && state !== 'loading' && browseModel.value?.forest.rows.length !== 0
}

function TreeBody() {
  const { state, error } = treeState.value
  if (hasRows(false)) return <TreeView />
  if (isFiltered.value) return <NoMatch />
  if (state === 'failed') return <Failed error={error} retry={() => void browseModel.value?.forest.start()} />
  return state === 'loading' ? <p class="browse-note quiet">{t('loading')}</p> : <NoMounts />
}

function ListBody() {
  const { state, error, count } = listState.value
  if (state === 'failed' && count === 0) return <Failed error={error} retry={() => browseModel.value?.listed.load()} />
  return (
    <>
      <Scope />
      <div class="column">
        <ListHead />
        {hasRows(true) ? (
          <ListView />
        ) : state === 'loading' || state === 'idle' ? (
          <p class="browse-note quiet">{t('loading')}</p>
        ) : count === 0 ? (
          <NoMounts />
        ) : (
          <NoMatch />
        )}
      </div>
    </>
  )
}

/** The listed directory, with a link to all resources; or a link from all resources to the shown directory. */
function Scope() {
  const { in: directory, uri } = route.value
  // Read the signal, because the metadata of the directory may be loaded with the tree.
  treeState.value
  if (directory !== undefined)
    return (
      <p class="browse-in">
        <span>{t('listIn', { name: escapeInvisible(lastSegment(directory)) })}</span>
        <a href={linkTo({ in: undefined })}>{t('everything')}</a>
      </p>
    )
  if (uri === undefined || findCachedResource(uri)?.mimeType !== directoryMimeType) return null
  return (
    <p class="browse-in">
      <span>{t('everything')}</span>
      <a href={linkTo({ in: uri })}>{t('onlyIn', { name: escapeInvisible(lastSegment(uri)) })}</a>
    </p>
  )
}

function Failed({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  return (
    <div class="browse-note" role="alert">
      <p class="bad">
        {t('failed')} {errorSentence(error)}
      </p>
      <Button name={t('retry')} onClick={retry} />
    </div>
  )
}

function NoMounts() {
  return (
    <div class="browse-note">
      <p>{t('noMounts')}</p>
      <p class="quiet">{t('noMountsDo')}</p>
    </div>
  )
}

function NoMatch() {
  const { state } = listState.value
  const { filter } = route.value
  if (state === 'loading' || state === 'idle') return <p class="browse-note quiet">{t('loading')}</p>
  if (!isFiltered.value) return <p class="browse-note">{t('empty')}</p>
  return (
    <div class="browse-note">
      <p>{t('noMatch')}</p>
      <p class="quiet">{t('noMatchDo')}</p>
      {filter === undefined ? null : (
        <Button name={t('search')} onClick={() => navigate({ view: 'search', q: filter })} />
      )}
    </div>
  )
}

function Progress() {
  const { state, error, unavailable, count: all } = listState.value
  const isList = route.value.view === 'list'
  const isShown = isList || isFiltered.value
  const count = selectedRows.value.rows.length
  const isLoading = state === 'loading'
  useEffect(() => {
    if (isShown && !isLoading) announce(t('filtered', { count }))
  }, [isShown, isLoading, count])
  if (!isShown) return isRevealing.value ? <p class="browse-foot">{t('revealing')}</p> : null
  const key = count === all ? (isLoading ? 'countSoFar' : 'count') : isLoading ? 'countOfSoFar' : 'countOf'
  return (
    <div class="browse-foot">
      <span>{t(key, { count, all })}</span>
      {isFiltered.value && count > 0 ? (
        <button
          type="button"
          class="narrow-open"
          onClick={() => askToAddMany({ name: t('theFitting') }, () => matchingFiles())}
        >
          {t('addAll', { count })}
        </button>
      ) : null}
      {unavailable.length === 0 ? null : (
        <span class="warn">{t('unavailable', { names: unavailable.map(escapeInvisible).join(', ') })}</span>
      )}
      {state === 'failed' && all > 0 ? (
        <span class="bad">
          {errorSentence(error)}{' '}
          <button type="button" class="narrow-open" onClick={() => browseModel.value?.listed.load()}>
            {t('retry')}
          </button>
        </span>
      ) : null}
    </div>
  )
}

/** The columns that are first sorted in descending order: largest, latest and most important first. */
const downFirst: ReadonlySet<SortKey> = new Set(['size', 'modified', 'priority'])

/** The heads of the columns. A click sorts by the column, a second click reverses the order, a third restores the order of the server. */
function ListHead() {
  const now = parseSort(route.value.sort)
  return (
    <div class="list-head list-cells" role="group" aria-label={t('sortBy')}>
      <span class="cell-icon" />
      {sortKeys.map((sort) => {
        const isNow = now?.by === sort
        return (
          <button
            key={sort}
            type="button"
            class={`list-sort cell-${sort}`}
            aria-pressed={isNow}
            aria-label={isNow ? `${t(sort)}, ${t(now.down ? 'down' : 'up')}` : t(sort)}
            onClick={() => navigate({ sort: nextOf(sort) })}
          >
            {t(sort)}
            {isNow ? <Icon name={now.down ? 'down' : 'up'} /> : null}
          </button>
        )
      })}
      <span class="cell-path" />
      <span class="cell-do" />
    </div>
  )
}

function nextOf(sort: SortKey): string | undefined {
  const now = route.value.sort
  const [first, second] = downFirst.has(sort) ? [`-${sort}`, sort] : [sort, `-${sort}`]
  return now === first ? second : now === second ? undefined : first
}

function FilterBar() {
  const field = useRef<HTMLInputElement>(null)
  const { filter = '', view = 'tree' } = route.value
  const rows = view === 'list' ? 'list' : 'tree'
  const isNarrowing = hasRows(view === 'list')
  useEffect(() => {
    // Text in composition by an input method is not replaced.
    if (field.current !== null && document.activeElement !== field.current) field.current.value = filter
  }, [filter])
  const clear = () => {
    if (field.current !== null) field.current.value = ''
    navigate({ filter: undefined }, { replace: true })
  }
  return (
    <div class="filter">
      <Icon name="filter" />
      <input
        ref={field}
        id="filter"
        class="field"
        type="text"
        defaultValue={filter}
        autocomplete="off"
        spellcheck={false}
        aria-label={t('filter')}
        {...(isNarrowing ? { 'aria-controls': rows } : {})}
        placeholder={t('filterHint')}
        onInput={({ currentTarget }) => navigate({ filter: currentTarget.value || undefined }, { replace: true })}
        onKeyDown={(event) => {
          if (event.isComposing || event.keyCode === 229) return
          if (event.key === 'Escape' && filter !== '') {
            event.preventDefault()
            event.stopPropagation()
            clear()
          }
          if (event.key === 'ArrowDown' || event.key === 'Enter') {
            event.preventDefault()
            document.getElementById(rows)?.focus()
          }
        }}
      />
      {filter === '' ? null : (
        <button
          type="button"
          class="filter-clear"
          aria-label={t('clearFilter')}
          title={t('clearFilter')}
          onClick={() => {
            clear()
            field.current?.focus()
          }}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  )
}
