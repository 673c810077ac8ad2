import { tooLarge } from '../../core/errors.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from '../formats.ts'
import { numberKindOf } from '../number-formats.ts'
import { mainPartOf, openZip, relationshipsOf, type Zip } from '../package.ts'
import { createDocumentWriter } from '../writer.ts'
import { type CellStyle, createCells, readPackedNumber, type SheetCells } from './cells.ts'

/** Types of records ([MS-XLSB], 2.3.2). */
const type = { row: 0, sharedText: 19, font: 43, format: 44, style: 47, richText: 62, book: 153, sheet: 156 } as const
const [stylesBegin, stylesEnd] = [617, 618]
/** Kinds of values by the type of record: 2 to 7 are cells, 8 to 11 results of formulas, 13 to 18 cells in the column after the cell before. */
const values: Readonly<Record<number, 'packed' | 'error' | 'boolean' | 'number' | 'text' | 'shared'>> = {
  2: 'packed',
  3: 'error',
  4: 'boolean',
  5: 'number',
  6: 'text',
  7: 'shared',
  8: 'text',
  9: 'number',
  10: 'boolean',
  11: 'error',
  13: 'packed',
  14: 'error',
  15: 'boolean',
  16: 'number',
  17: 'text',
  18: 'shared',
}
const isWithoutColumn = (kind: number) => kind >= 12 && kind <= 18

interface Workbook {
  readonly strings: readonly string[]
  readonly styles: readonly CellStyle[]
  readonly since1904: boolean
}

