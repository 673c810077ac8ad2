import { parentPort } from 'node:worker_threads'
import { isResourceError } from '../core/errors.ts'
import { readDocx } from './docx.ts'
import {
  type Form,
  type Reading,
  type ReadingAnswer,
  type ReadingJob,
  type ReadingLimits,
  unreadable,
} from './formats.ts'
import { readHtml } from './html.ts'
import { mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { readPdf } from './pdf.ts'
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

const maxSlides = 5000

/** A text on a slide, in the order of the slide. */
interface Shape {
  /** Placeholder type from the layout: `title`, `body`; undefined for a text box. */
  kind: string | undefined
  readonly lines: { depth: number; text: string }[]
  readonly rows: string[][]
}

/** Reads a PowerPoint presentation (ECMA-376, part 1, section 19): slide by slide, with its notes. */
async function readPptx(bytes: Uint8Array, form: Form, limits: ReadingLimits): Promise<Reading> {
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
