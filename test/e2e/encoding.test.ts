import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import { describe, expect, test } from 'vitest'
import { decodeBytes, encodingLabel, isMostlyUtf8, repairUtf8 } from '../../src/text/encoding/decode.ts'
import { detectEncoding, detectionSampleBytes } from '../../src/text/encoding/detect.ts'
import { encode, encodings, excerptsOf, textsOf } from '../fixtures/documents/sentences.ts'
import { volumeOf } from '../support/volume.ts'

const marks: Readonly<Record<string, readonly number[]>> = {
  'utf-8': [0xef, 0xbb, 0xbf],
  'utf-16le': [0xff, 0xfe],
  'utf-16be': [0xfe, 0xff],
}

/** How many texts are found to be in the encoding they are in, and in which others they are found to be. */
function count(label: string, texts: readonly string[]) {
  const wrong: string[] = []
  let right = 0
  for (const text of texts) {
    const found = detectEncoding(encode(text, label))
    if (found === label) right++
    else if (found !== undefined) wrong.push(`${found}: ${text}`)
  }
  return { share: right / texts.length, wrong }
}

describe('the encoding of a long text', () => {
  for (const [label, languages] of Object.entries(encodings))
    for (const language of languages)
      test(`is detected: ${language} in ${label}`, () => {
        const { share, wrong } = count(label, textsOf(language, 200, 600))
        expect(wrong).toEqual([])
        expect(share).toBeGreaterThanOrEqual(0.99)
      })
})

describe('the encoding of 25 characters', () => {
  // Without a space or the end of a line nothing tells UTF-16 from other pairs of bytes.
  const least: Readonly<Record<string, number>> = { 'windows-1252': 0.8, 'utf-16le': 0, 'utf-16be': 0 }
  for (const [label, languages] of Object.entries(encodings))
    for (const language of languages)
      test(`is detected or left open, never wrong: ${language} in ${label}`, () => {
        const { share, wrong } = count(label, excerptsOf(language, 25))
        expect(wrong).toEqual([])
        expect(share).toBeGreaterThanOrEqual(least[label] ?? 0.99)
      })
})

