import { inflateRawSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { DocumentFormat } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { c, docx, p, pptx, relationships, xlsx } from '../fixtures/documents/office.ts'
import { type ZipEntry, zip } from '../fixtures/documents/zip.ts'

const limits = { characters: 1_000_000, unpacked: 100_000_000 }
const read = async (format: DocumentFormat, bytes: Uint8Array) =>
  (await readDocument({ format, form: 'text', bytes, limits })).text

const [main, office] = [
  'http://schemas.openxmlformats.org/spreadsheetml/2006/main',
  'http://schemas.openxmlformats.org/officeDocument/2006/relationships',
]

interface Parts {
  readonly workbook?: string
  readonly sheet?: string
  readonly styles?: string
  readonly strings?: string
  readonly target?: string
  readonly part?: string
  readonly more?: readonly ZipEntry[]
  /** The relationships of the document. */
  readonly root?: string
}

const date = '<styleSheet xmlns="MAIN"><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>'

/** The parts of a workbook of one sheet. MAIN and OFFICE stand for the namespaces. */
function partsOf({
  workbook:
    book = '<workbook xmlns="MAIN" xmlns:r="OFFICE"><sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
  sheet = '<worksheet xmlns="MAIN"><sheetData><row r="1"><c r="A1"><v>43000</v></c></row></sheetData></worksheet>',
  styles = date,
  strings = '<sst xmlns="MAIN"><si><t>text</t></si></sst>',
  target = 'worksheets/sheet1.xml',
  part = 'xl/worksheets/sheet1.xml',
  more = [],
  root = relationships([['rId1', 'officeDocument', 'xl/workbook.xml']]),
}: Parts): readonly ZipEntry[] {
  const xml = (text: string) => text.replaceAll('MAIN', main).replaceAll('OFFICE', office)
  return [
    { name: '_rels/.rels', data: root },
    {
      name: 'xl/_rels/workbook.xml.rels',
      data: relationships([
        ['rId1', 'worksheet', target],
        ['rId2', 'styles', 'styles.xml'],
        ['rId3', 'sharedStrings', 'sharedStrings.xml'],
      ]),
    },
    { name: 'xl/workbook.xml', data: xml(book) },
    { name: 'xl/styles.xml', data: xml(styles) },
    { name: 'xl/sharedStrings.xml', data: xml(strings) },
    { name: part, data: xml(sheet) },
    ...more,
  ]
}

const workbook = (parts: Parts): Buffer => zip(partsOf(parts))

describe('an element of an Office document', () => {
  const sheets = '<sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets>'

  test.each([
    [
      'after',
      `<workbookPr date1904="1"/>${sheets}<extLst><ext><x15:workbookPr chartTrackingRefBase="1"/></ext></extLst>`,
    ],
    ['before', `<extLst><ext><x15:workbookPr/></ext></extLst><workbookPr date1904="true"/>${sheets}`],
    ['without extLst', `<workbookPr date1904="1"/><x15:workbookPr/>${sheets}`],
  ])('is not confused with one of the same name in an extension (place of the extension: %s)', async (_, inner) => {
    const book = `<workbook xmlns="MAIN" xmlns:r="OFFICE" xmlns:x15="http://schemas.microsoft.com/office/spreadsheetml/2010/11/main">${inner}</workbook>`
    expect(await read('xlsx', workbook({ workbook: book }))).toBe('S\n\n2021-09-23\n')
  })

  test('of a cell is not confused with one of the same name in an extension', async () => {
    const sheet =
      '<worksheet xmlns="MAIN" xmlns:o="urn:other"><sheetData><row r="1"><c r="A1"><v>43000</v><o:v>7</o:v><o:c r="B1"><o:v>8</o:v></o:c></c></row></sheetData></worksheet>'
    expect(await read('xlsx', workbook({ sheet }))).toBe('S\n\n2017-09-22\n')
  })

  test('is found under any namespace prefix, and its relationship too', async () => {
    const book =
      '<q:workbook xmlns:q="MAIN" xmlns:rel="OFFICE"><q:sheets><q:sheet name="S" sheetId="1" rel:id="rId1"/></q:sheets></q:workbook>'
    const sheet =
      '<q:worksheet xmlns:q="MAIN"><q:sheetData><q:row r="1"><q:c r="A1" t="s"><q:v>0</q:v></q:c></q:row></q:sheetData></q:worksheet>'
    const strings = '<z:sst xmlns:z="MAIN"><z:si><z:t>text</z:t></z:si></z:sst>'
    expect(await read('xlsx', workbook({ workbook: book, sheet, strings }))).toBe('S\n\ntext\n')
    expect(await read('pptx', replaced(pptx, [/xmlns:r=/g, 'xmlns:q='], [/ r:id=/g, ' q:id=']))).toBe(
      await read('pptx', pptx()),
    )
    const [a, p] = [/(<\/?)a:|xmlns:a=/g, /(<\/?)p:|xmlns:p=/g]
    const under = (prefix: string) => (all: string, tag?: string) =>
      (tag === undefined ? `xmlns:${prefix}=` : `${tag + prefix}:`) || all
    expect(await read('pptx', replaced(pptx, [a, under('draw')], [p, under('show')]))).toBe(await read('pptx', pptx()))
    const word = replaced(
      docx,
      [/(<\/?)w:|xmlns:w=/g, under('ns0')],
      [/ w:/g, ' ns0:'],
      [/xmlns:r=/g, 'xmlns:k='],
      [/ r:id=/g, ' k:id='],
    )
    expect(await read('docx', word)).toBe(await read('docx', docx()))
  })

  test('is read alike in the namespaces of a strict document', async () => {
    const strict: readonly Replacement[] = [
      [
        /http:\/\/schemas\.openxmlformats\.org\/(\w+)\/2006\/(main|relationships)/g,
        (all, name = '', end = '') => (name === 'package' ? all : `http://purl.oclc.org/ooxml/${name}/${end}`),
      ],
    ]
    for (const [format, make] of [
      ['docx', docx],
      ['xlsx', xlsx],
      ['pptx', pptx],
    ] as const)
      expect(await read(format, replaced(make, ...strict))).toBe(await read(format, make()))
  })

  test('is taken from one alternative only: a known one, or else the fallback', async () => {
    const box = (text: string) => `<w:txbxContent>${p(text)}</w:txbxContent>`
    const namespaces =
      'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:n="urn:new"'
    const alternate = (inner: string) =>
      `<w:p><w:r><mc:AlternateContent ${namespaces}>${inner}</mc:AlternateContent></w:r></w:p>`
    const choice = (requires: string, text: string) => `<mc:Choice Requires="${requires}">${box(text)}</mc:Choice>`
    const fallback = `<mc:Fallback>${box('fallback')}</mc:Fallback>`
    const note = '\n\n[2] 脚注の文。\n'
    for (const [inner, wanted] of [
      [choice('wps', 'choice') + fallback, 'choice'],
      [choice('n', 'choice') + fallback, 'fallback'],
      [choice('n', 'one') + choice('wps', 'two') + fallback, 'two'],
      [choice('wps', 'one') + choice('wps', 'two'), 'one'],
      [fallback, 'fallback'],
    ] as const)
      expect(await read('docx', docx({ body: alternate(inner) }))).toBe(wanted + note)
  })
})

type Replacement = readonly [pattern: RegExp, by: string | ((all: string, ...groups: string[]) => string)]

/** A fixture whose parts are written in another way. */
function replaced(make: () => Buffer, ...replacements: readonly Replacement[]): Buffer {
  return zip(
    entriesOf(make()).map(({ name, data }) => ({
      name,
      data: replacements.reduce(
        (text, [pattern, by]) => (typeof by === 'string' ? text.replace(pattern, by) : text.replace(pattern, by)),
        String(data),
      ),
    })),
  )
}

/** The entries of an archive that the fixtures made. */
function entriesOf(archive: Buffer): readonly ZipEntry[] {
  const entries: ZipEntry[] = []
  for (let at = 0; archive.readUInt32LE(at) === 0x04034b50; ) {
    const [packed, name] = [archive.readUInt32LE(at + 18), archive.readUInt16LE(at + 26)]
    const start = at + 30 + name
    entries.push({
      name: archive.toString('utf8', at + 30, start),
      data: inflateRawSync(archive.subarray(start, start + packed)),
    })
    at = start + packed
  }
  return entries
}

describe('a part of an Office document', () => {
  test.each([
    ['/xl/worksheets/sheet1.xml', 'xl/worksheets/sheet1.xml'],
    ['../xl/./worksheets/sheet1.xml', 'xl/worksheets/sheet1.xml'],
    ['Worksheets/Sheet1.xml', 'xl/worksheets/sheet1.xml'],
    ['worksheets/sheet1.xml', 'XL/WORKSHEETS/SHEET1.XML'],
    ['worksheets/my%20sheet.xml', 'xl/worksheets/my sheet.xml'],
    ['worksheets/my sheet.xml', 'xl/worksheets/my%20sheet.xml'],
    ['worksheets\\sheet1.xml', 'xl\\worksheets\\sheet1.xml'],
    ['worksheets/%E8%A1%A8.xml', 'xl/worksheets/表.xml'],
    ['worksheets/100%.xml', 'xl/worksheets/100%.xml'],
    ['worksheets/sheet1.xml#A1', '/xl/worksheets/sheet1.xml'],
  ])('is found by %s if its name is %s', async (target, part) => {
    expect(await read('xlsx', workbook({ target, part }))).toBe('S\n\n2017-09-22\n')
  })

  test('that is missing gives an error, and so does a document without text', async () => {
    const unnamed = '<workbook xmlns="MAIN"><sheets><sheet name="S" sheetId="1"/></sheets></workbook>'
    for (const bytes of [workbook({ workbook: unnamed }), workbook({ target: 'worksheets/sheet2.xml' })])
      await expect(read('xlsx', bytes)).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('damaged'),
        detail: { reason: 'unreadable' },
      })
    await expect(read('pptx', replaced(pptx, [/r:id="rId3"/g, 'r:id="rId9"']))).rejects.toMatchObject({
      message: expect.stringContaining('a slide that it lists is missing'),
      detail: { reason: 'unreadable' },
    })
    const rows = `<row r="1">${c('A1', 9, 's')}</row>`
    await expect(read('xlsx', xlsx({ rows }))).rejects.toMatchObject({
      message: expect.stringContaining('the text of a cell is missing'),
      detail: { reason: 'unreadable' },
    })
    const empty = replaced(() => docx({ body: p('') }), [/<w:footnote .*<\/w:footnote>/g, ''])
    await expect(read('docx', empty)).rejects.toMatchObject({
      message: expect.stringContaining('contains no text'),
      detail: { reason: 'unreadable' },
    })
  })
})

