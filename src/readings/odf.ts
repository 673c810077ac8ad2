import { buffer } from 'node:stream/consumers'
import { tooLarge } from '../core/errors.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { readHtmlPage } from './html.ts'
import { type Attributes, openZip, walkXml, type Zip } from './package.ts'
import { createTableStack } from './tables.ts'
import { collapseWhitespace, createDocumentWriter, type DocumentWriter } from './writer.ts'

const skipped = new Set([
  'text:tracked-changes',
  'table:tracked-changes',
  'text:ruby-text',
  'text:hidden-text',
  'office:annotation',
  'office:binary-data',
  'office:master-styles',
  'office:meta',
  'office:scripts',
  'office:settings',
  'presentation:date-time-decl',
  'presentation:footer-decl',
  'presentation:header-decl',
])

/** Frames that are the same on every page, by their `presentation:class`. */
const repeatedFrames = new Set(['page-number', 'header', 'footer', 'date-time'])

const [maxFormulas, maxPages, maxColumns, maxRepeats] = [1000, 5000, 16_384, 2 ** 31]

/** Reads an OpenDocument text, spreadsheet, presentation or drawing (ISO/IEC 26300), as a package or as one XML file. */
export async function readOdf(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const writer = createDocumentWriter(form, limits.characters)
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const zip = file.subarray(0, 2).toString('latin1') === 'PK' ? await openZip(bytes, limits.unpacked) : undefined
  if (zip === undefined && !file.includes('office:document'))
    throw unreadableError('The document is damaged: it is not an OpenDocument file.')
  const partOf = (name: string) => (zip === undefined ? singleChunkStream(file) : zip.read(name))
  const formulas = zip === undefined ? new Map() : await readFormulas(zip, form, limits)
  const facts = await readFacts(['styles.xml', 'content.xml'].filter((part) => zip?.has(part) ?? true).map(partOf))
  const body = createOdfBodyWriter(writer, facts, formulas, limits.characters)
  await walkXml(partOf('content.xml'), { skip: skipped, ...body })
  const parts = body.end()
  return { text: writer.finish(), ...(parts > 0 ? { parts } : {}) }
}

async function* singleChunkStream(file: Buffer) {
  yield file
}

/** Reads the formulas that are objects of a document, by their names. Throws ResourceError `invalid` for an encrypted document. */
async function readFormulas(zip: Zip, form: ReadingForm, limits: ReadingLimits): Promise<ReadonlyMap<string, string>> {
  const names: string[] = []
  const manifest = 'META-INF/manifest.xml'
  if (zip.has(manifest))
    await walkXml(zip.read(manifest), {
      allowsDefinition: true,
      open: (name, { 'media-type': type = '', 'full-path': path = '' }) => {
        if (name === 'manifest:encryption-data')
          throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
        if (type.endsWith('opendocument.formula') && path !== '/') names.push(path.replace(/\/$/, ''))
      },
    })
  if (names.length > maxFormulas) throw tooLarge(`The document has more than ${maxFormulas} formulas.`)
  const formulas = new Map<string, string>()
  for (const name of names) {
    if (!zip.has(`${name}/content.xml`)) continue
    const source = (await buffer(zip.read(`${name}/content.xml`))).toString().replace(/(<\/?)math:/g, '$1')
    formulas.set(name, readHtmlPage(source, form, limits).text.trim())
  }
  return formulas
}

interface BodyFacts {
  readonly parents: ReadonlyMap<string, string>
  /** Whether the items of a list style are numbered, at each depth. */
  readonly numbered: ReadonlyMap<string, readonly boolean[]>
  /** The title of each page of a presentation; '' for a page without one. */
  readonly titles: readonly string[]
}

