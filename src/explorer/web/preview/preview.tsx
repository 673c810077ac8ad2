import './preview.css'
import { useEffect, useMemo } from 'preact/hooks'
import { hasSingleKeys } from '../palette/keys.ts'
import { announce } from '../state/announce.ts'
import { knownOf, neighbours } from '../state/known.ts'
import { go, place } from '../state/place.ts'
import { Contents } from './contents.tsx'
import { Details, isDetailed } from './details.tsx'
import { Directory } from './directory.tsx'
import { Head } from './head.tsx'
import { bare, createReader, type Reader } from './load.ts'
import { documentFormOf } from './model/documents.ts'
import { Failure, Notes } from './notes.tsx'
import { t } from './words.ts'

/** One resource or directory: what is known of it, and its content as fits its type. It is read anew when it changes. */
export function Preview({ uri }: { readonly uri: string }) {
  const reader = useReader(uri)
  useNeighbourKeys()
  const reading = reader.reading.value
  return (
    <article class="preview">
      <Head reader={reader} />
      {isDetailed.value ? <Details reader={reader} /> : null}
      <Notes reader={reader} />
      <div class="preview-body" aria-busy={reading.state === 'loading'}>
        {reading.state === 'loading' ? <p class="preview-note">{t('loading')}</p> : null}
        {reading.state === 'failed' ? <Failure error={reading.error} retry={reader.reload} uri={uri} /> : null}
        {reading.state === 'directory' ? <Directory uri={uri} /> : null}
        {reading.state === 'ready' ? <Contents reader={reader} reading={reading} /> : null}
      </div>
    </article>
  )
}

function useReader(uri: string): Reader {
  // Of anything but a document, the source is the same content.
  const isOriginal = place.value.source === '1' && documentFormOf(uri, knownOf(bare(uri))?.mimeType) !== undefined
  const reader = useMemo(() => createReader(uri, isOriginal), [uri, isOriginal])
  useEffect(() => () => reader.close(), [reader])
  const { changedAt } = reader.standing.value
  useEffect(() => {
    if (changedAt !== undefined) announce(t('changedNow'))
  }, [changedAt])
  return reader
}

/** `[` and `]` go to what is before and behind it in the list. */
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
      go({ uri })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}
