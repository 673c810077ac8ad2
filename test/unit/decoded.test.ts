import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Content, Provider } from '../../src/core/provider.ts'
import { files } from '../../src/providers/files/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { type DecodedOptions, decoded, encodingKey } from '../../src/wrap/decoded.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { encode, encodings, textsOf } from '../fixtures/documents/sentences.ts'
import { createFolder, type Folder, listAll, readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

let folder: Folder
let root: Provider

beforeAll(async () => {
  folder = createFolder()
  root = await files({ root: folder.root })
})
afterAll(async () => {
  await root.close?.()
  folder.remove()
})

const withMark = (text: string, label: string) =>
  Buffer.concat([Buffer.from(label === 'utf-16le' ? [0xff, 0xfe] : [0xfe, 0xff]), encode(text, label)])

const textOf = (content: Content) => ('text' in content ? content.text : '(bytes)')
const encodingOf = (content: Content) => content.meta?.[encodingKey]

describe('a text in another encoding', () => {
  const texts = Object.entries(encodings).flatMap(([label, languages]) =>
    languages.map((language) => ({ label, language, text: textsOf(language, 1, 3000)[0] ?? '' })),
  )

  test.each(texts)('is decoded: $language in $label', async ({ label, language, text }) => {
    const path = `${label}-${language}.txt`
    folder.write({ [path]: encode(text, label) })
    const content = await readOne(decoded(root), path)
    expect(textOf(content)).toBe(text)
    expect(encodingOf(content)).toBe(label === 'utf-8' ? undefined : label)
    expect(content).toMatchObject({ mimeType: 'text/plain', size: Buffer.byteLength(text) })
  })

  test('keeps the MIME type of its name', async () => {
    folder.write({
      '表.csv': encode('項目,値\n梅雨の期間,六月から七月まで\n', 'shift_jis'),
      '頁.html': encode('<html><p>データベースへの接続に失敗しました。</p></html>', 'euc-jp'),
      Makefile: encode('# 設定ファイルを変更した後は、再起動する。\nall:\n', 'shift_jis'),
      noname: encode('設定ファイルを変更した後は、再起動する。\n', 'shift_jis'),
    })
    const types = ['表.csv', '頁.html', 'Makefile', 'noname'].map(
      async (path) => (await readOne(decoded(root), path)).mimeType,
    )
    expect(await Promise.all(types)).toEqual(['text/csv', 'text/html', 'text/x-makefile', 'text/plain'])
  })

  test('has its byte order mark removed, and its encoding in the metadata', async () => {
    folder.write({
      'mark8.txt': '\ufeff印のある文。',
      'mark16le.txt': withMark('印のある文。', 'utf-16le'),
      'mark16be.txt': withMark('印のある文。', 'utf-16be'),
    })
    for (const [path, label] of [
      ['mark8.txt', 'utf-8'],
      ['mark16le.txt', 'utf-16le'],
      ['mark16be.txt', 'utf-16be'],
    ] as const) {
      const content = await readOne(decoded(root), path)
      expect([textOf(content), encodingOf(content)]).toEqual(['印のある文。', label])
    }
  })

  test('is divided by the bytes of its text in UTF-8, whatever its stored encoding', async () => {
    const lines = Array.from({ length: 4000 }, (_, i) => `${i + 1}行目：今年の梅雨は例年より長い。`)
    const text = `${lines.join('\n')}\n`
    const parted = sliced(decoded(root))
    for (const label of ['shift_jis', 'euc-jp', 'iso-2022-jp', 'utf-16le', 'utf-8']) {
      const path = `long-${label}.txt`
      folder.write({ [path]: label === 'utf-16le' ? withMark(text, label) : encode(text, label) })
      const params = { lines: '3001-3002' }
      expect(textOf(await readOne(parted, path, { params }))).toBe(`${lines[3000]}\n${lines[3001]}\n`)
      // Behind the end of what is stored, and not of the text.
      const at = Buffer.byteLength(text) - 37
      const end = await readOne(parted, path, { params: { bytes: `${at}-` } })
      expect(textOf(end)).toBe(Buffer.from(text).subarray(at).toString())
      expect(end.range).toEqual({ start: at, end: at + 37 })
      expect(encodingOf(end)).toBe(label === 'utf-8' ? undefined : label)
    }
  })

  test('has its encoding detected after a long beginning in ASCII, also when only a part is read', async () => {
    const text = `${'-- comment\n'.repeat(20_000)}データベースへの接続に失敗しました。\n`
    folder.write({ 'late.sql': encode(text, 'shift_jis') })
    expect(textOf(await readOne(decoded(root), 'late.sql'))).toBe(text)
    const part = await readOne(sliced(decoded(root)), 'late.sql', { params: { lines: '20000-20001' } })
    expect(textOf(part)).toBe('-- comment\nデータベースへの接続に失敗しました。\n')
  })

  test('is read again when it changes', async () => {
    const source = memory({ 'a.txt': { bytes: encode('最初の内容です。', 'shift_jis'), version: '1' } })
    const provider = decoded(source)
    expect(textOf(await readOne(provider, 'a.txt', { range: { start: 0, end: 4 } }))).toBe('最初の内容です。')
    source.entries.set('a.txt', { bytes: encode('次の内容になった。', 'euc-jp'), version: '2' })
    expect(textOf(await readOne(provider, 'a.txt', { range: { start: 0, end: 4 } }))).toBe('次の内容になった。')
  })

  test('beyond the limit is too large, and the error has advice', async () => {
    folder.write({ 'large.txt': encode('今年の梅雨は例年より長い。\n'.repeat(10_000), 'shift_jis') })
    const read = readOne(sliced(decoded(root, { maxBytes: 100_000 })), 'large.txt', { params: { lines: '1' } })
    await expect(read).rejects.toMatchObject({ kind: 'too-large', message: expect.stringContaining('?tail=200') })
  })
})

describe('a wrong guess of an encoding', () => {
  const short = encode('東京', 'euc-jp')
  const read = async (bytes: Uint8Array, options: DecodedOptions, path = 'data/x.txt') =>
    readOne(decoded(memory({ [path]: { bytes, version: '1' } }), options), path)

  test('is corrected by a rule; the last rule that matches applies', async () => {
    expect(textOf(await read(short, {}))).toBe('(bytes)')
    const rules = [
      { match: 'data/**', encoding: 'shift_jis' },
      { match: '*.txt', encoding: 'eucjp' },
    ]
    expect(textOf(await read(short, { rules }))).toBe('東京')
    expect(textOf(await read(encode('Добро', 'koi8-r'), { rules: [{ match: '**', encoding: 'koi8-r' }] }))).toBe(
      'Добро',
    )
  })

  test('is corrected by the configured language', async () => {
    expect(textOf(await read(short, { language: 'ja-JP' }))).toBe('東京')
  })

  test('is not forced by a rule on binary data or on UTF-8', async () => {
    const rules = [{ match: '**', encoding: 'shift_jis' }]
    const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(100)])
    expect(textOf(await read(png, { rules }))).toBe('(bytes)')
    expect(textOf(await read(Buffer.from([0x41, 0, 0x42]), { rules }))).toBe('(bytes)')
    expect(textOf(await read(Buffer.from('もう直した。'), { rules }))).toBe('もう直した。')
  })

  test('is corrected by a rule that says "binary": the bytes are served unchanged', async () => {
    const bytes = encode('今年の梅雨は例年より長い。', 'shift_jis')
    const rules = [{ match: 'data/', encoding: 'binary' }]
    expect(textOf(await read(bytes, { rules }))).toBe('(bytes)')
  })

  test('cannot be corrected by an unknown encoding or a malformed glob, which are refused', () => {
    const bad = () => decoded(memory({}), { rules: [{ match: '**', encoding: 'sihft_jis' }] })
    expect(bad).toThrow(/There is no encoding "sihft_jis". Write a label/)
    expect(() => decoded(memory({}), { rules: [{ match: '[', encoding: 'shift_jis' }] })).toThrow(/glob/)
  })
})

