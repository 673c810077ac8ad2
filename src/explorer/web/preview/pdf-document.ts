import type { PageViewport, PDFDocumentLoadingTask, PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist'
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url'
import { startWorker } from './trusted.ts'

/** The sizes of all pages, in points. */
export interface Pages {
  readonly sizes: readonly { readonly width: number; readonly height: number }[]
}

/** Of more pages than this, the others are taken to be as large as the first. */
const mostMeasured = 200

/**
 * Opens a PDF. It is taken apart in a worker; nothing of it runs, and nothing is fetched but the tables of characters and the fonts that come
 * with the page.
 */
export async function openPdf(bytes: Uint8Array): Promise<PDFDocumentLoadingTask> {
  const { getDocument, PDFWorker } = await import('pdfjs-dist')
  const port = startWorker(workerUrl)
  const worker = new PDFWorker({ port: port as unknown as null })
  const task = getDocument({
    // The worker takes what it is given: a copy, since the page still has use for it.
    data: bytes.slice(),
    worker,
    isEvalSupported: false,
    enableXfa: false,
    cMapUrl: new URL('pdf/cmaps/', document.baseURI).href,
    cMapPacked: true,
    standardFontDataUrl: new URL('pdf/fonts/', document.baseURI).href,
    useWorkerFetch: true,
    // Fonts that are not on this machine are no error.
    verbosity: 0,
  })
  const destroy = task.destroy.bind(task)
  task.destroy = async () => {
    await destroy().catch(() => {})
    port.terminate()
  }
  return task
}

export async function pagesOf(document: PDFDocumentProxy): Promise<Pages> {
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

/** Lays the text of a page over it, where it can be selected. */
export async function putText(page: PDFPageProxy, container: HTMLElement, viewport: PageViewport): Promise<void> {
  const { TextLayer } = await import('pdfjs-dist')
  container.style.setProperty('--scale-factor', String(viewport.scale))
  await new TextLayer({ textContentSource: page.streamTextContent(), container, viewport }).render()
}
