/** Formatting of the documents of Word 97 to 2003 ([MS-DOC]) that has an effect on their text. */

/** Bytes of the file that have the same formatting. */
export interface FormattedRun {
  readonly start: number
  readonly end: number
  readonly properties: Buffer
}

/** Size of the pages that hold formatting, in bytes. */
const pageBytes = 512

/** Returns the runs of a document, in the order of the file. `table` lists the pages that hold their formatting. */
export function readFormattedRuns(
  stream: Buffer,
  table: Buffer,
  kind: 'characters' | 'paragraphs',
): readonly FormattedRun[] {
  const count = Math.floor((table.length - 4) / 8)
  const pages = new Set<number>()
  for (let index = 0; index < count && pages.size <= stream.length / pageBytes; index++)
    pages.add(table.readUInt32LE((count + 1) * 4 + index * 4) & 0x3fffff)
  const runs = [...pages].flatMap((number) => {
    const page = stream.subarray(number * pageBytes, (number + 1) * pageBytes)
    return page.length === pageBytes ? runsIn(page, kind) : []
  })
  return runs.sort((a, b) => a.start - b.start)
}

function runsIn(page: Buffer, kind: 'characters' | 'paragraphs'): readonly FormattedRun[] {
  const width = kind === 'characters' ? 1 : 13
  const count = Math.min(page[pageBytes - 1] ?? 0, Math.floor((pageBytes - 5) / (4 + width)))
  return Array.from({ length: count }, (_, index) => {
    const at = (page[(count + 1) * 4 + index * width] ?? 0) * 2
    return {
      start: page.readUInt32LE(index * 4),
      end: page.readUInt32LE(index * 4 + 4),
      properties: at === 0 ? Buffer.alloc(0) : kind === 'characters' ? countedBytes(page, at) : paragraphData(page, at),
    }
  })
}

const countedBytes = (page: Buffer, at: number) => page.subarray(at + 1, at + 1 + (page[at] ?? 0))

/** Returns the number of a style and the properties after it. Their length is in 16-bit words; if the first byte is 0, it is in the second byte. */
function paragraphData(page: Buffer, at: number): Buffer {
  const words = page[at] ?? 0
  if (words === 0) return page.subarray(at + 2, at + 2 + (page[at + 1] ?? 0) * 2)
  return page.subarray(at + 1, at + words * 2)
}

/** The run in which a byte of the file lies; `undefined` if it is in none. The runs must be in the order of the file. */
export function runAt(runs: readonly FormattedRun[], offset: number): FormattedRun | undefined {
  let [low, high] = [0, runs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((runs[middle]?.start ?? 0) <= offset) low = middle + 1
    else high = middle
  }
  const run = runs[low - 1]
  return run !== undefined && offset < run.end ? run : undefined
}

/** Yields the changes of properties (Prl) in bytes: the number of the property, and the operand. */
function* changesIn(bytes: Buffer): Generator<readonly [number: number, operand: Buffer]> {
  for (let at = 0; at + 2 < bytes.length; ) {
    const number = bytes.readUInt16LE(at)
    at += 2
    // The upper three bits determine the length of the operand, or that the operand begins with its length.
    const fixed = [1, 1, 2, 4, 2, 2, undefined, 3][number >> 13]
    const [start, length] =
      fixed !== undefined
        ? [at, fixed]
        : number === tableDefinition && at + 2 <= bytes.length
          ? [at + 2, bytes.readUInt16LE(at) - 1]
          : [at + 1, bytes[at] ?? 0]
    if (length < 0 || start + length > bytes.length) return
    yield [number, bytes.subarray(start, start + length)]
    at = start + length
  }
}

const tableDefinition = 0xd608

export interface CharacterProperties {
  readonly isHidden?: boolean
  readonly isDeleted?: boolean
  /** Index in the table of fonts. */
  readonly font?: number
  /** A sign that a special character stands for. */
  readonly symbol?: { readonly font: number; readonly code: number }
}

export function characterProperties(bytes: Buffer): CharacterProperties {
  const properties: { -readonly [key in keyof CharacterProperties]: CharacterProperties[key] } = {}
  for (const [number, operand] of changesIn(bytes)) {
    if (number === 0x0800) properties.isDeleted = operand[0] === 1
    else if (number === 0x083c) properties.isHidden = operand[0] === 1 || operand[0] === 0x81
    else if (number === 0x4a4f) properties.font = operand.readUInt16LE(0)
    else if (number === 0x6a09) properties.symbol = { font: operand.readUInt16LE(0), code: operand.readUInt16LE(2) }
  }
  return properties
}

export interface ParagraphProperties {
  readonly isInTable?: boolean
  readonly isRowEnd?: boolean
  /** Number of the paragraph's list in the table of uses (see {@link createNumbering}). */
  readonly list?: number
  readonly depth?: number
  readonly level?: number
}