/** Reads a workbook of binary records ([MS-XLSB]): each sheet as a table of the values that are shown. */
export async function readXlsb(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Promise<Reading> {
  const zip = await openZip(bytes, limits.unpacked)
  const main = await mainPartOf(zip)
  const relationships = await relationshipsOf(zip, main)
  const partOf = (kind: string) => relationships.find(({ type }) => type === kind)?.target
  const targets = new Map(relationships.map(({ id, target }) => [id, target]))
  const sheets: { readonly name: string; readonly part: string }[] = []
  let since1904 = false
  await walkRecords(zip, main, (kind, data) => {
    if (kind === type.book) since1904 = ((data[0] ?? 0) & 1) === 1
    if (kind !== type.sheet) return
    // The relationship's id is at offset 8; a beta of Excel 2007 wrote four bytes more before it.
    const [id, end] = [8, 12].map((at) => readWideString(data, at)).find(([id]) => targets.has(id)) ?? ['', 0]
    const part = targets.get(id)
    if (part === undefined) throw unreadableError('The document is damaged: a sheet that it lists is missing.')
    sheets.push({ name: readWideString(data, end)[0], part })
  })
  const workbook: Workbook = {
    strings: await readStrings(zip, partOf('sharedStrings'), limits.characters),
    styles: await readCellStyles(zip, partOf('styles')),
    since1904,
  }
  const writer = createDocumentWriter(form, limits.characters)
  for (const { name, part } of sheets) {
    writer.heading(1, writer.plain(name.toWellFormed()))
    const cells = createCells(writer)
    await walkRecords(zip, part, createSheetReader(workbook, cells))
    cells.write()
  }
  return { text: writer.finish(), parts: sheets.length }
}

/**
 * Walks the records of a part, if there is one, piece by piece. A record is a type of one or two bytes, a length of one to four, and data.
 * In a type or length, the upper bit of a byte says that another byte follows.
 */
async function walkRecords(zip: Zip, part: string | undefined, take: (kind: number, data: Buffer) => void) {
  if (part === undefined || !zip.has(part)) return
  let rest: Buffer = Buffer.alloc(0)
  let missing = 0
  const waiting: Buffer[] = []
  for await (const piece of zip.read(part)) {
    waiting.push(piece)
    missing -= piece.length
    if (missing > 0) continue
    const bytes = Buffer.concat([rest, ...waiting.splice(0)])
    let at = 0
    let head = headAt(bytes, at)
    for (; head.start + head.length <= bytes.length; head = headAt(bytes, at)) {
      at = head.start + head.length
      take(head.kind, bytes.subarray(head.start, at))
    }
    rest = Buffer.from(bytes.subarray(at))
    missing = head.start + head.length - bytes.length
  }
}

/** Reads the head of a record. If the bytes end within the head, `start` is beyond their end. */
function headAt(bytes: Buffer, begin: number) {
  let at = begin
  const next = () => bytes[at++] ?? 0
  let kind = next()
  if (kind >= 128) kind = (kind & 127) + next() * 128
  let length = 0
  for (let index = 0; index < 4; index++) {
    const byte = next()
    length += (byte & 127) * 128 ** index
    if (byte < 128) break
  }
  return { kind, start: at, length }
}

/** Returns a text whose length is stored in four bytes, and the offset after the text. */
function readWideString(data: Buffer, at: number): readonly [text: string, end: number] {
  const length = at + 4 <= data.length ? data.readUInt32LE(at) : 0
  if (length === 0xffffffff) return ['', at + 4]
  const end = Math.min(data.length, at + 4 + length * 2)
  return [data.toString('utf16le', at + 4, end), end]
}

async function readStrings(zip: Zip, part: string | undefined, limit: number): Promise<readonly string[]> {
  const strings: string[] = []
  let length = 0
  await walkRecords(zip, part, (kind, data) => {
    if (kind !== type.sharedText) return
    const [text] = readWideString(data, 1)
    length += text.length
    if (length > limit) throw tooLarge(`The document has more than ${limit} characters of text.`)
    strings.push(text)
  })
  return strings
}

async function readCellStyles(zip: Zip, part: string | undefined): Promise<readonly CellStyle[]> {
  const codes = new Map<number, string>()
  const fonts: string[] = []
  const styles: CellStyle[] = []
  let isOfCells = false
  await walkRecords(zip, part, (kind, data) => {
    if (kind === stylesBegin || kind === stylesEnd) isOfCells = kind === stylesBegin
    else if (kind === type.font) fonts.push(readWideString(data, 21)[0])
    else if (kind === type.format && data.length >= 2) codes.set(data.readUInt16LE(0), readWideString(data, 2)[0])
    else if (kind === type.style && isOfCells && data.length >= 6) {
      const format = data.readUInt16LE(2)
      styles.push({ kind: numberKindOf(format, codes.get(format)), font: fonts[data.readUInt16LE(4)] ?? '' })
    }
  })
  return styles
}

/** Returns a function that adds the records of a sheet to its cells. A row is written when the next row begins. */
function createSheetReader({ strings, styles, since1904 }: Workbook, cells: SheetCells) {
  let [row, column] = [0, -1]
  return (kind: number, data: Buffer): void => {
    if (kind === type.row && data.length >= 4) {
      cells.write()
      ;[row, column] = [data.readUInt32LE(0), -1]
    }
    const value = kind === type.richText ? 'text' : values[kind]
    const start = isWithoutColumn(kind) ? 0 : 4
    if ((value === undefined && kind !== 1 && kind !== 12) || data.length < start + 4) return
    column = isWithoutColumn(kind) ? column + 1 : data.readUInt32LE(0)
    const style = styles[data.readUIntLE(start, 3)]
    const at = start + 4
    if (value === 'packed' && data.length >= at + 4)
      cells.number(row, column, readPackedNumber(data, at), since1904, style)
    else if (value === 'number' && data.length >= at + 8)
      cells.number(row, column, data.readDoubleLE(at), since1904, style)
    else if (value === 'boolean') cells.boolean(row, column, data[at] === 1)
    else if (value === 'error') cells.error(row, column, data[at] ?? 0)
    else if (value === 'text')
      cells.text(row, column, readWideString(data, kind === type.richText ? at + 1 : at)[0], style)
    else if (value === 'shared' && data.length >= at + 4) {
      const text = strings[data.readUInt32LE(at)]
      if (text === undefined) throw unreadableError('The document is damaged: the text of a cell is missing.')
      cells.text(row, column, text, style)
    }
  }
}
