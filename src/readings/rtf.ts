import { tooLarge } from '../core/errors.ts'
import { codePageOfCharset, decodeCodePage } from './code-pages.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from './formats.ts'
import { decodeSymbols, isSymbolFont } from './symbols.ts'
import { createDocumentWriter, type DocumentWriter } from './writer.ts'

/** Destinations that are skipped. A destination after `\*` is also skipped, unless it is in {@link shownDestinations}. */
const skipped = new Set(
  (
    'annotation bkmkend bkmkstart colortbl datafield filetbl footer footerf footerl footerr ftncn ftnsep ftnsepc header ' +
    'headerf headerl headerr info listtable nesttableprops nonesttables nonshppict objdata pict private ' +
    'revtbl shprslt sp tc template tcn txe xe'
  ).split(' '),
)
/** Destinations that are read although `\*` lets old readers pass over them. */
const shownDestinations = new Set([
  'do',
  'fldinst',
  'listtext',
  'moMath',
  'moMathPara',
  'pntext',
  'shpinst',
  'shptxt',
  'ud',
])
/** Destinations with paragraphs of their own, which stand inside of a paragraph: text boxes and footnotes. */
const boxes = new Set(['shptxt', 'dptxbxtext', 'footnote'])

/** Control words and symbols that stand for a character. */
const characters: ReadonlyMap<string, string> = new Map([
  ['tab', '\t'],
  ['line', '\n'],
  ['lbr', '\n'],
  ['emdash', '—'],
  ['endash', '–'],
  ['emspace', '\u2003'],
  ['enspace', '\u2002'],
  ['qmspace', '\u2005'],
  ['bullet', '•'],
  ['lquote', '‘'],
  ['rquote', '’'],
  ['ldblquote', '“'],
  ['rdblquote', '”'],
  ['zwj', '\u200d'],
  ['zwnj', '\u200c'],
  ['~', '\u00a0'],
  ['_', '\u2011'],
])

const maxDepth = 1000

/** Maximum number of bytes before the header `{\rtf`. */
const maxLead = 100

