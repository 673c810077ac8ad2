import { tooLarge } from '../../core/errors.ts'
import { type Reading, type ReadingForm, type ReadingLimits, unreadableError } from '../formats.ts'
import { collapseWhitespace, createDocumentWriter, type DocumentWriter } from '../writer.ts'
import { isCompoundFile, openCompoundFile } from './compound.ts'

/** Types of records ([MS-PPT], 2.13.24; [MS-ODRAW] from 0xf000 on). */
const type = {
  slide: 0x03ee,
  notesFacts: 0x03f1,
  slidePlace: 0x03f3,
  drawing: 0x040c,
  placeholder: 0x0bc3,
  outline: 0x0f9e,
  textKind: 0x0f9f,
  wideText: 0x0fa0,
  formatting: 0x0fa1,
  narrowText: 0x0fa8,
  string: 0x0fba,
  footers: 0x0fd9,
  footerFacts: 0x0fda,
  list: 0x0ff0,
  edit: 0x0ff5,
  places: 0x1772,
  shape: 0xf004,
} as const

/** Kinds of texts: of titles, of notes, and of bodies, which may have lists. */
const [titles, notesKind, bodies] = [new Set([0, 6]), 2, new Set([1, 5, 7, 8])]
/** Kinds of lists of slides. */
const [slideList, notesList] = [0, 2]
/** Placeholders that are the same on each slide: date, number, footer, header. */
const repeated = new Set([7, 8, 9, 10])
/** Bits that must be set for a string to be shown ([MS-PPT], 2.4.15.2): by instance, a fixed date, the header, the footer. */
const shownBits = [0b101, 0b1_0000, 0b10_0000]
const maxSlides = 5000
const maxDepth = 50

interface DrawingRecord {
  readonly type: number
  readonly instance: number
  readonly data: Buffer
  readonly isContainer: boolean
}

interface SlideText {
  kind: number
  text: string
  depths: readonly number[]
}

/** A slide, or the notes on one, as the list of slides names it. */
interface ListedSlide {
  readonly place: number
  readonly number: number
  readonly texts: SlideText[]
}

const damaged = (what: string) => unreadableError(`The document is damaged: ${what}.`)

/** Reads a presentation of PowerPoint 97 to 2003 ([MS-PPT]): slide by slide, with its notes. */
export function readPpt(bytes: Uint8Array, form: ReadingForm, limits: ReadingLimits): Reading {
  if (!isCompoundFile(bytes)) throw damaged('it is not a PowerPoint presentation')
  const file = openCompoundFile(bytes, limits.unpacked)
  const root = file.storage('PP97_DUALSTORAGE') ?? file
  const stream = root.stream('PowerPoint Document')
  const user = root.stream('Current User')
  if (stream === undefined)
    throw unreadableError('The document is in a format before PowerPoint 97, or it is damaged: save it as .pptx.')
  if (root.has('EncryptedSummary') || (user !== undefined && user.length >= 16 && user.readUInt32LE(12) === encrypted))
    throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
  const { document, places } = readPlaces(stream, user)
  const slides = slidesIn(document, slideList)
  const notes = notesIn(stream, places, slidesIn(document, notesList))
  const writer = createDocumentWriter(form, limits.characters)
  const names = new Set<string>()
  const once = (lines: readonly string[]) => lines.filter((line) => !names.has(line) && names.add(line))
  for (const [index, slide] of slides.entries()) {
    const record = recordAt(stream, places.get(slide.place))
    const shapes = slideTexts(record, slide.texts)
    const title = collapseWhitespace(shapes.find(({ kind }) => titles.has(kind))?.text ?? '')
    writer.heading(1, title === '' ? `Slide ${index + 1}` : `Slide ${index + 1}: ${writer.plain(title)}`)
    for (const shape of shapes) if (!titles.has(shape.kind)) writeText(writer, shape)
    for (const line of once(footersOf(record, document, slideFooters))) writer.paragraph(writer.plain(line))
    const page = notes.get(slide.number)
    const paragraphs = [
      ...(page?.texts ?? []).flatMap(({ text }) => splitParagraphs(text)),
      ...once(page === undefined ? [] : footersOf(page.record, document, notesFooters)),
    ]
    if (paragraphs.length === 0) continue
    writer.heading(2, 'Notes')
    for (const line of paragraphs) writer.paragraph(writer.plain(line))
  }
  return { text: writer.finish(), parts: slides.length }
}

const encrypted = 0xf3d1c4df

