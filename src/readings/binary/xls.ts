import { tooLarge } from '../../core/errors.ts'
import { decodeCodePage } from '../code-pages.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from '../formats.ts'
import { numberKindOf } from '../number-formats.ts'
import { createDocumentWriter, type DocumentWriter } from '../writer.ts'
import { type CellStyle, createCells, readPackedNumber, type SheetCells } from './cells.ts'
import { isCompoundFile, openCompoundFile } from './compound.ts'

/** Types of records ([MS-XLS], 2.3). In some of them the upper byte is the version: here that of Excel 5 and later. */
const type = {
  beginning: 0x809,
  end: 0x0a,
  encryption: 0x2f,
  continuation: 0x3c,
  dates: 0x22,
  font: 0x31,
  codePage: 0x42,
  sheet: 0x85,
  packedNumbers: 0xbd,
  richText: 0xd6,
  style: 0xe0,
  strings: 0xfc,
  sharedText: 0xfd,
  number: 0x203,
  text: 0x204,
  boolean: 0x205,
  result: 0x207,
  packedNumber: 0x27e,
  formula: 0x06,
  format: 0x41e,
} as const

/** Types of older versions (Excel 2 to 4) for the same records. */
const olderTypes: Readonly<Record<number, number>> = {
  9: type.beginning,
  521: type.beginning,
  1033: type.beginning,
  2: 0x02,
  3: type.number,
  4: type.text,
  5: type.boolean,
  7: type.result,
  30: type.format,
  67: type.style,
  579: type.style,
  1091: type.style,
  518: type.formula,
  1030: type.formula,
  561: type.font,
}

interface SheetRecord {
  readonly type: number
  /** The data of the record, and of the records that continue it. */
  readonly pieces: readonly [Buffer, ...Buffer[]]
}

interface Workbook {
  /** Version of the format: 8 since Excel 97; 2 to 5 before. */
  readonly version: number
  codePage: number
  since1904: boolean
  readonly sheets: { readonly name: string; readonly start: number }[]
  strings: readonly string[]
  readonly fonts: string[]
  readonly formats: Map<number, string>
  readonly styles: { readonly font: number; readonly format: number }[]
}

/** Reads a workbook of Excel 2 to 2003 ([MS-XLS]): each sheet as a table of the values that are shown. */
export function readXls(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  const stream = workbookIn(bytes, limits)
  const writer = createDocumentWriter(form, limits.characters)
  const version = versionAt(stream, 0)
  if (version === undefined) throw unreadableError('The document is damaged: it does not begin as a workbook.')
  const workbook = readGlobals(stream, version, limits.characters)
  for (const { name, start } of workbook.sheets) {
    if (versionAt(stream, start) === undefined)
      throw unreadableError('The document is damaged: a sheet that it lists is missing.')
    writer.heading(1, writer.plain(name.toWellFormed()))
    readSheet(stream, start, workbook, writer)
  }
  if (version < 5) readSheet(stream, 0, workbook, writer)
  return { text: writer.finish(), parts: Math.max(1, workbook.sheets.length) }
}

