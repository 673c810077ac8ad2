import { describe, expect, test } from 'vitest'
import { type DocumentFormat, documentFormatOf, type ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { docx, html, pptx, xlsx } from '../fixtures/documents/office.ts'
import { flatDocument, openDocument } from '../fixtures/documents/open-document.ts'

const limits = { characters: 200_000, unpacked: 20_000_000 }
const read = async (bytes: Uint8Array, form: ReadingForm = 'text', format: DocumentFormat = 'odf') =>
  (await readDocument({ format, form, bytes, limits })).text

const styles =
  '<style:style style:name="P1" style:parent-style-name="Title"/>' +
  '<text:list-style style:name="L1"><text:list-level-style-number text:level="1"/><text:list-level-style-bullet text:level="2"/></text:list-style>'
const item = (text: string, inner = '') => `<text:list-item><text:p>${text}</text:p>${inner}</text:list-item>`
const body = [
  '<text:tracked-changes><text:deletion><text:p>消した文。</text:p></text:deletion></text:tracked-changes>',
  '<text:p text:style-name="P1">引き出しの設計書</text:p>',
  '<text:h text:outline-level="2">第一章<text:s text:c="2"/>はじめに</text:h>',
  '<text:p>この文書は、<text:ruby><text:ruby-base>引</text:ruby-base><text:ruby-text>ひ</text:ruby-text></text:ruby>き出しを\n   説明する。' +
    '<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>脚注の文。</text:p></text:note-body></text:note></text:p>',
  `<text:list text:style-name="L1">${item('最初', `<text:list>${item('中')}</text:list>`)}${item('次')}</text:list>`,
  '<table:table><table:table-row><table:table-cell><text:p>項目</text:p></table:table-cell><table:table-cell><text:p>六月から</text:p><text:p>七月まで</text:p></table:table-cell></table:table-row></table:table>',
  '<text:p>詳しくは <text:a xlink:href="https://example.org/">公式の頁</text:a> を<text:line-break/>見よ。<office:annotation><text:p>注釈</text:p></office:annotation></text:p>',
  '<text:p><draw:frame><svg:desc>図の説明</svg:desc><draw:text-box><text:p>箱の中</text:p></draw:text-box></draw:frame></text:p>',
].join('')

describe('an OpenDocument text', () => {
  test('is read as text: headings, lists, tables, notes, boxes; not deletions, comments or pronunciation', async () => {
    expect(await read(openDocument('text', body, { styles }))).toBe(
      [
        '引き出しの設計書\n',
        '第一章 はじめに\n',
        'この文書は、引き出しを 説明する。[1]\n',
        '1. 最初',
        '  - 中',
        '2. 次\n',
        '項目\t六月から 七月まで\n',
        '詳しくは 公式の頁 を',
        '見よ。\n',
        '箱の中\n',
        '図の説明\n',
        '[1] 脚注の文。\n',
      ].join('\n'),
    )
  })

  test('is read as Markdown with its headings, tables and links', async () => {
    const text = await read(openDocument('text', body, { styles }), 'markdown')
    expect(text).toContain('# 引き出しの設計書\n\n## 第一章 はじめに\n')
    expect(text).toContain('| 項目 | 六月から 七月まで |\n| --- | --- |\n')
    expect(text).toContain('詳しくは [公式の頁](<https://example.org/>) を\\\n見よ。')
    expect(text).toContain('![図の説明]()')
  })

  test('ignores invalid levels and counts of spaces, and is refused if counts of spaces make a paragraph endless', async () => {
    const odd =
      '<text:h text:outline-level="-5">a<text:s text:c="-5"/>b</text:h><text:p>c<text:s text:c="x"/>d</text:p>'
    expect(await read(openDocument('text', odd), 'markdown')).toBe('# a b\n\nc d\n')
    const endless = `<text:p>a${'<text:s text:c="1000"/>'.repeat(300)}b</text:p>`
    await expect(read(openDocument('text', endless))).rejects.toMatchObject({ kind: 'too-large' })
  })

  test('is read also if it is one XML file, or has a formula that is an object of the package', async () => {
    expect(await read(flatDocument('text', '<text:p>平らな文書</text:p>'))).toBe('平らな文書\n')
    const formula = openDocument('text', '<text:p>式 <draw:object xlink:href="./Object 1"/></text:p>', {
      manifest:
        '<manifest:file-entry manifest:full-path="Object 1/" manifest:media-type="application/vnd.oasis.opendocument.formula"/>',
      more: [
        {
          name: 'Object 1/content.xml',
          data: '<math:math xmlns:math="http://www.w3.org/1998/Math/MathML"><math:semantics><math:mi>E</math:mi><math:mo>=</math:mo><math:mi>m</math:mi><math:annotation encoding="StarMath 5.0">E = m</math:annotation></math:semantics></math:math>',
        },
      ],
    })
    expect(await read(formula)).toBe('式 E = m\n')
  })

  test('that is encrypted, empty or another file is refused with its reason', async () => {
    const encrypted = openDocument('text', body, {
      manifest:
        '<manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry>',
    })
    await expect(read(encrypted)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('encrypted'),
      detail: { reason: 'withheld' },
    })
    await expect(read(openDocument('text', ''))).rejects.toMatchObject({
      message: expect.stringContaining('contains no text'),
      detail: { reason: 'unreadable' },
    })
    await expect(read(Buffer.from('words'))).rejects.toMatchObject({
      message: expect.stringContaining('damaged'),
      detail: { reason: 'unreadable' },
    })
  })
})

