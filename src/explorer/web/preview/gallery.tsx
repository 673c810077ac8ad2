import './pictures.css'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { createUrl, releaseUrl } from '../state/browser.ts'
import { linkTo } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible } from '../words/texts.ts'
import { textOrBytes } from './load.ts'
import { imageTypeOf } from './model/kind.ts'
import { t } from './words.ts'

/** Maximum number of pictures, and maximum size of each, in bytes. */
const [maxPictures, maxBytes] = [60, 2_000_000]

/** The entries of a folder that are shown as pictures. */
export function picturesIn(items: readonly Resource[]): readonly Resource[] {
  return items
    .filter(({ mimeType = '', size = 0 }) => /^image\/(?:png|jpeg|gif|webp|avif)$/.test(mimeType) && size <= maxBytes)
    .slice(0, maxPictures)
}

export function Gallery({ pictures }: { readonly pictures: readonly Resource[] }) {
  return (
    <section class="gallery" aria-label={t('pictures')}>
      {pictures.map(({ uri, name }) => (
        <Thumbnail key={uri} uri={uri} name={name} />
      ))}
    </section>
  )
}

function Thumbnail({ uri, name }: Pick<Resource, 'uri' | 'name'>) {
  const box = useRef<HTMLAnchorElement>(null)
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const controller = new AbortController()
    let url: string | undefined
    const readText = async () => {
      const { contents } = await requireConnection().view.read(uri, { signal: controller.signal })
      const bytes = contents[0] === undefined ? undefined : textOrBytes(contents[0])
      const type = bytes instanceof Uint8Array ? imageTypeOf(bytes) : undefined
      if (controller.signal.aborted || type === undefined || !(bytes instanceof Uint8Array)) return
      url = createUrl(bytes, type)
      setUrl(url)
    }
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting !== true) return
      observer.disconnect()
      readText().catch(() => {})
    })
    if (box.current !== null) observer.observe(box.current)
    return () => {
      controller.abort()
      observer.disconnect()
      if (url !== undefined) releaseUrl(url)
    }
  }, [uri])
  return (
    <a ref={box} class="thumbnail" href={linkTo({ uri, source: undefined })} title={escapeInvisible(name)}>
      {url === undefined ? <span class="thumbnail-empty" /> : <img src={url} alt="" />}
      <bdi class="one-line">{escapeInvisible(name)}</bdi>
    </a>
  )
}
