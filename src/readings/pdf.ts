import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { WrappedPdfiumModule } from '@embedpdf/pdfium'
import { pdfiumMemoryBytes } from '../core/kit/workers.ts'
import { type Reading, type ReadingLimits, tooMuch, unreadableError } from './formats.ts'
import { createWriter } from './writer.ts'

const maxPdfPages = 10_000

let loadedPdfium: Promise<WrappedPdfiumModule> | undefined

/** Reads the text of a PDF, page by page. Scanned text is not recognized. */
export async function readPdf(bytes: Uint8Array, limits: ReadingLimits): Promise<Reading> {
  loadedPdfium ??= loadPdfium()
  const pdfium = await loadedPdfium
  const heap = heapOf(pdfium)
  const { malloc, free } = heap.wasmExports
  const at = malloc(bytes.length)
  if (at === 0) throw tooMuch('The document takes too much memory.')
  heap.HEAPU8.set(bytes, at)
  const document = pdfium.FPDF_LoadMemDocument(at, bytes.length, '')
  try {
    if (document === 0) throw pdfFailure(pdfium.FPDF_GetLastError())
    return readPdfPages(pdfium, document, limits)
  } finally {
    if (document !== 0) pdfium.FPDF_CloseDocument(document)
    free(at)
  }
}

/** Memory of the library, missing from its types. `HEAPU8` is replaced when the memory grows. */
interface Heap {
  readonly HEAPU8: Uint8Array
  readonly wasmExports: { malloc(size: number): number; free(at: number): void }
}

function heapOf({ pdfium }: WrappedPdfiumModule): Heap {
  return pdfium as unknown as Heap
}

/** FLAT_NORMALDISPLAY, and the flags of an annotation that is not displayed (ISO 32000-1, 12.5.3): Hidden and NoView. */
const [asShown, unseen] = [0, 0x02 | 0x20]

/**
 * Loads a page. The fields of forms and the visible annotations (notes, stamps) become part of it, so that their text is text of
 * the page. Returns 0 for a damaged page.
 */
function loadPage(pdfium: WrappedPdfiumModule, document: number, form: number, index: number): number {
  const page = pdfium.FPDF_LoadPage(document, index)
  const annotations = page === 0 ? 0 : pdfium.FPDFPage_GetAnnotCount(page)
  if (annotations <= 0) return page
  for (let at = annotations - 1; at >= 0; at--) {
    const annotation = pdfium.FPDFPage_GetAnnot(page, at)
    const isUnseen = annotation !== 0 && (pdfium.FPDFAnnot_GetFlags(annotation) & unseen) !== 0
    if (annotation !== 0) pdfium.FPDFPage_CloseAnnot(annotation)
    if (isUnseen) pdfium.FPDFPage_RemoveAnnot(page, at)
  }
  // This draws the values that have no appearance in the file.
  pdfium.FORM_OnAfterLoadPage(page, form)
  pdfium.FORM_OnBeforeClosePage(page, form)
  pdfium.FPDFPage_Flatten(page, asShown)
  pdfium.FPDF_ClosePage(page)
  return pdfium.FPDF_LoadPage(document, index)
}

function readPdfPages(pdfium: WrappedPdfiumModule, document: number, limits: ReadingLimits): Reading {
  const pages = pdfium.FPDF_GetPageCount(document)
  if (pages > maxPdfPages) throw tooMuch(`The document has more than ${maxPdfPages} pages.`)
  const writer = createWriter('text', limits.characters)
  let any = false
  const info = pdfium.PDFiumExt_OpenFormFillInfo()
  const form = pdfium.PDFiumExt_InitFormFillEnvironment(document, info)
  try {
    for (let index = 0; index < pages; index++) {
      const text = readPdfPage(pdfium, document, form, index)
      any ||= text.trim() !== ''
      writer.heading(1, `Page ${index + 1}`)
      writer.paragraph(text)
    }
  } finally {
    pdfium.PDFiumExt_ExitFormFillEnvironment(form)
    pdfium.PDFiumExt_CloseFormFillInfo(info)
  }
  if (!any) throw unreadableError('The document holds no text, only pictures: its pages may have been scanned.')
  return { text: writer.finish(), parts: pages }
}

function readPdfPage(pdfium: WrappedPdfiumModule, document: number, form: number, index: number): string {
  const heap = heapOf(pdfium)
  const page = loadPage(pdfium, document, form, index)
  // A damaged page does not affect the others.
  if (page === 0) return ''
  const text = pdfium.FPDFText_LoadPage(page)
  try {
    const count = text === 0 ? 0 : pdfium.FPDFText_CountChars(text)
    if (count <= 0) return ''
    const at = heap.wasmExports.malloc(count * 2 + 2)
    const length = pdfium.FPDFText_GetText(text, 0, count, at)
    const units = heap.HEAPU8.slice(at, at + Math.max(0, length - 1) * 2)
    heap.wasmExports.free(at)
    // A soft hyphen at the end of a line comes as U+FFFE.
    return new TextDecoder('utf-16le')
      .decode(units)
      .replace(/\r\n?/g, '\n')
      .replace(/\ufffe|\0/g, '')
  } finally {
    if (text !== 0) pdfium.FPDFText_ClosePage(text)
    pdfium.FPDF_ClosePage(page)
  }
}

/** FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY are 4 and 5. */
function pdfFailure(code: number): Error {
  if (code === 4) return unreadableError('The document is encrypted: save it without a password.', 'withheld')
  if (code === 5) return unreadableError('The document is encrypted by a method that is not supported.', 'withheld')
  return unreadableError('The document is damaged: it is no valid PDF.')
}

async function loadPdfium(): Promise<WrappedPdfiumModule> {
  limitMemory()
  const { init } = await import('@embedpdf/pdfium')
  const wasm = await readFile(createRequire(import.meta.url).resolve('@embedpdf/pdfium/pdfium.wasm'))
  const { buffer, byteOffset, byteLength } = wasm
  const pdfium = await init({ wasmBinary: (buffer as ArrayBuffer).slice(byteOffset, byteOffset + byteLength) })
  pdfium.PDFiumExt_Init()
  return pdfium
}

interface Memory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

/** Limits the memory of WebAssembly in this thread, which runs nothing else. */
function limitMemory(): void {
  const { Memory } = Reflect.get(globalThis, 'WebAssembly') as { readonly Memory: { readonly prototype: Memory } }
  const memory = Memory.prototype
  const { grow } = memory
  memory.grow = function (this: Memory, pages: number) {
    if (this.buffer.byteLength + pages * 65_536 > pdfiumMemoryBytes) throw new RangeError('too much memory')
    return grow.call(this, pages)
  }
}
