import { readFileSync } from 'node:fs'
import iconv from 'iconv-lite'
import { describe, expect, test } from 'vitest'
import type { DocumentFormat, ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { annotatedPdf, appearance, flate, pageWithFont, pdfOf, stream } from '../fixtures/documents/pdf.ts'

const limits = { characters: 1_000_000, unpacked: 100_000_000 }
const read = async (format: DocumentFormat, bytes: Uint8Array, form: ReadingForm = 'text') =>
  (await readDocument({ format, form, bytes, limits })).text.trim()

describe('a page of HTML in another encoding', () => {
  const texts = [
    ['windows-1251', 'Документация описывает настройку сервера.'],
    ['koi8-r', 'Документация описывает настройку сервера.'],
    ['windows-1253', 'Η τεκμηρίωση περιγράφει τις ρυθμίσεις.'],
    ['iso-8859-2', 'Zażółć gęślą jaźń, źródło.'],
    ['windows-1254', 'Şu sayfaya bakınız, değişiklikler için.'],
    ['windows-1255', 'המסמך מתאר את הגדרות השרת.'],
  ] as const

  test.each(texts)('is decoded by a declaration anywhere in its head: %s', async (label, text) => {
    const page = `<html><head><meta name="x" content="${'y'.repeat(3000)}"><meta http-equiv="Content-Type" content="text/html; charset=${label}"></head><p>${text}</p>`
    expect(await read('html', iconv.encode(page, label))).toBe(text)
  })

  test.each(texts)(
    'without a declaration is decoded to the original text, or gives an error: %s',
    async (label, text) => {
      const outcome = await read('html', iconv.encode(`<html><p>${text}</p>`, label)).catch((error: unknown) => error)
      if (label !== 'iso-8859-2') return expect(outcome).toBe(text)
      // Too short to be told from other encodings of central Europe.
      expect(outcome).toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('does not declare an encoding'),
        detail: { reason: 'unreadable' },
      })
    },
  )
})

describe('a page of HTML', () => {
  test.each(['\0', '\x10', '\x1d', '\x7f'])(
    'is read without a control character that it holds by mistake: %j',
    async (control) => {
      const page = `<meta charset="utf-8"><p>Gr${control}üße</p>${'<br>'.repeat(250)}`
      expect(await read('html', Buffer.from(page))).toBe('Grüße')
      expect(await read('html', iconv.encode(page.replace('utf-8', 'windows-1252'), 'windows-1252'))).toBe('Grüße')
    },
  )

  test('is refused as unreadable if it has many control characters', async () => {
    const outcome = read('html', Buffer.from(`<p>Gr\x01üße</p>\x02\x03${'a'.repeat(100)}`))
    await expect(outcome).rejects.toMatchObject({ kind: 'invalid', detail: { reason: 'unreadable' } })
  })

  test.each([
    ['<math alttext="E=mc^2"><mi>E</mi></math>', 'E=mc^2', '$E=mc^2$'],
    [
      '<math><semantics><mi>a</mi><annotation encoding="application/x-tex">\\frac{a}{b}</annotation><annotation-xml encoding="MathML-Content"><ci>z</ci></annotation-xml></semantics></math>',
      '\\frac{a}{b}',
      '$\\frac{a}{b}$',
    ],
    ['<math><msup><mi>x</mi><mn>2</mn></msup></math>', 'x 2', 'x 2'],
    ['<m:math><m:mi>x</m:mi></m:math>', 'x', 'x'],
    [
      '<span class="katex"><math alttext="x_1"></math><span class="katex-html" aria-hidden="true">x1</span></span>',
      'x_1',
      '$x_1$',
    ],
  ])('has the TeX of a formula, or else its text: %s', async (formula, text, markdown) => {
    expect(await read('html', Buffer.from(`<p>${formula}</p>`))).toBe(text)
    expect(await read('html', Buffer.from(`<p>${formula}</p>`), 'markdown')).toBe(markdown)
  })

  test('has the visible text of drawings', async () => {
    const page =
      '<p>a</p><svg><title>tip</title><defs><text>no</text></defs><text>One <tspan>two</tspan></text><text>Three</text><foreignObject><div>four</div></foreignObject></svg><p>b</p>'
    expect(await read('html', Buffer.from(page))).toBe('a\n\nOne two\n\nThree\n\nfour\n\nb')
  })
})

