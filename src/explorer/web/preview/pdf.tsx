import { isObject } from '../../../core/kit/object.ts'
import { Button } from '../shell/fields.tsx'
import './pictures.css'
import type { PageViewport, PDFDocumentLoadingTask, PDFDocumentProxy, PDFPageProxy, RenderTask } from 'pdfjs-dist'
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { metaKeys } from '../../../core/meta.ts'
import { linkTo } from '../state/route.ts'
import { Region } from './controls.tsx'
import { readingsIn } from './details.tsx'
import { uriWithoutPart } from './load.ts'
import { uriWithParameter } from './model/reference.ts'
import { t } from './words.ts'
import { startPageWorker } from './workers.ts'

interface Props {
  readonly bytes: Uint8Array
  readonly uri: string
  readonly meta: Readonly<Record<string, unknown>> | undefined
}

const zooms = [0.5, 0.75, 1, 1.25, 1.5, 2, 3] as const

/** A PDF whose pages are drawn when they come into view. */
export function Pdf({ bytes, uri, meta }: Props) {
  const [opened, setOpened] = useState<{ document: PDFDocumentProxy; pages: Pages }>()
  const [fault, setFault] = useState<string>()
  const [zoom, setZoom] = useState(1)
  useEffect(() => {
    let isLeft = false
    let close = () => {}
    setFault(undefined)
    const open = async () => {
      const task = await openPdf(bytes)
      close = () => void task.destroy()
      if (isLeft) return close()
      const document = await task.promise
      const pages = await measurePages(document)
      if (!isLeft) setOpened({ document, pages })
    }
    open().catch((error: unknown) => {
      const isLocked = error instanceof Error && error.name === 'PasswordException'
      if (!isLeft) setFault(t(isLocked ? 'pdfLocked' : 'pdfFailed'))
    })
    return () => {
      isLeft = true
      close()
    }
  }, [bytes])
  const hasText = isObject(meta) && readingsIn(meta[metaKeys.reading]).includes('text')
  const asText = hasText ? (
    <a class="button" href={linkTo({ uri: uriWithParameter(uriWithoutPart(uri), 'as', 'text') })}>
      {t('asText')}
    </a>
  ) : null
  if (fault !== undefined)
    return (
      <div class="preview-note">
        <p>{fault}</p>
        {asText}
      </div>
    )
  if (opened === undefined) return <p class="preview-note">{t('loading')}</p>
  const change = (by: 1 | -1) =>
    setZoom((by === 1 ? zooms.find((step) => step > zoom) : zooms.findLast((step) => step < zoom)) ?? zoom)
  return (
    <div class="column">
      <div class="preview-bar thin" role="toolbar" aria-label={t('view')}>
        <Button name={t('fitWidth')} aria-pressed={zoom === 1} onClick={() => setZoom(1)} />
        <Button name={t('zoomOut')} sign="−" onClick={() => change(-1)} />
        <Button name={t('zoomIn')} sign="+" onClick={() => change(1)} />
        <span class="quiet">{t('pages', { count: opened.document.numPages })}</span>
      </div>
      <Region class="pdf-pages" label={t('rendered')}>
        {opened.pages.sizes.map((_, index) => (
          <PdfPage key={index} number={index + 1} document={opened.document} pages={opened.pages} zoom={zoom} />
        ))}
      </Region>
    </div>
  )
}

interface PageProps {
  readonly number: number
  readonly document: PDFDocumentProxy
  readonly pages: Pages
  readonly zoom: number
}

/** Width of a page without zoom, in pixels. */
const widest = 860