describe('UTF-8 with damaged bytes', () => {
  const text = '今年の梅雨は例年より長い。\n'.repeat(20_000)
  const bytes = Buffer.from(text)
  for (const at of [1000, 300_000, 700_000]) bytes[at] = 0xff

  test('is text with a U+FFFD or "?" for each of them, and unchanged offsets', async () => {
    folder.write({ 'damaged.log': bytes })
    const provider = decoded(root)
    const whole = await readOne(provider, 'damaged.log')
    if (!('text' in whole)) throw new Error('not text')
    expect(whole.text.match(/\ufffd|\?+/g)).toHaveLength(3)
    const shown = Buffer.from(whole.text)
    expect(shown.length).toBe(bytes.length)
    expect(shown.equals(bytes)).toBe(false)
    for (const [start, end] of [
      [0, 500],
      [900, 1200],
      [299_990, 300_010],
      [699_000, 701_000],
    ] as const) {
      const part = await readOne(provider, 'damaged.log', { range: { start, end } })
      expect(part.range).toBeDefined()
      expect(textOf(part)).toBe(shown.subarray(part.range?.start, part.range?.end).toString())
    }
    const line = await readOne(sliced(provider), 'damaged.log', { params: { lines: '19999-' } })
    expect(textOf(line)).toBe('今年の梅雨は例年より長い。\n'.repeat(2))
  })
})

