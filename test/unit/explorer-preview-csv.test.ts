import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { delimiterOf, parseCellNumber, parseCsv, rowOrder } from '../../src/explorer/web/preview/model/rows.ts'

const formatCsv = (rows: readonly (readonly string[])[]) =>
  rows.map((row) => `${row.map(quoted).join(',')}\r\n`).join('')
const quoted = (cell: string) => (/[",\r\n]/.test(cell) || cell === '' ? `"${cell.replaceAll('"', '""')}"` : cell)
const rowsOf = (text: string, delimiter?: string) => [...parseCsv(text, delimiter)]

describe('parsing comma-separated values', () => {
  test('reads cells in quotes, with commas, doubled quotes and line ends, as RFC 4180 specifies', () => {
    expect(rowsOf('a,b\r\n"x, ""y""\r\nz",2\r\n')).toEqual([
      ['a', 'b'],
      ['x, "y"\r\nz', '2'],
    ])
  })

  test('ends rows at CRLF, LF, CR or the end of the text, and skips empty lines', () => {
    expect(rowsOf('a\nb\rc\r\n\r\nd')).toEqual([['a'], ['b'], ['c'], ['d']])
  })

  test('keeps empty cells, also at the end of a line and of the text', () => {
    expect(rowsOf('a,\n,b\n,')).toEqual([
      ['a', ''],
      ['', 'b'],
      ['', ''],
    ])
    expect(rowsOf('""\n')).toEqual([['']])
  })

  test('accepts slightly malformed rows, a byte order mark and an empty text', () => {
    expect(rowsOf('a"b,"c"d\n"never closed,\nx')).toEqual([['a"b', 'cd'], ['never closed,\nx']])
    expect(rowsOf('\ufeff名前,数')).toEqual([['名前', '数']])
    expect(rowsOf('')).toEqual([])
  })

  test('gives back any cells that were written', () => {
    const cell = fc.oneof(fc.string(), fc.constantFrom('"', ',', '\r\n', '\n', '\r', '', 'あ,"い"'))
    const rows = fc.array(fc.array(cell, { minLength: 1, maxLength: 5 }), { maxLength: 6 })
    fc.assert(
      fc.property(rows, (written) => {
        expect(rowsOf(formatCsv(written))).toEqual(written)
      }),
    )
  })

  test('finds the delimiter that the MIME type says or the lines agree on', () => {
    expect(delimiterOf('a;b;c\n1,5;2;3\n4;5;6\n', undefined)).toBe(';')
    expect(delimiterOf('a\tb\n1\t2\n', undefined)).toBe('\t')
    expect(delimiterOf('a,b\n', 'text/tab-separated-values')).toBe('\t')
    expect(delimiterOf('one column\nonly\n', undefined)).toBe(',')
  })
})

describe('the order of a sorted table in the explorer', () => {
  const rows = [
    ['b', '10'],
    ['a', '9'],
    ['', ''],
    ['c', '1,000'],
  ]

  test('is by number in a column of numbers, with empty cells last', () => {
    expect(rowOrder(rows, 1, false)).toEqual([1, 0, 3, 2])
    expect(rowOrder(rows, 1, true)).toEqual([3, 0, 1, 2])
  })

  test('is by text in other columns, and is stable', () => {
    expect(rowOrder(rows, 0, false)).toEqual([1, 0, 3, 2])
    expect(rowOrder([['x'], ['x'], ['x']], 0, true)).toEqual([0, 1, 2])
  })

  test('counts notations such as 1,234.5 and ¥300 and 12 % as numbers, but no dates or versions', () => {
    expect(['1,234.5', '¥300', '12 %', '-1e3', '+7', '.5'].map(parseCellNumber)).toEqual([
      1234.5, 300, 12, -1000, 7, 0.5,
    ])
    expect(['', '1,2', 'abc', '1.2.3', '-', '2026-01-01'].map(parseCellNumber)).toEqual(Array(6).fill(undefined))
  })
})
