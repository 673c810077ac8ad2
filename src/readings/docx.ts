import { buffer } from 'node:stream/consumers'
import { tooLarge } from '../core/errors.ts'
import { decodeBytes } from '../text/encoding/decode.ts'
import { detectEncoding } from '../text/encoding/detect.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { readHtml } from './html.ts'
import { type Attributes, mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { readRtf } from './rtf.ts'
import { decodeSymbol, decodeSymbols } from './symbols.ts'
import { createTableStack } from './tables.ts'
import { createDocumentWriter, type DocumentWriter } from './writer.ts'

/** Elements that are skipped: deletions, field codes, pronunciation guides, and properties of sections, tabs and earlier revisions. */
const skipped = new Set([
  'w:del',
  'w:moveFrom',
  'w:delText',
  'w:instrText',
  'w:rt',
  'w:pPrChange',
  'w:rPrChange',
  'w:sectPr',
  'w:tabs',
])

interface Paragraph {
  text: string
  style?: string
  level?: number
  list?: string
  depth?: number
}

/**
 * Reads a Word document (ECMA-376, part 1, section 17).
 *
 * @param depth Number of documents in which the document is embedded.
 */
export async function readDocx(
  bytes: Uint8Array,
  form: ReadingForm,
  limits: ReadingLimits,
  depth = 0,
): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const relationships = await relationshipsOf(zip, main)
  const partOf = (type: string) => relationships.find((relationship) => relationship.type === type)?.target
  const styles = await readParagraphStyles(zip, partOf('styles'))
  const numbering = await readNumbering(zip, partOf('numbering'))
  const writer = createDocumentWriter(form, limits.characters)
  const surroundings: Surroundings = { writer, styles, numbering, form, limits, depth }

  await readBody(zip, main, surroundings)
  for (const type of ['footnotes', 'endnotes']) {
    const part = partOf(type)
    if (part !== undefined && zip.has(part)) await readBody(zip, part, surroundings)
  }
  return { text: writer.finish() }
}

interface Surroundings {
  readonly writer: DocumentWriter
  readonly styles: ReadonlyMap<string, ParagraphStyle>
  readonly numbering: Awaited<ReturnType<typeof readNumbering>>
  readonly form: ReadingForm
  readonly limits: ReadingLimits
  readonly depth: number
}

/** Maximum number of documents that a part of a document embeds, and maximum depth of embedded documents. */
const [maxChunks, maxChunkDepth] = [200, 3]

/** Reads the documents that a part embeds (`w:altChunk`; ECMA-376, part 1, section 17.17.2). Returns their texts by the ids of their relationships. */
async function readChunks(zip: Zip, parts: ReadonlyMap<string, string>, { form, limits, depth }: Surroundings) {
  const chunks = new Map<string, string>()
  if (parts.size > maxChunks) throw tooLarge(`The document contains more than ${maxChunks} other documents.`)
  let length = 0
  for (const [id, part] of parts) {
    const text = await readChunk(await buffer(zip.read(part)), form, limits, depth + 1)
    length += text.length
    if (length > limits.characters)
      throw tooLarge(`The document has more than ${limits.characters} characters of text.`)
    chunks.set(id, text)
  }
  return chunks
}