/** Reads a document in Rich Text Format 1.9.1, or a part of a document: groups without the header `{\rtf`. */
export function readRtf(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lead = source.toString('latin1', 0, maxLead + 6)
  const start = lead.indexOf('{\\rtf')
  const isPart = start === -1 && /^\s*\{\\[a-z]/.test(lead)
  if (start === -1 && !isPart) throw unreadableError('The document is damaged: it is not an RTF file.')
  const writer = createDocumentWriter(form, limits.characters)
  const body = createRtfTokenHandler(writer, limits.characters)
  if (isPart) body.open()
  readTokens(isPart ? source : source.subarray(start), body)
  body.end()
  return { text: writer.finish().toWellFormed() }
}

interface TokenHandler {
  readonly open: () => void
  /** Called at the end of a group. Returns whether the document continues. */
  readonly close: () => boolean
  readonly word: (name: string, value: number | undefined) => void
  /** A byte of text in the code page of its font. */
  readonly byte: (byte: number) => void
}

const isLetter = (byte = 0) => (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a)
const isDigit = (byte = 0) => byte >= 0x30 && byte <= 0x39
function digitOf(byte = 0): number | undefined {
  if (isDigit(byte)) return byte - 0x30
  const letter = (byte | 0x20) - 0x61
  return letter >= 0 && letter < 6 ? letter + 10 : undefined
}

const [backslash, openBrace, closeBrace, minus, space, apostrophe] = [0x5c, 0x7b, 0x7d, 0x2d, 0x20, 0x27]

function readTokens(source: Buffer, handler: TokenHandler): void {
  for (let at = 0; at < source.length; ) {
    const byte = source[at++] ?? 0
    if (byte === openBrace) handler.open()
    else if (byte === closeBrace) {
      if (!handler.close()) return
    } else if (byte === backslash) at = readControl(source, at, handler)
    else if (byte === 0x09) handler.word('tab', undefined)
    else if (byte >= space) handler.byte(byte)
  }
}

/** Reads the control word or symbol after a backslash. Returns the index after it. */
function readControl(source: Buffer, start: number, handler: TokenHandler): number {
  let at = start
  const first = source[at] ?? space
  if (first === apostrophe) {
    const high = digitOf(source[at + 1])
    if (high === undefined) return at + 1
    const low = digitOf(source[at + 2])
    handler.byte(low === undefined ? high : high * 16 + low)
    return at + (low === undefined ? 2 : 3)
  }
  if (first === backslash || first === openBrace || first === closeBrace) {
    // An escaped byte may be the second byte of a character in a multibyte code page.
    handler.byte(first)
    return at + 1
  }
  if (!isLetter(first)) {
    handler.word(first === 0x0a || first === 0x0d ? 'par' : String.fromCharCode(first), undefined)
    return at + (first === 0x0d && source[at + 1] === 0x0a ? 2 : 1)
  }
  // A word has at most 32 letters. Its number has at most 11 characters, with the sign.
  while (at < start + 32 && isLetter(source[at])) at++
  const name = source.toString('latin1', start, at)
  const from = at
  if (source[at] === minus && isDigit(source[at + 1])) at++
  while (at < from + 11 && isDigit(source[at])) at++
  const value = at === from ? undefined : Number(source.toString('latin1', from, at))
  if (source[at] === space) at++
  // The number of `\bin` is the length of the binary data after it, which is skipped.
  if (name === 'bin') return at + Math.max(0, value ?? 0)
  handler.word(name, value)
  return at
}

type Destination = 'text' | 'skip' | 'fonts' | 'styles' | 'instruction' | 'mark'

interface Paragraph {
  text: string
  level: number | undefined
  depth: number
  inTable: boolean
  /** The bullet or number of an item of a list. */
  mark: string | undefined
  /** The lines of the note that the paragraph belongs to; `undefined` outside of notes. */
  readonly note: string[] | undefined
  /** Whether the paragraph is in a text box or note in a table cell. */
  readonly inCell: boolean
  /** The fields whose results are being read, the outermost first. */
  readonly fields: Field[]
}

interface Field {
  instruction: string
  /** The text of the paragraph before the result of the field; `undefined` until the result begins. */
  before: string | undefined
}

interface Group {
  readonly destination: Destination
  readonly paragraph: Paragraph
  readonly field: Field | undefined
  readonly hidden: boolean
  readonly font: number | undefined
  /** Whether the next `\af` names the font of the text that follows. */
  readonly isRun: boolean
  /** Number of characters after each `\u` that old readers show in its place, and that are skipped here. */
  readonly fallback: number
  /** In `\upr`, which holds a text once for old readers and once in Unicode (`\ud`): the destination of the Unicode text. */
  readonly unicode: Destination | undefined
}

function newParagraph(note?: string[], inCell = false): Paragraph {
  return { text: '', level: undefined, depth: 0, inTable: false, mark: undefined, note, inCell, fields: [] }
}

function outermostGroup(): Group {
  return {
    destination: 'text',
    paragraph: newParagraph(),
    field: undefined,
    hidden: false,
    font: undefined,
    isRun: false,
    fallback: 1,
    unicode: undefined,
  }
}

/** @param most Maximum number of characters of a paragraph. */
function createRtfTokenHandler(writer: DocumentWriter, most: number): TokenHandler & { readonly end: () => void } {
  const declarations = createDeclarations()
  const lines = createLines(writer)
  const groups: Group[] = []
  let group = outermostGroup()
  let [codePage, isFirst, isOptional, passedOver] = [1252, false, false, 0]
  let defaultFont: number | undefined
  let bytes: number[] = []

  const write = (rawText: string) => {
    const { destination, paragraph, field } = group
    const text = decodeSymbols(rawText, declarations.fontOf(group.font ?? defaultFont)?.name ?? '')
    if (destination === 'text') {
      if (!group.hidden) paragraph.text += writer.plain(text)
      if (paragraph.text.length > most) throw tooLarge(`The document has more than ${most} characters of text.`)
    } else if (destination === 'mark') paragraph.mark = ((paragraph.mark ?? '') + text).slice(0, 100)
    else if (destination === 'instruction') {
      if (field !== undefined && field.instruction.length < 4000) field.instruction += text
    } else declarations.text(destination, text)
  }

  const flush = () => {
    if (bytes.length === 0) return
    const { name = '', codePage: own = codePage } = declarations.fontOf(group.font ?? defaultFont) ?? {}
    const text = isSymbolFont(name) ? Buffer.from(bytes).toString('latin1') : decodeCodePage(Buffer.from(bytes), own)
    bytes = []
    write(text)
  }

  /** Enters the destination that a word names. Returns whether the word needs no further handling. */
  const enter = (name: string): boolean => {
    const optional = isOptional
    isOptional = false
    const change = enterDestination(group, name, optional)
    if (change !== undefined) group = { ...group, ...change }
    return change !== undefined
  }

  const property = (name: string, value: number | undefined) => {
    if (name === 'ansicpg' && value !== undefined && value > 0) codePage = value
    else if (name === 'mac') codePage = 10_000
    else if (name === 'pc') codePage = 437
    else if (name === 'pca') codePage = 850
    else if (name === 'deff') defaultFont = value
    else if (name === 'uc') group = { ...group, fallback: Math.min(100, Math.max(0, value ?? 1)) }
    else if (name === 'f' || (name === 'af' && group.isRun)) group = { ...group, font: value ?? 0 }
    else if (name === 'loch' || name === 'hich' || name === 'dbch') group = { ...group, isRun: true }
    else if (name === 'ltrch' || name === 'rtlch') group = { ...group, isRun: false }
    else if (name === 'plain') group = { ...group, font: undefined, hidden: false }
    else if (name === 'v' || name === 'deleted') group = { ...group, hidden: value !== 0 }
    else if (group.destination === 'text') layout(group.paragraph, name, value)
  }

  const layout = (paragraph: Paragraph, name: string, value = 0) => {
    if (name === 'pard') Object.assign(paragraph, { level: undefined, depth: 0, inTable: false })
    else if (name === 's') paragraph.level = declarations.levelOf(value)
    else if (name === 'outlinelevel') paragraph.level = value
    else if (name === 'ilvl') paragraph.depth = Math.min(8, Math.max(0, value))
    else if (name === 'intbl' || name === 'trowd') paragraph.inTable = true
    else if (name === 'par' || name === 'sect' || name === 'page' || name === 'column') lines.end(paragraph)
    else if (name === 'cell' || name === 'nestcell') lines.endCell(paragraph, name === 'nestcell')
    else if (name === 'row') lines.endRow(paragraph)
  }

  return {
    open: () => {
      flush()
      ;[isFirst, isOptional, passedOver] = [true, false, 0]
      if (groups.length >= maxDepth) throw unreadableError('The document is damaged: its groups are nested too deeply.')
      groups.push(group)
    },
    close: () => {
      flush()
      ;[isOptional, passedOver] = [false, 0]
      const outer = groups.pop()
      if (outer === undefined || groups.length === 0) return false
      const { paragraph, field } = group
      if (paragraph !== outer.paragraph) {
        lines.end(paragraph)
        if (paragraph.note !== undefined && paragraph.note !== outer.paragraph.note)
          outer.paragraph.text += lines.addNote(paragraph.note)
      } else if (field !== undefined && field !== outer.field && paragraph.fields.includes(field))
        lines.endFields(paragraph, field)
      group = outer
      return true
    },
    word: (name, value) => {
      if (passedOver > 0 && name !== 'u') return void passedOver--
      flush()
      const character = characters.get(name)
      const isFirstWord = isFirst
      isFirst = false
      if (name === '*') isOptional = isFirstWord
      else if (enter(name)) return
      else if (name === 'u') {
        const code = (value ?? 0) & 0xffff
        if (code >= 0x20) write(String.fromCharCode(code))
        passedOver = group.fallback
      } else if (character !== undefined) write(character)
      else if (group.destination === 'fonts' || group.destination === 'styles')
        declarations.word(group.destination, name, value)
      else property(name, value)
    },
    byte: (byte) => {
      if (passedOver > 0) return void passedOver--
      isFirst = false
      if (group.destination === 'skip') return
      bytes.push(byte)
    },
    end: () => {
      flush()
      for (const { paragraph } of [group, ...groups.reverse()]) lines.end(paragraph)
      lines.finish()
    },
  }
}

/**
 * Returns the properties of a group that a word changes because it names a destination. `undefined`: the word may have another meaning.
 *
 * @param optional Whether old readers pass over the destination (`\*`).
 */
function enterDestination(group: Group, name: string, optional: boolean): Partial<Group> | undefined {
  const { destination, field, paragraph } = group
  if (name === 'ud' && group.unicode !== undefined) return { destination: group.unicode }
  if (destination === 'skip') return {}
  if (skipped.has(name) || /^m\w+Pr$/.test(name) || (optional && !shownDestinations.has(name)))
    return { destination: 'skip' }
  if (name === 'fonttbl') return { destination: 'fonts' }
  if (name === 'stylesheet') return { destination: 'styles' }
  if (name === 'upr') return { destination: 'skip', unicode: destination }
  if (name === 'field') return { field: { instruction: '', before: undefined } }
  if (name === 'fldinst') return { destination: 'instruction' }
  if (name === 'fldrslt' && field?.before === undefined && field !== undefined && destination === 'text') {
    field.before = paragraph.text
    paragraph.text = ''
    paragraph.fields.push(field)
  } else if (name === 'pntext' || name === 'listtext') return { destination: 'mark' }
  else if (boxes.has(name) && destination === 'text')
    return {
      paragraph: newParagraph(name === 'footnote' ? [] : paragraph.note, paragraph.inTable || paragraph.inCell),
      field: undefined,
    }
  return optional ? {} : undefined
}

/** The address in the instruction of a field; `undefined` if the field is not a link. */
function targetIn(instruction: string): string | undefined {
  return /^\s*HYPERLINK\s+(?:"([^"]+)"|([^\s"\\]+))/i
    .exec(instruction)
    ?.slice(1)
    .find((part) => part !== undefined)
}

