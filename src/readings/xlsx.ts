import { type Reading, type ReadingForm, type ReadingLimits, type SheetText, tooMuch } from './formats.ts'
import { mainPartOf, openZip, relationshipsOf, walkXml, type Zip } from './package.ts'
import { createWriter, type Writer } from './writer.ts'

/** Elements that are not part of a text: pronunciation, formulas, extensions, fallbacks. */
const skipped = new Set(['rPh', 'phoneticPr', 'f', 'extLst', 'Fallback'])

/** Shared tables that the cells of a workbook refer to. */
interface Workbook {
  readonly strings: readonly string[]
  readonly kinds: readonly NumberKind[]
  readonly since1904: boolean
}

/** Reads an Excel workbook (ECMA-376, part 1, section 18): each sheet as a table of the values that are shown. */
export async function readXlsx(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const writer = createWriter(form, limits.characters)
  const parts = await writeSheets(bytes, limits, writer)
  return { text: writer.finish(), parts }
}

/** Reads the sheets of a workbook, each as CSV. */
export async function readSheets(bytes: Uint8Array, limits: ReadingLimits): Promise<Reading> {
  const writer = createSheetWriter(limits.characters)
  const parts = await writeSheets(bytes, limits, writer)
  return { text: '', parts, sheets: writer.sheets }
}

type Rows = Pick<Writer, 'plain' | 'heading' | 'row' | 'end'>

/** Writes the sheets, and returns their number. */
async function writeSheets(bytes: Uint8Array, limits: ReadingLimits, writer: Rows): Promise<number> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const relationships = await relationshipsOf(zip, main)
  const partOf = (type: string) => relationships.find((relationship) => relationship.type === type)?.target
  const targets = new Map(relationships.map(({ id, target }) => [id, target]))
  const sheets: { readonly name: string; readonly part: string }[] = []
  let since1904 = false
  await walkXml(zip.read(main), {
    open: (name, attributes) => {
      if (name === 'workbookPr') since1904 = /^(?:1|true)$/.test(attributes.date1904 ?? '')
      const part = name === 'sheet' ? targets.get(attributes['r:id'] ?? '') : undefined
      if (part !== undefined && zip.has(part)) sheets.push({ name: attributes.name ?? '', part })
    },
  })
  const strings = await readStrings(zip, partOf('sharedStrings'), limits.characters)
  const workbook: Workbook = { strings, kinds: await readKinds(zip, partOf('styles')), since1904 }
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
      if (name === 'si') current = ''
      inText = name === 't'
    },
    text: (text) => {
      if (!inText) return
      current += text
      length += text.length
      if (length > limit) throw tooMuch(`The document has more than ${limit} characters of text.`)
    },
    close: (name) => {
      inText = false
      if (name === 'si') strings.push(current)
    },
  })
  return strings
}

/** Reads the kind of number of each cell style. */
async function readKinds(zip: Zip, part: string | undefined): Promise<readonly NumberKind[]> {
  const kinds: NumberKind[] = []
  if (part === undefined || !zip.has(part)) return kinds
  const codes = new Map<number, string>()
  let inCells = false
  await walkXml(zip.read(part), {
    open: (name, { numFmtId = '0', formatCode = '' }) => {
      if (name === 'numFmt') codes.set(Number(numFmtId), formatCode)
      else if (name === 'cellXfs') inCells = true
      else if (name === 'xf' && inCells) kinds.push(numberKindOf(Number(numFmtId), codes.get(Number(numFmtId))))
    },
    close: (name) => {
      if (name === 'cellXfs') inCells = false
    },
  })
  return kinds
}

async function readSheet(zip: Zip, part: string, workbook: Workbook, writer: Rows): Promise<void> {
  let row: string[] = []
  let number = 0
  let written = 0
  let cell = { column: 0, type: 'n', style: 0, text: '' }
  let inValue = false

  const address = () => {
    const { column, type, style, text } = cell
    if (text === '') return
    // Fills the gap between two cells with empty cells.
    while (row.length < column) row.push('')
    row[column] = writer.plain(shownValue(text, type, workbook.kinds[style] ?? 'plain', workbook))
  }

  await walkXml(zip.read(part), {
    skip: skipped,
    open: (name, { r, t = 'n', s = '0' }) => {
      if (name === 'row') {
        number = Number(r ?? number + 1) || number + 1
        row = []
      } else if (name === 'c') {
        const column = r === undefined ? row.length : columnOf(r)
        cell = { column: column ?? row.length, type: t, style: Number(s), text: '' }
      }
      inValue = name === 'v' || (name === 't' && cell.type === 'inlineStr')
    },
    text: (text) => {
      if (inValue) cell.text += text
    },
    close: (name) => {
      inValue = false
      if (name === 'c') address()
      if (name !== 'row' || row.every((value) => value === '')) return
      // An empty row separates two tables.
      if (number > written + 1) writer.end()
      writer.row(row)
      written = number
    },
  })
}

