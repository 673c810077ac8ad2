import { tooLarge } from '../core/errors.ts'
import { type Reading, type ReadingForm, type ReadingLimits, type SheetText, unreadableError } from './formats.ts'
import { formatCellText, formatNumber, type NumberKind, numberKindOf } from './number-formats.ts'
import { mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { decodeSymbols } from './symbols.ts'
import { createDocumentWriter, type DocumentWriter } from './writer.ts'

/** Elements that are not part of a text: pronunciation, formulas, extensions. */
const skipped = new Set(['x:rPh', 'x:phoneticPr', 'x:f', 'x:extLst'])

interface Workbook {
  readonly strings: readonly string[]
  readonly styles: readonly CellStyle[]
  readonly since1904: boolean
}

interface CellStyle {
  readonly kind: NumberKind
  readonly font: string
}

/** Reads an Excel workbook (ECMA-376, part 1, section 18): each sheet as a table of the values that are shown. */
export async function readXlsx(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const writer = createDocumentWriter(form, limits.characters)
  const parts = await writeSheets(bytes, limits, writer)
  return { text: writer.finish(), parts }
}

export async function readSheetsAsCsv(bytes: Uint8Array, limits: ReadingLimits): Promise<Reading> {
  const writer = createSheetWriter(limits.characters)
  const parts = await writeSheets(bytes, limits, writer)
  return { text: '', parts, sheets: writer.sheets }
}

type Rows = Pick<DocumentWriter, 'plain' | 'heading' | 'row' | 'end'>

async function writeSheets(bytes: Uint8Array, limits: ReadingLimits, writer: Rows): Promise<number> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const relationships = await relationshipsOf(zip, main)
  const partOf = (type: string) => relationships.find((relationship) => relationship.type === type)?.target
  const targets = new Map(relationships.map(({ id, target }) => [id, target]))
  const sheets: { readonly name: string; readonly part: string }[] = []
  let since1904 = false
  await walkXml(zip.read(main), {
    skip: skipped,
    open: (name, attributes) => {
      if (name === 'x:workbookPr') since1904 = /^(?:1|true|on)$/.test(attributes.date1904 ?? '')
      // A sheet of macros may have no part.
      if (name !== 'x:sheet' || attributes['r:id'] === '') return
      const part = targets.get(attributes['r:id'] ?? '')
      if (part === undefined) throw unreadableError('The document is damaged: a sheet that it lists is missing.')
      sheets.push({ name: attributes.name ?? '', part })
    },
  })
  const strings = await readStrings(zip, partOf('sharedStrings'), limits.characters)
  const workbook: Workbook = { strings, styles: await readCellStyles(zip, partOf('styles')), since1904 }
  for (const { name, part } of sheets) {
    writer.heading(1, writer.plain(name))
    await readSheet(zip, part, workbook, writer)
  }
  return sheets.length
}

async function readStrings(zip: Zip, part: string | undefined, limit: number): Promise<readonly string[]> {
  const strings: string[] = []
  if (part === undefined || !zip.has(part)) return strings
  let current = ''
  let inText = false
  let length = 0
  await walkXml(zip.read(part), {
    skip: skipped,
    open: (name) => {
      if (name === 'x:si') current = ''
      inText = name === 'x:t'
    },
    text: (text) => {
      if (!inText) return
      current += text
      length += text.length
      if (length > limit) throw tooLarge(`The document has more than ${limit} characters of text.`)
    },
    close: (name) => {
      inText = false
      if (name === 'x:si') strings.push(unescapeText(current))
    },
  })
  return strings
}

async function readCellStyles(zip: Zip, part: string | undefined): Promise<readonly CellStyle[]> {
  const styles: CellStyle[] = []
  if (part === undefined || !zip.has(part)) return styles
  const codes = new Map<number, string>()
  const fonts: string[] = []
  let section = ''
  await walkXml(zip.read(part), {
    skip: skipped,
    open: (name, { numFmtId = '0', formatCode = '', fontId = '', val = '' }) => {
      if (name === 'x:numFmt' && section !== 'x:dxfs') codes.set(Number(numFmtId), formatCode)
      else if (name === 'x:fonts' || name === 'x:cellXfs' || name === 'x:dxfs') section = name
      else if (name === 'x:font' && section === 'x:fonts') fonts.push('')
      else if (name === 'x:name' && section === 'x:fonts') fonts[fonts.length - 1] = val
      else if (name === 'x:xf' && section === 'x:cellXfs') {
        const kind = numberKindOf(Number(numFmtId), codes.get(Number(numFmtId)))
        styles.push({ kind, font: fonts[Number(fontId)] ?? '' })
      }
    },
    close: (name) => {
      if (name === section) section = ''
    },
  })
  return styles
}