describe('the zip archive of a document', () => {
  const bytes = pptx()
  const comment = Buffer.from('a comment')
  const commented = Buffer.concat([bytes, comment])
  commented.writeUInt16LE(comment.length, bytes.length - 2)

  test.each([
    ['\\n after it', [bytes, '\n']],
    ['CRLF after it', [bytes, '\r\n']],
    ['512 NULs after it', [bytes, Buffer.alloc(512)]],
    ['100 KiB after it', [bytes, Buffer.alloc(100 * 1024, 'x')]],
    ['what looks like its end after it', [bytes, 'PK\x05\x06', Buffer.alloc(30, 'x')]],
    ['a line before it', ['#!/bin/sh\n', bytes]],
    ['bytes before and after it', [Buffer.alloc(300), bytes, '\n']],
    ['a comment', [commented]],
    ['a comment and bytes after it', [commented, '\r\n']],
  ])('is read with %s', async (_, pieces) => {
    expect(await read('pptx', Buffer.concat(pieces.map((piece) => Buffer.from(piece))))).toBe(await read('pptx', bytes))
  })

  test('that is truncated is reported as damaged', async () => {
    for (const cut of [10, 30, bytes.length - 100])
      await expect(read('pptx', bytes.subarray(0, bytes.length - cut))).rejects.toMatchObject({
        message: expect.stringContaining('damaged'),
        detail: { reason: 'unreadable' },
      })
  })
})

