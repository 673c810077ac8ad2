import { signal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { defined } from '../../../core/kit/object.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import { reconnections } from '../listing/browse.ts'
import { distinctTitle, sortNaturally } from '../listing/columns.ts'
import { summarizeFolder } from '../listing/survey.ts'
import { Button, rowHeightPx } from '../shell/fields.tsx'
import { indexAfterKey } from '../shell/keys.ts'
import { onListChange } from '../state/live.ts'
import { cacheResources, findCachedResource } from '../state/offered.ts'
import { linkTo, navigate } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, formatSize, formatTime, langOf } from '../words/texts.ts'
import { typeWord } from '../words/types.ts'
import { VirtualRows } from './controls.tsx'
import { FileIcon } from './file-icon.tsx'
import { Gallery, picturesIn } from './gallery.tsx'
import { typeName } from './model/kind.ts'
import { Failure } from './notes.tsx'
import { Readme } from './readme.tsx'
import { t } from './words.ts'

interface Listing {
  readonly items: readonly Resource[]
  readonly next?: string
  readonly isBusy: boolean
  readonly error?: unknown
}

/** URI of the shown folder, if it contains nothing for the basket: it is empty, or it could not be listed. */
export const emptyFolderUri = signal<string | undefined>(undefined)

/**
 * Maximum number of rows that are all visible above the README and the pictures, and number of visible rows of a longer list. The half row
 * shows that the list scrolls.
 */
const [maxWholeRows, visibleRows] = [100, 20.5]

/** The entries of a directory, page by page, and below them its pictures and its README. */
export function Directory({ uri }: { readonly uri: string }) {
  const { listing, more, reload } = useListing(uri)
  const [active, setActive] = useState(0)
  const { next, isBusy, error } = listing
  const items = useMemo(() => sortNaturally(listing.items), [listing.items])
  const { folders, files, readme } = summarizeFolder(items, false)
  const pictures = useMemo(() => picturesIn(items), [items])
  const hasMore = readme !== undefined || pictures.length > 0
  const isBarren = items.length === 0 && !isBusy
  const isListed = items.length > 0
  useEffect(() => {
    // If the middle pane itself has the focus, the list gets it, so that its keys work at once.
    const { activeElement } = document
    if (isListed && activeElement?.id === 'middle') document.querySelector<HTMLElement>('#middle .folder-rows')?.focus()
  }, [isListed])
  useEffect(() => {
    emptyFolderUri.value = isBarren ? uri : undefined
  }, [isBarren, uri])
  if (error !== undefined && items.length === 0) return <Failure uri={uri} error={error} retry={reload} />
  if (items.length === 0) return <p class="preview-note">{t(isBusy ? 'loading' : 'emptyFolder')}</p>
  const inside = folders === 0 ? t('insideFiles', { files }) : t('inside', { folders, files })
  const onKeyDown = (event: KeyboardEvent) => {
    const next = indexAfterKey(event.key, active, items.length, 15)
    const item = items[active]
    if (next !== undefined) {
      event.preventDefault()
      setActive(next)
      requestAnimationFrame(() => document.getElementById(`entry-${next}`)?.scrollIntoView({ block: 'nearest' }))
    } else if (event.key === 'Enter' && !event.isComposing && item !== undefined)
      navigate({ uri: item.uri, source: undefined })
  }
  return (
    <div class={hasMore ? 'folder folder-told' : 'folder column'}>
      <p class="preview-note">
        {next === undefined ? inside : t('entriesMore', { count: items.length })}{' '}
        {next === undefined ? null : (
          <Button
            name={t(isBusy ? 'showingMore' : error === undefined ? 'showMore' : 'moreFailed')}
            disabled={isBusy}
            onClick={more}
          />
        )}
      </p>
      <VirtualRows
        class="folder-rows"
        height={rowHeightPx}
        {...(hasMore ? { style: { height: `${rowsOver(items.length) * rowHeightPx}px` } } : {})}
        role="listbox"
        tabIndex={0}
        aria-label={t('directory')}
        aria-activedescendant={`entry-${active}`}
        onKeyDown={onKeyDown}
        count={items.length}
        active={active}
        row={(index) => {
          const item = items[index]
          if (item === undefined) return null
          return <Entry key={item.uri} item={item} index={index} count={items.length} isActive={index === active} />
        }}
      />
      {pictures.length === 0 ? null : <Gallery pictures={pictures} />}
      {readme === undefined ? null : (
        <div class="folder-readme">
          <Readme resource={readme} />
        </div>
      )}
    </div>
  )
}