describe('a PDF with annotations', () => {
  const place = '/Rect [72 600 372 620]'
  const field = (rest: string) => `<< /Type /Annot /Subtype /Widget /FT /Tx /T (n) ${place} ${rest} >>`
  const drawn = '/AP << /N 7 0 R >>'

  test.each<[string, string, Buffer[], string, string]>([
    ['a field', field(`/V (Value) /F 4 ${drawn}`), [appearance('Value')], '', 'Value'],
    ['a field without an appearance', field('/V (Value) /F 4'), [], '', 'Value'],
    [
      'a note',
      `<< /Type /Annot /Subtype /FreeText ${place} /DA (/F1 12 Tf 0 g) /Contents (Note) /F 4 >>`,
      [],
      '',
      'Note',
    ],
    ['a stamp', `<< /Type /Annot /Subtype /Stamp ${place} /F 4 ${drawn} >>`, [appearance('APPROVED')], '', 'APPROVED'],
    [
      'a choice',
      `<< /Type /Annot /Subtype /Widget /FT /Ch /Ff 131072 /T (c) /V (Blue) /Opt [(Red) (Blue)] ${place} /F 4 >>`,
      [],
      '/NeedAppearances true',
      'Blue',
    ],
    ['a password', field('/V (Secret) /F 4 /Ff 8192'), [], '/NeedAppearances true', '******'],
    ['a hidden field', field(`/V (Secret) /F 2 ${drawn}`), [appearance('Secret')], '', ''],
    ['a field that is only printed', field(`/V (Secret) /F 32 ${drawn}`), [appearance('Secret')], '', ''],
  ])('has the text that a viewer shows for %s', async (_, annotation, more, form, wanted) => {
    const pages = 'Page 1\n\nPage text'
    expect(await read('pdf', annotatedPdf([annotation], more, form))).toBe(
      wanted === '' ? pages : `${pages}\n${wanted}`,
    )
  })

  test('and no other text is not taken for a scan', async () => {
    const stamp = `<< /Type /Annot /Subtype /Stamp ${place} /F 4 ${drawn} >>`
    expect(await read('pdf', annotatedPdf([stamp], [appearance('APPROVED')], '', ' '))).toBe('Page 1\n\nAPPROVED')
  })

  test('has the text of a page that inherits its font from the page tree', async () => {
    const inherited = pdfOf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> >>',
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [65 /T /e /x /t] >> >>',
      '<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Annots [6 0 R] >>',
      stream(Buffer.from('BT /F1 12 Tf 72 760 Td (ABCD) Tj ET')),
      `<< /Type /Annot /Subtype /Stamp ${place} /F 4 ${drawn} >>`,
      appearance('ABCD'),
    ])
    expect(await read('pdf', inherited)).toBe('Page 1\n\nText\nText')
  })
})

test('a page of a PDF whose fonts do not tell its characters says so, and may be read by OCR', async () => {
  const bytes = pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [4 0 R] /Count 1 /MediaBox [0 0 595 842] >>',
    `<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [.001 0 0 .001 0 0] /CharProcs << /drawn 6 0 R >>
      /Encoding << /Differences [1 /drawn] >> /FirstChar 1 /LastChar 1 /Widths [600] >>`,
    '<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>',
    stream(Buffer.from('BT /F1 12 Tf 72 760 Td <010101> Tj ET')),
    stream(Buffer.from('500 0 0 0 500 500 d1 0 0 500 500 re f')),
  ])
  const { text, pictures } = await readDocument({ format: 'pdf', form: 'text', bytes, limits })
  expect(text).toMatch(/^Page 1\n\n\(The fonts of this page do not map all codes to characters/)
  expect(pictures).toEqual([0])
  const read = await readDocument({ format: 'pdf', form: 'text', bytes, limits, ocr: new Map([[0, 'Drawn text']]) })
  expect(read).toMatchObject({ text: 'Page 1 (read by OCR)\n\nDrawn text\n', parts: 1 })
})