describe('the text of a file', () => {
  test('is not changed by encoding and decoding, in any supported encoding', () => {
    for (const [label, languages] of Object.entries(encodings))
      for (const language of languages)
        for (const text of textsOf(language, 5, 300)) expect(decodeBytes(encode(text, label), label)).toBe(text)
  })

  test('has the encoding of its byte order mark, which is removed', () => {
    for (const [label, mark] of Object.entries(marks)) {
      const bytes = Buffer.concat([Buffer.from(mark), encode('一', label)])
      expect(detectEncoding(bytes)).toBe(label)
      expect(decodeBytes(bytes, label)).toBe('一')
    }
  })

  test('is detected as UTF-8 if it is all ASCII, or empty', () => {
    expect(detectEncoding(Buffer.alloc(0))).toBe('utf-8')
    expect(detectEncoding(Buffer.from('plain\n'.repeat(50_000)))).toBe('utf-8')
    // What terminals write is not ISO-2022-JP.
    expect(detectEncoding(Buffer.from('\x1b[1mbold\x1b(B\x1b[m $ \x1b[0m'))).toBe('utf-8')
  })

  test('is detected as UTF-8 even if a few of its bytes are damaged', () => {
    const [text = ''] = textsOf('ja', 1, 600)
    const bytes = Buffer.from(text)
    bytes[100] = 0xff
    bytes[700] = 0x41
    expect(detectEncoding(bytes)).toBe('utf-8')
  })

  test('is detected in the same encoding by its beginning as by its whole, if its beginning is not all ASCII', () => {
    for (const [label, languages] of Object.entries(encodings))
      for (const language of languages)
        for (const ascii of [
          0,
          1,
          1000,
          detectionSampleBytes - 300,
          detectionSampleBytes - 1,
          detectionSampleBytes * 2,
        ]) {
          const [text = ''] = textsOf(language, 1, 40_000)
          const bytes = encode(`${'x'.repeat(ascii)}\n${text}`, label)
          const beyond = ascii > detectionSampleBytes - 300 && !label.startsWith('utf-16')
          expect(detectEncoding(bytes), `${label} ${language} ${ascii}`).toBe(label)
          const head = detectEncoding(bytes.subarray(0, detectionSampleBytes))
          if (!beyond) expect(head, `${label} ${language} ${ascii}`).toBe(label)
        }
  })

  test('is detected in the encoding that it declares, if its bytes are valid in that encoding', () => {
    const page = '<html><head><meta charset="windows-1251"></head><body>Привет, мир. Добро пожаловать.</body></html>'
    expect(detectEncoding(encode(page, 'windows-1251'))).toBe('windows-1251')
    expect(detectEncoding(encode('# -*- coding: euc-jp -*-\n# 東京都\n', 'euc-jp'))).toBe('euc-jp')
    // The declaration was not changed with the encoding.
    expect(detectEncoding(Buffer.from('<?xml version="1.0" encoding="Shift_JIS"?><a>こんにちは</a>'))).toBe('utf-8')
    expect(
      detectEncoding(encode('<meta charset="euc-kr"><p>データベースへの接続に失敗しました。</p>', 'shift_jis')),
    ).toBe('shift_jis')
  })

  test('is detected in the encoding of the configured language if its bytes allow several encodings', () => {
    const bytes = encode('東京', 'euc-jp')
    expect(detectEncoding(bytes)).toBeUndefined()
    expect(detectEncoding(bytes, 'ja')).toBe('euc-jp')
    expect(detectEncoding(bytes, 'ja', 'western')).toBe('euc-jp')
    const german = Buffer.from('Grüße', 'latin1')
    expect(detectEncoding(german, 'ja', 'western')).toBe('windows-1252')
  })

  test.each([
    '番号,氏名\r\n1,田中',
    '価格：1,000円',
    '① 項目',
    '議事録',
    '氏名 ｶﾅ\r\n山田 ﾔﾏﾀﾞ',
    'ﾃｽﾄ',
    'ﾃｽﾄﾃﾞｰﾀ',
    'ﾔﾏﾀﾞ,ﾀﾛｳ\r\nｽｽﾞｷ,ﾊﾅｺ\r\n',
  ])('is detected from a few words if its language is known to be Japanese: %j', (text) => {
    for (const label of ['shift_jis', 'euc-jp']) expect(detectEncoding(encode(text, label), 'ja'), label).toBe(label)
  })

  test('is not detected in an encoding in which its last character is cut, unless it is the beginning of a long text', () => {
    const bytes = encode('ﾃｽﾄ', 'shift_jis')
    expect(detectEncoding(bytes)).toBeUndefined()
    // Of a text that goes on behind the sample, the last character may be cut.
    const long = encode('日本語の文章。'.repeat(20_000), 'euc-jp')
    for (let end = 100_000; end < 100_004; end++) expect(detectEncoding(long.subarray(0, end))).toBe('euc-jp')
  })

  test('has no encoding if it is binary, whatever the language', () => {
    const random = Buffer.from(randomBytes(200).map((byte) => (byte < 32 || byte === 127 ? byte + 128 : byte)))
    for (const language of ['ja', 'zh', 'ko'] as const)
      expect(detectEncoding(Buffer.concat([random, Buffer.of(0xff)]), language)).toBeUndefined()
  })
})

describe('text in a neighbouring code page', () => {
  test.each([
    ['windows-1250', 'A könyvtár hétfőn zárva van, de a következő napon tőlünk is kölcsönözhető a mű.'],
    ['windows-1250', 'Příliš zelený kůň úpěl ďábelské ódy, a děti si hrály před školou celý večer.'],
    ['iso-8859-2', 'Egy erdőben élt egy öreg medve, aki minden ősszel mézet gyűjtött a télre, és örült.'],
    ['windows-1254', 'Öğretmen çocuklara geçmiş yılların şiirlerini öğretti ve güzel bir gün geçirdiler.'],
  ])('is not detected as western European: %s, %j', (label, text) => {
    expect(detectEncoding(iconv.encode(text, label))).not.toBe('windows-1252')
  })
})