async function readFacts(parts: readonly AsyncIterable<Buffer>[]): Promise<BodyFacts> {
  const parents = new Map<string, string>()
  const numbered = new Map<string, boolean[]>()
  const titles: string[] = []
  let list: boolean[] = []
  let [inTitle, inNotes] = [false, false]
  for (const part of parts)
    await walkXml(part, {
      skip: skipped,
      open: (name, attributes) => {
        const { 'parent-style-name': parent } = attributes
        const own = attributes.name ?? attributes['style:name'] ?? ''
        if (name === 'style:style' && parent !== undefined && parents.size < 100_000) parents.set(own, parent)
        else if (name === 'text:list-style') {
          list = []
          numbered.set(own, list)
        } else if (name === 'text:list-level-style-number') list[Math.min(9, Number(attributes.level) - 1 || 0)] = true
        else if (name === 'draw:page') titles.push('')
        else if (name === 'presentation:notes') inNotes = true
        else if (name === 'draw:frame') inTitle = !inNotes && attributes['presentation:class'] === 'title'
        else if (inTitle && /^text:(?:p|s|tab|line-break)$/.test(name)) titles[titles.length - 1] += ' '
        if (titles.length > maxPages) throw tooLarge(`The document has more than ${maxPages} pages.`)
      },
      text: (text) => {
        if (inTitle && titles.length > 0) titles[titles.length - 1] += text
      },
      close: (name) => {
        if (name === 'draw:frame') inTitle = false
        else if (name === 'presentation:notes') inNotes = false
      },
    })
  return { parents, numbered, titles: titles.map(collapseWhitespace) }
}

interface OpenParagraph {
  readonly name: string
  readonly style: string
  readonly level: number
  text: string
}

/** The positive integer in an attribute, at most `most`; 1 if the attribute has none. */
function countIn(attribute: string | undefined, most: number): number {
  return Math.min(most, Math.max(1, Math.trunc(Number(attribute)) || 1))
}