describe('the text of a PDF', () => {
  const helvetica = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>'
  const glyphFont = (name: string, more = '') =>
    `<< /Type /Font /Subtype /Type0 /BaseFont /${name} /Encoding /Identity-H /DescendantFonts [<< /Type /Font
      /Subtype /CIDFontType2 /BaseFont /${name} /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>
      /FontDescriptor << /Type /FontDescriptor /FontName /${name} /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0
        /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 ${more}`
  const shown = (glyphs: readonly number[]) =>
    `72 760 Td <${glyphs.map((glyph) => glyph.toString(16).padStart(4, '0')).join('')}> Tj`

  test('has letters far below each other in lines of their own', async () => {
    const content = '72 760 Td (A) Tj 0 -64 Td (B) Tj 0 -64 Td (C) Tj'
    expect(await read('pdf', pageWithFont(helvetica, content))).toBe('Page 1\n\nA\nB\nC')
  })

  test('has the cells of a table as words of their own, even if the spaces between them lie over their letters', async () => {
    const cell = (text: string) => `3 Tr 60 0 Td ( ) Tj 0 Tr ${text.length * -6.7} 0 Td (${text} ) Tj`
    const content = `72 760 Td (Rain ) Tj ${['24', '349', '1.5'].map(cell).join(' ')}`
    expect(await read('pdf', pageWithFont(helvetica, content))).toBe('Page 1\n\nRain 24 349 1.5')
  })

  test('has a word whose letters stand on a curve as a single word', async () => {
    const content = '72 700 Td (T) Tj 7.3 -1.5 Td (a) Tj 6.7 -1.5 Td (l) Tj'
    expect(await read('pdf', pageWithFont(helvetica, content))).toBe('Page 1\n\nTal')
  })

  test('has Arabic in reading order if its letters are drawn from left to right', async () => {
    const forms =
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [65 /uniFE8E /uniFE92 /uniFEA3] >> >>'
    expect(await read('pdf', pageWithFont(forms, '72 760 Td (ABC) Tj'))).toBe('Page 1\n\n\u062d\u0628\u0627')
  })

  test('has the characters of a Windows font that the file does not contain, by the order of its glyphs', async () => {
    const glyphs = [0x39, 0x52, 0x54, 3, 0x14, 0x15, 3, 570, 571, 3, 227, 268]
    const bytes = pageWithFont(`${glyphFont('Arial')} >> >>] >>`, shown(glyphs))
    expect(await read('pdf', bytes)).toBe('Page 1\n\nVoq 12 АБ šě')
  })

  test('has the characters of an embedded font, by the table of characters in the font', async () => {
    const font = readFileSync('node_modules/pdfjs-dist/standard_fonts/LiberationSans-Regular.ttf')
    const glyphs = [0x2b, 0x44, 0x55, 0x45, 0x52, 0x58, 0x55, 3, 0x14]
    const bytes = pageWithFont(`${glyphFont('Own', '/FontFile2 6 0 R')} >> >>] >>`, shown(glyphs), flate(font))
    expect(await read('pdf', bytes)).toBe('Page 1\n\nHarbour 1')
  })

  test('has no space between a letter and the mark that belongs to it', async () => {
    const marks =
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [65 /e /uni0301 /t] >> >>'
    const spread = (letters: string) => `72 760 Td ${[...letters].map((letter) => `(${letter}) Tj 20 0 Td`).join(' ')}`
    expect(await read('pdf', pageWithFont(marks, spread('AB')))).toBe('Page 1\n\ne\u0301')
    expect(await read('pdf', pageWithFont(marks, spread('AC')))).toBe('Page 1\n\ne t')
  })

  test('has the characters of a font whose table of characters is endless, up to a limit', async () => {
    const glyphs = [0x2b, 0x44, 3]
    /** A font whose table of characters has groups of codes, from one to another, the first of which has a glyph. */
    const fontOf = (...groups: readonly (readonly [first: number, last: number, glyph: number])[]) => {
      const font = readFileSync('node_modules/pdfjs-dist/standard_fonts/LiberationSans-Regular.ttf')
      const words = [
        0x0000_0001,
        0x0003_000a,
        12,
        0x000c_0000,
        16 + groups.length * 12,
        0,
        groups.length,
        ...groups.flat(),
      ]
      const table = Buffer.alloc(words.length * 4)
      for (const [index, word] of words.entries()) table.writeUInt32BE(word, index * 4)
      const entry = font.indexOf('cmap')
      font.writeUInt32BE(font.length, entry + 8)
      font.writeUInt32BE(table.length, entry + 12)
      return flate(Buffer.concat([font, table]))
    }
    const textWith = (font: Buffer) =>
      read('pdf', pageWithFont(`${glyphFont('Own', '/FontFile2 6 0 R')} >> >>] >>`, shown(glyphs), font))
    const letters = [
      [0x48, 0x48, 0x2b],
      [0x61, 0x61, 0x44],
    ] as const
    const many = [0x1_0000, 0x40_0000, 0x1000] as const
    expect(await textWith(fontOf(...letters, many))).toBe('Page 1\n\nHa')
    expect(await textWith(fontOf(many, ...letters))).not.toContain('Ha')
  })
})

describe('a notebook', () => {
  test('has its cells and text outputs, without pictures; JSON that is no notebook is refused', async () => {
    const outputs = [
      { output_type: 'stream', text: ['one\n', 'two\n'] },
      { output_type: 'display_data', data: { 'image/png': 'iVBORw0=', 'text/plain': '<Figure>' } },
      { output_type: 'error', ename: 'ValueError', evalue: '\u001b[31mno tea\u001b[0m' },
    ]
    const cells = [
      { cell_type: 'markdown', source: ['# Tea\n', 'green'] },
      { cell_type: 'code', source: 'print(1)', outputs },
    ]
    const bytes = Buffer.from(JSON.stringify({ nbformat: 4, cells }))
    expect(await read('ipynb', bytes)).toBe('# Tea\ngreen\n\nprint(1)\n\none\ntwo\n\n<Figure>\n\nValueError: no tea')
    await expect(read('ipynb', Buffer.from('{"a":1}'))).rejects.toMatchObject({
      message: expect.stringContaining('not a notebook'),
      detail: { reason: 'unreadable' },
    })
  })
})
