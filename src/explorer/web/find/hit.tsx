import { type FoundHit, piecesOf } from '../../../core/found.ts'
import type { Resource } from '../../../core/view.ts'
import { isPicked, toggle } from '../state/basket.ts'
import { langOf } from '../state/lang.ts'
import { linkTo, place } from '../state/place.ts'
import { shown, tailOf } from '../state/shown.ts'
import { readableUri } from '../tree/columns.ts'
import { formatTime } from '../words/language.ts'
import { t } from './words.ts'

/** One hit: what it is, where, and what of it matches. */
export function Hit({ hit }: { readonly hit: FoundHit }) {
  const title = [...new Set([hit.title ?? nameOf(hit.document), hit.heading])]
    .filter((text) => text !== undefined && text !== '')
    .join(' · ')
  const isOpen = place.value.uri === hit.uri
  const picked = isPicked(hit.document)
  const time = hit.modified === undefined ? Number.NaN : Date.parse(hit.modified)
  return (
    <li class={isOpen ? 'hit hit-open' : 'hit'} lang={langOf(`${title}${hit.snippet.text}`)}>
      <a
        class="hit-link"
        href={linkTo({ uri: hit.uri })}
        aria-current={isOpen ? 'true' : undefined}
        onKeyDown={(event) => {
          if (event.key !== ' ') return
          event.preventDefault()
          toggle(resourceOf(hit))
        }}
      >
        <bdi>{shown(title)}</bdi>
      </a>
      <p class="hit-place" title={hit.document}>
        <bdi>{tailOf(readableUri(hit.document), 60)}</bdi>
      </p>
      <p class="hit-snippet">
        {piecesOf(hit.snippet).map(({ text, marked }, index) =>
          marked ? <mark key={index}>{shown(text)}</mark> : <span key={index}>{shown(text)}</span>,
        )}
      </p>
      <p class="hit-facts">
        <span>{t('lines', { start: hit.lines.start, end: hit.lines.end })}</span>
        {Number.isFinite(time) ? <span>{formatTime(time)}</span> : null}
        <a href={linkTo({ view: 'tree', uri: hit.document })}>{t('showInTree')}</a>
        {hit.link !== undefined && /^https?:\/\//i.test(hit.link) ? (
          <a href={hit.link} target="_blank" rel="noopener noreferrer">
            {t('atSource')} ↗
          </a>
        ) : null}
        <button type="button" class="button" aria-pressed={picked} onClick={() => toggle(resourceOf(hit))}>
          {picked ? t('unpick') : t('pick')}
        </button>
      </p>
    </li>
  )
}

function resourceOf(hit: FoundHit): Resource {
  const { document, title, mimeType, priority, audience, modified } = hit
  const time = modified === undefined ? Number.NaN : Date.parse(modified)
  return {
    uri: document,
    name: nameOf(document),
    ...(title === undefined ? {} : { title }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(priority === undefined ? {} : { priority }),
    ...(audience === undefined ? {} : { audience }),
    ...(Number.isFinite(time) ? { modified: time } : {}),
  }
}

function nameOf(uri: string): string {
  const segment =
    uri
      .replace(/[?#].*$/s, '')
      .replace(/\/+$/, '')
      .split('/')
      .at(-1) ?? uri
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