function changedProperties(base: ParagraphProperties, bytes: Buffer): ParagraphProperties {
  const properties: { -readonly [key in keyof ParagraphProperties]: ParagraphProperties[key] } = { ...base }
  for (const [number, operand] of changesIn(bytes)) {
    if (number === 0x2416) properties.isInTable = operand[0] === 1
    else if (number === 0x2417) properties.isRowEnd = operand[0] === 1
    else if (number === 0x460b) properties.list = operand.readInt16LE(0)
    else if (number === 0x260a) properties.depth = Math.min(8, operand[0] ?? 0)
    else if (number === 0x2640) properties.level = operand[0] ?? 9
  }
  return properties
}

export function paragraphProperties(
  run: FormattedRun | undefined,
  styles: readonly ParagraphProperties[],
): ParagraphProperties {
  if (run === undefined || run.properties.length < 2) return {}
  const style = styles[run.properties.readUInt16LE(0)] ?? {}
  return { isRowEnd: false, ...changedProperties(style, run.properties.subarray(2)) }
}

interface Style {
  readonly base: number
  readonly own: ParagraphProperties
  readonly properties: Buffer
}

const maxBases = 20
const title = 62

/** Returns the properties that each style gives to paragraphs, with those of the styles that it is based on, by the number of the style. */
export function readStyleProperties(table: Buffer): readonly ParagraphProperties[] {
  const styles: Style[] = []
  if (table.length < 6) return []
  const baseBytes = table.readUInt16LE(4)
  for (let at = 2 + table.readUInt16LE(0); at + 2 <= table.length && styles.length < 5000; ) {
    const length = table.readUInt16LE(at)
    styles.push(styleIn(table.subarray(at + 2, at + 2 + length), baseBytes))
    at += 2 + length
  }
  const effectOf = (number: number, depth: number): ParagraphProperties => {
    const style = styles[number]
    if (style === undefined || depth > maxBases) return {}
    return changedProperties({ ...effectOf(style.base, depth + 1), ...style.own }, style.properties)
  }
  return styles.map((_, number) => effectOf(number, 0))
}

function styleIn(data: Buffer, baseBytes: number): Style {
  const none = { base: 0xfff, own: {}, properties: Buffer.alloc(0) }
  if (data.length < Math.max(10, baseBytes + 2)) return none
  const [number, kind] = [data.readUInt16LE(0) & 0xfff, data.readUInt16LE(2)]
  // Only styles of paragraphs count.
  if ((kind & 0xf) !== 1) return none
  const level = number >= 1 && number <= 9 ? number - 1 : number === title ? 0 : undefined
  const at = baseBytes + 4 + data.readUInt16LE(baseBytes) * 2
  const length = at + 2 <= data.length ? data.readUInt16LE(at) : 0
  return {
    base: kind >> 4,
    own: level === undefined ? {} : { level },
    properties: data.subarray(at + 4, at + 2 + length),
  }
}

export function readFonts(table: Buffer): readonly string[] {
  const fonts: string[] = []
  for (let at = 4; at < table.length; at += 1 + (table[at] ?? 0)) {
    const name = table.toString('utf16le', at + 40, at + 1 + (table[at] ?? 0))
    fonts.push(name.split('\0', 1)[0] ?? '')
  }
  return fonts
}

const bullet = 23
const noNumber = 255

interface ListLevel {
  readonly first: number
  readonly isNumbered: boolean
}

/**
 * Counts the items of lists.
 *
 * @param lists The table of lists.
 * @param uses The table that maps the list number of a paragraph to a list.
 */
export function createNumbering(lists: Buffer, uses: Buffer) {
  const levels = readLevels(lists)
  const counts = new Map<number, number[]>()
  return {
    /** The number of the next item; `undefined` if the items are not numbered. */
    next: (use: number, depth: number): number | undefined => {
      const at = 4 + (use - 1) * 16
      const list = at + 4 <= uses.length ? uses.readInt32LE(at) : 0
      const level = levels.get(list)?.[depth]
      if (level === undefined || !level.isNumbered) return undefined
      const numbers = (counts.get(list) ?? []).slice(0, depth + 1)
      numbers[depth] = (numbers[depth] ?? level.first - 1) + 1
      counts.set(list, numbers)
      return numbers[depth]
    },
  }
}

function readLevels(table: Buffer): ReadonlyMap<number, readonly ListLevel[]> {
  const levelsByList = new Map<number, ListLevel[]>()
  const count = table.length < 2 ? 0 : table.readUInt16LE(0)
  let at = 2 + count * 28
  for (let index = 0; index < count && at + 28 <= table.length; index++) {
    const list = 2 + index * 28
    const depth = ((table[list + 26] ?? 0) & 1) === 1 ? 1 : 9
    const levels: ListLevel[] = []
    for (let level = 0; level < depth && at + 28 <= table.length; level++) {
      const format = table[at + 4] ?? noNumber
      levels.push({ first: table.readInt32LE(at), isNumbered: format !== bullet && format !== noNumber })
      at += 28 + (table[at + 24] ?? 0) + (table[at + 25] ?? 0)
      at += at + 2 <= table.length ? 2 + table.readUInt16LE(at) * 2 : 2
    }
    levelsByList.set(table.readInt32LE(list), levels)
  }
  return levelsByList
}