function PdfPage({ number, document, pages, zoom }: PageProps) {
  const box = useRef<HTMLElement>(null)
  const isNear = useNear(box)
  const size = pages.sizes[number - 1] ?? { width: 612, height: 792 }
  const width = `min(${widest}px, 100%)`
  const style = useMemo(
    () => ({
      width: zoom === 1 ? width : `${widest * zoom}px`,
      aspectRatio: `${size.width} / ${size.height}`,
    }),
    [zoom, width, size],
  )
  useEffect(() => {
    const element = box.current
    if (!isNear || element === null) return
    let task: RenderTask | undefined
    let isLeft = false
    const draw = async () => {
      const page = await document.getPage(number)
      if (isLeft) return
      const scale = element.clientWidth / page.getViewport({ scale: 1 }).width
      const viewport = page.getViewport({ scale })
      const ratio = Math.min(devicePixelRatio, 3)
      const canvas = element.ownerDocument.createElement('canvas')
      canvas.width = Math.floor(viewport.width * ratio)
      canvas.height = Math.floor(viewport.height * ratio)
      const canvasContext = canvas.getContext('2d')
      if (canvasContext === null) return
      task = page.render({ canvasContext, viewport, transform: [ratio, 0, 0, ratio, 0, 0] })
      await task.promise
      if (isLeft) return
      const text = element.ownerDocument.createElement('div')
      text.className = 'text-layer'
      element.replaceChildren(canvas, text)
      await putText(page, text, viewport)
      page.cleanup()
    }
    draw().catch(() => {})
    return () => {
      isLeft = true
      task?.cancel()
      element.replaceChildren()
    }
  }, [isNear, document, number, zoom])
  return <figure ref={box} class="pdf-page" aria-label={t('pageNumber', { number })} style={style} />
}

function useNear(box: { readonly current: HTMLElement | null }): boolean {
  const [isNear, setNear] = useState(false)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), {
      root: element.parentElement,
      rootMargin: '800px 0px',
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [box])
  return isNear
}

/** The sizes of all pages, in points. */
interface Pages {
  readonly sizes: readonly { readonly width: number; readonly height: number }[]
}

/** Maximum number of measured pages; further pages are assumed to have the size of the first. */
const mostMeasured = 200

/** Opens a PDF. A worker parses it; nothing in it runs, and only character tables and fonts are fetched, from the server of the page. */
async function openPdf(bytes: Uint8Array): Promise<PDFDocumentLoadingTask> {
  const { getDocument, PDFWorker } = await import('pdfjs-dist')
  const port = startPageWorker(workerUrl)
  const worker = new PDFWorker({ port: port as unknown as null })
  const task = getDocument({
    // The worker takes over the buffer, so it gets a copy: the page still needs the bytes.
    data: bytes.slice(),
    worker,
    isEvalSupported: false,
    enableXfa: false,
    cMapUrl: new URL('pdf/cmaps/', document.baseURI).href,
    cMapPacked: true,
    standardFontDataUrl: new URL('pdf/fonts/', document.baseURI).href,
    useWorkerFetch: true,
    // Log only errors: a font that this machine lacks is none.
    verbosity: 0,
  })
  const destroy = task.destroy.bind(task)
  task.destroy = async () => {
    await destroy().catch(() => {})
    port.terminate()
  }
  return task
}

async function measurePages(document: PDFDocumentProxy): Promise<Pages> {
  const measured = Math.min(document.numPages, mostMeasured)
  const sizes = await Promise.all(
    Array.from({ length: measured }, async (_, index) => {
      const { width, height } = (await document.getPage(index + 1)).getViewport({ scale: 1 })
      return { width, height }
    }),
  )
  const first = sizes[0] ?? { width: 612, height: 792 }
  return { sizes: Array.from({ length: document.numPages }, (_, index) => sizes[index] ?? first) }
}

/** Puts the selectable text of a page over its picture. */
async function putText(page: PDFPageProxy, container: HTMLElement, viewport: PageViewport): Promise<void> {
  const { TextLayer } = await import('pdfjs-dist')
  container.style.setProperty('--scale-factor', String(viewport.scale))
  await new TextLayer({ textContentSource: page.streamTextContent(), container, viewport }).render()
}
