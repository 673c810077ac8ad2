import type { WrappedPdfiumModule } from '@embedpdf/pdfium'
import { heapOf } from './pdf-heap.ts'

type Characters = (glyph: number) => string | undefined

/**
 * Finds the characters of text whose font does not map codes to characters, and whose codes are numbers of glyphs. A TrueType font in the
 * file has a table of the characters of its glyphs. Some fonts of Windows have a known order of glyphs.
 *
 * @param count Number of characters of the page.
 */
export function createGlyphReader(pdfium: WrappedPdfiumModule, textPage: number, count: number) {
  const fontOf = (index: number): number => {
    const object = pdfium.FPDFText_GetTextObject(textPage, index)
    return object === 0 ? 0 : pdfium.FPDFTextObj_GetFont(object)
  }
  const codes = new Map<number, Set<number>>()
  for (let index = 0; index < count; index++) {
    if (pdfium.FPDFText_HasUnicodeMapError(textPage, index) !== 1) continue
    const font = fontOf(index)
    codes.set(font, (codes.get(font) ?? new Set()).add(pdfium.FPDFText_GetUnicode(textPage, index)))
  }
  const fonts = new Map<number, Characters>()
  for (const [font, used] of codes) {
    const characters = font === 0 ? undefined : charactersOf(pdfium, font, used)
    if (characters !== undefined) fonts.set(font, characters)
  }
  return {
    /** The character at an index of the page; `undefined` if no better one is known than that of PDFium. */
    characterOf: (index: number): string | undefined =>
      fonts.size === 0 || pdfium.FPDFText_HasUnicodeMapError(textPage, index) !== 1
        ? undefined
        : fonts.get(fontOf(index))?.(pdfium.FPDFText_GetUnicode(textPage, index)),
  }
}

function charactersOf(pdfium: WrappedPdfiumModule, font: number, codes: ReadonlySet<number>): Characters | undefined {
  // The glyphs of digits and punctuation have numbers below 0x20. Without any, the codes may be characters.
  if (![...codes].some((code) => code < 0x20)) return undefined
  if (pdfium.FPDFFont_GetIsEmbedded(font) !== 1)
    return windowsFonts.test(readFontName(pdfium, font)) ? windowsCharacter : undefined
  // PDFium knows the widths of characters, but has one width for all numbers of glyphs: if widths differ, the codes are characters.
  const widths = new Set([...codes].map((code) => readGlyphWidth(pdfium, font, code)))
  if (widths.size > 1) return undefined
  const characters = charactersIn(readFontData(pdfium, font))
  return (glyph) => characters.get(glyph)
}

/** Font size at which widths are compared, in points. */
const size = 1000

function readGlyphWidth(pdfium: WrappedPdfiumModule, font: number, code: number): number {
  return Buffer.from(filled(pdfium, 4, (at) => pdfium.FPDFFont_GetGlyphWidth(font, code, size, at))).readFloatLE()
}

const maxNameBytes = 256

function readFontName(pdfium: WrappedPdfiumModule, font: number): string {
  const bytes = filled(pdfium, maxNameBytes, (at) => pdfium.FPDFFont_GetBaseFontName(font, at, maxNameBytes))
  return Buffer.from(bytes).toString('latin1').replace(/\0.*$/s, '')
}

const maxFontBytes = 16 * 2 ** 20

function readFontData(pdfium: WrappedPdfiumModule, font: number): Buffer {
  const size = Buffer.from(filled(pdfium, 4, (at) => pdfium.FPDFFont_GetFontData(font, 0, 0, at))).readUInt32LE()
  if (size === 0 || size > maxFontBytes) return Buffer.alloc(0)
  return Buffer.from(filled(pdfium, size + 4, (at) => pdfium.FPDFFont_GetFontData(font, at, size, at + size)))
}

function filled(pdfium: WrappedPdfiumModule, size: number, fill: (at: number) => unknown): Uint8Array {
  const heap = heapOf(pdfium)
  const at = heap.wasmExports.malloc(size)
  heap.HEAPU8.fill(0, at, at + size)
  fill(at)
  const bytes = heap.HEAPU8.slice(at, at + size)
  heap.wasmExports.free(at)
  return bytes
}

