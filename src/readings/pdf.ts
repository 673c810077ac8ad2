import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { WrappedPdfiumModule } from '@embedpdf/pdfium'
import { tooLarge } from '../core/errors.ts'
import { pdfiumMemoryBytes } from '../core/kit/workers.ts'
import { onlyPicturesMessage, type Picture, type Reading, type ReadingLimits, unreadableError } from './formats.ts'
import { heapOf } from './pdf-heap.ts'
import { textOfPage } from './pdf-text.ts'
import { createDocumentWriter } from './writer.ts'

const maxPdfPages = 10_000
/** Stands in place of the text of a page that has none. */
const pictureNote = '(This page contains no text, only pictures: it may have been scanned.)'

const garbledNote = '(The fonts of this page do not map all codes to characters, so words in its text are wrong.)'
/** Minimum share of control characters in the text of a garbled page, without its white space. */
const garbledShare = 0.1

let loadedPdfium: Promise<WrappedPdfiumModule> | undefined

/**
 * Reads the text of a PDF, page by page.
 *
 * @param ocr Texts that OCR has read, by index of the page. They replace the pages without text, or with wrong text. If it is given (even
 *   empty), a document that holds only pictures is no error.
 */
export function readPdf(bytes: Uint8Array, limits: ReadingLimits, ocr?: ReadonlyMap<number, string>): Promise<Reading> {
  return withPdf(bytes, (pdfium, document) => readPdfPages(pdfium, document, limits, ocr))
}

/** Draws a page of a PDF, counted from 0, for OCR. */
export function drawPdfPage(bytes: Uint8Array, index: number): Promise<Picture> {
  return withPdf(bytes, (pdfium, document) =>
    withForm(pdfium, document, (form) =>
      withPage(pdfium, document, form, index, (page) => {
        if (page === 0) throw unreadableError(`Page ${index + 1} of the document is damaged.`)
        return drawPage(pdfium, page)
      }),
    ),
  )
}

async function withPdf<T>(bytes: Uint8Array, work: (pdfium: WrappedPdfiumModule, document: number) => T): Promise<T> {
  loadedPdfium ??= loadPdfium()
  const pdfium = await loadedPdfium
  const heap = heapOf(pdfium)
  const { malloc, free } = heap.wasmExports
  const at = malloc(bytes.length)
  if (at === 0) throw tooLarge('The document takes too much memory.')
  heap.HEAPU8.set(bytes, at)
  const document = pdfium.FPDF_LoadMemDocument(at, bytes.length, '')
  try {
    if (document === 0) throw pdfFailure(pdfium.FPDF_GetLastError())
    return work(pdfium, document)
  } finally {
    if (document !== 0) pdfium.FPDF_CloseDocument(document)
    free(at)
  }
}

/** The flags of an annotation that is not displayed (ISO 32000-1, 12.5.3): Hidden and NoView. */
const unseen = 0x02 | 0x20
const textless = new Set([2, 16])
/** FLAT_NORMALDISPLAY. */
const asShown = 0

/**
 * Runs work with a page, or with 0 for a damaged one. The fields of forms and the visible annotations (notes, stamps) become part of the
 * page.
 */
function withPage<T>(
  pdfium: WrappedPdfiumModule,
  document: number,
  form: number,
  index: number,
  work: (page: number) => T,
): T {
  let page = pdfium.FPDF_LoadPage(document, index)
  let copy = 0
  const reload = (owner: number, at: number) => {
    if (page !== 0) pdfium.FPDF_ClosePage(page)
    page = pdfium.FPDF_LoadPage(owner, at)
  }
  try {
    if (keepShownAnnotations(pdfium, page)) {
      // Draws the values of fields that have no appearance in the file.
      pdfium.FORM_OnAfterLoadPage(page, form)
      pdfium.FORM_OnBeforeClosePage(page, form)
      // Flattening loses the fonts that a page inherits from the page tree. A copied page has these fonts itself.
      copy = pdfium.FPDF_CreateNewDocument()
      const isCopied = pdfium.FPDF_ImportPages(copy, document, String(index + 1), 0)
      if (isCopied) {
        reload(copy, 0)
        if (page !== 0) pdfium.FPDFPage_Flatten(page, asShown)
        reload(copy, 0)
      }
    }
    return work(page)
  } finally {
    if (page !== 0) pdfium.FPDF_ClosePage(page)
    if (copy !== 0) pdfium.FPDF_CloseDocument(copy)
  }
}

/** Removes the annotations that are not displayed. Returns whether others may show text. */
function keepShownAnnotations(pdfium: WrappedPdfiumModule, page: number): boolean {
  let isShown = false
  const count = page === 0 ? 0 : pdfium.FPDFPage_GetAnnotCount(page)
  for (let at = count - 1; at >= 0; at--) {
    const annotation = pdfium.FPDFPage_GetAnnot(page, at)
    if (annotation === 0) continue
    const isUnseen = (pdfium.FPDFAnnot_GetFlags(annotation) & unseen) !== 0
    isShown ||= !isUnseen && !textless.has(pdfium.FPDFAnnot_GetSubtype(annotation))
    pdfium.FPDFPage_CloseAnnot(annotation)
    if (isUnseen) pdfium.FPDFPage_RemoveAnnot(page, at)
  }
  return isShown
}

function withForm<T>(pdfium: WrappedPdfiumModule, document: number, work: (form: number) => T): T {
  const info = pdfium.PDFiumExt_OpenFormFillInfo()
  const form = pdfium.PDFiumExt_InitFormFillEnvironment(document, info)
  try {
    return work(form)
  } finally {
    pdfium.PDFiumExt_ExitFormFillEnvironment(form)
    pdfium.PDFiumExt_CloseFormFillInfo(info)
  }
}