function createDeclarations() {
  const fonts = new Map<number, { name: string; codePage?: number }>()
  const levels = new Map<number, number>()
  let font: { name: string; codePage?: number } = { name: '' }
  let style: { number: number; name: string; level?: number } = { number: 0, name: '' }
  return {
    fontOf: (number: number | undefined) => (number === undefined ? undefined : fonts.get(number)),
    levelOf: (style: number) => levels.get(style),
    word: (destination: 'fonts' | 'styles', word: string, value = 0) => {
      if (destination === 'styles') {
        if (word === 's') style.number = value
        else if (word === 'outlinelevel') style.level = value
      } else if (word === 'f') {
        font = { name: '' }
        if (fonts.size < 10_000) fonts.set(value, font)
      } else {
        const codePage =
          word === 'fcharset' ? codePageOfCharset(value) : word === 'cpg' && value > 0 ? value : undefined
        if (codePage !== undefined) font.codePage = codePage
      }
    },
    text: (destination: 'fonts' | 'styles' | 'skip', text: string) => {
      if (destination === 'fonts') font.name = (font.name + text).slice(0, 100).replace(/;$/, '')
      if (destination !== 'styles') return
      style.name = (style.name + text).slice(0, 100)
      if (!text.endsWith(';')) return
      const level = style.level ?? Number(/^heading ([1-9]);/i.exec(style.name)?.[1]) - 1
      const headingLevel = /^title;/i.test(style.name) ? 0 : level
      if (headingLevel >= 0 && levels.size < 10_000) levels.set(style.number, headingLevel)
      style = { number: 0, name: '' }
    },
  }
}

