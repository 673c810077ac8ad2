import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Content, Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { type DocumentFormat, documentFormatOf, type ReadingForm } from '../../src/readings/formats.ts'
import { formatNumber, numberKindOf } from '../../src/readings/number-formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { createDocumentWriter } from '../../src/readings/writer.ts'
import { columnIndex } from '../../src/readings/xlsx.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { decoded, encodingKey } from '../../src/wrap/decoded.ts'
import { readable, readingKey } from '../../src/wrap/readable.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { c, docx, html, p, pptx, xlsx } from '../fixtures/documents/office.ts'
import { encryptedPdf, japanesePdf } from '../fixtures/documents/pdf.ts'
import { encode } from '../fixtures/documents/sentences.ts'
import { createFolder, type Folder, readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

const limits = { characters: 1_000_000, unpacked: 100_000_000 }
const read = async (format: DocumentFormat, form: ReadingForm, bytes: Uint8Array) =>
  (await readDocument({ format, form, bytes, limits })).text

describe('a Word document', () => {
  test('is read as text: headings, lists, tables, notes; not deleted text or pronunciation', async () => {
    expect(await read('docx', 'text', docx())).toBe(
      [
        '引き出しの設計書\n',
        '第一章　はじめに\n',
        'この文書は、引き出しを説明する。足した文。[2]\n',
        '- りんご',
        '  - ふじ',
        '- みかん',
        '1. 最初の手順',
        '2. 次の手順\n',
        '項目\t値',
        '梅雨|期間\t六月から 七月まで\n',
        '詳しくは公式の頁を見よ。\n',
        '一行目',
        '二行目\tsnake_case\n',
        '[2] 脚注の文。\n',
      ].join('\n'),
    )
  })

  test('is read as Markdown, in which its text is escaped', async () => {
    const text = await read('docx', 'markdown', docx())
    expect(text).toContain('# 引き出しの設計書\n\n# 第一章　はじめに\n')
    expect(text).toContain('| 項目 | 値 |\n| --- | --- |\n| 梅雨\\|期間 | 六月から 七月まで |\n')
    expect(text).toContain('詳しくは[公式の頁](<https://example.org/引き出し?a=1&b=(2)>)を見よ。')
    expect(text).toContain('一行目\\\n二行目\tsnake\\_case')
    expect(
      await read(
        'docx',
        'markdown',
        docx({ body: p('# 見出しではない') + p('1. 番号ではない') + p('- *印* &lt;b&gt;') }),
      ),
    ).toBe('\\# 見出しではない\n\n\\1. 番号ではない\n\n\\- \\*印\\* \\<b\\>\n\n[2] 脚注の文。\n')
  })

  test('is read with its text in boxes once', async () => {
    const box = (text: string) => `<w:txbxContent>${p(text)}</w:txbxContent>`
    const alternate = `<w:p><w:r><mc:AlternateContent><mc:Choice>${box('箱の中')}</mc:Choice><mc:Fallback>${box('箱の中')}</mc:Fallback></mc:AlternateContent></w:r></w:p>`
    expect(await read('docx', 'text', docx({ body: alternate }))).toBe('箱の中\n\n[2] 脚注の文。\n')
  })
})

describe('an Excel workbook', () => {
  test('is read as tables of the shown values: dates, percentages, results of formulas', async () => {
    expect(await read('xlsx', 'text', xlsx())).toBe(
      [
        '売上（六月）\n',
        '名前\t日付\t\t割合',
        '引き出し|A\t2024-06-04\t0.3\t12.50%',
        'TRUE\t2024-06-04 18:00\t#N/A\t42\n',
        '別の表\t36:00:00\n',
      ].join('\n'),
    )
    expect(await read('xlsx', 'markdown', xlsx())).toContain(
      '# 売上（六月）\n\n| 名前 | 日付 |  | 割合 |\n| --- | --- | --- | --- |\n',
    )
  })

  test('is read with dates counted from 1904 if it says so', async () => {
    const days = [1, 2_957_003, 2_957_004].map((day, at) => c(`${'BCD'[at]}1`, day, 'n', 1)).join('')
    const rows = `<row r="1">${c('A1', 0.5, 'n', 3)}${days}</row>`
    expect(await read('xlsx', 'text', xlsx({ rows, since1904: true }))).toBe(
      '売上（六月）\n\n12:00\t1904-01-02\t9999-12-31\t2957004\n',
    )
  })

  test.each<[string, string | undefined, string, string]>([
    ['14', undefined, '45447', '2024-06-04'],
    ['14', undefined, '1', '1900-01-01'],
    ['14', undefined, '61', '1900-03-01'],
    ['22', undefined, '45447.999999', '2024-06-05'],
    ['0', undefined, '0.30000000000000004', '0.3'],
    ['0', undefined, '1.0E+20', '100000000000000000000'],
    ['9', undefined, '0.07', '7%'],
    ['46', undefined, '-1.25', '-30:00:00'],
    ['180', 'yyyy"年"m"月"d"日"', '45447', '2024-06-04'],
    ['180', '[$-411]ge.m.d', '45447', '2024-06-04'],
    ['180', 'G/標準', '45447', '45447'],
    ['180', 'General', '45447', '45447'],
    ['180', '#,##0"円";[Red]-#,##0"円"', '45447', '45,447円'],
    ['180', '#,##0"円";[Red]-#,##0"円"', '-45447', '-45,447円'],
    ['180', '00000', '1234', '01234'],
    ['180', '000\\-00\\-0000', '12345678', '012-34-5678'],
    ['180', '"No. "0', '7', 'No. 7'],
    ['180', '[<=9999999]###\\-####;\\(###\\) ###\\-####', '5551234567', '(555) 123-4567'],
    ['180', '_($* #,##0.00_);_($* \\(#,##0.00\\);_($* "-"??_);_(@_)', '-1234.5', '$(1,234.50)'],
    ['180', '0.0;[Red]-0.0;"zero"', '0', 'zero'],
    ['180', '# ?/?', '1.25', '1 1/4'],
    ['180', '[$€-407] #,##0.00', '1234.5', '€ 1,234.50'],
    ['180', '#,##0.00 [$kr.-406]', '1234.5', '1,234.50 kr.'],
    ['180', '[Red][DBNum1]0', '5', '5'],
    ['180', ';;;', '5', '5'],
    ['180', '#', '0', '0'],
    ['180', '0"x', '5', '5'],
    ['180', '[mm]:ss', '0.5', '12:00:00'],
    ['3', undefined, '1234567.4', '1,234,567'],
    ['12', undefined, '0.5', '1/2'],
    ['37', undefined, '-5', '(5)'],
    ['60', undefined, '5', '5.00'],
    ['71', undefined, '45447', '2024-06-04'],
    ['11', undefined, '45447', '45447'],
    ['49', undefined, '45447', '45447'],
    ['180', '0.00E+00', '45447', '45447'],
    ['180', '[$¥-411]#,##0', '45447', '¥45,447'],
    ['180', 'h:mm AM/PM', '0.75', '18:00'],
    ['180', '0.0%', '0.125', '12.5%'],
    ['180', '\\d0', '5', 'd5'],
    ['14', undefined, '-5', '-5'],
    ['14', undefined, 'text', 'text'],
  ])('shows a number by its format, with dates in ISO 8601 (%s, %s): %s is %s', (id, code, value, wanted) => {
    expect(formatNumber(value, numberKindOf(Number(id), code), false)).toBe(wanted)
  })

  test('is read with its columns found by their letters, from A to XFD', () => {
    expect(['A1', 'Z9', 'AA1', 'XFD1', 'XFE1', 'ZZZZ1', '', '1'].map(columnIndex)).toEqual([
      0,
      25,
      26,
      16_383,
      ...new Array(4).fill(undefined),
    ])
  })
})

describe('a PowerPoint presentation', () => {
  test('is read slide by slide, in its order, with its notes', async () => {
    expect(await read('pptx', 'markdown', pptx())).toBe(
      [
        '# Slide 1: 梅雨の話\n',
        '- 要点その一',
        '  - 細かい点',
        '- 要点その二\n',
        '自由な文字\n',
        '## Notes\n',
        'ここで雨の音を流す。\n',
        '# Slide 2: まとめ\n',
        '| 月 | 雨量 |',
        '| --- | --- |',
        '| 六月 | 185 |\n',
      ].join('\n'),
    )
    expect(await readDocument({ format: 'pptx', form: 'text', bytes: pptx(), limits })).toMatchObject({ parts: 2 })
  })
})

describe('a page of HTML', () => {
  test('is read as its visible text', async () => {
    expect(await read('html', 'text', Buffer.from(html))).toBe(
      [
        '第一章 はじめに\n',
        'この頁は、引き出しを説明する。大事な設定_値は手引きにある。',
        '次の行。\n',
        '- りんご',
        '  - ふじ',
        '- みかん',
        '  - 続き\n',
        '3. 三番',
        '4. 四番\n',
        '項目\t値',
        '梅雨|期間\t六月から 七月まで\n',
        '一行目',
        '  二行目 *そのまま*\n',
        '引用の文。\n',
        '押すな図の説明\n',
        '1. 番号ではない\n',
      ].join('\n'),
    )
  })

  test('is read as Markdown, without scripts', async () => {
    const reading = await readDocument({ format: 'html', form: 'markdown', bytes: Buffer.from(html), limits })
    expect(reading.title).toBe('引き出し & 資料')
    expect(reading.text).toContain('**大事**な`設定_値`は[手引き](<guide.html#top>)にある。\\\n次の行。')
    expect(reading.text).toContain('```\n一行目\n  二行目 *そのまま*\n```\n\n> 引用の文。\n')
    expect(reading.text).toContain('押すな![図の説明]()')
    expect(reading.text).not.toMatch(/javascript|alert|color: red/)
  })

  test.each<[string, string]>([
    ['<p>a</p>b<p>c', 'a\n\nb\n\nc\n'],
    ['<td>lost<td>cells', 'lost\n\ncells\n'],
    ['<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>', 'a b c\td\n'],
    [
      '<table><tr><td><h2>Total</h2>12</td><td><pre>x</pre>y</td><td><p>a</p>b</td></tr></table>',
      'Total 12\tx y\ta b\n',
    ],
    ['<table><tr><td>a<h6>b</h6><b>c</b><td><pre>d\n <pre>e</pre>f</pre>g</table>', 'a b c\td e f g\n'],
    ['<ul><li>a</ul></ul></li></div>b', '- a\n\nb\n'],
    ['<pre>a<pre>b</pre>c</pre>d', 'a\n\nbc\n\nd\n'],
    ['<ruby>漢<rt>かん</rt></ruby>字', '漢字\n'],
    ['日本<br>語\n日本\n  語 and\nmore', '日本\n語日本語 and more\n'],
    ['<b>a', 'a\n'],
    ['<title>t</title><p>', ''],
    ['&#x0;&lt;&amp;lt;&#x1F431;', '\ufffd<&lt;🐱\n'],
    ['<svg><text>s</text></svg>a<!-- c --><![CDATA[d]]>', 's\n\na\n'],
    ['', ''],
  ])('is read even if it is malformed: %j', async (source, wanted) => {
    expect(await read('html', 'text', Buffer.from(source || ' '))).toBe(wanted)
  })

  test('is decoded in the encoding that it declares', async () => {
    const page = '<meta charset="shift_jis"><p>梅雨</p>'
    expect(await read('html', 'text', encode(page, 'shift_jis'))).toBe('梅雨\n')
  })
})

describe('a PDF', () => {
  test.each(['90ms-RKSJ-H', 'EUC-H', 'UniJIS-UTF16-H'] as const)(
    'is read page by page, also without its fonts: %s',
    async (coding) => {
      const pdf = japanesePdf([['引き出しの設計書', '梅雨は六月から'], ['二頁目']], coding)
      expect(await read('pdf', 'text', pdf)).toBe('Page 1\n\n引き出しの設計書\n梅雨は六月から\n\nPage 2\n\n二頁目\n')
    },
  )

  test('without text, with a password or with invalid contents is refused with its reason', async () => {
    await expect(read('pdf', 'text', japanesePdf([[]]))).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('contains no text'),
      detail: { reason: 'unreadable' },
    })
    await expect(read('pdf', 'text', encryptedPdf('秘密'))).rejects.toMatchObject({
      message: expect.stringContaining('encrypted'),
      detail: { reason: 'withheld' },
    })
    await expect(read('pdf', 'text', Buffer.from('%PDF-1.7 nothing'))).rejects.toMatchObject({
      message: expect.stringContaining('not a valid PDF'),
      detail: { reason: 'unreadable' },
    })
  })
})