async function readChunk(bytes: Buffer, form: ReadingForm, limits: ReadingLimits, depth: number): Promise<string> {
  const head = bytes.toString('latin1', 0, 4096)
  if (head.startsWith('PK')) {
    if (depth > maxChunkDepth) throw unreadableError('The document is nested too deeply.')
    return (await readDocx(bytes, form, limits, depth)).text
  }
  if (/^\s*\{\\rtf/.test(head)) return readRtf(bytes, form, limits).text
  if (/^mime-version:/im.test(head)) return '[A part of the document is left out: its format, MHTML, is not supported.]'
  if (/<(?:!doctype|html|head|body|p|div|table|h[1-6]|ul|ol|span)\b/i.test(head))
    return readHtml(bytes, form, limits).text
  const text = decodeBytes(bytes, detectEncoding(bytes) ?? 'utf-8') ?? ''
  const writer = createDocumentWriter(form, limits.characters)
  writer.paragraph(writer.plain(text.replaceAll('\r\n', '\n')))
  return writer.finish()
}

async function readBody(zip: Zip, part: string, surroundings: Surroundings): Promise<void> {
  const relationships = await relationshipsOf(zip, part)
  const links = new Map(relationships.map(({ id, target }) => [id, target]))
  const chunkParts = relationships
    .filter(({ type }) => type === 'aFChunk')
    .map(({ id, target }) => [id, target] as const)
  const chunks = await readChunks(zip, new Map(chunkParts), surroundings)
  await walkXml(zip.read(part), { skip: skipped, ...createDocxBodyWriter(surroundings, links, chunks) })
}

/** A file path, which Word itself writes as the alternative text of a picture. */
const filePath = /^(?:[a-z]:[\\/]|\\\\|file:)/i

/** Returns the alternative text of a picture, with spaces around it; '' if it is empty or a file path. */
function pictureIn(before: string, alternative: string, { image, plain }: DocumentWriter): string {
  if (alternative === '' || filePath.test(alternative)) return ''
  return `${/(?:^|\s)$/.test(before) ? '' : ' '}${image(plain(alternative))} `
}

function createDocxBodyWriter(
  { writer, styles, numbering }: Surroundings,
  links: ReadonlyMap<string, string>,
  chunks: ReadonlyMap<string, string>,
) {
  // Both are stacks: a paragraph may contain a text box with paragraphs, and a cell may contain a table.
  const paragraphs: Paragraph[] = []
  const tables = createTableStack(writer)
  const anchors: { readonly before: string; readonly target: string | undefined }[] = []
  let inText = false
  let runs = 0
  let font = ''
  let note: string | undefined

  const append = (text: string) => {
    const paragraph = paragraphs.at(-1)
    if (paragraph !== undefined) paragraph.text += text
  }

  const finish = (paragraph: Paragraph) => {
    const text = note === undefined ? paragraph.text : `[${note}] ${paragraph.text.trimStart()}`
    if (tables.add(text)) return
    const style = styles.get(paragraph.style ?? '')
    const level = paragraph.level ?? style?.level
    const list = paragraph.list ?? style?.list
    if (level !== undefined && level < 9) writer.heading(level + 1, text)
    else if (list !== undefined && list !== '0') {
      const depth = paragraph.depth ?? 0
      writer.item(depth, numbering.next(list, depth), text)
    } else writer.paragraph(text)
  }

  const open = (name: string, attributes: Attributes) => {
    const paragraph = paragraphs.at(-1)
    switch (name) {
      case 'w:p':
        paragraphs.push({ text: '' })
        break
      case 'w:r':
      case 'm:r':
        runs++
        font = ''
        break
      case 'w:rFonts':
        if (runs > 0) font = attributes.ascii ?? attributes.hAnsi ?? ''
        break
      case 'w:sym':
        append(writer.plain(decodeSymbol(attributes.font ?? '', Number.parseInt(attributes.char ?? '', 16))))
        break
      case 'w:t':
      case 'm:t':
        inText = true
        break
      case 'w:tab':
        if (runs > 0) append('\t')
        break
      case 'w:br':
      case 'w:cr':
        append('\n')
        break
      case 'w:noBreakHyphen':
        append('-')
        break
      case 'w:footnoteReference':
      case 'w:endnoteReference':
        append(writer.plain(`[${attributes.id ?? ''}]`))
        break
      case 'wp:docPr':
        append(pictureIn(paragraph?.text ?? '', attributes.descr?.trim() ?? '', writer))
        break
      case 'w:hyperlink':
        if (paragraph === undefined) break
        anchors.push({ before: paragraph.text, target: links.get(attributes['r:id'] ?? '') })
        paragraph.text = ''
        break
      case 'w:footnote':
      case 'w:endnote':
        // Notes with a type are separators between the text and the notes.
        note = attributes.type === undefined ? attributes.id : undefined
        break
      case 'w:altChunk': {
        const chunk = chunks.get(attributes['r:id'] ?? '')
        if (chunk === undefined) throw unreadableError('The document is damaged: a part that it refers to is missing.')
        if (!tables.add(chunk)) writer.document(chunk)
        break
      }
      case 'w:tbl':
        tables.begin()
        break
      default:
        if (paragraph !== undefined) setProperty(paragraph, name, attributes.val ?? '')
    }
  }

  const close = (name: string) => {
    if (name === 'w:t' || name === 'm:t') inText = false
    else if (name === 'w:r' || name === 'm:r') runs--
    else if (name === 'w:p') {
      const paragraph = paragraphs.pop()
      if (paragraph !== undefined) finish(paragraph)
    } else if (name === 'w:hyperlink') {
      const anchor = anchors.pop()
      const paragraph = paragraphs.at(-1)
      if (anchor !== undefined && paragraph !== undefined)
        paragraph.text = anchor.before + writer.link(paragraph.text, anchor.target)
    } else if (name === 'w:tc') tables.endCell()
    else if (name === 'w:tr') tables.endRow()
    else if (name === 'w:tbl') tables.end()
  }

  const text = (characters: string) => {
    if (inText) append(writer.plain(decodeSymbols(characters, font)))
  }

  return { open, close, text }
}

function setProperty(paragraph: Paragraph, name: string, value: string): void {
  if (name === 'w:pStyle') paragraph.style = value
  else if (name === 'w:outlineLvl') paragraph.level = Number(value)
  else if (name === 'w:numId') paragraph.list = value
  else if (name === 'w:ilvl') paragraph.depth = Math.min(8, Number(value) || 0)
}

interface ParagraphStyle {
  /** Level of a heading, from 0. */
  readonly level?: number
  readonly list?: string
}

/** Returns the paragraph styles by their ids. Word stores the names of its heading styles in English, whatever its language. */
async function readParagraphStyles(zip: Zip, part: string | undefined): Promise<ReadonlyMap<string, ParagraphStyle>> {
  const styles = new Map<string, { level?: number; list?: string }>()
  if (part === undefined || !zip.has(part)) return styles
  let style: { level?: number; list?: string } = {}
  await walkXml(zip.read(part), {
    open: (name, { styleId, val = '', type }) => {
      if (name === 'w:style' && styles.size < 10_000) {
        style = {}
        if (type === 'paragraph') styles.set(styleId ?? '', style)
      } else if (name === 'w:name') {
        const level = /^heading ([1-9])$/i.exec(val)?.[1]
        if (level !== undefined) style.level = Number(level) - 1
        else if (/^title$/i.test(val)) style.level = 0
      } else if (name === 'w:outlineLvl') style.level ??= Number(val)
      else if (name === 'w:numId') style.list = val
    },
  })
  return styles
}

/** Reads how the lists of a document are numbered (ECMA-376, part 1, section 17.9), and counts their items. */
async function readNumbering(zip: Zip, part: string | undefined) {
  const formats = new Map<string, string[]>()
  const definitions = new Map<string, string>()
  if (part !== undefined && zip.has(part)) {
    let format: string[] = []
    let depth = 0
    let list = ''
    await walkXml(zip.read(part), {
      open: (name, { abstractNumId = '', numId = '', ilvl = '', val = '' }) => {
        if (name === 'w:abstractNum') {
          format = []
          formats.set(abstractNumId, format)
        } else if (name === 'w:lvl') depth = Math.min(8, Number(ilvl) || 0)
        else if (name === 'w:numFmt') format[depth] = val
        else if (name === 'w:num') {
          list = numId
          // The formats in the overrides of a list are ignored, because few overrides change more than the start number.
          format = []
        } else if (name === 'w:abstractNumId') definitions.set(list, val)
      },
    })
  }
  const counts = new Map<string, number[]>()
  return {
    /** The number of the next item at a depth of a list; `undefined` if its items are not numbered. */
    next: (list: string, depth: number): number | undefined => {
      const format = formats.get(definitions.get(list) ?? '')?.[depth]
      if (format === undefined || format === 'bullet' || format === 'none') return undefined
      const count = counts.get(list) ?? []
      counts.set(list, count)
      count[depth] = (count[depth] ?? 0) + 1
      // The items of deeper levels start again.
      count.length = depth + 1
      return count[depth]
    },
  }
}
