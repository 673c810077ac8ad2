import './schema.css'
import { lastSegment } from '../../../client/wire.ts'
import { type Found, piecesOf } from '../../../core/found.ts'
import { linkTo } from '../state/place.ts'
import { langOf, shown } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { t } from './words.ts'

/** Hits of a search: each opens at its lines. */
export function FoundList({ found }: { readonly found: Found }) {
  const { hits, total, notes } = found
  return (
    <Region class="sheet" label={t('rendered')}>
      <p class="quiet">{hits.length === 0 ? t('noHits') : t('hits', { count: total ?? hits.length })}</p>
      {notes.map((note) => (
        <p key={note} class="quiet">
          {shown(note)}
        </p>
      ))}
      {hits.map((hit) => (
        <div key={hit.uri} class="hit">
          <p>
            <a href={linkTo({ uri: hit.uri, source: undefined })} lang={langOf(hit.title ?? '')}>
              <bdi>{shown(hit.title ?? lastSegment(hit.document))}</bdi>
            </a>{' '}
            <span class="quiet">
              {hit.heading === undefined ? '' : `${shown(hit.heading)} · `}
              {t('lines', { first: hit.lines.start, last: hit.lines.end })}
            </span>
          </p>
          <p class="hit-snippet" lang={langOf(hit.snippet.text)}>
            {piecesOf(hit.snippet).map(({ text, marked }, index) =>
              marked ? <mark key={index}>{shown(text)}</mark> : shown(text),
            )}
          </p>
        </div>
      ))}
    </Region>
  )
}