/** Undefined if the stream ends within the header. If it ends within the data, the data are shorter than the header says. */
function recordAt(stream: Buffer, at: number | undefined): DrawingRecord | undefined {
  if (at === undefined || at + 8 > stream.length) return undefined
  const head = stream.readUInt16LE(at)
  const data = stream.subarray(at + 8, at + 8 + stream.readUInt32LE(at + 4))
  return { type: stream.readUInt16LE(at + 2), instance: head >> 4, data, isContainer: (head & 0xf) === 0xf }
}

function* recordsIn(data: Buffer): Generator<DrawingRecord> {
  for (let at = 0; at + 8 <= data.length; at += 8 + data.readUInt32LE(at + 4)) {
    const record = recordAt(data, at)
    if (record !== undefined) yield record
  }
}

/** Yields the records in a container and in the containers in it, up to 50 deep, but not the records in a shape. */
function* recordsWithin(data: Buffer, depth = 0): Generator<DrawingRecord> {
  for (const record of recordsIn(data)) {
    yield record
    if (record.isContainer && record.type !== type.shape && depth < maxDepth)
      yield* recordsWithin(record.data, depth + 1)
  }
}

/** Reads the document, and the offsets of slides and notes by their numbers, as the last edit wrote them. */
function readPlaces(stream: Buffer, user: Buffer | undefined) {
  const places = new Map<number, number>()
  let documentPlace: number | undefined
  const ids = new Set<number>()
  let at = user !== undefined && user.length >= 20 ? user.readUInt32LE(16) : 0
  for (
    let edit = recordAt(stream, at);
    edit?.type === type.edit && edit.data.length >= 20;
    edit = recordAt(stream, at)
  ) {
    if (ids.has(at)) break
    ids.add(at)
    // In an encrypted presentation, a reference to the key follows.
    if (edit.data.length >= 32 && edit.data.readUInt32LE(28) !== 0)
      throw unreadableError('The document is encrypted: save it without a password.', 'withheld')
    documentPlace ??= edit.data.readUInt32LE(16)
    const directory = recordAt(stream, edit.data.readUInt32LE(12))
    if (directory?.type === type.places) readDirectory(directory.data, places)
    at = edit.data.readUInt32LE(8)
    if (at === 0) break
  }
  const document = documentPlace === undefined ? undefined : recordAt(stream, places.get(documentPlace))
  if (document === undefined) throw damaged('it has no list of slides')
  return { document: document.data, places }
}

function readDirectory(data: Buffer, places: Map<number, number>): void {
  for (let at = 0; at + 4 <= data.length; ) {
    const head = data.readUInt32LE(at)
    at += 4
    const [first, count] = [head & 0xfffff, head >>> 20]
    for (let index = 0; index < count && at + 4 <= data.length; index++, at += 4)
      if (!places.has(first + index)) places.set(first + index, data.readUInt32LE(at))
  }
}

/** The slides, or the notes, that the document lists, with the texts that are stored in the list. */
function slidesIn(document: Buffer, kind: number): readonly ListedSlide[] {
  const slides: ListedSlide[] = []
  for (const list of recordsIn(document)) {
    if (list.type !== type.list || list.instance !== kind) continue
    const texts = createTexts()
    for (const record of recordsIn(list.data)) {
      if (record.type !== type.slidePlace) texts.add(record)
      else if (record.data.length >= 16) {
        if (slides.length >= maxSlides) throw tooLarge(`The document has more than ${maxSlides} slides.`)
        const slide = { place: record.data.readUInt32LE(0), number: record.data.readUInt32LE(12), texts: [] }
        texts.begin(slide.texts)
        slides.push(slide)
      }
    }
  }
  return slides
}

/** Collects texts from their records: the first has the kind of a text, the others its characters and formatting. */
function createTexts() {
  let list: SlideText[] = []
  return {
    begin: (texts: SlideText[]) => {
      list = texts
    },
    add: ({ type: kind, data }: DrawingRecord) => {
      const last = list.at(-1)
      if (kind === type.textKind && data.length >= 4) list.push({ kind: data.readUInt32LE(0), text: '', depths: [] })
      else if (last === undefined) return
      else if (kind === type.wideText) last.text = data.toString('utf16le').toWellFormed()
      else if (kind === type.narrowText) last.text = data.toString('latin1')
      else if (kind === type.formatting) last.depths = depthsIn(data, last.text)
    },
  }
}

/** Kinds of footers of the document: of its slides, and of its pages of notes. */
const [slideFooters, notesFooters] = [3, 4]

