import { describe, expect, test } from 'vitest'
import { type DocumentFormat, documentFormatOf, type ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { documents } from '../../src/wrap/documents.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import {
  atom,
  compound,
  container,
  doc,
  f64,
  ppt,
  pptStreams,
  properties,
  record,
  sheetText,
  slideText,
  u16,
  u32,
  wide,
  xls,
  xlsStream,
} from '../fixtures/documents/compound.ts'
import { docx, p, relationships } from '../fixtures/documents/office.ts'
import { zip } from '../fixtures/documents/zip.ts'
import { readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

const limits = { characters: 200_000, unpacked: 20_000_000 }
const read = async (format: DocumentFormat, bytes: Uint8Array, form: ReadingForm = 'text') =>
  (await readDocument({ format, form, bytes, limits })).text

/** Styles of cells: plain, a date, a pattern of the workbook. */
const styles = [
  record(0x41e, u16(164), sheetText('00000')),
  record(0xe0, u16(0, 0), Buffer.alloc(16)),
  record(0xe0, u16(0, 14), Buffer.alloc(16)),
  record(0xe0, u16(0, 164), Buffer.alloc(16)),
]
const strings = record(0xfc, u32(2, 2), sheetText('梅雨'), sheetText('a|b'))
const cells = [
  record(0xfd, u16(0, 0, 0), u32(0)),
  record(0xfd, u16(0, 1, 0), u32(1)),
  record(0x203, u16(1, 0, 1), f64(43_000)),
  record(0x27e, u16(1, 1, 2), u32((1234 << 2) | 2)),
  record(0xbd, u16(3, 0), u16(0), u32((5 << 2) | 2), u16(0), u32((150 << 2) | 3), u16(1)),
  record(0x06, u16(4, 0, 0), Buffer.from([0, 0, 0, 0, 0, 0, 0xff, 0xff]), Buffer.alloc(8)),
  record(0x207, sheetText('formula text')),
  record(0x205, u16(4, 1, 0), Buffer.from([1, 0])),
  record(0x205, u16(4, 2, 0), Buffer.from([0x07, 1])),
]
const workbook = xls({ globals: [...styles, strings], cells })

describe('an .xls workbook', () => {
  test('is read as tables of the shown values: texts, dates, formats, results, errors', async () => {
    expect(await read('xls', workbook)).toBe(
      '表\n\n梅雨\ta|b\n2017-09-22\t01234\n\n5\t1.5\nformula text\tTRUE\t#DIV/0!\n',
    )
    expect(await read('xls', workbook, 'markdown')).toContain('# 表\n\n| 梅雨 | a\\|b |\n| --- | --- |')
    const since1904 = xls({ globals: [...styles, strings, record(0x22, u16(1))], cells })
    expect(await read('xls', since1904)).toContain('2021-09-23')
  })

  test('is read with whole texts, also if they continue in the next record, in another character width, or end with formatting', async () => {
    const long = 'x'.repeat(50)
    const rich = Buffer.concat([u16(2), Buffer.from([8]), u16(1), Buffer.from('ab'), u32(0)])
    const split = [
      record(0xfc, u32(3, 3), rich, u16(60), Buffer.from([0]), Buffer.from(long)),
      record(0x3c, Buffer.from([1]), wide('0123456789'), sheetText('last')),
    ]
    const shown = [0, 1, 2].map((index) => record(0xfd, u16(0, index, 0), u32(index)))
    expect(await read('xls', xls({ globals: [...styles, ...split], cells: shown }))).toBe(
      `表\n\nab\t${long}0123456789\tlast\n`,
    )
  })

  test('of Excel 5, and of Excel 2 without a compound file, is read in its code page', async () => {
    const beginning = (kind: number) => record(0x809, u16(0x500, kind), Buffer.alloc(4))
    const name = Buffer.from([2, 0xcb, 0xe8])
    const head = [beginning(5), record(0x42, u16(1251))]
    const start = Buffer.concat([...head, record(0x85, u32(0), u16(0), name), record(0x0a)]).length
    const cell = record(0x204, u16(0, 0, 0), u16(2), Buffer.from([0xc4, 0xe0]))
    const book = Buffer.concat([
      ...head,
      record(0x85, u32(start), u16(0), name),
      record(0x0a),
      beginning(0x10),
      cell,
      record(0x0a),
    ])
    expect(await read('xls', compound({ Book: book }))).toBe('Ли\n\nДа\n')
    const old = [
      record(0x09, u16(2, 0x10)),
      record(0x04, u16(0, 0), Buffer.from([0, 0, 0, 3]), Buffer.from('old')),
      record(0x02, u16(0, 1), Buffer.from([0, 0, 0]), u16(7)),
      record(0x0a),
    ]
    expect(await read('xls', Buffer.concat(old))).toBe('old\t7\n')
  })

  test('that is encrypted, or refers to missing parts, is refused with its reason', async () => {
    const encrypted = xls({ globals: [record(0x2f, u16(1))], cells })
    await expect(read('xls', encrypted)).rejects.toMatchObject({ detail: { reason: 'withheld' } })
    await expect(read('xls', xls({ cells }))).rejects.toMatchObject({ detail: { reason: 'unreadable' } })
    const today = compound({ EncryptedPackage: Buffer.alloc(5000), EncryptionInfo: Buffer.alloc(100) })
    for (const format of ['xlsx', 'docx', 'xls'] as const)
      await expect(read(format, today)).rejects.toMatchObject({ detail: { reason: 'withheld' } })
  })
})

test('a binary workbook (.xlsb) is read with its texts, dates, numbers and results, also under the name .xlsx', async () => {
  const item = (type: number, ...data: readonly Buffer[]) => {
    const all = Buffer.concat(data)
    const kind = type < 128 ? [type] : [(type & 127) | 128, type >> 7]
    const length = [all.length & 127, (all.length >> 7) & 127, all.length >> 14]
    return Buffer.concat([Buffer.from([...kind, (length[0] ?? 0) | 128, (length[1] ?? 0) | 128, length[2] ?? 0]), all])
  }
  const text = (value: string) => Buffer.concat([u32(value.length), wide(value)])
  const style = (format: number) => item(47, u16(0, format, 0), Buffer.alloc(10))
  const bytes = zip([
    { name: '_rels/.rels', data: relationships([['rId1', 'officeDocument', 'xl/workbook.bin']]) },
    {
      name: 'xl/_rels/workbook.bin.rels',
      data: relationships([
        ['rId1', 'worksheet', 'worksheets/sheet1.bin'],
        ['rId2', 'sharedStrings', 'sharedStrings.bin'],
        ['rId3', 'styles', 'styles.bin'],
      ]),
    },
    {
      name: 'xl/workbook.bin',
      data: Buffer.concat([item(153, u32(1, 0)), item(156, u32(0, 1), text('rId1'), text('表'))]),
    },
    { name: 'xl/sharedStrings.bin', data: item(19, Buffer.from([0]), text('梅雨')) },
    {
      name: 'xl/styles.bin',
      data: Buffer.concat([item(44, u16(164), text('00000')), item(617), style(0), style(14), style(164), item(618)]),
    },
    {
      name: 'xl/worksheets/sheet1.bin',
      data: Buffer.concat([
        item(0, u32(0)),
        item(7, u32(0, 0), u32(0)),
        item(5, u32(1, 1), f64(43_000)),
        item(2, u32(2, 2), u32((1234 << 2) | 2)),
        // A record that is longer than what is unpacked at once.
        item(1000, Buffer.alloc(100_000)),
        item(17, u32(0), text('next')),
        item(0, u32(2)),
        item(4, u32(0, 0), Buffer.from([1])),
        item(11, u32(1, 0), Buffer.from([42])),
        item(8, u32(2, 0), text('result')),
      ]),
    },
  ])
  expect(await read('xlsb', bytes)).toBe('表\n\n梅雨\t2021-09-23\t01234\tnext\n\nTRUE\t#N/A\tresult\n')
  expect(await read('xlsx', bytes)).toBe(await read('xlsb', bytes))
})

describe('a document of Word 97 or earlier', () => {
  const inTable = Buffer.from([0x16, 0x24, 1])
  const rowEnd = Buffer.from([0x16, 0x24, 1, 0x17, 0x24, 1])
  const none = Buffer.alloc(0)

  test('is read with its headings, tables, links, notes and line breaks', async () => {
    const link = '\x13 HYPERLINK "https://example.org/" \x14the page\x15'
    const text = `第一章\rSee ${link} now.\x02\rone\x0btwo\ra\x07b\x07\x07last\r\x02A note\r`
    const mark = text.indexOf('\x02')
    const bytes = doc({
      text,
      note: { length: 8, mark },
      paragraphs: [
        [1, none],
        [0, none],
        [0, none],
        [0, inTable],
        [0, inTable],
        [0, rowEnd],
        [0, none],
        [0, none],
      ],
    })
    expect(await read('doc', bytes)).toBe('第一章\n\nSee the page now.[1]\n\none\ntwo\n\na\tb\n\nlast\n\n[1] A note\n')
    const markdown = await read('doc', bytes, 'markdown')
    expect(markdown).toContain('# 第一章\n\nSee [the page](<https://example.org/>) now.\\[1\\]')
    expect(markdown).toContain('| a | b |\n| --- | --- |\n\nlast')
  })

  test('of Word 6 or 95 from East Asia is read in UTF-16, with the rows of its tables', async () => {
    const text = wide('第一章\rSecond line\ra\x07b\x07\x07c\x07d\x07\x07last\r')
    const stream = Buffer.alloc(0x400)
    stream.writeUInt16LE(0xa5dc, 0)
    stream.writeUInt16LE(0x68, 2)
    stream.writeUInt16LE(0x1000, 10)
    stream.writeUInt32LE(stream.length, 0x18)
    stream.writeUInt32LE(stream.length + text.length, 0x1c)
    stream.writeUInt32LE(text.length / 2, 0x34)
    expect(await read('doc', compound({ WordDocument: Buffer.concat([stream, text]) }))).toBe(
      '第一章\n\nSecond line\n\na\tb\nc\td\n\nlast\n',
    )
  })

  test('keeps text after a field without an end, and is refused if it is encrypted or truncated', async () => {
    expect(await read('doc', doc({ text: 'a\x13 lost text\r' }))).toContain('lost text')
    await expect(read('doc', doc({ text: 'a\r', flags: 0x100 }))).rejects.toMatchObject({
      detail: { reason: 'withheld' },
    })
    await expect(read('doc', doc({ text: 'word\r' }).subarray(0, 1200))).rejects.toMatchObject({
      detail: { reason: 'unreadable' },
    })
    await expect(read('doc', Buffer.from('dba52d00'.padEnd(2000, '0'), 'hex'))).rejects.toMatchObject({
      kind: 'invalid',
    })
  })
})

test('a presentation of PowerPoint 97 is read slide by slide, with its boxes and notes', async () => {
  const bytes = ppt({
    outline: [slideText(0, '引き出し'), slideText(1, 'one\rtwo')],
    boxes: [slideText(4, 'in a box\x0bsecond line')],
    notes: 'said *here*',
  })
  expect(await read('ppt', bytes)).toBe(
    'Slide 1: 引き出し\n\n- one\n- two\n\nin a box\nsecond line\n\nNotes\n\nsaid *here*\n',
  )
  expect(await read('pptx', bytes, 'markdown')).toContain('# Slide 1: 引き出し\n\n- one\n- two')
})

test('a presentation shows its date, header and footer where the slide or the document says so, once', async () => {
  const footers = (kind: number, bits: number, ...texts: readonly [number, string][]) =>
    container(0x0fd9, kind, atom(0x0fda, 0, u16(0, bits)), ...texts.map(([at, text]) => atom(0x0fba, at, wide(text))))
  const read97 = (...facts: readonly Buffer[]) =>
    read('ppt', ppt({ outline: [slideText(0, 'title')], notes: 'said', facts }))
  expect(
    await read97(footers(3, 0b10_0101, [0, 'May'], [2, 'foot']), footers(4, 0b1_0000, [1, 'head'], [2, 'not'])),
  ).toBe('Slide 1: title\n\nMay\n\nfoot\n\nNotes\n\nsaid\n\nhead\n')
  expect(await read97(footers(3, 0b10, [0, 'May'], [2, 'foot']))).toBe('Slide 1: title\n\nNotes\n\nsaid\n')
})

test('a file that holds a presentation for PowerPoint 95 and for 97 is read as that for 97', async () => {
  const streams = pptStreams({ outline: [slideText(0, 'for 97')] })
  const bytes = compound({ 'PowerPoint Document': Buffer.alloc(64), PP97_DUALSTORAGE: streams })
  expect(await read('ppt', bytes)).toBe('Slide 1: for 97\n')
})

describe('a message of Outlook', () => {
  const inner = properties(24, { '0037001f': 'inner subject', '1000001f': 'inner text' })
  const message = compound({
    ...properties(32, {
      '0037001f': '引き出し',
      '0c1a001f': 'Rain',
      '5d01001f': 'rain@example.org',
      '1000001f': 'first\r\n\r\nsecond',
    }),
    '__recip_version1.0_#00000000': properties(8, { '3001001f': 'A', '39fe001f': 'a@example.org', '0c150003': 1 }),
    '__recip_version1.0_#00000001': properties(8, {
      '3001001f': 'b@example.org',
      '39fe001f': 'b@example.org',
      '0c150003': 2,
    }),
    '__attach_version1.0_#00000000': properties(8, {
      '3707001f': '計画.docx',
      '37010102': docx({ body: p('文書の中') }),
    }),
    '__attach_version1.0_#00000001': { ...properties(8, { '3001001f': 'inner' }), '__substg1.0_3701000D': inner },
  })

  test('is read with its headers, its text, and its attachments as parts', async () => {
    expect(await read('msg', message)).toBe(
      '引き出し\n\nFrom: Rain <rain@example.org>\nTo: A <a@example.org>\nCc: b@example.org\n\nfirst\n\nsecond\n\n' +
        'Attachment: 計画.docx\n\n文書の中\n\n[2] 脚注の文。\n\nAttachment: inner\n\ninner subject\n\ninner text\n',
    )
    expect(await readDocument({ format: 'msg', form: 'text', bytes: message, limits })).toMatchObject({
      title: '引き出し',
      parts: 2,
    })
  })

  test('is read as its HTML page, or as its compressed RTF, if it has no plain text', async () => {
    const page = compound(properties(32, { '0037001f': 's', '10130102': Buffer.from('<p>shown <b>words</b></p>') }))
    expect(await read('msg', page, 'markdown')).toContain('shown **words**')
    const source = Buffer.from('{\\rtf1 rich words}')
    const stored = Buffer.concat([u32(source.length + 12, source.length), Buffer.from('MELA'), u32(0), source])
    expect(await read('msg', compound(properties(32, { '0037001f': 's', '10090102': stored })))).toContain('rich words')
    // The example of [MS-OXRTFCP], 3.1.1.
    const packed =
      '2d0000002b0000004c5a4675f1c5c7a703000a0072637067313235423209f32068 656c09002062770 5b06c647d0a800fa0'
    const compressed = Buffer.from(packed.replaceAll(' ', ''), 'hex')
    expect(await read('msg', compound(properties(32, { '0037001f': 's', '10090102': compressed })))).toContain(
      'hello world',
    )
  })

  test('without a code page is read in that of its language, and in UTF-8 where that fits', async () => {
    const cyrillic = { '0037001e': Buffer.from('e4eec2', 'hex'), '3ff10003': 1049, '3fde0003': 65_001 }
    const both = { ...cyrillic, '1000001e': Buffer.from('текст') }
    expect(await read('msg', compound(properties(32, both)))).toBe('доВ\n\nтекст\n')
    const taiwan = { '0037001e': Buffer.from('a4a4a4e5', 'hex'), '3ff10003': 0x0404 }
    expect(await read('msg', compound(properties(32, taiwan)))).toBe('中文\n')
  })

  test('that is nested in other messages is read up to a depth, also in attached files', async () => {
    let nested = compound(properties(32, { '0037001f': 'deepest', '1000001f': 'deepest text' }))
    for (let level = 0; level < 8; level++)
      nested = compound({
        ...properties(32, { '0037001f': `level ${level}` }),
        '__attach_version1.0_#00000000': properties(8, { '3707001f': 'a.msg', '37010102': nested }),
      })
    expect(await read('msg', nested)).toContain('nested too deep')
  })
})

describe('compound files', () => {
  const samples: Readonly<Record<string, Buffer>> = {
    'a.xls': workbook,
    'a.doc': doc({ text: 'first words\rlast\r' }),
    'a.ppt': ppt({ outline: [slideText(0, 'title')] }),
    'a.msg': compound(properties(32, { '0037001f': 'subject', '1000001f': 'text' })),
  }

  test('are recognized by their contents, whatever their names', async () => {
    for (const bytes of Object.values(samples)) {
      const texts = await Promise.all(
        (['xls', 'doc', 'ppt', 'msg', 'docx'] as const).map((format) => read(format, bytes)),
      )
      expect(new Set(texts).size).toBe(1)
    }
  })

  test('with endless chains of sectors, or with huge counts, are refused, or read without the damaged part', async () => {
    const bytes = Buffer.from(samples['a.xls'] ?? [])
    const tableAt = 512 + bytes.readUInt32LE(76) * 512
    const cyclic = Buffer.from(bytes)
    cyclic.writeUInt32LE(0, tableAt)
    for (let at = 0; at < 20; at++) {
      const bad = Buffer.from(cyclic)
      bad.writeUInt32LE(0xfffffff0, 44 + at * 4)
      await read('xls', bad).catch((error) => expect(error).toMatchObject({ name: 'ResourceError' }))
    }
    const huge = xlsStream({ globals: [record(0xfc, u32(0xffffffff, 0xffffffff), u16(0xffff))], cells: [] })
    expect(await read('xls', compound({ Workbook: huge }))).toBe('表\n')
    const wideRows = Array.from({ length: 5000 }, (_, row) => record(0x27e, u16(row, 16_383, 0), u32(6)))
    await expect(read('xls', xls({ cells: wideRows }))).rejects.toMatchObject({ kind: 'too-large' })
  })

  test('that are damaged anywhere are refused, or read as well-formed text', async () => {
    let seed = 47
    const next = (below: number) => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      return (seed >>> 8) % below
    }
    const rounds = Number(process.env.HIKIDASHI_MUTATIONS ?? 150)
    for (const [name, bytes] of Object.entries(samples))
      for (let round = 0; round < rounds; round++) {
        const bad = Buffer.from(round % 5 === 0 ? bytes.subarray(0, next(bytes.length)) : bytes)
        for (let count = 0; count <= round % 7 && bad.length > 0; count++)
          bad[next(bad.length)] = [0, 255, 128, next(256)][next(4)] ?? 0
        const text = await read(documentFormatOf(name, undefined) ?? 'doc', bad).catch((error) => {
          expect(error, `${name} ${round}: ${error.stack}`).toMatchObject({ name: 'ResourceError' })
          return ''
        })
        expect(text.isWellFormed()).toBe(true)
      }
  }, 600_000)

  test('have a secret masked when a mount that redacts reads them as text', async () => {
    const key = 'AKIAIOSFODNN7EXAMPLE'
    const secret = doc({ text: `the key is ${key}\rwJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\r` })
    const served = documents(memory({ 'a.doc': { bytes: secret, version: '1' } }), {
      through: (provider) => redacted(provider, { mode: 'mask' }),
    })
    try {
      const content = await readOne(served, 'a.doc', { params: { as: 'text' } })
      expect('text' in content && content.text).toContain('the key is')
      expect('text' in content && content.text).not.toContain(key)
    } finally {
      await served.close?.()
    }
  })
})