/** Fonts of Windows with the same order of glyphs, in all of their styles. */
const windowsFonts = /^(?:[A-Z]{6}\+)?(?:Arial(?! ?Black)|Times ?New ?Roman|Courier ?New)/
/** Characters of the glyphs of these fonts, in order: ASCII, the upper half of Mac OS Roman without a space and the apple, and letters of Europe. */
const windowsOrder: readonly (string | undefined)[] = [
  ...String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 0x20 + index)),
  ...new TextDecoder('macintosh')
    .decode(Uint8Array.from({ length: 128 }, (_, index) => 0x80 + index))
    .replace(/[\xa0\uf8ff]/g, ''),
  ...'ŁłŠšŽž¦ÐðÝýÞþ−×¹²³½¼¾₣ĞğİŞşĆćČčđ',
  undefined,
  undefined,
  ...'ĂăĄąĎďĐĘęĚěĹĺĽľĿŀŃńŇňŐőŔŕŘřŚśŤťŢţŮůŰűŹźŻż',
]
/** The number of the first glyph of the order, the number of the first Russian glyph, and the code point of that letter. */
const [firstGlyph, firstRussian, russian] = [3, 570, 0x410]

function windowsCharacter(glyph: number): string | undefined {
  if (glyph >= firstRussian && glyph < firstRussian + 64) return String.fromCharCode(russian + glyph - firstRussian)
  return windowsOrder[glyph - firstGlyph]
}

/** Maximum number of codes that are read of a font, because its tables may repeat the same codes. */
const maxCodes = 0x2_0000

/** Returns the Unicode characters of the glyphs of a TrueType or OpenType font, from its table `cmap`. */
function charactersIn(font: Buffer): ReadonlyMap<number, string> {
  const characters = new Map<number, string>()
  let budget = maxCodes
  const add = (glyph: number, code: number) => {
    if (budget-- === 0) throw new RangeError('too many codes')
    // Surrogates, and characters of private use.
    const isNone = code > 0x10ffff || (code >= 0xd800 && code <= 0xf8ff)
    if (glyph !== 0 && !isNone && !characters.has(glyph)) characters.set(glyph, String.fromCodePoint(code))
  }
  try {
    const start = tableAt(font, 'cmap')
    for (let left = font.readUInt16BE(start + 2), at = start + 4; left > 0; left--, at += 8) {
      const [platform, encoding] = [font.readUInt16BE(at), font.readUInt16BE(at + 2)]
      if (platform !== 0 && !(platform === 3 && (encoding === 1 || encoding === 10))) continue
      const table = font.subarray(start + font.readUInt32BE(at + 4))
      const format = table.readUInt16BE(0)
      if (format === 4) readSegments(table, add)
      else if (format === 12) readGroups(table, add)
    }
  } catch {
    // The font is damaged, or has too many codes: the codes that were read count.
  }
  return characters
}

function tableAt(font: Buffer, name: string): number {
  for (let left = font.readUInt16BE(4), at = 12; left > 0; left--, at += 16)
    if (font.toString('latin1', at, at + 4) === name) return font.readUInt32BE(at + 8)
  throw new RangeError('no such table')
}

type Add = (glyph: number, code: number) => void

/** Reads a table of format 4: segments of codes up to 0xffff. */
function readSegments(table: Buffer, add: Add): void {
  const size = table.readUInt16BE(6)
  const [ends, starts, deltas, offsets] = [14, 16 + size, 16 + size * 2, 16 + size * 3]
  for (let segment = 0; segment < size; segment += 2) {
    const [delta, offset] = [table.readUInt16BE(deltas + segment), table.readUInt16BE(offsets + segment)]
    const [first, last] = [table.readUInt16BE(starts + segment), table.readUInt16BE(ends + segment)]
    for (let code = first; code <= last && code < 0xffff; code++) {
      const glyph = offset === 0 ? code : table.readUInt16BE(offsets + segment + offset + (code - first) * 2)
      add(glyph === 0 ? 0 : (glyph + delta) & 0xffff, code)
    }
  }
}

/** Reads a table of format 12: groups of codes. */
function readGroups(table: Buffer, add: Add): void {
  for (let left = table.readUInt32BE(12), at = 16; left > 0; left--, at += 12) {
    const [first, last, glyph] = [table.readUInt32BE(at), table.readUInt32BE(at + 4), table.readUInt32BE(at + 8)]
    for (let code = first; code <= last; code++) add(glyph + code - first, code)
  }
}
