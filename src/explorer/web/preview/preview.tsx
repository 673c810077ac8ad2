import './preview.css'
import { useComputed } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import { isPicked, shareInBasket, togglePicked } from '../basket/picked.ts'
import { breadcrumbsOf } from '../listing/browse.ts'
import { distinctTitle, readableUri } from '../listing/columns.ts'
import { Button, ServerText } from '../shell/fields.tsx'
import { hasSingleKeys } from '../shell/keys.ts'
import { frontPane } from '../shell/panes.tsx'
import { announce, copyAndAnnounce } from '../state/announce.ts'
import { canDownload } from '../state/browser.ts'
import { findCachedResource, isSearchMount, neighbours } from '../state/offered.ts'
import { noteOpened } from '../state/remembered.ts'
import { linkTo, navigate, previewedHit, route } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, formatSize, langOf } from '../words/texts.ts'
import { typeWord } from '../words/types.ts'
import { Contents } from './contents.tsx'
import { Toggle } from './controls.tsx'
import { areDetailsShown, Details, saveContent } from './details.tsx'
import { Difference } from './difference.tsx'
import { Directory, emptyFolderUri } from './directory.tsx'
import { createPreviewReader, type PreviewReader, uriWithoutPart } from './load.ts'
import { documentFormOf, typeName } from './model/kind.ts'
import { Failure, Notes } from './notes.tsx'
import { t } from './words.ts'

/** One resource or directory: its metadata, and its content in a form that fits its type. It is read again when it changes. */
export function Preview({ uri }: { readonly uri: string }) {
  const reader = useReader(uri)
  useNeighbourKeys()
  const reading = reader.reading.value
  const earlier = reader.standing.value.changedAt === undefined ? reader.earlier.value : undefined
  const diff = earlier?.isShown === true ? earlier.diff : undefined
  return (
    <article class="preview">
      <PreviewHead reader={reader} />
      {areDetailsShown.value ? <Details reader={reader} /> : null}
      <Notes reader={reader} />
      <div class="preview-body column" aria-busy={reading.state === 'loading'}>
        {reading.state === 'loading' ? <p class="preview-note">{t('loading')}</p> : null}
        {reading.state === 'failed' ? <Failure error={reading.error} retry={reader.reload} uri={uri} /> : null}
        {reading.state === 'directory' ? <Directory uri={uri} /> : null}
        {reading.state !== 'ready' ? null : diff === undefined ? (
          <Contents reader={reader} reading={reading} />
        ) : (
          <Difference diff={diff} />
        )}
      </div>
    </article>
  )
}

function useReader(uri: string): PreviewReader {
  // For a document (Word, Excel, PowerPoint, PDF), `source` shows the original, which needs a read of its own.
  const isOriginal =
    route.value.source === '1' && documentFormOf(uri, findCachedResource(uriWithoutPart(uri))?.mimeType) !== undefined
  const reader = useMemo(() => createPreviewReader(uri, isOriginal), [uri, isOriginal])
  useEffect(() => () => reader.close(), [reader])
  const isOpened = reader.reading.value.state === 'ready' && previewedHit.value === undefined
  useEffect(() => {
    if (isOpened) noteOpened(requireConnection().server.name, uriWithoutPart(uri))
  }, [isOpened, uri])
  const { changedAt } = reader.standing.value
  useEffect(() => {
    if (changedAt !== undefined) announce(t('changedNow'))
  }, [changedAt])
  return reader
}

/** `[` and `]` go to the previous and the next resource in the list. */
function useNeighbourKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || !hasSingleKeys.value) return
      if (event.key !== '[' && event.key !== ']') return
      if (event.target instanceof HTMLElement && event.target.closest('input, textarea, select, [contenteditable]'))
        return
      const { previous, next } = neighbours.value
      const uri = event.key === '[' ? previous : next
      if (uri === undefined) return
      event.preventDefault()
      navigate({ uri })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