/** The date, header and footer that a slide or its notes show: its own, or else those of the document. */
function footersOf(slide: DrawingRecord | undefined, document: Buffer, kind: number): readonly string[] {
  const own = [...recordsIn(slide?.data ?? Buffer.alloc(0))].find((record) => record.type === type.footers)
  const all = [...recordsIn(document)].find((record) => record.type === type.footers && record.instance === kind)
  const records = [...recordsIn((own ?? all)?.data ?? Buffer.alloc(0))]
  const facts = records.find((record) => record.type === type.footerFacts)?.data
  const bits = facts === undefined || facts.length < 4 ? 0 : facts.readUInt16LE(2)
  return records.flatMap((record) => {
    const shownBit = record.type === type.string ? shownBits[record.instance] : undefined
    return shownBit === undefined || (bits & shownBit) !== shownBit
      ? []
      : splitParagraphs(record.data.toString('utf16le').toWellFormed())
  })
}

/** Returns the notes by the numbers of their slides. */
function notesIn(stream: Buffer, places: ReadonlyMap<number, number>, notes: readonly ListedSlide[]) {
  const shapes = new Map<number, { readonly record: DrawingRecord; readonly texts: readonly SlideText[] }>()
  for (const { place, texts } of notes) {
    const record = recordAt(stream, places.get(place))
    if (record === undefined) continue
    const facts = [...recordsIn(record.data)].find((inner) => inner.type === type.notesFacts)
    if (facts === undefined || facts.data.length < 4) continue
    const own = slideTexts(record, texts).filter(({ kind }) => kind === notesKind)
    shapes.set(facts.data.readUInt32LE(0), { record, texts: own })
  }
  return shapes
}

/** The texts of the shapes of a slide, in their order, without repeated placeholders. Texts of the outline are stored in the list of slides. */
function slideTexts(slide: DrawingRecord | undefined, outline: readonly SlideText[]): readonly SlideText[] {
  if (slide === undefined) return outline
  const parts: SlideText[] = []
  const usedTexts = new Set<SlideText>()
  for (const shape of recordsWithin(slide.data)) {
    if (shape.type !== type.shape) continue
    const texts = createTexts()
    const own: SlideText[] = []
    texts.begin(own)
    let isRepeated = false
    for (const record of recordsWithin(shape.data)) {
      texts.add(record)
      if (record.type === type.placeholder && record.data.length >= 5) isRepeated ||= repeated.has(record.data[4] ?? 0)
      const text =
        record.type === type.outline && record.data.length >= 4 ? outline[record.data.readUInt32LE(0)] : undefined
      if (text === undefined) continue
      usedTexts.add(text)
      own.push(text)
    }
    if (!isRepeated) parts.push(...own)
  }
  // A text of the outline that no shape shows still belongs to the slide.
  return [...parts, ...outline.filter((text) => !usedTexts.has(text))]
}

function splitParagraphs(text: string): readonly string[] {
  return text
    .split('\r')
    .map((line) => line.replaceAll('\x0b', '\n'))
    .filter((line) => line.trim() !== '')
}

function writeText(writer: DocumentWriter, { kind, text, depths }: SlideText): void {
  writer.end()
  const paragraphs = text.split('\r')
  const isList = bodies.has(kind) && splitParagraphs(text).length > 1
  for (const [index, paragraph] of paragraphs.entries()) {
    const depth = depths[index] ?? 0
    const text = writer.plain(paragraph.replaceAll('\x0b', '\n'))
    if (isList || depth > 0) writer.item(depth, undefined, text)
    else writer.paragraph(text)
  }
}

/** Returns the depth of each paragraph. Formatting is stored for runs of characters ([MS-PPT], 2.9.44). */
function depthsIn(data: Buffer, text: string): readonly number[] {
  const ends = Array.from(text.matchAll(/\r|$/g), ({ index }) => index)
  const depths: number[] = []
  let [at, covered] = [0, 0]
  while (at + 10 <= data.length && covered <= text.length) {
    covered += data.readUInt32LE(at)
    const depth = Math.min(8, data.readUInt16LE(at + 4))
    while (depths.length < ends.length && (ends[depths.length] ?? 0) < covered) depths.push(depth)
    at = formattingEnd(data, at + 6)
  }
  return depths
}

/** Returns the offset after the formatting of a run of paragraphs. A mask states which fields the formatting has ([MS-PPT], 2.9.20). */
function formattingEnd(data: Buffer, start: number): number {
  const mask = data.readUInt32LE(start)
  const has = (...bits: readonly number[]) => bits.some((bit) => ((mask >>> bit) & 1) === 1)
  const sizes = [
    has(0, 1, 2, 3),
    has(7),
    has(4),
    has(6),
    has(5),
    has(5),
    has(11),
    has(12),
    has(13),
    has(14),
    has(8),
    has(10),
    has(15),
  ]
  let at = start + 4 + sizes.filter((is) => is).length * 2
  if (has(20)) at += 2 + (at + 2 <= data.length ? data.readUInt16LE(at) : 0) * 4
  return at + [has(16), has(17, 18, 19), has(21)].filter((is) => is).length * 2
}