function createLines(writer: DocumentWriter) {
  let cell: string[] = []
  let row: string[] = []
  const notes: string[] = []

  /** Ends the results of fields, from the innermost to `last`, or all. */
  const endFields = (paragraph: Paragraph, last?: Field) => {
    for (let field = paragraph.fields.pop(); field !== undefined; field = paragraph.fields.pop()) {
      paragraph.text = (field.before ?? '') + writer.link(paragraph.text, targetIn(field.instruction))
      if (field === last) return
    }
  }

  const writeRow = () => {
    if (cell.length > 0) row.push(cell.join(' '))
    if (row.some((value) => value !== '')) writer.row(row)
    ;[cell, row] = [[], []]
  }

  const writeItem = (depth: number, mark: string, text: string) => {
    const number = /^[^\p{L}\p{N}]*(\d{1,6})[^\p{L}\p{N}]*$/u.exec(mark)?.[1]
    // Word's bullet of the second level is the letter o.
    const isBullet = number !== undefined || !/[\p{L}\p{N}]/u.test(mark) || mark.trim() === 'o'
    writer.item(
      depth,
      number === undefined ? undefined : Number(number),
      isBullet ? text : `${writer.plain(mark)} ${text}`,
    )
  }

  const end = (paragraph: Paragraph) => {
    endFields(paragraph)
    const { text, level = 9, mark, depth, note, inTable, inCell } = paragraph
    Object.assign(paragraph, { text: '', mark: undefined })
    if (text.trim() === '') return
    if (note !== undefined) return void note.push(text.trim())
    if (inTable || inCell) return void cell.push(text.trim())
    writeRow()
    if (level >= 0 && level < 9) writer.heading(level + 1, text)
    else if (mark !== undefined) writeItem(depth, mark, text)
    else writer.paragraph(text)
  }

  return {
    endFields,
    end,
    endCell: (paragraph: Paragraph, isNested: boolean) => {
      paragraph.inTable = true
      end(paragraph)
      // Cells of a nested table, or in a note, are text of the outer cell or note.
      if (isNested || paragraph.note !== undefined) return
      row.push(cell.join(' '))
      cell = []
    },
    endRow: (paragraph: Paragraph) => {
      end(paragraph)
      writeRow()
      paragraph.inTable = false
    },
    /** Adds a note, which is written after the document. Returns its mark in the text; '' for an empty note. */
    addNote: (text: readonly string[]): string => {
      if (text.length === 0) return ''
      const mark = writer.plain(`[${notes.length + 1}]`)
      notes.push(`${mark} ${text.join('\n')}`)
      return mark
    },
    finish: () => {
      writeRow()
      for (const note of notes) writer.paragraph(note)
    },
  }
}