describe('binary data in the decoding wrapper', () => {
  test('is unchanged, at any size and in parts', async () => {
    const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(200_000)])
    folder.write({ 'a.png': png, 'a.dat': randomBytes(200_000), 'tiny.dat': Uint8Array.of(0xff, 0xd8, 0xff, 0xe0) })
    for (const path of ['a.png', 'a.dat', 'tiny.dat']) {
      for (const request of [{}, { range: { start: 1, end: 3 } }])
        expect(await readOne(decoded(root), path, request)).toEqual(await readOne(root, path, request))
    }
  })

  test('is not read twice, and neither is plain UTF-8', async () => {
    const source = memory({
      'a.md': { text: 'plain', version: '1' },
      'b.bin': { bytes: randomBytes(1000), version: '1' },
    })
    for (const path of ['a.md', 'b.bin']) await readOne(decoded(source), path)
    expect(source.calls.read).toBe(2)
  })

  test('is passed as a stream without buffering if it is too large to examine', async () => {
    const pieces = async function* () {
      yield encode('今年の梅雨は', 'shift_jis')
      yield encode('例年より長い。', 'shift_jis')
    }
    const length = encode('今年の梅雨は例年より長い。', 'shift_jis').length
    const source = (size: number): Provider => ({
      ...memory({}),
      read: async () => [{ stream: pieces(), length: size }],
    })
    expect(await readOne(decoded(source(1e12)), 'x')).toHaveProperty('stream')
    expect(textOf(await readOne(decoded(source(length)), 'x'))).toBe('今年の梅雨は例年より長い。')
  })
})

test('parts of a large log in UTF-8 cost one read of its beginning', async () => {
  const line = `${'x'.repeat(99)}\n`
  folder.write({ 'huge.log': line.repeat(200_000) })
  const ranges: number[] = []
  const counting: Provider = {
    ...root,
    read: (request, context) => {
      ranges.push((request.range?.end ?? 0) - (request.range?.start ?? 0))
      return root.read(request, context)
    },
  }
  const provider = decoded(counting)
  for (let i = 0; i < 10; i++)
    expect(
      textOf(await readOne(provider, 'huge.log', { range: { start: 1e7 + i * 100, end: 1e7 + i * 100 + 100 } })),
    ).toBe(line)
  expect(ranges).toEqual([100, 65_536, ...new Array(9).fill(100)])
})

test('the listing of the decoding wrapper is that of the source, sizes included', async () => {
  const provider = decoded(root)
  expect(await listAll(provider)).toEqual(await listAll(root))
})

const held: Readonly<Record<string, string | Uint8Array>> = {
  'utf8/日本語.txt': '今年の梅雨は例年より長い。\n'.repeat(500),
  'utf8/mark.txt': '\ufeff印のある文。',
  'utf8/empty.txt': '',
  'utf8/ascii.txt': 'plain\n'.repeat(20_000),
  'binary.dat': Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256),
}

const subject = async (more: Readonly<Record<string, readonly [string, string]>>) => {
  const made = createFolder()
  made.write({
    ...held,
    ...Object.fromEntries(Object.entries(more).map(([path, [text, label]]) => [path, encode(text, label)])),
  })
  const entries = [
    ...Object.entries(held).map(
      ([path, content]) =>
        [path, typeof content === 'string' ? { text: content.replace(/^\ufeff/, '') } : { bytes: content }] as const,
    ),
    ...Object.entries(more).map(([path, [text]]) => [path, { text }] as const),
  ]
  return {
    provider: decoded(await files({ root: made.root })),
    expectation: { entries: Object.fromEntries(entries), missing: ['utf8', 'x'] },
    dispose: made.remove,
  }
}

describeProvider({ describe, test }, 'decoded files that need no decoding', () => subject({}), { through: { sliced } })

describeProvider(
  { describe, test },
  'decoded files',
  () =>
    subject({
      'sjis.txt': [textsOf('ja', 1, 2000)[0] ?? '', 'shift_jis'],
      'euc.txt': [textsOf('ja', 1, 2000)[0] ?? '', 'euc-jp'],
      'jis.txt': [textsOf('ja', 1, 2000)[0] ?? '', 'iso-2022-jp'],
      'big5.txt': [textsOf('zh-hant', 1, 2000)[0] ?? '', 'big5'],
    }),
  { through: { sliced }, except: { 'read-size': 'the listing has the size in the encoding of the source' } },
)