describe('an Office document is read although', () => {
  test.each([false, true])('its directory of parts is damaged (sizes behind the parts: %s)', async (isStreamed) => {
    const bytes = zip(partsOf({}), isStreamed)
    const expected = await read('xlsx', bytes)
    bytes.write('XX', bytes.lastIndexOf('PK\x01\x02', undefined, 'latin1'), 'latin1')
    expect(await read('xlsx', bytes)).toBe(expected)
  })

  test('its relationships do not name its main part, which is found by its type', async () => {
    const types =
      '<Types><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
    const more = [{ name: '[Content_Types].xml', data: types }]
    expect(await read('xlsx', workbook({ more, root: 'damaged' }))).toBe(await read('xlsx', workbook({})))
  })
})

describe('the text of a cell in a workbook', () => {
  const cell = (style: number, type: string, value: string) => `<c r="A1" s="${style}" t="${type}"><v>${value}</v></c>`
  const styles =
    '<styleSheet xmlns="MAIN"><numFmts count="1"><numFmt numFmtId="180" formatCode="0;0;0;&quot;Mr. &quot;@"/></numFmts><fonts><font><name val="Arial"/></font><font><name val="Wingdings"/></font></fonts><cellXfs><xf/><xf numFmtId="180"/><xf fontId="1"/></cellXfs></styleSheet>'

  test.each([
    ['is formatted by the section for texts of its number format', cell(1, 's', '0'), 'Mr. a  b'],
    ['is decoded where a character is written as _x000A_', cell(0, 'str', 'a_x000A_b_x005F_c'), 'a b_c'],
    ['is a symbol in a font of symbols', cell(2, 'str', '\u00fc'), '✓'],
  ])('%s', async (_, cells, wanted) => {
    const sheet = `<worksheet xmlns="MAIN"><sheetData><row r="1">${cells}</row></sheetData></worksheet>`
    const strings = '<sst xmlns="MAIN"><si><t>a  b</t></si></sst>'
    const [, shown] = (await read('xlsx', workbook({ sheet, styles, strings }))).split('\n\n')
    expect(shown?.trim()).toBe(wanted.replace('  ', ' '))
  })
})