function shownValue(text: string, type: string, kind: NumberKind, { strings, since1904 }: Workbook): string {
  if (type === 's') return strings[Number(text)] ?? ''
  if (type === 'b') return text === '1' ? 'TRUE' : 'FALSE'
  return type === 'n' ? formatNumber(text, kind, since1904) : text
}

/**
 * Writer of the sheets of a workbook, each as CSV.
 *
 * @param limit In characters. Beyond it every method throws ResourceError `too-large`.
 */
function createSheetWriter(limit: number) {
  const sheets: { readonly name: string; text: string }[] = []
  let length = 0
  const add = (text: string) => {
    length += text.length
    if (length > limit) throw tooMuch(`The document has more than ${limit} characters of text.`)
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

/** The number formats of a spreadsheet that change the meaning of a number: dates, times and percentages. */

type NumberKind = 'plain' | 'date' | 'duration' | 'percent'

/** Formats that every spreadsheet has under these numbers (ECMA-376, part 1, section 18.8.30; 27 to 58 are East Asian). */
const builtIn = (id: number): NumberKind => {
  if ((id >= 14 && id <= 22) || (id >= 27 && id <= 36) || id === 45 || id === 47 || (id >= 50 && id <= 58))
    return 'date'
  if (id === 46) return 'duration'
  return id === 9 || id === 10 ? 'percent' : 'plain'
}

/** Returns the kind of number that a number format shows. `code` is given for formats that the document defines itself. */
export function numberKindOf(id: number, code: string | undefined): NumberKind {
  if (code === undefined) return builtIn(id)
  // Quoted and escaped text, colours, locales and conditions do not count as format.
  const bare = code.slice(0, 300).replace(/"[^"]*"|\\.|_.|\*./g, '')
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'duration'
  const format = bare.replace(/\[[^\]]*\]/g, '').replace(/general/gi, '')
  // `e` is a year in Japan, and an exponent elsewhere.
  if (/[ymdhs]|g+e|ge|^e/i.test(format.replace(/e[+-]/gi, ''))) return 'date'
  return format.includes('%') ? 'percent' : 'plain'
}

/** A number as text: a date in ISO 8601, a duration in hours, and no digits that only binary fractions have. */
export function formatNumber(source: string, kind: NumberKind, since1904: boolean): string {
  const value = Number(source)
  if (source.trim() === '' || !Number.isFinite(value)) return source
  if (kind === 'percent') return `${tidy(value * 100)}%`
  if (kind === 'duration') return formatDuration(value)
  return kind === 'date' ? (formatDate(value, since1904) ?? tidy(value)) : tidy(value)
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(15)))
}

function formatDuration(days: number): string {
  const seconds = Math.round(Math.abs(days) * 86_400)
  const two = (n: number) => String(Math.floor(n) % 60).padStart(2, '0')
  return `${days < 0 ? '-' : ''}${Math.floor(seconds / 3600)}:${two(seconds / 60)}:${two(seconds)}`
}

/** Day 1 is 1900-01-01, and day 60 is the 29 February that this year did not have; or day 0 is 1904-01-01. */
function formatDate(days: number, since1904: boolean): string | undefined {
  if (days < 0 || days >= 2_958_466) return undefined
  const seconds = Math.round(days * 86_400)
  const epoch = since1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
  const iso = new Date(epoch + seconds * 1000).toISOString()
  const time = iso.slice(11, iso.slice(17, 19) === '00' ? 16 : 19)
  if (days < 1) return time
  return seconds % 86_400 === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}

/** The index of a column, from 0, by a reference such as `AB12`; `undefined` beyond the last that there can be. */
export function columnOf(reference: string): number | undefined {
  const letters = /^\$?([A-Z]{1,3})/.exec(reference)?.[1]
  if (letters === undefined) return undefined
  const index = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  return index < 16_384 ? index : undefined
}