describe('an OpenDocument spreadsheet', () => {
  const cell = (text: string, attributes = '') =>
    `<table:table-cell ${attributes}><text:p>${text}</text:p></table:table-cell>`
  const date = (value: string) => cell('04.06.24', `office:value-type="date" office:date-value="${value}"`)

  test('is read as tables of the shown values, with dates in ISO 8601 and repeated cells in their places', async () => {
    const sheet = [
      `<table:table table:name="売上"><table:table-row>${cell('名前')}<table:table-cell table:number-columns-repeated="2"/>${cell('値')}<table:table-cell table:number-columns-repeated="16380"/></table:table-row>`,
      `<table:table-row table:number-rows-repeated="2">${cell('1,50', 'table:number-columns-repeated="2" office:value-type="float" office:value="1.5"')}${date('2024-06-04')}${date('2024-06-04T18:00:00')}</table:table-row>`,
      '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>',
      '<table:table-row><table:table-cell office:value-type="float" office:value="42"/></table:table-row></table:table>',
    ].join('')
    const bytes = openDocument('spreadsheet', sheet)
    expect(await read(bytes)).toBe(
      '売上\n\n名前\t\t\t値\n1,50\t1,50\t2024-06-04\t2024-06-04 18:00\n1,50\t1,50\t2024-06-04\t2024-06-04 18:00\n\n42\n',
    )
    expect((await readDocument({ format: 'odf', form: 'text', bytes, limits })).parts).toBe(1)
  })

  test('whose cells and rows are repeated endlessly is refused', async () => {
    const bomb = `<table:table><table:table-row table:number-rows-repeated="999999999">${cell('x', 'table:number-columns-repeated="999999999"')}</table:table-row></table:table>`
    await expect(read(openDocument('spreadsheet', bomb))).rejects.toMatchObject({ kind: 'too-large' })
  })
})

test('an OpenDocument presentation is read slide by slide, with titles, lists and notes', async () => {
  const frame = (kind: string, text: string) =>
    `<draw:frame presentation:class="${kind}"><draw:text-box>${text}</draw:text-box></draw:frame>`
  const slides = [
    `<draw:page>${frame('outline', `<text:list>${item('一')}${item('二')}</text:list>`)}${frame('title', '<text:p>梅雨の<text:span>話</text:span></text:p>')}${frame('page-number', '<text:p>1</text:p>')}` +
      `<presentation:notes>${frame('notes', '<text:p>覚え書き</text:p>')}</presentation:notes></draw:page>`,
    '<draw:page><draw:custom-shape><text:p>形の中</text:p></draw:custom-shape></draw:page>',
  ].join('')
  expect(await read(openDocument('presentation', slides), 'markdown')).toBe(
    '# Slide 1: 梅雨の話\n\n- 一\n- 二\n\n## Notes\n\n覚え書き\n\n# Slide 2\n\n形の中\n',
  )
})

describe('a document under the name of another format', () => {
  test('is read by its content', async () => {
    const odt = openDocument('text', '<text:p>中身</text:p>')
    for (const [bytes, format] of [
      [docx(), 'docx'],
      [xlsx(), 'xlsx'],
      [pptx(), 'pptx'],
      [odt, 'odf'],
      [Buffer.from(html), 'html'],
    ] as const)
      for (const named of ['docx', 'xlsx', 'pptx', 'odf'] as const)
        expect(await read(bytes, 'text', named)).toBe(await read(bytes, 'text', format))
  })

  test('is read as plain text if it is a table that was exported with the name of a workbook', async () => {
    expect(await read(Buffer.from('名前,値\n梅雨,6\n'), 'text', 'xlsx')).toBe('名前,値\n梅雨,6\n')
    for (const before of ['', '\ufeff', '<?xml version="1.0"?>\n', '<!-- exported -->\n'])
      expect(await read(Buffer.from(`${before}<table><tr><td>梅雨</td></tr></table>`), 'text', 'xlsx')).toBe('梅雨\n')
    await expect(read(Buffer.from('words'), 'text', 'docx')).rejects.toMatchObject({
      message: expect.stringContaining('damaged'),
      detail: { reason: 'unreadable' },
    })
  })

  test('is first taken for the format of its extension or type, also for templates and OpenDocument files', () => {
    for (const [name, format] of [
      ['a.dotm', 'docx'],
      ['a.xltm', 'xlsx'],
      ['a.ppsm', 'pptx'],
      ['a.POTM', 'pptx'],
      ['a.potx', 'pptx'],
      ['a.odt', 'odf'],
      ['a.ods', 'odf'],
      ['a.odp', 'odf'],
      ['a.fodt', 'odf'],
    ] as const)
      expect(documentFormatOf(name, undefined)).toBe(format)
    expect(documentFormatOf('', 'application/vnd.ms-word.template.macroenabled.12')).toBe('docx')
    expect(documentFormatOf('', 'application/vnd.oasis.opendocument.text; charset=binary')).toBe('odf')
  })
})
