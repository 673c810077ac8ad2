import './pictures.css'
import { useEffect, useState } from 'preact/hooks'
import { shown } from '../state/shown.ts'
import { formatSize } from '../words/language.ts'
import { createUrl, releaseUrl } from './content-url.ts'
import { nameOf } from './facts.ts'
import { Region } from './region.tsx'
import { t } from './words.ts'

interface Props {
  readonly content: Uint8Array | string
  readonly mediaType: string
  readonly uri: string
}

const steps = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 8] as const

/** An image on a checkerboard. SVG is drawn as an image too, in which nothing runs and nothing is fetched. */
export function Picture({ content, mediaType, uri }: Props) {
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
  const bytes = typeof content === 'string' ? content.length : content.length
  const style =
    zoom === 'fit' || size === undefined ? {} : { width: `${size.width * zoom}px`, maxWidth: 'none', maxHeight: 'none' }
  return (
    <div class="picture">
      <div class="preview-bar thin" role="toolbar" aria-label={t('view')}>
        <button type="button" class="button" aria-pressed={zoom === 'fit'} onClick={() => setZoom('fit')}>
          {t('fit')}
        </button>
        <button type="button" class="button" aria-pressed={zoom === 1} onClick={() => setZoom(1)}>
          {t('actual')}
        </button>
        <button type="button" class="button" aria-label={t('zoomOut')} title={t('zoomOut')} onClick={() => change(-1)}>
          −
        </button>
        <button type="button" class="button" aria-label={t('zoomIn')} title={t('zoomIn')} onClick={() => change(1)}>
          +
        </button>
        <span class="quiet">
          {size === undefined ? '' : `${t('imageSize', size)}, `}
          {formatSize(bytes)}
        </span>
      </div>
      <Region class="checkered" label={t('rendered')} onKeyDown={onKeyDown}>
        {url === undefined ? null : (
          <img
            src={url}
            alt={t('imageAlt', { name: shown(nameOf(uri)) })}
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

/** An object URL of a content, while it is shown. */
export function useBlobUrl(content: Uint8Array | string, type: string): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const made = createUrl(content, type)
    setUrl(made)
    return () => releaseUrl(made)
  }, [content, type])
  return url
}