describe('binary data', () => {
  test('is not detected as text: random bytes, compressed bytes, numbers', () => {
    const kinds: Readonly<Record<string, (size: number) => Buffer>> = {
      random: (size) => randomBytes(size),
      'random without controls': (size) =>
        Buffer.from(randomBytes(size).map((byte) => (byte < 32 ? byte + 128 : byte))),
      'random above ASCII': (size) => Buffer.from(randomBytes(size).map((byte) => byte | 0x80)),
      compressed: (size) => deflateSync(randomBytes(size).map((byte) => byte % 40)),
      'numbers of two bytes': (size) => Buffer.from(Uint16Array.from({ length: size }, (_, i) => (i * i) % 700).buffer),
      'numbers of four bytes': (size) => Buffer.from(Float32Array.from({ length: size }, (_, i) => i / 7).buffer),
    }
    for (const [kind, make] of Object.entries(kinds))
      for (const size of [64, 256, 4096, 200_000])
        for (let i = 0; i < volumeOf(30, 5); i++) expect(detectEncoding(make(size)), `${kind} ${size}`).toBeUndefined()
  })

  test('of a few bytes with a zero, or of an odd number of bytes, is not detected as UTF-16', () => {
    for (const text of ['x', 'ok', '123']) expect(detectEncoding(encode(text, 'utf-16le')), text).toBeUndefined()
    const sentence = encode('The quick brown fox jumps.\n', 'utf-16le')
    expect(detectEncoding(sentence)).toBe('utf-16le')
    expect(detectEncoding(sentence.subarray(0, -1))).toBeUndefined()
    expect(detectEncoding(Buffer.from('x\0y'))).toBeUndefined()
  })
})

describe('a text in an encoding with one byte for each character', () => {
  const sentences: Readonly<Record<string, readonly [text: string, ...labels: string[]]>> = {
    Russian: [
      'Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью.',
      ...['windows-1251', 'koi8-r', 'iso-8859-5', 'ibm866', 'ibm855', 'x-mac-cyrillic'],
    ],
    Ukrainian: ['Всі люди народжуються вільними і рівними у своїй гідності та правах.', 'windows-1251', 'koi8-u'],
    Bulgarian: ['Всички хора се раждат свободни и равни по достойнство и права.', 'windows-1251'],
    Greek: [
      'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.',
      ...['windows-1253', 'iso-8859-7'],
    ],
    Turkish: [
      'Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.',
      'windows-1254',
    ],
    Hebrew: ['כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.', 'windows-1255'],
    Arabic: ['يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.', 'windows-1256', 'iso-8859-6'],
    Thai: ['มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ', 'windows-874'],
    Czech: [
      'Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají spolu jednat v duchu bratrství. Žáci šli ze školy šťastní, že už mají prázdniny.',
      ...['windows-1250', 'iso-8859-2'],
    ],
    Polish: [
      'Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.',
      ...['windows-1250', 'iso-8859-2'],
    ],
    Hungarian: [
      'Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek. Őszi eső, hűvös idő.',
      ...['windows-1250', 'iso-8859-2'],
    ],
  }
  for (const [language, [text, ...labels]] of Object.entries(sentences))
    for (const label of labels)
      test(`is read as it was written: ${language} in ${label}`, () => {
        const bytes = iconv.encode(text, iconvNames[label] ?? label)
        const found = detectEncoding(bytes)
        expect(found).toBeDefined()
        expect(decodeBytes(bytes, found ?? '')).toBe(text)
        for (let length = 4; length < text.length; length += 9) {
          const part = text.slice(0, length)
          const short = iconv.encode(part, iconvNames[label] ?? label)
          const shortFound = detectEncoding(short)
          if (shortFound !== undefined) expect(decodeBytes(short, shortFound), shortFound).toBe(part)
        }
      })

  test('is decoded with the euro sign if it is in ISO 8859-15', () => {
    const text = 'Boligpriserne i København er høje: 3146 €/m², og der må påregnes udgifter til både vand og varme.'
    const bytes = iconv.encode(text, 'iso-8859-15')
    expect(decodeBytes(bytes, detectEncoding(bytes) ?? '')).toBe(text)
  })

  test('is detected as Mac Roman by a single apostrophe', () => {
    const bytes = Buffer.from(
      `${'plain text, '.repeat(200)}Daniel\xd5s Trackpad ${'plain text, '.repeat(200)}`,
      'latin1',
    )
    expect(detectEncoding(bytes)).toBe('macintosh')
  })
})