function workbookIn(bytes: Uint8Array, limits: ReadingLimits): Buffer {
  // Before Excel 5 a workbook was not a compound file.
  if (!isCompoundFile(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const root = openCompoundFile(bytes, limits.unpacked)
  const stream = root.stream('Workbook') ?? root.stream('Book')
  if (stream === undefined) throw unreadableError('The document is damaged: it contains no workbook.')
  return stream
}

/** The version of the format of the workbook or sheet that begins at an offset; `undefined` if none begins there. */
function versionAt(stream: Buffer, at: number): number | undefined {
  if (at + 8 > stream.length) return undefined
  const record = stream.readUInt16LE(at)
  if (record === type.beginning) return stream.readUInt16LE(at + 4) === 0x600 ? 8 : 5
  return olderTypes[record] === type.beginning ? 2 + (record >> 9) : undefined
}

function* recordsOf(stream: Buffer, start: number, version: number): Generator<SheetRecord> {
  const next = (at: number) => {
    if (at + 4 > stream.length) return undefined
    const end = at + 4 + stream.readUInt16LE(at + 2)
    return { number: stream.readUInt16LE(at), data: stream.subarray(at + 4, end), end }
  }
  for (let record = next(start); record !== undefined; ) {
    const { number, data, end } = record
    const pieces: [Buffer, ...Buffer[]] = [data]
    for (record = next(end); record?.number === type.continuation; record = next(record.end)) pieces.push(record.data)
    yield { type: version < 5 ? (olderTypes[number] ?? number) : number, pieces }
  }
}

function readGlobals(stream: Buffer, version: number, limit: number): Workbook {
  const workbook: Workbook = {
    version,
    codePage: 1252,
    since1904: false,
    sheets: [],
    strings: [],
    fonts: [],
    formats: new Map(),
    styles: [],
  }
  const count = { format: 0 }
  for (const record of recordsOf(stream, 0, version)) {
    const [data] = record.pieces
    if (record.type === type.end && version >= 5) break
    if (record.type === type.encryption)
      throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
    if (record.type === type.codePage && data.length >= 2) workbook.codePage = codePageNamed(data.readUInt16LE(0))
    else if (record.type === type.dates) workbook.since1904 = data[0] === 1
    else if (record.type === type.strings && version === 8) workbook.strings = readStrings(record.pieces, limit)
    else if (record.type === type.font) workbook.fonts.push(version < 5 ? '' : shortText(data, 14, workbook))
    else if (record.type === type.format) readFormat(data, workbook, count.format++)
    else if (record.type === type.style) workbook.styles.push(readStyle(data, version))
    else if (record.type === type.sheet && version >= 5 && data.length > 6 && data[5] !== macroModule)
      workbook.sheets.push({ start: data.readUInt32LE(0), name: shortText(data, 6, workbook) })
  }
  return workbook
}

const macroModule = 6

function codePageNamed(number: number): number {
  return number === 0x8000 ? 10_000 : number === 0x8001 ? 1252 : number
}

function readFormat(data: Buffer, workbook: Workbook, count: number): void {
  const { version } = workbook
  const code = version === 8 ? longText([data.subarray(2)], workbook) : shortText(data, version < 4 ? 0 : 2, workbook)
  workbook.formats.set(version < 5 ? count : data.length < 2 ? 0 : data.readUInt16LE(0), code)
}

function readStyle(data: Buffer, version: number): Workbook['styles'][number] {
  if (version < 5) return { font: data[0] ?? 0, format: (version === 2 ? data[2] : data[1]) ?? 0 }
  return data.length < 4 ? { font: 0, format: 0 } : { font: data.readUInt16LE(0), format: data.readUInt16LE(2) }
}

function styleOf({ styles, fonts, formats }: Workbook, number: number): CellStyle | undefined {
  const style = styles[number]
  if (style === undefined) return undefined
  // The numbering of fonts leaves out 4.
  const font = fonts[style.font > 4 ? style.font - 1 : style.font] ?? ''
  return { kind: numberKindOf(style.format, formats.get(style.format)), font }
}

/** Reads a text whose length is stored in one byte. */
function shortText(data: Buffer, at: number, { version, codePage }: Workbook): string {
  const length = data[at] ?? 0
  if (version < 8) return decodeCodePage(data.subarray(at + 1, at + 1 + length), codePage)
  const isWide = ((data[at + 1] ?? 0) & 1) === 1
  return data.toString(isWide ? 'utf16le' : 'latin1', at + 2, at + 2 + (isWide ? length * 2 : length))
}

/** Reads a text whose length is stored in two bytes (in one byte in Excel 2). */
function longText(pieces: SheetRecord['pieces'], { version, codePage }: Workbook): string {
  if (version === 8) return createTextReader(pieces).text()
  const all = Buffer.concat(pieces)
  const [length, start] = version === 2 ? [all[0] ?? 0, 1] : [all.length < 2 ? 0 : all.readUInt16LE(0), 2]
  return decodeCodePage(all.subarray(start, start + length), codePage)
}

/** Reads texts ([MS-XLS], 2.5.293) one after the other. Each continuation states again how many bytes a character has. */
function createTextReader(pieces: readonly Buffer[]) {
  let piece = 0
  let at = 0
  const current = () => {
    while (piece < pieces.length - 1 && at >= (pieces[piece]?.length ?? 0)) {
      at = 0
      piece++
    }
    return pieces[piece] ?? Buffer.alloc(0)
  }
  const number = (bytes: number) => {
    let value = 0
    for (let index = 0; index < bytes; index++) value += (current()[at++] ?? 0) * 2 ** (8 * index)
    return value
  }
  const skip = (bytes: number) => {
    for (let remaining = bytes; remaining > 0; ) {
      const step = Math.min(remaining, current().length - at)
      if (step <= 0) return
      at += step
      remaining -= step
    }
  }
  return {
    skip,
    isAtEnd: () => current().length <= at,
    text: (): string => {
      let remaining = number(2)
      let flags = number(1)
      const runs = (flags & 8) === 0 ? 0 : number(2)
      const extension = (flags & 4) === 0 ? 0 : number(4)
      const texts: string[] = []
      while (remaining > 0) {
        if (at >= (pieces[piece]?.length ?? 0)) {
          if (piece >= pieces.length - 1) break
          flags = current()[0] ?? 0
          at = 1
        }
        const width = (flags & 1) + 1
        const count = Math.min(remaining, Math.ceil((current().length - at) / width))
        if (count === 0) break
        texts.push(current().toString(width === 2 ? 'utf16le' : 'latin1', at, at + count * width))
        at += count * width
        remaining -= count
      }
      skip(runs * 4 + extension)
      return texts.join('')
    },
  }
}

function readStrings(pieces: SheetRecord['pieces'], limit: number): readonly string[] {
  const reader = createTextReader(pieces)
  reader.skip(8)
  const strings: string[] = []
  let length = 0
  while (!reader.isAtEnd()) {
    const text = reader.text()
    length += text.length
    if (length > limit) throw tooLarge(`The document has more than ${limit} characters of text.`)
    strings.push(text)
  }
  return strings
}

function readSheet(stream: Buffer, start: number, workbook: Workbook, writer: DocumentWriter): void {
  const cells = createCells(writer)
  const { version } = workbook
  let depth = 0
  /** The cell of a formula whose result is a text, which is in a record of its own. */
  let formula: readonly [row: number, column: number, style: CellStyle | undefined] | undefined
  for (const record of recordsOf(stream, start, version)) {
    const [data] = record.pieces
    if (record.type === type.beginning) depth++
    else if (record.type === type.end && --depth <= 0) break
    // Skip the values of an embedded chart, which are not cells of the sheet.
    else if (depth > 1 && version >= 5) continue
    else if (record.type === type.result && formula !== undefined) {
      cells.text(formula[0], formula[1], longText(record.pieces, workbook), formula[2])
      formula = undefined
    } else if (data.length >= 6) formula = readCell(record, workbook, cells) ?? formula
  }
  cells.write()
}

/** Adds the value of a cell, or of cells side by side. Returns the place and style of a formula whose result is in a later record. */
function readCell({ type: kind, pieces }: SheetRecord, workbook: Workbook, cells: SheetCells) {
  const [data] = pieces
  const { version, since1904, strings } = workbook
  const [row, column] = [data.readUInt16LE(0), data.readUInt16LE(2)]
  const at = version === 2 ? 7 : 6
  const style = styleOf(workbook, version === 2 ? (data[4] ?? 0) & 0x3f : data.readUInt16LE(4))
  const has = (bytes: number) => data.length >= at + bytes
  const value = (place: number) => cells.number(row, column, data.readDoubleLE(place), since1904, style)

  if (kind === type.number && has(8)) value(at)
  else if (kind === type.packedNumber && has(4)) cells.number(row, column, readPackedNumber(data, at), since1904, style)
  else if (kind === type.packedNumbers)
    for (let index = 0; 4 + index * 6 + 6 <= data.length - 2; index++) {
      const each = styleOf(workbook, data.readUInt16LE(4 + index * 6))
      cells.number(row, column + index, readPackedNumber(data, 6 + index * 6), since1904, each)
    }
  else if (kind === type.sharedText && has(4)) {
    const text = strings[data.readUInt32LE(at)]
    if (text === undefined) throw unreadableError('The document is damaged: the text of a cell is missing.')
    cells.text(row, column, text, style)
  } else if (kind === type.text || kind === type.richText)
    cells.text(row, column, longText([data.subarray(at), ...pieces.slice(1)], workbook), style)
  else if (kind === type.boolean && has(2)) {
    if (data[at + 1] === 1) cells.error(row, column, data[at] ?? 0)
    else cells.boolean(row, column, data[at] === 1)
  } else if (kind === 0x02 && version === 2 && has(2))
    cells.number(row, column, data.readUInt16LE(at), since1904, style)
  else if (kind === type.formula && has(8)) {
    if (data.readUInt16LE(at + 6) !== 0xffff) value(at)
    else if (data[at] === 0) return [row, column, style] as const
    else if (data[at] === 1) cells.boolean(row, column, data[at + 2] === 1)
    else if (data[at] === 2) cells.error(row, column, data[at + 2] ?? 0)
  }
  return undefined
}
