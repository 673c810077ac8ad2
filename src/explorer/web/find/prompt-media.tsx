import { useState } from 'preact/hooks'
import { useBlobUrl } from '../preview/media.tsx'
import { formatSize, shown } from '../words/texts.ts'
import { t } from './words.ts'

interface Props {
  readonly bytes: Uint8Array
  readonly mimeType: string
}

/** An image or a sound in a message of a prompt. For any other type, only its size. */
export function PromptMedia({ bytes, mimeType }: Props) {
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
        {shown(mimeType)}, {formatSize(bytes.length)}
      </figcaption>
    </figure>
  )
}