async function readSheet(zip: Zip, part: string, workbook: Workbook, writer: Rows): Promise<void> {
  let row: string[] = []
  let number = 0
  let length = 0
  let cell = { column: 0, type: 'n', style: 0, text: '' }
  let inValue = false

  const addCell = () => {
    const { column, type, style, text } = cell
    if (text === '') return
    while (row.length < column) row.push('')
    row[column] = writer.plain(shownValue(text, type, workbook.styles[style] ?? plainStyle, workbook))
  }

  await walkXml(zip.read(part), {
    skip: skipped,
    open: (name, { r, t = 'n', s = '0' }) => {
      if (name === 'x:row') {
        number = Number(r ?? number + 1) || number + 1
        row = []
      } else if (name === 'x:c') {
        const column = r === undefined ? row.length : columnIndex(r)
        cell = { column: column ?? row.length, type: t, style: Number(s), text: '' }
      }
      inValue = name === 'x:v' || (name === 'x:t' && cell.type === 'inlineStr')
    },
    text: (text) => {
      if (inValue) cell.text += text
    },
    close: (name) => {
      inValue = false
      if (name === 'x:c') addCell()
      if (name !== 'x:row' || row.every((value) => value === '')) return
      // An empty row separates two tables.
      if (number > length + 1) writer.end()
      writer.row(row)
      length = number
    },
  })
}

const plainStyle: CellStyle = { kind: 'plain', font: '' }

function shownValue(text: string, type: string, { kind, font }: CellStyle, { strings, since1904 }: Workbook): string {
  if (type === 'b') return text === '1' ? 'TRUE' : 'FALSE'
  if (type === 'n') return formatNumber(text, kind, since1904)
  if (type === 'e' || type === 'd') return text
  if (type !== 's') return formatCellText(decodeSymbols(unescapeText(text), font), kind)
  const shared = strings[Number(text)]
  if (shared === undefined) throw unreadableError('The document is damaged: the text of a cell is missing.')
  return formatCellText(decodeSymbols(shared, font), kind)
}

/** Replaces the escapes of characters that XML cannot hold, such as `_x000D_` (ECMA-376, part 1, section 22.9.2.19). */
function unescapeText(text: string): string {
  return text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/**
 * Writer of the sheets of a workbook, each as CSV.
 *
 * @param limit Maximum number of characters. Beyond it, `row` and `end` throw ResourceError `too-large`.
 */
function createSheetWriter(limit: number) {
  const sheets: { readonly name: string; text: string }[] = []
  let length = 0
  const add = (text: string) => {
    length += text.length
    if (length > limit) throw tooLarge(`The document has more than ${limit} characters of text.`)
    const sheet = sheets.at(-1)
    if (sheet !== undefined) sheet.text += text
  }
  return {
    sheets: sheets as readonly SheetText[],
    plain: (text: string) => text,
    heading: (_: number, name: string): void => {
      length += name.length
      sheets.push({ name, text: '' })
    },
    row: (cells: readonly string[]) => add(`${cells.map(fieldOf).join(',')}\n`),
    // Between two tables of a sheet is an empty line.
    end: () => {
      if (sheets.at(-1)?.text !== '') add('\n')
    },
  }
}

function fieldOf(value: string): string {
  return /[",\r\n]|^\s|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value
}

/** The index of the column, from 0, in a cell reference such as `AB12`; `undefined` if there is none, or beyond column XFD. */
export function columnIndex(reference: string): number | undefined {
  const letters = /^\$?([A-Z]{1,3})/.exec(reference)?.[1]
  if (letters === undefined) return undefined
  const index = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  return index < 16_384 ? index : undefined
}
