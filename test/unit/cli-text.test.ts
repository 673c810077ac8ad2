import { describe, expect, test } from 'vitest'
import { formatSize, formatUtcTime, resourceToJson } from '../../src/cli/terminal/io.ts'
import {
  createColumns,
  displayWidth,
  escapeLines,
  escapeText,
  padDisplay,
  readableUri,
} from '../../src/cli/terminal/text.ts'

describe('text on a terminal', () => {
  test.each([
    ['\u001b[31mred\u001b]8;;http://x\u0007', '\\u001b[31mred\\u001b]8;;http://x\\u0007'],
    ['a\r\nb\tc\0', 'a\\r\\nb\\tc\\u0000'],
    ['\u009b2J\u007f', '\\u009b2J\\u007f'],
    ['exe.\u202egnp', 'exe.\\u202egnp'],
    ['\u2066x\u2069\u200e\u061c', '\\u2066x\\u2069\\u200e\\u061c'],
    ['\ufeffa\u200bb\u2060', '\\ufeffa\\u200bb\\u2060'],
    ['\u2028\u2029', '\\u2028\\u2029'],
    ['\u{e0041}', '\\u{e0041}'],
    ['\ud800x', '\\ud800x'],
    ['日本語 👩‍👩‍👧 नमस्ते é', '日本語 👩‍👩‍👧 नमस्ते é'],
  ])('such as %j is printed as %s', (text, expected) => expect(escapeText(text)).toBe(expected))

  test('keeps its line ends and tabs if it is printed as lines, and no other control character', () => {
    expect(escapeLines('a\r\n\tb\n\u001b[1mc\rd')).toBe('a\r\n\tb\n\\u001b[1mc\\rd')
  })

  test('of a URI is decoded as far as it stays one word with the same meaning', () => {
    expect(readableUri('file:///%E6%97%A5%E6%9C%AC/a%20b%2F%25.md')).toBe('file:///日本/a%20b%2F%25.md')
    // A direction mark, a space of another script, and what is no UTF-8.
    for (const uri of ['x://%E2%80%AE', 'x://%E3%80%80', 'x://%FF%FE', 'x://%E6%97']) expect(readableUri(uri)).toBe(uri)
  })
})

describe('the width of text in a terminal', () => {
  test.each([
    ['abc', 3],
    ['日本語', 6],
    ['ｱｲｳ', 3],
    ['ＡＢ', 4],
    ['한국어', 6],
    ['e\u0301', 1],
    ['か\u3099', 2],
    ['👍', 2],
    ['👍🏽', 2],
    ['👩‍👩‍👧', 2],
    ['🇯🇵', 2],
    ['❤️', 2],
    ['', 0],
    ['𠮷', 2],
    ['…', 1],
  ])('of %s is %i', (text, width) => expect(displayWidth(text)).toBe(width))

  test('is used to align columns, and later rows get no narrower', () => {
    expect(padDisplay('日本', 6)).toBe('日本  ')
    expect(padDisplay('日本', 6, 'right')).toBe('  日本')
    const layOut = createColumns([0])
    expect(
      layOut([
        ['1', '日本', 'x'],
        ['100', 'a', 'y'],
        ['2', 'b', ''],
      ]),
    ).toBe('  1  日本  x\n100  a     y\n  2  b\n')
    // What was printed stays where it is: later rows are no narrower.
    expect(layOut([['1', 'c', 'z']])).toBe('  1  c     z\n')
  })

  test('of one very long cell widens its column only up to a limit', () => {
    const long = 'a'.repeat(64)
    expect(
      createColumns()([
        [long, 'x'],
        ['a', 'y'],
      ]),
    ).toBe(`${long}  x\n${'a'.padEnd(60)}  y\n`)
  })
})

describe('numbers and times in a terminal:', () => {
  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [1536, '1.5 KiB'],
    [10_188, '9.9 KiB'],
    [10_190, '10 KiB'],
    [1_048_063, '1023 KiB'],
    [1_048_065, '1.0 MiB'],
    [5 * 2 ** 30, '5.0 GiB'],
    [2 ** 53, '8.0 PiB'],
  ])('%i bytes are %s', (bytes, text) => expect(formatSize(bytes)).toBe(text))

  test('a time is in ISO 8601, to the second in text and to the millisecond in JSON', () => {
    expect(formatUtcTime(1_700_000_000_123)).toBe('2023-11-14T22:13:20Z')
    const resource = { uri: 'x://a', name: 'a', size: 1, modified: 1_700_000_000_123 }
    expect(resourceToJson(resource)).toEqual({ uri: 'x://a', name: 'a', size: 1, modified: '2023-11-14T22:13:20.123Z' })
    expect(resourceToJson({ uri: 'x://a', name: 'a' })).toEqual({ uri: 'x://a', name: 'a' })
  })
})
