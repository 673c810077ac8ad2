import './home.css'
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { SearchStatus } from '../../../core/search-answer.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import { breadcrumbsOf, browseModel, reconnections, treeState } from '../listing/browse.ts'
import { readableUri } from '../listing/columns.ts'
import { type FolderSummary, isGrowing, readFolderSummary, readSearchStatus } from '../listing/survey.ts'
import { FileIcon } from '../preview/file-icon.tsx'
import { Readme } from '../preview/readme.tsx'
import { Button, SearchInput, ServerText } from '../shell/fields.tsx'
import { Icon, Mark } from '../shell/icons.tsx'
import { copyAndAnnounce } from '../state/announce.ts'
import { onListChange } from '../state/live.ts'
import {
  findCachedResource,
  iconOfMount,
  isSearchMount,
  kindAt,
  loadNames,
  offeredSearches,
  purposeOf,
  resourceNames,
  subtitleOfMount,
  titleOfMount,
} from '../state/offered.ts'
import {
  forgetOpened,
  isFirstVisit,
  loadOpened,
  openedResources,
  addRecentSearch as rememberSearch,
} from '../state/remembered.ts'
import { linkTo, navigate } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { createWords, escapeInvisible, formatShortTime } from '../words/texts.ts'
import { hostInstructions } from './hosts.ts'

export function StartPage() {
  const { server } = requireConnection()
  treeState.value
  const mounts = browseModel.value?.forest.mounts ?? []
  const insides = useInsides(mounts)
  useLayoutEffect(() => loadOpened(server.name), [server.name])
  // If resources were opened before, they come above the mounts, because the tree shows the mounts as well.
  const isReturning = openedResources.value.length > 0
  const readme = [...insides.values()].find((inside) => typeof inside === 'object' && inside.readme !== undefined)
  return (
    <div class="home">
      <div class="home-inner">
        <header class="home-head">
          <Mark size={48} />
          <h2>
            <bdi>{escapeInvisible(server.title ?? server.name)}</bdi>
            {server.version === undefined ? null : <span class="home-version">{escapeInvisible(server.version)}</span>}
          </h2>
          <StartSearch />
        </header>
        {isReturning ? <Recent /> : null}
        <section class="home-part" aria-labelledby="home-mounts">
          <h3 id="home-mounts">{t('mounts')}</h3>
          <ul class="home-mounts">
            {mounts.map((mount) => (
              <MountCard key={mount.uri} mount={mount} inside={insides.get(mount.uri)} />
            ))}
          </ul>
        </section>
        {isReturning ? null : <Recent />}
        {typeof readme === 'object' && readme.readme !== undefined ? (
          <section class="home-part">
            <Readme resource={readme.readme} />
          </section>
        ) : null}
        <AddHost />
        <p class="quiet home-keys">{t('keys')}</p>
      </div>
    </div>
  )
}

function MountCard({
  mount,
  inside,
}: {
  readonly mount: Resource
  readonly inside: FolderSummary | 'failed' | undefined
}) {
  const { uri, description } = mount
  const isSearch = isSearchMount(uri)
  const aside = subtitleOfMount(mount)
  return (
    <li>
      <a href={linkTo(isSearch ? { view: 'search' } : { uri })} title={escapeInvisible(description ?? uri)}>
        {isSingle(mount) ? <FileIcon uri={uri} mimeType={mount.mimeType} /> : <Icon name={iconOfMount(uri)} />}
        <span class="home-mount-name one-line">
          <bdi>{escapeInvisible(titleOfMount(mount))}</bdi>
          <ServerText as="small" text={aside} />
        </span>
        <span class="home-mount-purpose">
          {description === undefined ? (purposeOf(uri) ?? t('purposeOther')) : escapeInvisible(description)}
        </span>
        <span class="home-mount-facts">
          {isSearch ? <SearchFacts uri={uri} /> : isSingle(mount) ? t('single') : formatFolderSummary(inside)}
        </span>
      </a>
    </li>
  )
}

function StartSearch() {
  const field = useRef<HTMLInputElement>(null)
  return (
    <form
      class="home-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const q = field.current?.value.trim() ?? ''
        if (q === '') return
        rememberSearch(q)
        navigate({ view: 'search', q })
        document.getElementById('search')?.focus()
      }}
    >
      <SearchInput field={field} name={t('searchAll')} />
    </form>
  )
}

const maxRecent = 6

