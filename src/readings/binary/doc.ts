import { codePageOfLanguage, decodeCodePage } from '../code-pages.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from '../formats.ts'
import { decodeSymbol, decodeSymbols, isSymbolFont } from '../symbols.ts'
import { createTableStack } from '../tables.ts'
import { createDocumentWriter, type DocumentWriter } from '../writer.ts'
import { isCompoundFile, openCompoundFile } from './compound.ts'
import {
  type CharacterProperties,
  characterProperties,
  createNumbering,
  type FormattedRun,
  type ParagraphProperties,
  paragraphProperties,
  readFonts,
  readFormattedRuns,
  readStyleProperties,
  runAt,
} from './doc-properties.ts'

/** Places of the tables of a document, as indexes in the array of places of its header ([MS-DOC], 2.5.6). */
const place = {
  styles: 1,
  footnotes: 2,
  footnoteTexts: 3,
  characters: 12,
  paragraphs: 13,
  fonts: 15,
  pieces: 33,
  endnotes: 46,
  endnoteTexts: 47,
  lists: 73,
  listUses: 74,
} as const

/** The character set of documents of Word 6 and 95 that were written on a Mac. */
const macintosh = 256

const damaged = (what: string) => unreadableError(`The document is damaged: ${what}.`)

interface Piece {
  readonly start: number
  readonly end: number
  /** Offset of its first character in the file, in bytes. */
  readonly offset: number
  /** Bytes per character: 2 in UTF-16, 1 in a code page. */
  readonly width: 1 | 2
}

interface WordFile {
  readonly stream: Buffer
  /** Whether the document is of Word 97 or later. */
  readonly isUnicode: boolean
  readonly codePage: number
  readonly pieces: readonly Piece[]
  /** Lengths of the texts: main text, footnotes, headers, macros, comments, endnotes, text boxes. */
  readonly lengths: readonly number[]
  readonly tableAt: (index: number) => Buffer
}

/** Reads a document of Word 6 to 2003 ([MS-DOC]): headings, lists, tables, links, notes, text boxes. */
export function readDoc(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  if (!isCompoundFile(bytes))
    throw unreadableError('The document is in a format before Word 6, or it is damaged: save it as .docx.')
  const file = openDoc(bytes, limits)
  const writer = createDocumentWriter(form, limits.characters)
  const body = createDocBodyWriter(file, writer)
  const [main = 0, footnotes = 0, headers = 0, macros = 0, comments = 0, endnotes = 0, boxes = 0] = file.lengths
  const endnotesStart = main + footnotes + headers + macros + comments
  const notes = [
    ...notesIn(file, place.footnotes, place.footnoteTexts, main, footnotes),
    ...notesIn(file, place.endnotes, place.endnoteTexts, endnotesStart, endnotes),
  ].sort((a, b) => a.mark - b.mark)
  const marks = new Map(notes.map(({ mark }, index) => [mark, `[${index + 1}]`]))
  body.write(0, main, { marks })
  for (const { mark, start, end } of notes) body.write(start, end, { prefix: `${marks.get(mark) ?? ''} ` })
  body.write(endnotesStart + endnotes, endnotesStart + endnotes + boxes, {})
  return { text: writer.finish() }
}

function openDoc(bytes: Uint8Array, limits: ReadingLimits): WordFile {
  const root = openCompoundFile(bytes, limits.unpacked)
  const stream = root.stream('WordDocument')
  if (stream === undefined || stream.length < 0x200) throw damaged('it contains no Word document')
  const flags = stream.readUInt16LE(10)
  if ((flags & 0x100) !== 0) throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
  const isUnicode = stream.readUInt16LE(2) >= 0xc0
  const table = isUnicode ? (root.stream((flags & 0x200) === 0 ? '0Table' : '1Table') ?? Buffer.alloc(0)) : stream
  const part = (at: number) => {
    if (at + 8 > stream.length) return Buffer.alloc(0)
    const start = stream.readUInt32LE(at)
    return table.subarray(start, start + stream.readUInt32LE(at + 4))
  }
  const tableAt = (index: number) => (isUnicode ? part(0x9a + index * 8) : Buffer.alloc(0))
  const lengths = Array.from({ length: 7 }, (_, index) => stream.readUInt32LE((isUnicode ? 0x4c : 0x34) + index * 4))
  const [start, end] = [stream.readUInt32LE(0x18), stream.readUInt32LE(0x1c)]
  // East Asian versions of Word 6 and 95 store all text in UTF-16 (`fExtChar`).
  const width = !isUnicode && (flags & 0x1000) !== 0 ? 2 : 1
  const textPieces =
    isUnicode || (flags & 4) !== 0 ? piecesIn(isUnicode ? tableAt(place.pieces) : part(0x160), isUnicode, width) : []
  const pieces =
    textPieces.length > 0 ? textPieces : [{ start: 0, end: (end - start) / width, offset: start, width } as const]
  const length = pieces.reduce((sum, piece) => sum + Math.max(0, piece.end - piece.start), 0)
  if (length > stream.length || pieces.some((piece) => piece.offset + (piece.end - piece.start) > stream.length))
    throw damaged('its text is cut off')
  return {
    stream,
    isUnicode,
    codePage: stream.readUInt16LE(20) === macintosh ? 10_000 : codePageOfLanguage(stream.readUInt16LE(6)),
    pieces,
    lengths,
    tableAt: (index) =>
      // The table of lists is followed by the levels of the lists, whose length the header does not state.
      index === place.lists && isUnicode ? table.subarray(stream.readUInt32LE(0x9a + index * 8)) : tableAt(index),
  }
}