test('the format of a document is detected by its name, or else by its type', () => {
  const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
  expect(
    [
      ['a.PDF', undefined],
      ['a', 'application/pdf; x=1'],
      ['a.txt', word],
      ['a.docx', 'application/zip'],
      ['a.html', 'text/plain'],
      ['a.md', 'text/markdown'],
      ['constructor', 'toString'],
      ['a.__proto__', '__proto__'],
    ].map(([path = '', type]) => documentFormatOf(path, type)),
  ).toEqual(['pdf', 'pdf', 'docx', 'docx', 'html', undefined, undefined, undefined])
})

test('the writer of the text of a document throws at its limit of characters', () => {
  const writer = createDocumentWriter('text', 100)
  expect(() => {
    for (;;) writer.paragraph('十文字の文を書くよ。')
  }).toThrow(/more than 100 characters/)
})

describe('readings of files', () => {
  let folder: Folder
  let provider: Provider

  beforeAll(async () => {
    folder = createFolder()
    folder.write({
      '設計書.docx': docx(),
      '表.xlsx': xlsx(),
      '発表.pptx': pptx(),
      '頁.html': html,
      '古い頁.htm': encode('<title>古い</title><p>設定ファイルを変更した後は、再起動する。</p>', 'euc-jp'),
      '資料.pdf': japanesePdf(Array.from({ length: 30 }, (_, i) => [`第${i + 1}頁の文。`])),
      noname: japanesePdf([['名の無い文書。']]),
      '覚書.md': '# 覚書\n\n本文。\n',
      'sjis.txt': encode('設定ファイルを変更した後は、再起動する。\n', 'shift_jis'),
      'data.bin': Uint8Array.of(1, 0, 2),
      'wrong.docx': 'no zip archive',
    })
    provider = readable(decoded(await files({ root: folder.root })))
  })
  afterAll(async () => {
    await provider.close?.()
    folder.remove()
  })

  const as = (path: string, form: string, more: Readonly<Record<string, string>> = {}) =>
    readOne(provider, path, { params: { as: form, ...more } })
  const textOf = (content: Content) => ('text' in content ? content.text : '(bytes)')

  test('are additional forms of documents: each document is unchanged, and lists its forms', async () => {
    const original = await readOne(provider, '設計書.docx')
    expect(original).toHaveProperty('bytes')
    expect(original.meta?.[readingKey]).toEqual({ forms: ['text', 'markdown'] })
    expect((await readOne(provider, '資料.pdf')).meta?.[readingKey]).toEqual({ forms: ['text'] })
    expect((await readOne(provider, '覚書.md')).meta).toBeUndefined()
    const reading = await as('設計書.docx', 'markdown')
    expect(textOf(reading)).toContain('# 第一章　はじめに')
    expect(reading).toMatchObject({
      mimeType: 'text/markdown',
      version: original.version,
      size: Buffer.byteLength(textOf(reading)),
      meta: { [readingKey]: { of: expect.stringContaining('wordprocessingml') } },
    })
  })

  test('exist for each format, by its name or by its bytes', async () => {
    const found = await Promise.all(
      ['表.xlsx', '発表.pptx', '頁.html', '資料.pdf', 'noname'].map(async (path) => textOf(await as(path, 'text'))),
    )
    for (const [i, wanted] of [
      '引き出し|A\t2024-06-04',
      'Slide 1: 梅雨の話',
      '引き出しを説明する。',
      'Page 30\n\n第30頁の文。',
      '名の無い文書。',
    ].entries())
      expect(found[i]).toContain(wanted)
    expect((await as('資料.pdf', 'text')).meta?.[readingKey]).toEqual({ of: 'application/pdf', parts: 30 })
  })

  test('of a page in another encoding are made from its decoded text', async () => {
    const reading = await as('古い頁.htm', 'text')
    expect(textOf(reading)).toBe('設定ファイルを変更した後は、再起動する。\n')
    expect(reading).toMatchObject({ title: '古い', meta: { [encodingKey]: 'euc-jp' } })
  })

  test('of a plain text, in UTF-8 or Shift_JIS, are that text', async () => {
    for (const form of ['text', 'markdown']) expect(textOf(await as('覚書.md', form))).toBe('# 覚書\n\n本文。\n')
    expect(textOf(await as('sjis.txt', 'text'))).toBe('設定ファイルを変更した後は、再起動する。\n')
  })

  test('in an unsupported form, and of a damaged or absent file, are refused with the reason', async () => {
    const refusal = (path: string, form: string) =>
      as(path, form).catch(({ kind, detail, message }) => `${kind} ${detail.reason}: ${message}`)
    expect(await refusal('設計書.docx', 'html')).toMatch(/^invalid parameter: .*\?as=text/)
    expect(await refusal('資料.pdf', 'markdown')).toMatch(/^invalid parameter: .*\?as=text/)
    expect(await refusal('sjis.txt', 'markdown')).toMatch(/^invalid parameter:/)
    expect(await refusal('data.bin', 'text')).toMatch(/^invalid parameter:/)
    expect(await refusal('wrong.docx', 'text')).toMatch(/^invalid unreadable: .*zip/)
    expect(await refusal('nothing.docx', 'text')).toMatch(/^not-found/)
  })

  test('can be read in parts, by lines or bytes', async () => {
    const parted = sliced(provider)
    const lines = await readOne(parted, '資料.pdf', { params: { as: 'text', lines: '5-7' } })
    expect(textOf(lines)).toBe('Page 2\n\n第2頁の文。\n')
    const bytes = await readOne(parted, '資料.pdf', { params: { as: 'text', bytes: '0-5' } })
    expect(textOf(bytes)).toBe('Page 1')
  })

  test('are made once for each version', async () => {
    let reads = 0
    const source = memory({ 'a.html': { text: '<p>一</p>', version: '1', mimeType: 'text/html' } })
    const counting: Provider = {
      ...source,
      read: (request, context) => {
        reads++
        return source.read(request, context)
      },
    }
    const wrapped = readable(counting)
    const readAgain = async () => textOf(await readOne(wrapped, 'a.html', { params: { as: 'text' } }))
    expect([await readAgain(), await readAgain(), reads]).toEqual(['一\n', '一\n', 1])
    source.entries.set('a.html', { text: '<p>二</p>', version: '2', mimeType: 'text/html' })
    expect([await readAgain(), reads]).toEqual(['二\n', 2])
    await wrapped.close?.()
  })
})

describeProvider(
  { describe, test },
  'the wrapper readable over files',
  async () => {
    const made = createFolder()
    const held = { '設計書.docx': docx(), '覚書.md': '# 覚書\n', '資料.pdf': japanesePdf([['梅雨']]), '頁.html': html }
    made.write(held)
    return {
      provider: readable(await files({ root: made.root })),
      expectation: {
        entries: Object.fromEntries(
          Object.entries(held).map(([path, held]) => [
            path,
            typeof held === 'string' ? { text: held } : { bytes: held },
          ]),
        ),
      },
      dispose: made.remove,
    }
  },
  { through: { sliced } },
)
