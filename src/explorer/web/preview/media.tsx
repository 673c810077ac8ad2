import './pictures.css'
import { useState } from 'preact/hooks'
import { formatSize } from '../words/language.ts'
import { useBlobUrl } from './picture.tsx'
import { t } from './words.ts'

interface Props {
  readonly kind: 'audio' | 'video'
  readonly bytes: Uint8Array
  readonly mediaType: string
}

/** A sound or a film, to be played. */
export function Media({ kind, bytes, mediaType }: Props) {
  const url = useBlobUrl(bytes, mediaType)
  const [isBroken, setBroken] = useState(false)
  const props = { controls: true, src: url, onError: () => setBroken(true), 'aria-label': mediaType }
  return (
    <div class="media">
      {isBroken ? <p class="preview-note">{t('mediaFailed')}</p> : null}
      {kind === 'audio' ? <audio {...props} /> : <video {...props} />}
      <p class="quiet">{formatSize(bytes.length)}</p>
    </div>
  )
}