/** Reads the table of pieces ([MS-DOC], 2.9.38), which formatting may precede. Before Word 97, all pieces have the width `oldWidth`. */
function piecesIn(table: Buffer, isUnicode: boolean, oldWidth: 1 | 2): readonly Piece[] {
  let at = 0
  while (table[at] === 1 && at + 3 <= table.length) at += 3 + table.readUInt16LE(at + 1)
  if (table[at] !== 2 || at + 5 > table.length) return []
  const data = table.subarray(at + 5, at + 5 + table.readUInt32LE(at + 1))
  const count = Math.floor((data.length - 4) / 12)
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const stored = data.readUInt32LE((count + 1) * 4 + index * 8 + 2)
    const isNarrow = isUnicode ? (stored & 0x40000000) !== 0 : oldWidth === 1
    const offset = isUnicode && isNarrow ? (stored & 0x3fffffff) / 2 : stored
    return {
      start: data.readUInt32LE(index * 4),
      end: data.readUInt32LE(index * 4 + 4),
      offset: Math.floor(offset),
      width: isNarrow ? 1 : 2,
    }
  })
}

interface Note {
  /** Place of the mark in the main text; -1 if it is unknown. */
  readonly mark: number
  readonly start: number
  readonly end: number
}

function notesIn({ tableAt }: WordFile, marks: number, texts: number, start: number, length: number): readonly Note[] {
  const [markTable, textTable] = [tableAt(marks), tableAt(texts)]
  const count = Math.floor((markTable.length - 4) / 6)
  if (length === 0) return []
  if (count < 1 || textTable.length < (count + 1) * 4) return [{ mark: -1, start, end: start + length }]
  return Array.from({ length: count }, (_, index) => ({
    mark: markTable.readUInt32LE(index * 4),
    start: start + Math.min(length, textTable.readUInt32LE(index * 4)),
    end: start + Math.min(length, textTable.readUInt32LE(index * 4 + 4)),
  }))
}

interface TextOptions {
  /** The marks of notes, by their places. */
  readonly marks?: ReadonlyMap<number, string>
  /** Text before the first paragraph. */
  readonly prefix?: string
}

const noProperties: CharacterProperties = {}

function createDocBodyWriter(file: WordFile, writer: DocumentWriter) {
  const { stream, isUnicode, codePage, pieces, tableAt } = file
  const characters = readFormattedRuns(stream, tableAt(place.characters), 'characters')
  const paragraphs = readFormattedRuns(stream, tableAt(place.paragraphs), 'paragraphs')
  const styles = readStyleProperties(tableAt(place.styles))
  const fonts = readFonts(tableAt(place.fonts))
  const numbering = createNumbering(tableAt(place.lists), tableAt(place.listUses))
  const tables = createTableStack(writer)
  let [isInTable, isInRow, isAfterCell] = [false, false, false]

  const endTable = () => {
    if (isInRow) {
      tables.endCell()
      tables.endRow()
    }
    if (isInTable) tables.end()
    isInTable = isInRow = false
  }

  const writeParagraph = (text: string, mark: string, properties: ParagraphProperties) => {
    const isRowEnd = mark === cellMark && (properties.isRowEnd ?? (!isUnicode && isAfterCell && text === ''))
    if (properties.isInTable === true || mark === cellMark) {
      if (!isInTable) tables.begin()
      isInTable = true
      if (isRowEnd) tables.endRow()
      else {
        tables.add(text)
        if (mark === cellMark) tables.endCell()
      }
      isInRow = !isRowEnd
      isAfterCell = mark === cellMark && !isRowEnd
      return
    }
    endTable()
    const { level, list = 0, depth = 0 } = properties
    if (level !== undefined && level < 9) writer.heading(level + 1, text)
    else if (list > 0) writer.item(depth, numbering.next(list, depth), text)
    else writer.paragraph(text)
  }

  return {
    write: (start: number, end: number, { marks, prefix = '' }: TextOptions) => {
      const text = createText(writer, fonts)
      text.add(writer.plain(prefix))
      for (const piece of pieces) {
        for (const run of runsIn(piece, start, end, characters)) {
          const properties = run.properties === undefined ? noProperties : characterProperties(run.properties)
          if (properties.isHidden === true || properties.isDeleted === true) continue
          const bytes = stream.subarray(run.offset, run.offset + run.length * piece.width)
          const pieceText =
            piece.width === 2 ? bytes.toString('utf16le') : decodeCodePage(bytes, isUnicode ? 1252 : codePage)
          let from = 0
          for (const { 0: mark, index } of pieceText.matchAll(paragraphEnds)) {
            text.run(pieceText.slice(from, index), properties, run.start + from, marks)
            from = index + mark.length
            const at = runAt(paragraphs, run.offset + index * piece.width)
            writeParagraph(text.take(), mark, paragraphProperties(at, styles))
          }
          text.run(pieceText.slice(from), properties, run.start + from, marks)
        }
      }
      writeParagraph(text.finish(), '\r', {})
      endTable()
    },
  }
}