function readPdfPages(
  pdfium: WrappedPdfiumModule,
  document: number,
  limits: ReadingLimits,
  ocr: ReadonlyMap<number, string> | undefined,
): Reading {
  const count = pdfium.FPDF_GetPageCount(document)
  if (count > maxPdfPages) throw tooLarge(`The document has more than ${maxPdfPages} pages.`)
  const writer = createDocumentWriter('text', limits.characters)
  const pictures: number[] = []
  let hasText = false
  withForm(pdfium, document, (form) => {
    for (let index = 0; index < count; index++) {
      const { text, note } = withPage(pdfium, document, form, index, (page) => readPdfPage(pdfium, page))
      const pageText = note === undefined ? undefined : ocr?.get(index)
      hasText ||= text.trim() !== ''
      writer.heading(1, pageText === undefined ? `Page ${index + 1}` : `Page ${index + 1} (read by OCR)`)
      if (note === undefined || pageText !== undefined) writer.paragraph(pageText ?? text)
      else {
        writer.paragraph(note)
        writer.paragraph(text)
        pictures.push(index)
      }
    }
  })
  if (!hasText && pictures.length === 0 && (ocr?.size ?? 0) === 0)
    throw unreadableError('The document contains no text: its pages are empty or damaged.')
  if (!hasText && ocr === undefined) throw unreadableError(onlyPicturesMessage)
  return { text: writer.finish(), parts: count, hasText, ...(pictures.length === 0 ? {} : { pictures }) }
}

interface PageText {
  readonly text: string
  /** Says that the page has no text although something is drawn on it, or that its text is wrong. OCR may read such a page. */
  readonly note?: string
}

function readPdfPage(pdfium: WrappedPdfiumModule, page: number): PageText {
  // A damaged page does not affect the others.
  if (page === 0) return { text: '' }
  const textPage = pdfium.FPDFText_LoadPage(page)
  try {
    const text = textPage === 0 ? '' : textOfPage(pdfium, textPage)
    if (text.trim() === '') return pdfium.FPDFPage_CountObjects(page) > 0 ? { text, note: pictureNote } : { text }
    return isGarbled(text) ? { text, note: garbledNote } : { text }
  } finally {
    if (textPage !== 0) pdfium.FPDFText_ClosePage(textPage)
  }
}

/**
 * Whether a text has so many control characters that it is wrong: if a font does not map its codes to characters, PDFium returns the codes
 * themselves.
 */
function isGarbled(text: string): boolean {
  const controls = text.match(/\p{Cc}/gu)?.filter((character) => character.trim() !== '').length ?? 0
  return controls > 0 && controls >= text.replace(/\s/g, '').length * garbledShare
}

/** The resolution at which pages are drawn for OCR, and the most pixels of a picture and of one side of it. */
const drawing = { dpi: 300, pixels: 20_000_000, side: 16_000 }
/** Units of a page are 1/72 inch. */
const unitsPerInch = 72
/** FPDFBitmap_Gray, a byte a pixel; FPDF_GRAYSCALE; white. */
const [grayBitmap, grayscale, white] = [1, 0x08, 0xff_ff_ff_ff]

function drawPage(pdfium: WrappedPdfiumModule, page: number): Picture {
  const [pageWidth, pageHeight] = [pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)]
  if (!(pageWidth > 0 && pageHeight > 0)) throw unreadableError('The document is damaged: a page has no size.')
  const scale = Math.min(
    drawing.dpi / unitsPerInch,
    Math.sqrt(drawing.pixels / pageWidth / pageHeight),
    drawing.side / Math.max(pageWidth, pageHeight),
  )
  const [width, height] = [Math.max(1, Math.floor(pageWidth * scale)), Math.max(1, Math.floor(pageHeight * scale))]
  const bitmap = pdfium.FPDFBitmap_CreateEx(width, height, grayBitmap, 0, 0)
  if (bitmap === 0) throw tooLarge('The picture of the page takes too much memory.')
  try {
    pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, white)
    pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, grayscale)
    const { HEAPU8 } = heapOf(pdfium)
    const [at, stride] = [pdfium.FPDFBitmap_GetBuffer(bitmap), pdfium.FPDFBitmap_GetStride(bitmap)]
    // The binary form of a portable graymap (pgm(5)).
    const head = Buffer.from(`P5\n${width} ${height}\n255\n`, 'latin1')
    const pgm = new Uint8Array(head.length + width * height)
    pgm.set(head)
    for (let row = 0; row < height; row++)
      pgm.set(HEAPU8.subarray(at + row * stride, at + row * stride + width), head.length + row * width)
    return { pgm, dpi: Math.max(1, Math.round(scale * unitsPerInch)) }
  } finally {
    pdfium.FPDFBitmap_Destroy(bitmap)
  }
}

/** FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY are 4 and 5. */
function pdfFailure(code: number): Error {
  if (code === 4) return unreadableError('The document is encrypted: save it without a password.', 'withheld')
  if (code === 5) return unreadableError('The document is encrypted by a method that is not supported.', 'withheld')
  return unreadableError('The document is damaged: it is not a valid PDF.')
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

/** Limits the memory of WebAssembly in this thread, where only PDFium uses it. */
function limitMemory(): void {
  const { Memory } = Reflect.get(globalThis, 'WebAssembly') as { readonly Memory: { readonly prototype: Memory } }
  const memory = Memory.prototype
  const { grow } = memory
  memory.grow = function (this: Memory, pages: number) {
    if (this.buffer.byteLength + pages * 65_536 > pdfiumMemoryBytes) throw new RangeError('too much memory')
    return grow.call(this, pages)
  }
}
