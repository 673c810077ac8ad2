import { columnOf, formatNumber, type NumberKind, numberKindOf } from './cells.ts'
import { createSheetWriter } from './csv.ts'
import type { Form } from './formats.ts'
import { type Reading, type ReadingLimits, tooMuch } from './job.ts'
import { createWriter, type Writer } from './writer.ts'
import { mainPartOf, relationshipsOf, walkXml } from './xml.ts'
import { openZip, type Zip } from './zip.ts'

/** Pronunciation is beside the text, not in it. */
const skipped = new Set(['rPh', 'phoneticPr', 'f', 'extLst', 'Fallback'])

/** Shared tables that the cells of a workbook refer to. */
interface Workbook {
  readonly strings: readonly string[]
  readonly kinds: readonly NumberKind[]
  readonly since1904: boolean
}

/** Reads an Excel workbook (ECMA-376, part 1, section 18): each sheet as a table of the values that are shown. */
export async function readXlsx(bytes: Uint8Array, form: Form, limits: ReadingLimits): Promise<Reading> {
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

/** Answers how many sheets there are. */
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

  const place = () => {
    const { column, type, style, text } = cell
    if (text === '') return
    // Between cells that are far apart are as many that are empty.
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
      if (name === 'c') place()
      if (name !== 'row' || row.every((value) => value === '')) return
      // An empty row is what keeps two tables apart.
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
