import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { parentPort } from 'node:worker_threads'
import type { WrappedPdfiumModule } from '@embedpdf/pdfium'
import { isResourceError } from '../core/errors.ts'
import { pdfiumMemoryBytes } from '../core/kit/workers.ts'
import { readDocx } from './docx.ts'
import {
  type Reading,
  type ReadingAnswer,
  type ReadingForm,
  type ReadingJob,
  type ReadingLimits,
  tooMuch,
  unreadable,
} from './formats.ts'
import { readHtml } from './html.ts'
import { mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { createWriter, type Writer } from './writer.ts'
import { readSheets, readXlsx } from './xlsx.ts'

/**
 * Reads a document. Faults of the document throw a ResourceError `invalid` or `too-large`; after any other error the thread must
 * not be used again.
 */
export async function readDocument({ format, form, bytes, limits }: ReadingJob): Promise<Reading> {
  if (bytes.length === 0) throw unreadable('The document is empty.', 'damaged')
  if (form === 'csv') {
    if (format === 'xlsx') return readSheets(bytes, limits)
    throw unreadable('Only a workbook has sheets.', 'damaged')
  }
  switch (format) {
    case 'pdf':
      return readPdf(bytes, limits)
    case 'docx':
      return readDocx(bytes, form, limits)
    case 'xlsx':
      return readXlsx(bytes, form, limits)
    case 'pptx':
      return readPptx(bytes, form, limits)
    case 'html':
      return readHtml(bytes, form, limits)
  }
}

const maxPdfPages = 10_000

let loadedPdfium: Promise<WrappedPdfiumModule> | undefined

/** Reads the text of a PDF, page by page. Scanned text is not recognized. */
async function readPdf(bytes: Uint8Array, limits: ReadingLimits): Promise<Reading> {
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

function readPdfPages(pdfium: WrappedPdfiumModule, document: number, limits: ReadingLimits): Reading {
  const pages = pdfium.FPDF_GetPageCount(document)
  if (pages > maxPdfPages) throw tooMuch(`The document has more than ${maxPdfPages} pages.`)
  const writer = createWriter('text', limits.characters)
  let any = false
  for (let index = 0; index < pages; index++) {
    const text = readPdfPage(pdfium, document, index)
    any ||= text.trim() !== ''
    writer.heading(1, `Page ${index + 1}`)
    writer.paragraph(text)
  }
  if (!any) throw unreadable('The document holds no text, only pictures: its pages may have been scanned.', 'no-text')
  return { text: writer.finish(), parts: pages }
}

function readPdfPage(pdfium: WrappedPdfiumModule, document: number, index: number): string {
  const heap = heapOf(pdfium)
  const page = pdfium.FPDF_LoadPage(document, index)
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
  if (code === 4) return unreadable('The document is encrypted: save it without a password.', 'encrypted')
  if (code === 5) return unreadable('The document is encrypted by a method that is not supported.', 'encrypted')
  return unreadable('The document is damaged: it is no valid PDF.', 'damaged')
}

async function loadPdfium(): Promise<WrappedPdfiumModule> {
  limitMemory()
  const { init } = await import('@embedpdf/pdfium')
  const file = createRequire(import.meta.url).resolve('@embedpdf/pdfium/pdfium.wasm')
  const { buffer, byteOffset, byteLength } = await readFile(file)
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

const maxSlides = 5000

/** A text on a slide, in the order of the slide. */
interface Shape {
  /** Placeholder type from the layout: `title`, `body`; undefined for a text box. */
  kind: string | undefined
  readonly lines: { depth: number; text: string }[]
  readonly rows: string[][]
}

/** Reads a PowerPoint presentation (ECMA-376, part 1, section 19): slide by slide, with its notes. */
async function readPptx(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const targets = new Map((await relationshipsOf(zip, main)).map(({ id, target }) => [id, target]))
  const slides: string[] = []
  await walkXml(zip.read(main), {
    open: (name, attributes) => {
      const target = name === 'sldId' ? targets.get(attributes['r:id'] ?? '') : undefined
      if (target !== undefined && slides.length < maxSlides) slides.push(target)
    },
  })
  const writer = createWriter(form, limits.characters)
  for (const [index, slide] of slides.entries()) {
    if (!zip.has(slide)) continue
    const shapes = await shapesOf(zip, slide, writer)
    const isTitle = ({ kind }: Shape) => kind === 'title' || kind === 'ctrTitle'
    const title =
      shapes
        .find(isTitle)
        ?.lines.map(({ text }) => text)
        .join(' ') ?? ''
    writer.heading(1, title.trim() === '' ? `Slide ${index + 1}` : `Slide ${index + 1}: ${title}`)
    for (const shape of shapes) if (!isTitle(shape)) writeShape(writer, shape)
    const notes = (await relationshipsOf(zip, slide)).find(({ type }) => type === 'notesSlide')
    if (notes === undefined || !zip.has(notes.target)) continue
    const said = (await shapesOf(zip, notes.target, writer)).filter(({ kind }) => kind === 'body')
    const lines = said.flatMap((shape) => shape.lines.map(({ text }) => text)).filter((text) => text.trim() !== '')
    if (lines.length === 0) continue
    writer.heading(2, 'Notes')
    for (const line of lines) writer.paragraph(line)
  }
  return { text: writer.finish(), parts: slides.length }
}

function writeShape(writer: Writer, { kind, lines, rows }: Shape): void {
  writer.end()
  // The lines of a body are list items. In a text box, only lines that look like list items are.
  const isList = (kind === 'body' || kind === 'obj') && lines.filter(({ text }) => text.trim() !== '').length > 1
  for (const { depth, text } of lines) {
    if (isList || depth > 0) writer.item(depth, undefined, text)
    else writer.paragraph(text)
  }
  for (const row of rows) writer.row(row)
}

async function shapesOf(zip: Zip, part: string, writer: Writer): Promise<readonly Shape[]> {
  const shapes: Shape[] = []
  let shape: Shape = { kind: undefined, lines: [], rows: [] }
  let line: { depth: number; text: string } | undefined
  let cell: string[] | undefined
  let row: string[] = []
  let inText = false
  await walkXml(zip.read(part), {
    skip: new Set(['Fallback']),
    open: (name, { type, lvl }) => {
      if (name === 'sp' || name === 'graphicFrame') {
        shape = { kind: undefined, lines: [], rows: [] }
        shapes.push(shape)
      } else if (name === 'ph') shape.kind = type ?? 'obj'
      else if (name === 'p') line = { depth: 0, text: '' }
      else if (name === 'pPr' && line !== undefined) line.depth = Math.min(8, Number(lvl ?? 0) || 0)
      else if (name === 't') inText = true
      else if (name === 'br' && line !== undefined) line.text += '\n'
      else if (name === 'tr') row = []
      else if (name === 'tc') cell = []
    },
    text: (text) => {
      if (inText && line !== undefined) line.text += writer.plain(text)
    },
    close: (name) => {
      if (name === 't') inText = false
      else if (name === 'p' && line !== undefined) {
        if (cell === undefined) shape.lines.push(line)
        else cell.push(line.text.trim())
        line = undefined
      } else if (name === 'tc') {
        row.push(cell?.join(' ') ?? '')
        cell = undefined
      } else if (name === 'tr') shape.rows.push(row)
    },
  })
  // Numbers, dates and footers are the same on every slide.
  return shapes.filter(({ kind }) => !['sldNum', 'dt', 'ftr', 'hdr', 'sldImg'].includes(kind ?? ''))
}

/** Reads documents away from the thread that serves, one after the other. An unexpected error ends the worker. */
parentPort?.on('message', async (job: ReadingJob) => {
  parentPort?.postMessage(await answer(job))
})
parentPort?.postMessage('ready')

async function answer(job: ReadingJob): Promise<ReadingAnswer> {
  try {
    return { reading: await readDocument(job) }
  } catch (error) {
    if (isResourceError(error) && (error.kind === 'invalid' || error.kind === 'too-large'))
      return { kind: error.kind, reason: error.detail.reason ?? 'damaged', message: error.message }
    throw error
  }
}
