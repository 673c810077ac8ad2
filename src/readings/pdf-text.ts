import type { WrappedPdfiumModule } from '@embedpdf/pdfium'
import { createGlyphReader } from './pdf-fonts.ts'
import { heapOf } from './pdf-heap.ts'

/** The space of a character in its line, in points from the lower left corner of the page. */
interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** Size of FS_RECTF: four floats. */
const boxBytes = 16
/** Maximum gap between two characters that touch, as a share of the height of a character. */
const touchingShare = 0.05
/** Maximum difference of the heights of two characters of one size, as a share of the height. */
const sameSizeShare = 0.1
/** Horizontal gap between two characters above which a new word begins although no space is drawn, in heights of a character. */
const wordsApart = 1
/** Vertical gap between two characters above which a new line begins, in heights of a character. Vertical writing has smaller gaps. */
const linesApart = 1

/** A mark (such as an accent) belongs to the letter before it, so no space stands between them. */
const startsWithMark = /^\p{M}/u
/** Arabic and Hebrew letters, which are written from right to left, with the marks and spaces between them. */
const rightToLeft = /[\p{sc=Arab}\p{sc=Hebr}][\p{sc=Arab}\p{sc=Hebr}\p{M} ]+/gu

/** Returns the text of a page as PDFium orders it, with corrections from the positions of characters and the glyphs of fonts. */
export function textOfPage(pdfium: WrappedPdfiumModule, textPage: number): string {
  const heap = heapOf(pdfium)
  const count = pdfium.FPDFText_CountChars(textPage)
  if (count <= 0) return ''
  const at = heap.wasmExports.malloc(Math.max(boxBytes, count * 2 + 2))
  try {
    const length = Math.max(0, pdfium.FPDFText_GetText(textPage, 0, count, at) - 1)
    const text = new TextDecoder('utf-16le').decode(heap.HEAPU8.slice(at, at + length * 2))
    const boxOf = (position: number): Box => {
      pdfium.FPDFText_GetLooseCharBox(textPage, pdfium.FPDFText_GetCharIndexFromTextIndex(textPage, position), at)
      const [left = 0, top = 0, right = 0, bottom = 0] = new Float32Array(heap.HEAPU8.buffer, at, 4)
      return { left, top, right, bottom }
    }
    // PDFium returns a soft hyphen at the end of a line as U+FFFE.
    return mended(pdfium, textPage, text, boxOf)
      .replace(/\r\n?/g, '\n')
      .replace(/\ufffe|\0/g, '')
  } finally {
    heap.wasmExports.free(at)
  }
}

function mended(pdfium: WrappedPdfiumModule, textPage: number, text: string, boxOf: (position: number) => Box): string {
  const glyphs = createGlyphReader(pdfium, textPage, pdfium.FPDFText_CountChars(textPage))
  const pieces: string[] = []
  let from = 0
  const replace = (start: number, end: number, by: string) => {
    pieces.push(text.slice(from, start), by)
    from = end
  }
  const turned = new Map(turnedRuns(text, boxOf))
  let before: Box | undefined
  let next = 0
  for (let at = 0; at < text.length; at++) {
    const run = turned.get(at)
    if (run !== undefined) {
      replace(at, at + run.length, [...run].reverse().join(''))
      at += run.length - 1
      before = undefined
      next = pdfium.FPDFText_GetCharIndexFromTextIndex(textPage, at) + 1
      continue
    }
    const index = pdfium.FPDFText_GetCharIndexFromTextIndex(textPage, at)
    // PDFium leaves control characters out of the text. They may be numbers of glyphs, which stand for characters.
    for (; next < index; next++) {
      replace(at, at, glyphs.characterOf(next) ?? '')
      before = undefined
    }
    next = index + 1
    if (pdfium.FPDFText_IsGenerated(textPage, index) === 1) {
      const length = text.startsWith('\r\n', at) ? 2 : 1
      const isApart =
        length === 1
          ? !startsWithMark.test(text.slice(at + 1, at + 3))
          : at === 0 || at + length >= text.length || !areTouching(boxOf(at - 1), boxOf(at + length))
      if (!isApart) replace(at, at + length, '')
      at += length - 1
      next = index + length
      before = undefined
      continue
    }
    const box = boxOf(at)
    // A soft hyphen (U+FFFE) counts as a space: the word continues in the next line.
    const isSpace = /[\s\ufffe]/.test(text[at] ?? '')
    if (before !== undefined && isLineBelow(before, box)) replace(at, at, '\n')
    else if (before !== undefined && !isSpace && areWordsApart(before, box)) replace(at, at, ' ')
    before = isSpace ? undefined : box
    const character = glyphs.characterOf(index)
    if (character !== undefined) replace(at, at + 1, character)
  }
  return pieces.join('') + text.slice(from)
}

function areOnOneLine(one: Box, other: Box): boolean {
  return Math.min(one.top, other.top) - Math.max(one.bottom, other.bottom) > (one.top - one.bottom) / 2
}

function areWordsApart(one: Box, other: Box): boolean {
  const gap = Math.max(other.left - one.right, one.left - other.right)
  const height = Math.max(one.top - one.bottom, other.top - other.bottom)
  return gap > height * wordsApart && areOnOneLine(one, other)
}

/** Whether two characters of one size stand side by side, so that no line ends between them. */
function areTouching(left: Box, right: Box): boolean {
  const [height, other] = [left.top - left.bottom, right.top - right.bottom]
  return (
    areOnOneLine(left, right) &&
    Math.abs(height - other) < height * sameSizeShare &&
    Math.abs(right.left - left.right) < height * touchingShare
  )
}

function isLineBelow(above: Box, below: Box): boolean {
  const height = Math.max(above.top - above.bottom, below.top - below.bottom)
  return above.bottom - below.top > height * linesApart && above.left < below.right && below.left < above.right
}

/** Yields the runs of Arabic or Hebrew letters that the text has in the wrong order, as their positions show. */
function* turnedRuns(text: string, boxOf: (position: number) => Box): Generator<[position: number, run: string]> {
  for (const { 0: character, index } of text.matchAll(rightToLeft)) {
    const run = character.trimEnd()
    let turned = 0
    for (let at = index + 1; at < index + run.length; at++) turned += Math.sign(boxOf(at).left - boxOf(at - 1).left)
    if (turned > 0 && [...run].length > 1) yield [index, run]
  }
}