describe('UTF-32', () => {
  const text = 'Übung, 日本語, Русский 🙂\nline 2\n'
  for (const label of ['utf-32le', 'utf-32be'])
    test(`is detected with and without its byte order mark, which is removed by decoding: ${label}`, () => {
      const bytes = encode32(text, label === 'utf-32le')
      expect(detectEncoding(bytes)).toBe(label)
      const withMark = encode32(`\ufeff${text}`, label === 'utf-32le')
      expect(detectEncoding(withMark)).toBe(label)
      expect(decodeBytes(withMark, label)).toBe(text)
      expect(detectEncoding(encode32('ab\0\u0001', label === 'utf-32le'))).toBeUndefined()
    })

  test('with invalid code points is decoded with U+FFFD, or refused in strict mode', () => {
    expect(decodeBytes(Buffer.from([0, 0x11, 0, 0, 0, 0, 0, 0x41, 0]), 'utf-32be')).toBe('\ufffdA\ufffd')
    expect(decodeBytes(Buffer.from([0, 0x11, 0, 0]), 'utf-32be', 'strict')).toBeUndefined()
  })
})

function encode32(text: string, isLittleEndian: boolean): Buffer {
  const characters = [...text]
  const bytes = Buffer.alloc(4 * characters.length)
  for (const [i, character] of characters.entries()) {
    const code = character.codePointAt(0) ?? 0
    if (isLittleEndian) bytes.writeUInt32LE(code, 4 * i)
    else bytes.writeUInt32BE(code, 4 * i)
  }
  return bytes
}

/** Names that only iconv-lite has. */
const iconvNames: Readonly<Record<string, string>> = { ibm855: 'cp855', 'x-mac-cyrillic': 'maccyrillic' }

describe('decoding a text', () => {
  test('supports encodings that Node lacks: Windows-1252 and code page 949', () => {
    expect(decodeBytes(Buffer.from([0x93, 0x80, 0x94, 0x92]), 'windows-1252')).toBe('“€”’')
    // Every syllable, of which KS X 1001 has a fifth.
    const syllables = Array.from({ length: 11_172 }, (_, i) => String.fromCharCode(0xac00 + i)).join('')
    expect(decodeBytes(encode(syllables, 'euc-kr'), 'euc-kr')).toBe(syllables)
    expect(detectEncoding(encode('똠방각하 펲시콜라, 이것은 한국어로 쓴 문장입니다.', 'euc-kr'))).toBe('euc-kr')
  })

  test('maps the wave dash and circled numbers as Windows does', () => {
    expect(decodeBytes(Buffer.from([0x81, 0x60, 0x87, 0x40, 0xfb, 0xfc]), 'shift_jis')).toBe('～①髙')
  })

  test('shows malformed bytes as U+FFFD', () => {
    expect(decodeBytes(Buffer.from([0x41, 0xff, 0xff, 0x42]), 'euc-kr')).toBe('A\ufffdB')
    expect(decodeBytes(Buffer.from([0xff, 0x41]), 'euc-kr')).toBe('\ufffdA')
    expect(decodeBytes(Buffer.from([0x82, 0xa0, 0x82]), 'shift_jis')).toBe('あ\ufffd')
  })

  test('accepts the common names of encodings', () => {
    const names = {
      CP932: 'shift_jis',
      sjis: 'shift_jis',
      ' EUC-JP': 'euc-jp',
      latin1: 'windows-1252',
      uhc: 'euc-kr',
      nonsense: undefined,
    }
    for (const [name, label] of Object.entries(names)) expect(encodingLabel(name)).toBe(label)
  })
})

describe('repairing UTF-8', () => {
  test('keeps the number of bytes, and gives well-formed text for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const repaired = repairUtf8(bytes)
        expect(repaired.length).toBe(bytes.length)
        expect(repaired.toString()).not.toContain('\ufffd')
      }),
    )
  })

  test('does not change well-formed text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const bytes = Buffer.from(text)
        expect(isMostlyUtf8(bytes)).toBe(true)
        expect(repairUtf8(bytes)).toEqual(bytes)
      }),
    )
  })
})

test('the detection of an encoding ends for 4 MB of bytes that are ambiguous in several encodings', () => {
  const shapes = [
    () => 0x81,
    () => 0xfe,
    (i: number) => [0x81, 0x30][i % 2] ?? 0,
    (i: number) => [0xe9, 0x65][i % 2] ?? 0,
    () => 0x1b,
  ]
  const found = shapes.map((shape) =>
    detectEncoding(Buffer.from(Array.from({ length: 4_000_000 }, (_, i) => shape(i)))),
  )
  expect(found).toEqual(['shift_jis', undefined, undefined, 'windows-1252', 'utf-8'])
})