/** The open paragraphs, each in a text box or note of the paragraph before. */
function createParagraphs(writer: DocumentWriter, formulas: ReadonlyMap<string, string>, most: number) {
  const paragraphs: OpenParagraph[] = []
  const anchors: { readonly before: string; readonly target: string | undefined }[] = []
  const notes: string[] = []
  let note: { mark: string; readonly lines: string[] } | undefined
  let capturing: 'mark' | 'alternative' | undefined
  let alternative = ''

  const append = (text: string) => {
    const paragraph = paragraphs.at(-1)
    if (paragraph !== undefined) paragraph.text += text
    if ((paragraph?.text.length ?? 0) > most) throw tooLarge(`The document has more than ${most} characters of text.`)
    return paragraph !== undefined
  }

  const endNote = () => {
    const { mark, lines } = note ?? { mark: '', lines: [] }
    note = undefined
    append(writer.plain(`[${mark}]`))
    notes.push(writer.plain(`[${mark}] `) + lines.map((line) => line.trim()).join('\n'))
  }

  return {
    notes: notes as readonly string[],
    open: (name: string, attributes: Attributes) => {
      if (name === 'text:p' || name === 'text:h') {
        const level = countIn(attributes['outline-level'], 10)
        paragraphs.push({ name, style: attributes['style-name'] ?? '', level, text: '' })
      } else if (name === 'text:s') append(' '.repeat(countIn(attributes.c, 1000)))
      else if (name === 'text:tab') append('\t')
      else if (name === 'text:line-break') append('\n')
      else if (name === 'text:note') note = { mark: '', lines: [] }
      else if (name === 'text:note-citation') capturing = 'mark'
      else if (name === 'svg-compatible:title' || name === 'svg-compatible:desc') capturing = 'alternative'
      else if (name === 'draw:object') append(formulas.get((attributes['xlink:href'] ?? '').replace(/^\.\//, '')) ?? '')
      else if (name === 'text:a') {
        const paragraph = paragraphs.at(-1)
        anchors.push({ before: paragraph?.text ?? '', target: attributes['xlink:href'] })
        if (paragraph !== undefined) paragraph.text = ''
      }
    },
    text: (characters: string) => {
      if (capturing === 'mark' && note !== undefined) note.mark += characters.trim()
      else if (capturing === 'alternative') alternative += characters
      else {
        const words = characters.replace(/[ \t\r\n]+/g, ' ')
        const isFirst = paragraphs.at(-1)?.text === '' && anchors.length === 0
        append(writer.plain(isFirst ? words.trimStart() : words))
      }
    },
    /** Closes an element. Returns the paragraph that ends, unless it is in a note, or the description of a picture outside of paragraphs. */
    close: (name: string): OpenParagraph | undefined => {
      if (name === 'text:note-citation') capturing = undefined
      else if (name === 'text:note') endNote()
      else if (name === 'text:a') {
        const anchor = anchors.pop()
        const paragraph = paragraphs.at(-1)
        if (anchor !== undefined && paragraph !== undefined)
          paragraph.text = anchor.before + writer.link(paragraph.text, anchor.target)
      } else if (capturing === 'alternative') {
        const text = writer.image(writer.plain(alternative.trim()))
        alternative = ''
        capturing = undefined
        return append(text) ? undefined : { name: 'text:p', style: '', level: 1, text }
      } else if (name === 'text:p' || name === 'text:h') {
        const paragraph = paragraphs.pop()
        if (note === undefined) return paragraph
        note.lines.push(paragraph?.text ?? '')
      }
      return undefined
    },
  }
}

function createOdfBodyWriter(
  writer: DocumentWriter,
  { parents, numbered, titles }: BodyFacts,
  formulas: ReadonlyMap<string, string>,
  most: number,
) {
  const paragraphs = createParagraphs(writer, formulas, most)
  const lists = createLists(writer, numbered)
  const tables = createTableStack(writer)
  const sheets = createSheets(writer)
  let [hidden, pages, tableDepth] = [0, 0, 0]
  let [isSpreadsheet, isPresentation] = [false, false]

  const isTitle = (style: string): boolean => {
    let name: string | undefined = style
    for (let at = 0; at < 20 && name !== undefined; at++, name = parents.get(name)) if (name === 'Title') return true
    return false
  }

  const write = ({ name, style, level, text }: OpenParagraph) => {
    if (sheets.add(text) || tables.add(text)) return
    if (name === 'text:h') writer.heading(level, text)
    else if (lists.write(text)) return
    else if (isTitle(style)) writer.heading(1, text)
    else writer.paragraph(text)
  }

  const openPage = () => {
    const title = titles[pages++] ?? ''
    writer.end()
    const name = `${isPresentation ? 'Slide' : 'Page'} ${pages}`
    writer.heading(1, title === '' ? name : `${name}: ${writer.plain(title)}`)
  }

  const open = (name: string, attributes: Attributes) => {
    const frame = attributes['presentation:class'] ?? ''
    if (hidden > 0 || (name === 'draw:frame' && (repeatedFrames.has(frame) || frame === 'title'))) return void hidden++
    if (name === 'office:spreadsheet') isSpreadsheet = true
    else if (name === 'office:presentation') isPresentation = true
    else if (name === 'draw:page') openPage()
    else if (name === 'presentation:notes') writer.heading(2, 'Notes')
    else if (name === 'draw:frame' || name === 'draw:custom-shape') writer.end()
    else if (name === 'text:list' || name === 'text:list-item') lists.open(name, attributes)
    else if (name === 'table:table') {
      if (tableDepth++ === 0 && isSpreadsheet) sheets.begin(attributes.name ?? '')
      else tables.begin()
    } else if (isSpreadsheet && tableDepth === 1) sheets.open(name, attributes)
    paragraphs.open(name, attributes)
  }

  const close = (name: string) => {
    if (hidden > 0) return void hidden--
    const paragraph = paragraphs.close(name)
    if (paragraph !== undefined) write(paragraph)
    else if (name === 'text:list' || name === 'text:list-item') lists.close(name)
    else if (name === 'table:table') {
      if (--tableDepth === 0 && isSpreadsheet) sheets.end()
      else tables.end()
    } else if (isSpreadsheet && tableDepth === 1) sheets.close(name)
    else if (name === 'table:table-cell') tables.endCell()
    else if (name === 'table:table-row') tables.endRow()
  }

  const text = (characters: string) => {
    if (hidden === 0) paragraphs.text(characters)
  }

  const end = (): number => {
    for (const note of paragraphs.notes) writer.paragraph(note)
    return pages + sheets.count()
  }

  return { open, close, text, end }
}

function createLists(writer: DocumentWriter, numbered: BodyFacts['numbered']) {
  const lists: { readonly style: string; number: number; isNew: boolean }[] = []
  /** The last number in each style, for lists that continue another. */
  const last = new Map<string, number>()
  return {
    open: (name: string, attributes: Attributes) => {
      if (name === 'text:list') {
        const style = attributes['style-name'] ?? lists.at(-1)?.style ?? ''
        const continues = attributes['continue-numbering'] === 'true' || attributes['continue-list'] !== undefined
        if (lists.length === 0) writer.end()
        lists.push({ style, number: continues ? (last.get(style) ?? 0) : 0, isNew: true })
        return
      }
      const list = lists.at(-1)
      if (list === undefined) return
      list.isNew = true
      const start = Number(attributes['start-value'])
      if (start > 0) list.number = start - 1
    },
    write: (text: string): boolean => {
      const list = lists.at(-1)
      if (list === undefined) return false
      if (text.trim() === '') return true
      const isNumbered = list.isNew && numbered.get(list.style)?.[Math.min(9, lists.length - 1)] === true
      writer.item(lists.length - (list.isNew ? 1 : 0), isNumbered ? ++list.number : undefined, text)
      list.isNew = false
      return true
    },
    close: (name: string) => {
      if (name !== 'text:list') return
      const list = lists.pop()
      if (list !== undefined) last.set(list.style, list.number)
      if (lists.length === 0) writer.end()
    },
  }
}

/** The tables of a spreadsheet. Cells and rows may be repeated. */
function createSheets(writer: DocumentWriter) {
  let row: string[] = []
  let column = 0
  let repeats = 1
  let number = 0
  let length = 0
  let count = 0
  let cell: { readonly attributes: Attributes; readonly lines: string[] } | undefined

  const endCell = () => {
    if (cell === undefined) return
    const { attributes, lines } = cell
    const value = dateIn(attributes) ?? (lines.length > 0 ? lines.join(' ') : writer.plain(cellValue(attributes)))
    const repeated = countIn(attributes['number-columns-repeated'], maxRepeats)
    const columns = Math.min(repeated, maxColumns - column)
    // Empty cells stand only before a value.
    if (value !== '' && columns > 0) {
      while (row.length < column) row.push('')
      for (let at = 0; at < columns; at++) row.push(value)
    }
    column += repeated
    cell = undefined
  }

  const endRow = () => {
    if (row.length > 0) {
      // An empty row separates two tables.
      if (number > length) writer.end()
      for (let at = 0; at < repeats; at++) writer.row(row)
      length = number + repeats
    }
    number += repeats
  }

  return {
    begin: (name: string) => {
      ;[number, length] = [0, 0]
      count++
      writer.heading(1, writer.plain(name))
    },
    open: (name: string, attributes: Attributes) => {
      if (name === 'table:table-row') {
        ;[row, column] = [[], 0]
        repeats = countIn(attributes['number-rows-repeated'], maxRepeats)
      } else if (name === 'table:table-cell' || name === 'table:covered-table-cell') cell = { attributes, lines: [] }
    },
    /** Adds text to the open cell. Returns whether a cell is open. */
    add: (text: string): boolean => {
      if (text.trim() !== '') cell?.lines.push(text.trim())
      return cell !== undefined
    },
    close: (name: string) => {
      if (name === 'table:table-cell' || name === 'table:covered-table-cell') endCell()
      else if (name === 'table:table-row') endRow()
    },
    end: () => writer.end(),
    count: () => count,
  }
}

/** The date of a cell as `YYYY-MM-DD`, with the time unless it is midnight, whatever form the spreadsheet shows; `undefined` if it has none. */
function dateIn(attributes: Attributes): string | undefined {
  const date = attributes['office:value-type'] === 'date' ? attributes['office:date-value'] : undefined
  const [, day, minute = '00:00', second] = /^([\d-]{4,12})(?:T(\d\d:\d\d)(:\d\d)?[\d.,]*)?$/.exec(date ?? '') ?? []
  if (day === undefined) return undefined
  const time = second === undefined || second === ':00' ? minute : minute + second
  return time === '00:00' ? day : `${day} ${time}`
}

function cellValue(attributes: Attributes): string {
  const names = ['office:string-value', 'office:value', 'office:boolean-value', 'office:time-value']
  return names.map((name) => attributes[name]).find((value) => value !== undefined) ?? ''
}
