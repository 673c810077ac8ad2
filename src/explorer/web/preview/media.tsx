import './pictures.css'
import { useEffect, useState } from 'preact/hooks'
import { largeContentUrl } from '../state/content-link.ts'
import { formatSize } from '../words/language.ts'
import { Binary } from './binary.tsx'
import { bare } from './load.ts'
import { useBlobUrl } from './picture.tsx'
import { t } from './words.ts'

interface Props {
  readonly kind: 'audio' | 'video'
  readonly bytes: Uint8Array
  readonly mediaType: string
}

/** A player for a sound or a film. */
export function Media({ kind, bytes, mediaType }: Props) {
  return <Player kind={kind} mediaType={mediaType} url={useBlobUrl(bytes, mediaType)} size={bytes.length} />
}

interface LargeProps extends Props {
  readonly uri: string
  readonly size: number | undefined
}

/** A sound or a film that is too large for an answer: it is streamed from a link. Without a link, its first bytes are shown. */
export function LargeMedia({ kind, uri, bytes, size, mediaType }: LargeProps) {
  const [url, setUrl] = useState<string | undefined>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    setUrl(undefined)
    // A read of the whole returns the link: it fails at once with the error that contains it.
    largeContentUrl(bare(uri), controller.signal).then(setUrl, () => {})
    return () => controller.abort()
  }, [uri])
  if (url === undefined) return <Binary bytes={bytes} size={size} />
  return <Player key={url} kind={kind} mediaType={mediaType} url={url} size={size} />
}

interface PlayerProps extends Pick<Props, 'kind' | 'mediaType'> {
  readonly url: string | undefined
  readonly size: number | undefined
}

function Player({ kind, mediaType, url, size }: PlayerProps) {
  const [isBroken, setBroken] = useState(false)
  const props = { controls: true, src: url, onError: () => setBroken(true), 'aria-label': mediaType }
  return (
    <div class="media">
      {isBroken ? <p class="preview-note">{t('mediaFailed')}</p> : null}
      {kind === 'audio' ? <audio {...props} /> : <video {...props} />}
      {size === undefined ? null : <p class="quiet">{formatSize(size)}</p>}
    </div>
  )
}
