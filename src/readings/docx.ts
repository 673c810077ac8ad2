import type { Reading, ReadingForm, ReadingLimits } from './formats.ts'
import { type Attributes, mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { createWriter, type Writer } from './writer.ts'

/** Elements that are not part of the text: deletions, field codes, pronunciation, fallback versions of drawings. */
const skipped = new Set([
  'del',
  'moveFrom',
  'delText',
  'instrText',
  'rt',
  'Fallback',
  'pPrChange',
  'rPrChange',
  'sectPr',
  'tabs',
])

interface Paragraph {
  text: string
  style?: string
  level?: number
  list?: string
  depth?: number
}

/** Reads a Word document (ECMA-376, part 1, section 17). */
export async function readDocx(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const relationships = await relationshipsOf(zip, main)
  const partOf = (type: string) => relationships.find((relationship) => relationship.type === type)?.target
  const styles = await readStyles(zip, partOf('styles'))
  const numbering = await readNumbering(zip, partOf('numbering'))
  const links = new Map(relationships.map(({ id, target }) => [id, target]))
  const writer = createWriter(form, limits.characters)

  await readBody(zip, main, { writer, styles, numbering, links })
  for (const type of ['footnotes', 'endnotes']) {
    const part = partOf(type)
    if (part !== undefined && zip.has(part)) await readBody(zip, part, { writer, styles, numbering, links })
  }
  return { text: writer.finish() }
}

interface Surroundings {
  readonly writer: Writer
  readonly styles: ReadonlyMap<string, ParagraphStyle>
  readonly numbering: Awaited<ReturnType<typeof readNumbering>>
  readonly links: ReadonlyMap<string, string>
}

async function readBody(zip: Zip, part: string, { writer, styles, numbering, links }: Surroundings): Promise<void> {
  // Text boxes have paragraphs inside of a paragraph, and cells have tables inside.
  const paragraphs: Paragraph[] = []
  const tables: { row: string[]; cell: string[] }[] = []
  const anchors: { readonly before: string; readonly target: string | undefined }[] = []
  let inText = false
  let runs = 0
  let note: string | undefined

  const append = (text: string) => {
    const paragraph = paragraphs.at(-1)
    if (paragraph !== undefined) paragraph.text += text
  }

  const finish = (paragraph: Paragraph) => {
    const table = tables.at(-1)
    const text = note === undefined ? paragraph.text : `[${note}] ${paragraph.text.trimStart()}`
    if (table !== undefined) {
      table.cell.push(text.trim())
      return
    }
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
      case 'p':
        paragraphs.push({ text: '' })
        break
      case 'r':
        runs++
        break
      case 't':
        inText = true
        break
      case 'tab':
        if (runs > 0) append('\t')
        break
      case 'br':
      case 'cr':
        append('\n')
        break
      case 'noBreakHyphen':
        append('-')
        break
      case 'footnoteReference':
      case 'endnoteReference':
        append(writer.plain(`[${attributes.id ?? ''}]`))
        break
      case 'docPr':
        append(writer.image(writer.plain(attributes.descr ?? '')))
        break
      case 'hyperlink':
        if (paragraph === undefined) break
        anchors.push({ before: paragraph.text, target: links.get(attributes['r:id'] ?? '') })
        paragraph.text = ''
        break
      case 'footnote':
      case 'endnote':
        // The separators between text and notes are stored as notes, too.
        note = attributes.type === undefined ? attributes.id : undefined
        break
      case 'tbl':
        writer.end()
        tables.push({ row: [], cell: [] })
        break
      default:
        if (paragraph !== undefined) setProperty(paragraph, name, attributes.val ?? '')
    }
  }

  const close = (name: string) => {
    const table = tables.at(-1)
    if (name === 't') inText = false
    else if (name === 'r') runs--
    else if (name === 'p') {
      const paragraph = paragraphs.pop()
      if (paragraph !== undefined) finish(paragraph)
    } else if (name === 'hyperlink') {
      const anchor = anchors.pop()
      const paragraph = paragraphs.at(-1)
      if (anchor !== undefined && paragraph !== undefined)
        paragraph.text = anchor.before + writer.link(paragraph.text, anchor.target)
    } else if (name === 'tc' && table !== undefined) {
      table.row.push(table.cell.join(' '))
      table.cell = []
    } else if (name === 'tr' && table !== undefined) {
      // A table in a cell is text of the cell.
      const outer = tables.at(-2)
      if (outer === undefined) writer.row(table.row)
      else outer.cell.push(table.row.join(' '))
      table.row = []
    } else if (name === 'tbl') {
      tables.pop()
      writer.end()
    }
  }

  await walkXml(zip.read(part), {
    skip: skipped,
    open,
    close,
    text: (text) => {
      if (inText) append(writer.plain(text))
    },
  })
}

function setProperty(paragraph: Paragraph, name: string, value: string): void {
  if (name === 'pStyle') paragraph.style = value
  else if (name === 'outlineLvl') paragraph.level = Number(value)
  else if (name === 'numId') paragraph.list = value
  else if (name === 'ilvl') paragraph.depth = Math.min(8, Number(value) || 0)
}

/** Effect of a style on a paragraph. */
interface ParagraphStyle {
  readonly level?: number
  readonly list?: string
}

/** The styles that make headings and lists. Their names are in English in every language of Word. */
async function readStyles(zip: Zip, part: string | undefined): Promise<ReadonlyMap<string, ParagraphStyle>> {
  const styles = new Map<string, { level?: number; list?: string }>()
  if (part === undefined || !zip.has(part)) return styles
  let style: { level?: number; list?: string } = {}
  await walkXml(zip.read(part), {
    open: (name, { styleId, val = '', type }) => {
      if (name === 'style' && styles.size < 10_000) {
        style = {}
        if (type === 'paragraph') styles.set(styleId ?? '', style)
      } else if (name === 'name') {
        const level = /^heading ([1-9])$/i.exec(val)?.[1]
        if (level !== undefined) style.level = Number(level) - 1
        else if (/^title$/i.test(val)) style.level = 0
      } else if (name === 'outlineLvl') style.level ??= Number(val)
      else if (name === 'numId') style.list = val
    },
  })
  return styles
}

/** Reads how the lists of a document are numbered (ECMA-376, part 1, section 17.9), and counts their items. */
async function readNumbering(zip: Zip, part: string | undefined) {
  /** Number formats per depth, by definition; below, the definition of each list. */
  const formats = new Map<string, string[]>()
  const definitions = new Map<string, string>()
  if (part !== undefined && zip.has(part)) {
    let format: string[] = []
    let depth = 0
    let list = ''
    await walkXml(zip.read(part), {
      open: (name, { abstractNumId = '', numId = '', ilvl = '', val = '' }) => {
        if (name === 'abstractNum') {
          format = []
          formats.set(abstractNumId, format)
        } else if (name === 'lvl') depth = Math.min(8, Number(ilvl) || 0)
        else if (name === 'numFmt') format[depth] = val
        else if (name === 'num') {
          list = numId
          // Overrides of a list mostly change only its start number.
          format = []
        } else if (name === 'abstractNumId') definitions.set(list, val)
      },
    })
  }
  const counts = new Map<string, number[]>()
  return {
    /** The number of the next item at a depth of a list; `undefined` where its items have bullets. */
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