function Recent() {
  const { server, view } = requireConnection()
  useEffect(() => {
    void loadNames(view).catch(() => {})
  }, [view])
  const { resources, state, isPart } = resourceNames.value
  // Without all names the latest change may be missing, so no changes are shown.
  const isWhole = state === 'loaded' && !isPart
  const latest = useMemo(() => (isWhole ? lastChanged(resources) : []), [resources, isWhole])
  const lately = openedResources.value.slice(0, maxRecent)
  const listed = useMemo(() => new Map(resources.map((one) => [one.uri, one])), [resources])
  if (latest.length === 0 && lately.length === 0) return null
  return (
    <div class="home-recent">
      {lately.length === 0 ? null : (
        <section class="home-part" aria-labelledby="home-opened">
          <h3 id="home-opened">{t('opened')}</h3>
          <ul class="home-list">
            {lately.map((uri) => (
              <RecentLink key={uri} uri={uri} mimeType={(findCachedResource(uri) ?? listed.get(uri))?.mimeType} />
            ))}
          </ul>
          <Button name={t('forget')} class="button-quiet home-forget" onClick={() => forgetOpened(server.name)} />
        </section>
      )}
      {latest.length === 0 ? null : (
        <section class="home-part" aria-labelledby="home-changed">
          <h3 id="home-changed">{t('changed')}</h3>
          <ul class="home-list">
            {latest.map(({ uri, mimeType, modified }) => (
              <RecentLink key={uri} uri={uri} mimeType={mimeType} modified={modified} />
            ))}
          </ul>
        </section>
      )}
    </div>
  )
}

/** The resources that changed last. Live sources and git histories are left out. */
function lastChanged(resources: readonly Resource[]): readonly Resource[] {
  return resources
    .filter(
      ({ uri, modified }) => modified !== undefined && kindAt(uri)?.isLive !== true && kindAt(uri)?.icon !== 'history',
    )
    .sort((a, b) => (b.modified ?? 0) - (a.modified ?? 0))
    .slice(0, maxRecent)
}

interface RecentLinkProps {
  readonly uri: string
  readonly mimeType: string | undefined
  readonly modified?: number | undefined
}

function RecentLink({ uri, mimeType, modified }: RecentLinkProps) {
  const crumbs = breadcrumbsOf(uri).map(({ label }) => escapeInvisible(label))
  return (
    <li>
      <a href={linkTo({ uri })} title={escapeInvisible(readableUri(uri))}>
        <FileIcon uri={uri} mimeType={mimeType} />
        <bdi class="one-line">{crumbs.at(-1)}</bdi>
      </a>
      <bdi class="quiet one-line">{crumbs.slice(0, -1).join(' › ')}</bdi>
      {modified === undefined ? null : <span class="quiet">{formatShortTime(modified, Date.now())}</span>}
    </li>
  )
}

/** Whether a mount is a single resource. Other mounts have no type, or that of a directory. */
function isSingle({ mimeType }: Resource): boolean {
  return mimeType !== undefined && mimeType !== directoryMimeType
}

function formatFolderSummary(inside: FolderSummary | 'failed' | undefined): string {
  if (inside === undefined) return t('counting')
  if (inside === 'failed') return t('unavailable')
  const { folders, files, isPart } = inside
  if (isPart) return t('countsPart', { count: folders + files })
  return folders === 0 ? t('filesOnly', { files }) : t('counts', { folders, files })
}

function SearchFacts({ uri }: { readonly uri: string }) {
  const status = useSignal<SearchStatus | undefined>(undefined)
  const place = offeredSearches.value.find(({ address }) => address.replace(/\/$/, '') === uri.replace(/\/$/, ''))
  useEffect(() => {
    if (place === undefined) return
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      try {
        status.value = await readSearchStatus(requireConnection().view, place, controller.signal)
      } catch {
        // Without a status, the card shows no number.
      }
      if (!controller.signal.aborted && isGrowing(status.value))
        timer = setTimeout(() => void look(), growingIntervalMs)
    }
    void look()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [place?.status])
  const count = status.value?.documents
  if (count === undefined) return <>{t('openSearch')}</>
  return <>{t(isGrowing(status.value) ? 'indexing' : 'indexed', { count })}</>
}

/** Interval at which the status is read while the index grows, in milliseconds. */
const growingIntervalMs = 1500

