import './home.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { SearchStatus } from '../../../core/search-answer.ts'
import { directoryMimeType, type Resource } from '../../../core/view.ts'
import { browse, healed, treeState } from '../listing/browse.ts'
import { type FolderSummary, isGrowing, lookInto, statusOf } from '../listing/survey.ts'
import { Readme } from '../preview/readme.tsx'
import { Button, Text } from '../shell/fields.tsx'
import { iconOf, Shape } from '../shell/icons.tsx'
import { copyText } from '../state/announce.ts'
import { onListChange } from '../state/live.ts'
import { asideOfMount, iconOfMount, isSearchMount, searchable, titleOfMount } from '../state/offered.ts'
import { linkTo } from '../state/route.ts'
import { connected } from '../state/session.ts'
import { createWords, shown } from '../words/texts.ts'
import { hostWays } from './hosts.ts'

/** The first screen: what is mounted and how much of it there is, the README, and how to add the server to a host. */
export function Overview() {
  const { server } = connected()
  treeState.value
  const mounts = browse.value?.forest.mounts ?? []
  const insides = useInsides(mounts)
  const readme = [...insides.values()].find((inside) => typeof inside === 'object' && inside.readme !== undefined)
  return (
    <div class="home">
      <div class="home-inner">
        <h2>
          <bdi>{shown(server.title ?? server.name)}</bdi>
          {server.version === undefined ? null : <span class="home-version">{shown(server.version)}</span>}
        </h2>
        <section class="home-part" aria-labelledby="home-mounts">
          <h3 id="home-mounts">{t('mounts')}</h3>
          <ul class="home-mounts">
            {mounts.map((mount) => (
              <MountCard key={mount.uri} mount={mount} inside={insides.get(mount.uri)} />
            ))}
          </ul>
        </section>
        <AddHost />
        {typeof readme === 'object' && readme.readme !== undefined ? (
          <section class="home-part">
            <Readme resource={readme.readme} />
          </section>
        ) : null}
        <p class="quiet">{t('keys')}</p>
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
  const aside = asideOfMount(mount)
  return (
    <li>
      <a href={linkTo(isSearch ? { view: 'search' } : { uri })} title={shown(description ?? uri)}>
        <Shape name={isSingle(mount) ? iconOf(mount.mimeType) : iconOfMount(uri)} />
        <span class="home-mount-name one-line">
          <bdi>{shown(titleOfMount(mount))}</bdi>
          <Text as="small" text={aside} />
        </span>
        <span class="home-mount-facts">
          {isSearch ? <SearchFacts uri={uri} /> : isSingle(mount) ? t('single') : factsOf(inside)}
        </span>
      </a>
    </li>
  )
}

/** Whether a mount is a single resource. Other mounts have no type, or that of a directory. */
function isSingle({ mimeType }: Resource): boolean {
  return mimeType !== undefined && mimeType !== directoryMimeType
}

function factsOf(inside: FolderSummary | 'failed' | undefined): string {
  if (inside === undefined) return t('counting')
  if (inside === 'failed') return t('unavailable')
  const { folders, files, isPart } = inside
  if (isPart) return t('countsPart', { count: folders + files })
  return folders === 0 ? t('filesOnly', { files }) : t('counts', { folders, files })
}

/** The number of documents in the index of a search, refreshed while the index grows. */
function SearchFacts({ uri }: { readonly uri: string }) {
  const status = useSignal<SearchStatus | undefined>(undefined)
  const place = searchable.value.find(({ address }) => address.replace(/\/$/, '') === uri.replace(/\/$/, ''))
  useEffect(() => {
    if (place === undefined) return
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async () => {
      try {
        status.value = await statusOf(connected().view, place, controller.signal)
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

/** Counts the entries of all mounts concurrently, and shows each result as it arrives. */
function useInsides(mounts: readonly Resource[]): ReadonlyMap<string, FolderSummary | 'failed'> {
  const found = useSignal<ReadonlyMap<string, FolderSummary | 'failed'>>(new Map())
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
    const { view } = connected()
    for (const { uri } of mounts) {
      if (isSearchMount(uri)) continue
      lookInto(view, uri, controller.signal).then(
        (inside) => put(uri, inside),
        () => {
          if (!controller.signal.aborted) put(uri, 'failed')
        },
      )
    }
    const put = (uri: string, inside: FolderSummary | 'failed') => {
      found.value = new Map([...found.value, [uri, inside]])
    }
    return () => controller.abort()
  }, [key, round.value, healed.value])
  return found.value
}

/** How to add this server to a host: a tab for each host, with the text to paste. */
function AddHost() {
  const chosen = useSignal(0)
  const { server, url, isPrivate, asksToken } = connected()
  const ways = hostWays(server.name, url, asksToken())
  const way = ways[chosen.value] ?? ways[0]
  return (
    <section class="home-part" aria-labelledby="add-host">
      <h3 id="add-host">{t('addHost')}</h3>
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
                aria-pressed={index === chosen.value}
                onClick={() => {
                  chosen.value = index
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
    </section>
  )
}

function Command({ text }: { readonly text: string }) {
  return (
    <div class="home-command">
      <pre>{text}</pre>
      <Button name={t('copy')} onClick={() => void copyText(text)} />
    </div>
  )
}

const t = createWords({
  mounts: ['Contents', 'コンテンツ'],
  counts: ['{folders} {folders:folder|folders}, {files} {files:file|files}', '{folders} フォルダー、{files} ファイル'],
  filesOnly: ['{files} {files:file|files}', '{files} ファイル'],
  countsPart: ['over {count} entries', '{count} 件以上'],
  single: ['one document', '文書 1 件'],
  indexed: ['{count} {count:document|documents} indexed', '文書 {count} 件を索引済み'],
  indexing: ['{count} {count:document|documents} indexed so far…', '文書 {count} 件まで索引済み…'],
  counting: ['Counting…', '数えています…'],
  unavailable: ['Does not answer now', '応答がありません'],
  openSearch: ['Search names and contents', '名前と本文を検索'],
  addHost: ['Add this server to a host', 'このサーバーをホストに追加'],
  addHostDo: [
    'Your assistant then lists, searches and reads what you see here.',
    'ここに表示されているものを、アシスタントが一覧・検索・参照できるようになります。',
  ],
  addPrivate: [
    'This page serves only you. For a host, run this in a terminal:',
    'このページはあなた専用です。ホストに追加するには、ターミナルで次を実行してください。',
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
