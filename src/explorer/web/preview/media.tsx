import './pictures.css'
import { useEffect, useState } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import { Button } from '../shell/fields.tsx'
import { createUrl, releaseUrl } from '../state/browser.ts'
import { largeContentUrl } from '../state/session.ts'
import { escapeInvisible, formatSize } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { uriWithoutPart } from './load.ts'
import { BinaryPreview } from './notes.tsx'
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

/** A sound or a film that is too large for an answer. It is streamed from a link; without a link, its first bytes are shown. */
export function LargeMedia({ kind, uri, bytes, size, mediaType }: LargeProps) {
  const [url, setUrl] = useState<string | undefined>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    setUrl(undefined)
    // A read of the whole resource fails at once, with an error that contains the link.
    largeContentUrl(uriWithoutPart(uri), controller.signal).then(setUrl, () => {})
    return () => controller.abort()
  }, [uri])
  if (url === undefined) return <BinaryPreview bytes={bytes} size={size} />
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

interface PictureProps {
  readonly content: Uint8Array | string
  readonly mediaType: string
  readonly uri: string
}

const steps = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 8] as const

/** An image on a checkerboard. SVG is drawn as an image too, in which nothing runs and nothing is fetched. */
export function Picture({ content, mediaType, uri }: PictureProps) {
  const url = useBlobUrl(content, mediaType)
  const [size, setSize] = useState<{ readonly width: number; readonly height: number }>()
  const [zoom, setZoom] = useState<number | 'fit'>('fit')
  const [isBroken, setBroken] = useState(false)
  const change = (by: 1 | -1) => {
    const now = zoom === 'fit' ? 1 : zoom
    const next = by === 1 ? steps.find((step) => step > now) : steps.findLast((step) => step < now)
    setZoom(next ?? now)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === '+' || event.key === '-') change(event.key === '+' ? 1 : -1)
    else if (event.key === '0') setZoom('fit')
    else if (event.key === '1') setZoom(1)
    else return
    event.preventDefault()
  }
  if (isBroken) return <p class="preview-note">{t('imageFailed')}</p>
  const style =
    zoom === 'fit' || size === undefined ? {} : { width: `${size.width * zoom}px`, maxWidth: 'none', maxHeight: 'none' }
  return (
    <div class="picture column">
      <div class="preview-bar thin" role="toolbar" aria-label={t('view')}>
        <Button name={t('fit')} aria-pressed={zoom === 'fit'} onClick={() => setZoom('fit')} />
        <Button name={t('actual')} aria-pressed={zoom === 1} onClick={() => setZoom(1)} />
        <Button name={t('zoomOut')} sign="−" onClick={() => change(-1)} />
        <Button name={t('zoomIn')} sign="+" onClick={() => change(1)} />
        <span class="quiet">{size === undefined ? '' : t('imageSize', size)}</span>
      </div>
      <Region class="checkered" label={t('rendered')} onKeyDown={onKeyDown}>
        {url === undefined ? null : (
          <img
            src={url}
            alt={t('imageAlt', { name: escapeInvisible(lastSegment(uri)) })}
            style={style}
            onLoad={({ currentTarget }) =>
              setSize({ width: currentTarget.naturalWidth, height: currentTarget.naturalHeight })
            }
            onError={() => setBroken(true)}
          />
        )}
      </Region>
    </div>
  )
}

/** Returns a URL of a content; `undefined` until it is created. The URL is revoked when the content changes or the component unmounts. */
function useBlobUrl(content: Uint8Array | string, type: string): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const url = createUrl(content, type)
    setUrl(url)
    return () => releaseUrl(url)
  }, [content, type])
  return url
}

export function PromptMedia({ bytes, mimeType }: { readonly bytes: Uint8Array; readonly mimeType: string }) {
  const url = useBlobUrl(bytes, mimeType)
  const [isBroken, setBroken] = useState(false)
  const onError = () => setBroken(true)
  const isImage = mimeType.startsWith('image/')
  const isShown = url !== undefined && !isBroken && (isImage || mimeType.startsWith('audio/'))
  return (
    <figure class="prompt-media">
      {!isShown ? null : isImage ? (
        <img src={url} alt={t('messageImage')} onError={onError} />
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: MCP has no captions for a sound.
        <audio controls src={url} aria-label={t('messageSound')} onError={onError} />
      )}
      <figcaption class="quiet">
        {escapeInvisible(mimeType)}, {formatSize(bytes.length)}
      </figcaption>
    </figure>
  )
}