function useInsides(mounts: readonly Resource[]): ReadonlyMap<string, FolderSummary | 'failed'> {
  const summaries = useSignal<ReadonlyMap<string, FolderSummary | 'failed'>>(new Map())
  const round = useSignal(0)
  const key = mounts.map(({ uri }) => uri).join(' ')
  useEffect(
    () =>
      onListChange(() => {
        round.value++
      }),
    [],
  )
  useEffect(() => {
    const controller = new AbortController()
    const { view } = requireConnection()
    for (const { uri } of mounts) {
      if (isSearchMount(uri)) continue
      readFolderSummary(view, uri, controller.signal).then(
        (inside) => putSummary(uri, inside),
        () => {
          if (!controller.signal.aborted) putSummary(uri, 'failed')
        },
      )
    }
    const putSummary = (uri: string, inside: FolderSummary | 'failed') => {
      summaries.value = new Map([...summaries.value, [uri, inside]])
    }
    return () => controller.abort()
  }, [key, round.value, reconnections.value])
  return summaries.value
}

/** How to add this server to a host: a tab for each host, with the text to paste. */
function AddHost() {
  const choice = useSignal(0)
  const isFirst = useMemo(isFirstVisit, [])
  const { server, url, isPrivate, asksToken } = requireConnection()
  const ways = hostInstructions(server.name, url, asksToken())
  const way = ways[choice.value] ?? ways[0]
  return (
    <details class="home-part" open={isFirst}>
      <summary>
        <h3 id="add-host">{t('addHost')}</h3>
      </summary>
      <p class="quiet">{t(isPrivate ? 'addPrivate' : 'addHostDo')}</p>
      {isPrivate ? (
        <Command text="hikidashi add HOST FOLDER" />
      ) : (
        <div class="home-hosts">
          <div class="home-tabs" role="group" aria-labelledby="add-host">
            {ways.map(({ host }, index) => (
              <Button
                key={host}
                name={host === '*' ? t('other') : host}
                aria-pressed={index === choice.value}
                onClick={() => {
                  choice.value = index
                }}
              />
            ))}
          </div>
          {way === undefined ? null : (
            <>
              <span class="quiet">{way.where === 'terminal' ? t('inTerminal') : t('inFile', { file: way.where })}</span>
              <Command text={way.text} />
            </>
          )}
        </div>
      )}
    </details>
  )
}

function Command({ text }: { readonly text: string }) {
  return (
    <div class="home-command">
      <pre>{text}</pre>
      <Button name={t('copy')} onClick={() => void copyAndAnnounce(text)} />
    </div>
  )
}

const t = createWords({
  mounts: ['Contents', 'コンテンツ'],
  counts: ['{folders} {folders:folder|folders}, {files} {files:file|files}', '{folders} フォルダー、{files} ファイル'],
  filesOnly: ['{files} {files:file|files}', '{files} ファイル'],
  countsPart: ['more than {count} entries', '{count} 件以上'],
  single: ['one document', '文書 1 件'],
  indexed: ['{count} {count:document|documents} indexed', '文書 {count} 件を索引済み'],
  indexing: ['{count} {count:document|documents} indexed so far…', '文書 {count} 件まで索引済み…'],
  counting: ['Counting…', '数えています…'],
  unavailable: ['Does not answer now', '応答がありません'],
  searchAll: ['Search names and contents', '名前と本文を検索'],
  opened: ['Recently opened', '最近開いたもの'],
  changed: ['Recently changed', '最近変更されたもの'],
  forget: ['Clear the history', '履歴を消去'],
  purposeOther: ['Look inside', '中を見る'],
  openSearch: ['Search names and contents', '名前と本文を検索'],
  addHost: ['Add this server to a host', 'このサーバーをホストに追加'],
  addHostDo: [
    'Your assistant then lists, searches and reads what you see here.',
    'ここに表示されているものを、アシスタントが一覧・検索・参照できるようになります。',
  ],
  addPrivate: [
    'This page serves only you. To add a folder to a host, run this in a terminal:',
    'このページはあなた専用です。フォルダーをホストに追加するには、ターミナルで次を実行してください。',
  ],
  other: ['Any other', 'その他'],
  inTerminal: ['in a terminal', 'ターミナルで実行'],
  inFile: ['in {file}', '{file} に記述'],
  copy: ['Copy this', 'これをコピー'],
  keys: [
    'Arrow keys move in the tree, Enter opens, Space adds to the basket. Press ? for all keys.',
    '矢印キーで移動、Enter で表示、Space でバスケットに追加。すべてのキーは ? で確認できます。',
  ],
})
