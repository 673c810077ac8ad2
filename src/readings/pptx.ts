import { tooLarge } from '../core/errors.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { decodeSymbols, isSymbolFont } from './symbols.ts'
import { createDocumentWriter, type DocumentWriter } from './writer.ts'

const maxSlides = 5000

interface Shape {
  /** Type of the placeholder, such as `title` or `body` (`obj` if none is stated); undefined for any other shape. */
  kind: string | undefined
  readonly lines: { depth: number; text: string }[]
  readonly rows: string[][]
}

/** Reads a PowerPoint presentation (ECMA-376, part 1, section 19): slide by slide, with its notes. */
export async function readPptx(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const targets = new Map((await relationshipsOf(zip, main)).map(({ id, target }) => [id, target]))
  const slides: string[] = []
  await walkXml(zip.read(main), {
    open: (name, attributes) => {
      if (name !== 'p:sldId') return
      const target = targets.get(attributes['r:id'] ?? '')
      if (target === undefined) throw unreadableError('The document is damaged: a slide that it lists is missing.')
      if (slides.length >= maxSlides) throw tooLarge(`The document has more than ${maxSlides} slides.`)
      slides.push(target)
    },
  })
  const writer = createDocumentWriter(form, limits.characters)
  const repeated = new Set<string>()
  const isNew = ({ lines }: Shape): boolean => {
    const { size } = repeated
    repeated.add(lines.map((line) => line.text).join('\n'))
    return repeated.size > size
  }
  for (const [index, slide] of slides.entries()) {
    const shapes = (await shapesOf(zip, slide, writer)).filter((shape) => !isRepeated(shape) || isNew(shape))
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
    const noteShapes = (await shapesOf(zip, notes.target, writer)).filter(
      (shape) => shape.kind === 'body' || (isRepeated(shape) && isNew(shape)),
    )
    const lines = noteShapes
      .flatMap((shape) => shape.lines.map(({ text }) => text))
      .filter((text) => text.trim() !== '')
    if (lines.length === 0) continue
    writer.heading(2, 'Notes')
    for (const line of lines) writer.paragraph(line)
  }
  return { text: writer.finish(), parts: slides.length }
}

/** Whether a shape is a date, header or footer, whose text is written only once. */
function isRepeated({ kind = '' }: Shape): boolean {
  return ['dt', 'ftr', 'hdr'].includes(kind)
}

function writeShape(writer: DocumentWriter, { kind, lines, rows }: Shape): void {
  writer.end()
  // Several lines of a body are list items. In other shapes, only indented lines are.
  const isList = (kind === 'body' || kind === 'obj') && lines.filter(({ text }) => text.trim() !== '').length > 1
  for (const { depth, text } of lines) {
    if (isList || depth > 0) writer.item(depth, undefined, text)
    else writer.paragraph(text)
  }
  for (const row of rows) writer.row(row)
}

async function shapesOf(zip: Zip, part: string, writer: DocumentWriter): Promise<readonly Shape[]> {
  const shapes: Shape[] = []
  let shape: Shape = { kind: undefined, lines: [], rows: [] }
  let line: { depth: number; text: string } | undefined
  let cell: string[] | undefined
  let row: string[] = []
  let inText = false
  let font = ''
  /** Font of the symbols in a run. PowerPoint also states it for letters, so it applies only to a single character that is not ASCII. */
  let signs = ''
  await walkXml(zip.read(part), {
    open: (name, { type, lvl, typeface = '' }) => {
      if (name === 'p:sp' || name === 'p:graphicFrame') {
        shape = { kind: undefined, lines: [], rows: [] }
        shapes.push(shape)
      } else if (name === 'p:ph') shape.kind = type ?? 'obj'
      else if (name === 'a:p') line = { depth: 0, text: '' }
      else if (name === 'a:pPr' && line !== undefined) line.depth = Math.min(8, Number(lvl ?? 0) || 0)
      else if (name === 'a:r') font = signs = ''
      else if (name === 'a:latin') font = typeface
      else if (name === 'a:sym') signs = typeface
      else if (name === 'a:t' || name === 'm:t') inText = true
      else if (name === 'a:br' && line !== undefined) line.text += '\n'
      else if (name === 'a:tr') row = []
      else if (name === 'a:tc') cell = []
    },
    text: (text) => {
      const symbols = /^\s*[^\0-\x7f]\s*$/.test(text) && isSymbolFont(signs) ? signs : font
      if (inText && line !== undefined) line.text += writer.plain(decodeSymbols(text, symbols))
    },
    close: (name) => {
      if (name === 'a:t' || name === 'm:t') inText = false
      else if (name === 'a:p' && line !== undefined) {
        if (cell === undefined) shape.lines.push(line)
        else cell.push(line.text.trim())
        line = undefined
      } else if (name === 'a:tc') {
        row.push(cell?.join(' ') ?? '')
        cell = undefined
      } else if (name === 'a:tr') shape.rows.push(row)
    },
  })
  return shapes.filter(({ kind }) => kind !== 'sldNum' && kind !== 'sldImg')
}