function PreviewHead({ reader }: { readonly reader: PreviewReader }) {
  const { uri, reading, resource } = reader
  const own = resource.value
  const crumbs = breadcrumbsOf(uri)
  const last = crumbs.at(-1)?.label ?? lastSegment(uri)
  const name = own?.name ?? last
  const aside = own === undefined ? undefined : distinctTitle(own)
  const isReady = useComputed(() => reading.value.state === 'ready').value
  const { state } = reading.value
  const [isFolder, isFailed] = [state === 'directory', state === 'failed']
  const isNarrow = frontPane().front !== undefined
  const parent: Resource = own ?? { uri: uriWithoutPart(uri), name: lastSegment(uri) }
  const type = previewMimeType(reader)
  return (
    <header class="preview-head">
      <div class="preview-name">
        <h2 lang={langOf(name)}>
          <bdi>{escapeInvisible(crumbs.length === 1 ? last : name)}</bdi>
          <ServerText as="small" class="preview-aside" text={aside} />
        </h2>
        <div class="preview-way">
          <Crumbs uri={uri} name={name} />
          {type === undefined || isFolder ? null : (
            <span class="chip" title={escapeInvisible(type)}>
              {escapeInvisible(typeWord(typeName(type, uri)) || type)}
            </span>
          )}
          {own?.size === undefined ? null : <span class="chip">{formatSize(own.size)}</span>}
        </div>
      </div>
      <div class="preview-actions" role="toolbar" aria-label={t('view')}>
        {isFailed || (isFolder && emptyFolderUri.value === uri) ? null : (
          <PickButton picked={parent} isFolder={isFolder} />
        )}
        <Toggle name={t('details')} state={areDetailsShown} class="button-quiet" />
        {isNarrow || route.value.beside === uri ? null : (
          <Button name={t('showBeside')} icon="beside" class="button-quiet" onClick={() => navigate({ beside: uri })} />
        )}
        <Button name={t('copyUri')} class="button-quiet" onClick={() => void copyAndAnnounce(uri)} />
        {isReady && canDownload() ? (
          <Button name={t('download')} class="button-quiet" onClick={() => void saveContent(reader)} />
        ) : null}
        {isNarrow ? null : (
          <a class="button button-quiet" href={linkTo({ view: 'tree', uri: uriWithoutPart(uri), source: undefined })}>
            {t('showInTree')}
          </a>
        )}
      </div>
    </header>
  )
}

/** Adds the shown resource to the basket, or removes it. */
function PickButton({ picked, isFolder }: { readonly picked: Resource; readonly isFolder: boolean }) {
  const { uri } = picked
  if (isSearchMount(uri)) return null
  const isIn = isFolder ? shareInBasket(uri).isWhole : isPicked(uri)
  const folder: Resource = { ...picked, mimeType: directoryMimeType }
  const label = isFolder ? (isIn ? 'basketRemoveAll' : 'basketAddAll') : isIn ? 'basketRemove' : 'basketAdd'
  return (
    <Button
      name={t(label)}
      class={isIn ? '' : 'button-main'}
      aria-pressed={isIn}
      onClick={() => togglePicked(isFolder ? folder : picked)}
    />
  )
}

/** The path of the shown resource, with a link for each folder. The name of the resource is left out if the heading shows it. */
function Crumbs({ uri, name }: { readonly uri: string; readonly name: string }) {
  const crumbs = breadcrumbsOf(uri)
  const last = crumbs.length === 1 ? readableUri(uri) : crumbs.at(-1)?.label
  return (
    <nav class="crumbs" aria-label={t('way')} title={escapeInvisible(uri)}>
      <ol>
        {crumbs.slice(0, -1).map(({ label, uri: to }) => (
          <li key={to}>
            <ServerText as="a" href={linkTo({ uri: to, source: undefined })} text={label} />
          </li>
        ))}
        {last === name ? null : <ServerText as="li" text={last ?? readableUri(uri)} />}
      </ol>
    </nav>
  )
}

function previewMimeType({ uri, reading, resource }: PreviewReader): string | undefined {
  const { value } = reading
  const own = resource.value?.mimeType
  if (own !== undefined && documentFormOf(uri, own) !== undefined) return own
  const content = value.state === 'ready' ? value.contents[0] : undefined
  return content?.mimeType ?? own
}
