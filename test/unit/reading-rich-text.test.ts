import { describe, expect, test } from 'vitest'
import { type DocumentFormat, documentFormatOf, type ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { documents } from '../../src/wrap/documents.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { docx, html, p } from '../fixtures/documents/office.ts'
import { encode } from '../fixtures/documents/sentences.ts'
import { readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'
import { volumeOf } from '../support/volume.ts'

const limits = { characters: 200_000, unpacked: 20_000_000 }
const readBytes = async (bytes: Uint8Array, form: ReadingForm = 'text', format: DocumentFormat = 'rtf') =>
  (await readDocument({ format, form, bytes, limits })).text
const read = (body: string, form: ReadingForm = 'text', head = '\\ansi\\ansicpg1252\\deff0') =>
  readBytes(Buffer.from(`{\\rtf1${head}\n${body}}`, 'latin1'), form)

/** The bytes of a text in an encoding, each as `\'hh`. */
const escaped = (text: string, encoding: string) => encode(text, encoding).toString('hex').replace(/../g, "\\'$&")
/** A text as words `\u`, each with a character for old readers. */
const unicode = (text: string) =>
  Array.from({ length: text.length }, (_, i) => `\\u${(text.charCodeAt(i) << 16) >> 16}?`).join('')

const head =
  '\\ansi\\ansicpg1252\\deff0{\\fonttbl{\\f0\\fnil\\fcharset0 Arial;}{\\f1\\fnil\\fcharset128 MS Mincho;}{\\f2\\fcharset2 Symbol;}}' +
  '{\\colortbl;\\red0\\green0\\blue0;}{\\stylesheet{\\s0 Normal;}{\\s1\\outlinelevel0 heading 1;}{\\s2 heading 2;}{\\s3 Title;}}' +
  '{\\info{\\title hidden title}}{\\header hidden header}{\\*\\generator hidden generator;}'

describe('a document in Rich Text Format', () => {
  const body =
    '\\pard\\s3 The plan\\par\\pard\\s1 First part\\par\\pard\\s2 In {\\b bold} words\\par' +
    '\\pard A line\\line and another {\\footnote\\pard A {\\i note}\\par of two lines.}here.\\par' +
    "{\\pntext\\f2\\'b7\\tab}\\pard one\\par{\\listtext 1.\\tab}\\pard\\ilvl0 first\\par{\\listtext b)\\tab}\\pard\\ilvl1 inner\\par" +
    '\\trowd\\cellx1\\cellx2\\pard\\intbl name\\cell two\\par lines\\cell\\row\\trowd\\pard\\intbl rain\\cell 6\\cell\\row' +
    '\\pard See {\\field{\\*\\fldinst{HYPERLINK "https://example.org/"}}{\\fldrslt the page}} now.\\par' +
    '{\\v hidden text}{\\deleted deleted text}{\\*\\unknown hidden}{\\pict\\wmetafile8 0123abcd}{\\pict\\bin3 }{}}Before ' +
    '{\\shp{\\*\\shpinst{\\sp{\\sn hidden}{\\sv hidden}}{\\shptxt\\pard in a box\\par}}{\\shprslt hidden}}after'

  test('is read as text: headings, lists, tables, notes, boxes; not hidden text, deleted text or data', async () => {
    expect(await read(body, 'text', head)).toBe(
      [
        'The plan\n',
        'First part\n',
        'In bold words\n',
        'A line',
        'and another [1]here.\n',
        '- one',
        '1. first',
        '  - b) inner\n',
        'name\ttwo lines',
        'rain\t6\n',
        'See the page now.\n',
        'in a box\n',
        'Before after\n',
        '[1] A note',
        'of two lines.\n',
      ].join('\n'),
    )
  })

  test('is read as Markdown with its headings, lists, tables and links', async () => {
    const text = await read(body, 'markdown', head)
    expect(text).toContain('# The plan\n\n# First part\n\n## In bold words\n\nA line\\\nand another \\[1\\]here.')
    expect(text).toContain('| name | two lines |\n| --- | --- |\n| rain | 6 |')
    expect(text).toContain('See [the page](<https://example.org/>) now.')
    expect(await read('\\pard\\outlinelevel1 Deep\\par\\pard a*b\\par', 'markdown')).toBe('## Deep\n\na\\*b\n')
  })

  test('keeps the order of the text in fields, boxes, nested tables and unterminated rows', async () => {
    expect(await read('a {\\field{\\*\\fldinst TOC}{\\fldrslt b\\par c}} d\\par e', 'markdown')).toBe(
      'a b\n\nc d\n\ne\n',
    )
    expect(await read('{\\field{\\*\\fldinst PAGE}{\\fldrslt 1}{\\fldrslt 2}} e')).toBe('12 e\n')
    expect(await read('\\trowd\\intbl a\\cell b\\par\\pard c\\par')).toBe('a\tb\n\nc\n')
    expect(
      await read(
        '\\trowd\\pard\\intbl a\\cell{\\pard\\intbl\\itap2 x\\nestcell y\\nestcell{\\*\\nesttableprops\\trowd\\nestrow}{\\nonesttables\\par}}b\\cell\\row',
      ),
    ).toBe('a\tx y b\n')
    expect(await read('\\trowd\\intbl a {\\shptxt\\pard box\\par}b\\cell c\\cell\\row')).toBe('box a b\tc\n')
  })

  test('has the characters that control words and escapes stand for', async () => {
    expect(
      await read("a\\tab b\\~c\\_d\\-e\\emdash f\\lquote g\\rquote  \\{h\\}\\\\\\'41\ti\r\nj\\\r\nk\\\nl\\zzz7 m"),
    ).toBe('a\tb\u00a0c\u2011de—f‘g’ {h}\\A\tij\n\nk\n\nlm\n')
    expect(await read('{\\loch\\f0\\*\\cs7 shown}')).toBe('shown\n')
    expect(await read('{\\mmath{\\*\\moMath{\\mr x}{\\mf{\\mfPr{\\mctrlPr hidden}}{\\mnum y}}}}')).toBe('xy\n')
  })
})

describe('the characters of a document in Rich Text Format', () => {
  const sentence = '設定ファイルを変更した後は、再起動する。'

  test.each([
    ['932', 'shift_jis', sentence],
    ['936', 'gbk', '修改配置文件以后，请重新启动服务。'],
    ['950', 'big5', '修改設定檔以後，請重新啟動服務。'],
    ['949', 'euc-kr', '설정 파일을 바꾼 뒤에는 다시 시작하십시오.'],
    ['1250', 'windows-1250', 'Příliš žluťoučký kůň'],
    ['1251', 'windows-1251', 'Съешь ещё этих булок'],
    ['1253', 'windows-1253', 'Γειά σου Κόσμε'],
    ['1254', 'windows-1254', 'Şu kılıçbalığı'],
    ['1255', 'windows-1255', 'שלום עולם'],
    ['1256', 'windows-1256', 'مرحبا بالعالم'],
    ['1257', 'windows-1257', 'Ąžuolėlis'],
    ['1258', 'windows-1258', 'đơn'],
    ['874', 'windows-874', 'สวัสดีชาวโลก'],
    ['437', 'cp437', 'Çüé ½'],
    ['850', 'cp850', 'Çüé Ð'],
    ['866', 'cp866', 'Привет'],
    ['10000', 'macroman', 'Çüé'],
    ['28592', 'iso-8859-2', 'Příliš'],
    ['65001', 'utf-8', sentence],
  ])('are decoded from its code page %s (%s)', async (codePage, encoding, text) => {
    const wanted = `${text}\n`
    const declared = `\\ansi\\ansicpg${codePage}`
    expect(await read(escaped(text, encoding), 'text', declared)).toBe(wanted)
    const raw = Buffer.concat([Buffer.from(`{\\rtf1${declared} `), encode(text, encoding), Buffer.from('}')])
    if (encoding !== 'shift_jis' && encoding !== 'big5' && encoding !== 'gbk') expect(await readBytes(raw)).toBe(wanted)
  })

  test.each([
    [128, 'shift_jis', sentence],
    [129, 'euc-kr', '설정'],
    [134, 'gbk', '配置文件'],
    [136, 'big5', '設定檔'],
    [161, 'windows-1253', 'Κόσμε'],
    [162, 'windows-1254', 'kılıç'],
    [177, 'windows-1255', 'שלום'],
    [178, 'windows-1256', 'مرحبا'],
    [186, 'windows-1257', 'Ąžuolėlis'],
    [204, 'windows-1251', 'Съешь'],
    [222, 'windows-874', 'สวัสดี'],
    [238, 'windows-1250', 'kůň'],
  ])('are decoded from the character set of their font: %i (%s)', async (charset, encoding, text) => {
    const fonts = `\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}{\\f7\\fnil\\fcharset${charset} Other;}}`
    const bytes = escaped(text, encoding)
    expect(await read(`\\'e9{\\f7 ${bytes}}\\'e9\\f7 ${bytes}\\plain \\'e9`, 'text', fonts)).toBe(`é${text}é${text}é\n`)
    expect(await read(`{\\rtlch\\af0\\ltrch\\loch\\af0\\dbch\\af7 ${bytes}}`, 'text', fonts)).toBe(`${text}\n`)
  })

  test('are decoded even if their second byte is a letter, a brace or a backslash', async () => {
    expect(await read("\\'83e\\'83X\\'83g \\'95\\\\\\'8e\\'a6", 'text', '\\ansi\\ansicpg932')).toBe('テスト 表示\n')
    expect(await read("\\'97\\\\\\'97\\}", 'text', '\\ansi\\ansicpg932')).toBe('予抑\n')
  })

  test('may be given as numbers, followed by ignored fallback characters', async () => {
    expect(await read(unicode(`${sentence}𠮷🙂`))).toBe(`${sentence}𠮷🙂\n`)
    expect(await read("\\uc2\\u24341\\'88\\'f8\\u12365\\'82\\'ab", 'text', '\\ansi\\ansicpg932')).toBe('引き\n')
    expect(await read('\\uc0\\u24341 \\u12365 x{\\uc3\\u12375 abc}\\u12391 y')).toBe('引きxしでy\n')
    expect(await read('\\u24341\\u12365\\tab ?\\u8212\\emdash -{\\u24341}abc')).toBe('引き?—-引abc\n')
    expect(await read('{\\upr{???}{\\*\\ud{\\uc0\\u24341 \\u12365 }}}')).toBe('引き\n')
    expect((await read('a\\u-10179?b')).isWellFormed()).toBe(true)
  })

  test('are read as symbols in a font of symbols', async () => {
    expect(await read("{\\f2 a\\'62\\u-3997?}a", 'text', head)).toBe('αβχa\n')
  })
})

describe('a file in Rich Text Format', () => {
  const text = '{\\rtf1 in rich text}'

  test('is recognized by its content, whatever its extension', async () => {
    for (const named of ['doc', 'docx', 'xlsx', 'odf', 'mail'] as const)
      expect(await readBytes(Buffer.from(text), 'text', named)).toBe('in rich text\n')
    expect(await readBytes(Buffer.from(`\ufeff\r\n${text}`), 'text', 'doc')).toBe('in rich text\n')
    expect(documentFormatOf('a.RTF', undefined)).toBe('rtf')
    expect(documentFormatOf('', 'text/rtf; charset=utf-8')).toBe('rtf')
    expect(documentFormatOf('', 'application/rtf')).toBe('rtf')
  })

  test('is told from other files named .doc: each is read by its content, and damaged Word 97 is refused', async () => {
    expect(await readBytes(docx({ body: p('中身') }), 'text', 'doc')).toContain('中身')
    expect(await readBytes(Buffer.from(html), 'text', 'doc')).toBe(await readBytes(Buffer.from(html), 'text', 'html'))
    expect(await readBytes(Buffer.from('plain words\n'), 'text', 'doc')).toBe('plain words\n')
    const old = Buffer.from('d0cf11e0a1b11ae1'.padEnd(2000, '0'), 'hex')
    await expect(readBytes(old, 'text', 'doc')).rejects.toMatchObject({
      kind: 'invalid',
      detail: { reason: 'unreadable' },
    })
  })

  test('is read even if it has no head, group by group', async () => {
    expect(await readBytes(Buffer.from('{\\pard \\ql one\\par}\n{\\pard {\\b two} words\\par}\n'))).toBe(
      'one\n\ntwo words\n',
    )
  })

  test('that is empty, another file, truncated or nested endlessly is refused, or read up to that point', async () => {
    await expect(readBytes(Buffer.from('words'))).rejects.toThrow('not an RTF file')
    await expect(read('{\\pict 0123}')).rejects.toThrow('contains no text')
    expect(await readBytes(Buffer.from('{\\rtf1 one\\par{\\b two'))).toBe('one\n\ntwo\n')
    expect(await readBytes(Buffer.from("{\\rtf1 one}\\par two}{\\'4"))).toBe('one\n')
    expect(await read("a\\'zz b\\bin99999999999 c")).toBe('azz b\n')
    await expect(read('{'.repeat(100_000))).rejects.toThrow('nested too deep')
    await expect(read('long '.repeat(50_000))).rejects.toMatchObject({ kind: 'too-large' })
  })

  test.each([
    ['{\\field{\\*\\fldinst x}{\\fldrslt y', 'nested too deep'],
    ['{\\shptxt{\\footnote ', 'nested too deep'],
    ['{\\*', 'nested too deep'],
    ["\\'", 'contains no text'],
    ['\\u', 'contains no text'],
    ['\\cell', 'contains no text'],
    ['{}', 'contains no text'],
    ['{\\field{\\*\\fldinst HYPERLINK x}{\\fldrslt }}', 'contains no text'],
    ['\\cell\\row', 'contains no text'],
    ['{\\footnote }', 'contains no text'],
    ["\\'e9\\b ", 'more than 200000 characters'],
  ])('that repeats %j over two million characters is refused: %s', async (part, message) => {
    await expect(read(part.repeat(2_000_000 / part.length))).rejects.toThrow(message)
    // The text before them is read.
    if (message === 'contains no text') expect(await read(`a ${part.repeat(2_000_000 / part.length)}`)).toMatch(/^a/)
  })

  test('with damaged parts is read as well-formed text, or refused as invalid', async () => {
    const good = Buffer.from(
      `{\\rtf1${head}${escaped('引き出し', 'shift_jis')}\\par{\\field{\\*\\fldinst{HYPERLINK "https://example.org/"}}{\\fldrslt {\\b page}}}\\trowd\\intbl a\\cell{\\footnote b\\par}\\cell\\row ${unicode('梅雨')}}`,
    )
    const pieces = [
      '{',
      '}',
      '\\',
      "\\'",
      '\\u-1 ',
      '\\uc99 ',
      '\\bin5 ',
      '\\par',
      '\\cell',
      '\\row',
      '{\\*',
      '\\pard',
      '\\f1 ',
      '{\\footnote ',
    ]
    let seed = 7
    const next = (below: number) => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      return (seed >>> 8) % below
    }
    for (let i = 0; i < volumeOf(10_000); i++) {
      let bad = Buffer.from(good)
      for (let n = next(6); n >= 0; n--) {
        const at = next(bad.length)
        const piece = next(2) === 0 ? Buffer.from(pieces[next(pieces.length)] ?? '') : Buffer.of(next(256))
        bad = Buffer.concat([bad.subarray(0, at), piece, bad.subarray(at + next(12))])
      }
      const result = await readBytes(bad, i % 2 === 0 ? 'text' : 'markdown').catch(
        (error: { kind?: string }) => error.kind,
      )
      expect(result === 'invalid' || (result?.endsWith('\n') && result.isWellFormed()), bad.toString('latin1')).toBe(
        true,
      )
    }
  })
})

test('a document in Rich Text Format in a folder is read in the encodings that it declares, and its secrets are masked', async () => {
  const key = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
  const bytes = Buffer.concat([
    Buffer.from('{\\rtf1\\ansi\\ansicpg1251 '),
    encode('Привет', 'windows-1251'),
    Buffer.from(`\\par token {\\b ${key.slice(0, 10)}}${key.slice(10)}\\par}`),
  ])
  const provider = documents(memory({ 'a.rtf': { bytes, mimeType: 'text/rtf', version: '1' } }), {
    through: (inner) => redacted(inner),
  })
  for (const as of ['text', 'markdown'])
    expect(await readOne(provider, 'a.rtf', { params: { as } })).toMatchObject({ text: 'Привет\n\ntoken [redacted]\n' })
  await provider.close?.()
})