describe('a symbol character', () => {
  const inWord = async (run: string) =>
    (await read('docx', docx({ body: `<w:p><w:r>${run}</w:r></w:p>` }))).split('\n')[0]
  const font = (name: string) => `<w:rPr><w:rFonts w:ascii="${name}" w:hAnsi="${name}"/></w:rPr>`

  test.each([
    ['<w:sym w:font="Wingdings" w:char="F0FC"/>', '✓'],
    ['<w:sym w:font="Wingdings" w:char="00FC"/>', '✓'],
    ['<w:sym w:font="Wingdings" w:char="F0E0"/>', '🡪'],
    ['<w:sym w:font="Symbol" w:char="F061"/>', 'α'],
    ['<w:sym w:font="Arial" w:char="2713"/>', '✓'],
    ['<w:sym w:font="Unknown Dingbats" w:char="F061"/>', '\ufffd'],
    [`${font('Wingdings')}<w:t>\u00fc</w:t>`, '✓'],
    [`${font('Wingdings')}<w:t>\uf0fc</w:t>`, '✓'],
    [`${font('Arial')}<w:t>ü</w:t>`, 'ü'],
  ])('of a Word document is the visible character, or U+FFFD if its font is unknown: %s', async (run, wanted) => {
    expect(await inWord(run)).toBe(wanted)
  })

  test('of a presentation is the visible character', async () => {
    const run = (properties: string, text: string) => `<a:r><a:rPr>${properties}</a:rPr><a:t>${text}</a:t></a:r>`
    const sign = '<a:latin typeface="Arial"/><a:sym typeface="Wingdings"/>'
    const runs = run(sign, '\u00e0') + run(sign, ' là') + run('<a:latin typeface="Wingdings"/>', 'J') + run('', 'J')
    const bytes = replaced(pptx, [/<a:r><a:t>自由な文字<\/a:t><\/a:r>/, runs])
    expect(await read('pptx', bytes)).toContain('🡪 là☺J')
  })
})