/** Number of visible rows above the README and the pictures. */
const rowsOver = (count: number) => (count <= maxWholeRows ? count : visibleRows)

interface EntryProps {
  readonly item: Resource
  readonly index: number
  readonly count: number
  readonly isActive: boolean
}

function Entry({ item, index, count, isActive }: EntryProps) {
  const isFolder = item.mimeType === directoryMimeType
  const { name } = item
  const aside = distinctTitle(item)
  return (
    <a
      id={`entry-${index}`}
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      aria-posinset={index + 1}
      aria-setsize={count}
      class={`folder-row ${isActive ? 'active' : ''}`}
      href={linkTo({ uri: item.uri, source: undefined })}
      title={escapeInvisible(item.description ?? item.name)}
    >
      <FileIcon uri={item.uri} mimeType={item.mimeType} />
      <bdi class="folder-name" lang={langOf(name)}>
        {escapeInvisible(name)}
        {aside === undefined ? null : (
          <small class="preview-aside" lang={langOf(aside)}>
            {escapeInvisible(aside)}
          </small>
        )}
      </bdi>
      <span class="folder-type">
        {isFolder ? t('folder') : escapeInvisible(typeWord(typeName(item.mimeType, item.uri)))}
      </span>
      <span class="folder-size">{item.size === undefined ? '' : formatSize(item.size)}</span>
      <span class="folder-time">{item.modified === undefined ? '' : formatTime(item.modified)}</span>
    </a>
  )
}

function useListing(uri: string) {
  const [listing, setListing] = useState<Listing>({ items: [], isBusy: true })
  const [round, setRound] = useState(0)
  const held = useRef(0)
  held.current = listing.items.length
  const page = async (cursor: string | undefined, signal?: AbortSignal) => {
    const directory = uri.endsWith('/') || findCachedResource(uri)?.mimeType === directoryMimeType ? uri : `${uri}/`
    const options = signal === undefined ? {} : { signal }
    const page = await requireConnection().view.directory({ uri: directory, ...defined({ cursor }) }, options)
    cacheResources(page.items)
    return page
  }
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    setListing((before) => ({ ...before, isBusy: true }))
    // As many entries as before are loaded again, so that the scroll position stays.
    const readAll = async () => {
      let firstPage = await page(undefined, signal)
      const items = [...firstPage.items]
      while (firstPage.nextCursor !== undefined && items.length < held.current) {
        firstPage = await page(firstPage.nextCursor, signal)
        items.push(...firstPage.items)
      }
      setListing({ items, isBusy: false, ...defined({ next: firstPage.nextCursor }) })
    }
    readAll().catch((error: unknown) => {
      if (!signal.aborted) setListing({ items: [], isBusy: false, error })
    })
    const stop = onListChange(() => setRound((before) => before + 1))
    return () => {
      controller.abort()
      stop()
    }
  }, [uri, round, reconnections.value])
  const more = () => {
    setListing((before) => ({ ...before, isBusy: true }))
    page(listing.next).then(
      ({ items, nextCursor }) =>
        setListing((before) => ({
          items: [...before.items, ...items],
          isBusy: false,
          ...defined({ next: nextCursor }),
        })),
      (error: unknown) => setListing((before) => ({ ...before, isBusy: false, error })),
    )
  }
  return { listing, more, reload: () => setRound((before) => before + 1) }
}