const cellMark = '\x07'
// biome-ignore lint/suspicious/noControlCharactersInRegex: Word stores the ends of paragraphs, cells and pages as these characters.
const paragraphEnds = /[\r\x07\x0c]/g

/** Yields the parts of a piece that lie between two places of the text. Within a part the formatting is the same. */
function* runsIn(piece: Piece, start: number, end: number, characters: readonly FormattedRun[]) {
  const [first, last] = [Math.max(start, piece.start), Math.min(end, piece.end)]
  for (let at = first; at < last; ) {
    const offset = piece.offset + (at - piece.start) * piece.width
    const run = runAt(characters, offset)
    const rest = run === undefined ? last - at : Math.ceil((run.end - offset) / piece.width)
    const length = Math.max(1, Math.min(last - at, rest))
    yield { start: at, offset, length, properties: run?.properties }
    at += length
  }
}

/** Maximum depth of fields in fields. */
const maxFields = 100

/** Collects the text of the open paragraph. A field in it may continue in the next paragraph. */
function createText(writer: DocumentWriter, fonts: readonly string[]) {
  let text = ''
  const fields: { code: string; isCode: boolean; start: number }[] = []
  const add = (more: string) => {
    const field = fields.at(-1)
    if (field?.isCode === true) field.code += more
    else text += more
  }
  const endField = () => {
    const field = fields.pop()
    const target = /^\s*HYPERLINK\s+"([^"]*)"/i.exec(field?.code.replace(/\\(.)/g, '$1') ?? '')?.[1]
    if (field !== undefined && !field.isCode && target !== undefined)
      text = text.slice(0, field.start) + writer.link(text.slice(field.start), target)
  }
  const special = (character: string, properties: CharacterProperties, mark: string | undefined) => {
    if (character === '\x13') {
      if (fields.length < maxFields) fields.push({ code: '', isCode: true, start: text.length })
    } else if (character === '\x14') {
      const field = fields.at(-1)
      if (field !== undefined) [field.isCode, field.start] = [false, text.length]
    } else if (character === '\x15') endField()
    else if (character === '\x0b' || character === '\x0e') add('\n')
    else if (character === '\x1e') add('-')
    else if (character === '(' && properties.symbol !== undefined)
      add(writer.plain(decodeSymbol(fonts[properties.symbol.font] ?? '', properties.symbol.code)))
    else if (character === '\x02' && mark !== undefined) add(writer.plain(mark))
    else if (character === '(') add(writer.plain('('))
  }
  return {
    add,
    run: (run: string, properties: CharacterProperties, start: number, marks?: ReadonlyMap<number, string>) => {
      const font = fonts[properties.font ?? -1] ?? ''
      const pattern = properties.symbol === undefined ? controls : controlsAndSymbols
      let from = 0
      const addPlain = (plain: string) => {
        if (plain !== '') add(writer.plain(isSymbolFont(font) ? decodeSymbols(plain, font) : plain.toWellFormed()))
      }
      for (const { 0: character, index } of run.matchAll(pattern)) {
        addPlain(run.slice(from, index))
        special(character, properties, marks?.get(start + index))
        from = index + 1
      }
      addPlain(run.slice(from))
    },
    /** Returns the text of the paragraph, and begins the next one. */
    take: () => {
      const taken = text
      text = ''
      for (const field of fields) field.start = 0
      return taken
    },
    /** Returns the text that is left at the end. */
    finish: () => text + fields.map(({ code, isCode }) => (isCode ? code : '')).join(''),
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: Word stores fields, breaks and pictures as control characters.
const controls = /[\x00-\x08\x0b-\x1f]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: Word stores fields, breaks and pictures as control characters.
const controlsAndSymbols = /[\x00-\x08\x0b-\x1f(]/g