test('footers and dates of slides are read once, slide numbers are not', async () => {
  const shape = (type: string, text: string) =>
    `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${type}"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`
  const shapes = ['dt', 'ftr', 'sldNum'].map((type) => shape(type, `the ${type}`)).join('')
  const text = await read('pptx', replaced(pptx, [/<\/p:spTree>/, `${shapes}</p:spTree>`]))
  expect(text.match(/the \w+/g)).toEqual(['the dt', 'the ftr'])
  const notes = await read(
    'pptx',
    replaced(pptx, [/<\/p:spTree><\/p:cSld><\/p:notes>/, `${shape('hdr', 'the hdr')}$&`]),
  )
  expect(notes).toContain('Notes\n\nここで雨の音を流す。\n\nthe hdr\n')
})

test('a sheet of macros that names no part is left out, and a sheet whose part is missing gives an error', async () => {
  const module = '<sheet name="Module" sheetId="2" r:id=""/></sheets>'
  const text = await read('xlsx', replaced(xlsx, [/<\/sheets>/, module]))
  expect(text).toBe(await read('xlsx', xlsx()))
  await expect(read('xlsx', replaced(xlsx, [/<\/sheets>/, module.replace('""', '"rId9"')]))).rejects.toThrow(
    'a sheet that it lists is missing',
  )
})

describe('a document within a Word document', () => {
  const chunk = async (name: string, data: string | Buffer) =>
    read('docx', replacedEntries(docx({ body: `${p('before')}<w:altChunk r:id="c1"/>${p('after')}` }), name, data))

  const replacedEntries = (bytes: Buffer, name: string, data: string | Buffer) =>
    zip([
      ...entriesOf(bytes).map((entry) =>
        entry.name === 'word/_rels/document.xml.rels'
          ? { ...entry, data: relationships([['c1', 'aFChunk', name]]) }
          : entry,
      ),
      { name: `word/${name}`, data },
    ])

  test.each<[string, string | Buffer, string]>([
    ['chunk.html', '<html><body><h1>Title</h1><p>in HTML</p></body></html>', 'Title\n\nin HTML'],
    ['chunk.docx', docx({ body: p('in Word') }), 'in Word\n\n[2] 脚注の文。'],
    ['chunk.txt', 'one\r\ntwo', 'one\ntwo'],
    ['chunk.rtf', '{\\rtf1 in rich text}', 'in rich text'],
    [
      'chunk.mht',
      'MIME-Version: 1.0\r\n\r\nhidden',
      '[A part of the document is left out: its format, MHTML, is not supported.]',
    ],
  ])('is read at its place: %s', async (name, data, wanted) => {
    expect(await chunk(name, data)).toBe(`before\n\n${wanted}\n\nafter\n`)
  })

  test('that is missing is an error', async () => {
    await expect(read('docx', docx({ body: '<w:altChunk r:id="c1"/>' }))).rejects.toMatchObject({
      message: expect.stringContaining('a part that it refers to is missing'),
      detail: { reason: 'unreadable' },
    })
  })
})

test('the alternative text of a picture in a Word document stands apart from the words around it, and is not the path of a file', async () => {
  const picture = (descr: string) => `<w:drawing><wp:inline><wp:docPr id="1" descr="${descr}"/></wp:inline></w:drawing>`
  const body = (descr: string) =>
    `<w:p><w:r><w:t>before</w:t></w:r><w:r>${picture(descr)}</w:r><w:r><w:t>after</w:t></w:r></w:p>`
  const shown = async (descr: string) => (await read('docx', docx({ body: body(descr) }))).split('\n')[0]
  expect(await shown('A cat')).toBe('before A cat after')
  expect(await shown('')).toBe('beforeafter')
  for (const path of ['C:\\Users\\me\\cat.jpg', 'd:/cat.jpg', '\\\\server\\share\\cat.jpg', 'file:///home/me/cat.jpg'])
    expect(await shown(path)).toBe('beforeafter')
})
